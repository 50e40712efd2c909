//! One file: lines gathered, packed and described; and a line taken out again.

use std::io::{Read, Write};

use aws_lc_rs::digest::{SHA256, digest};
use bytes::Bytes;
use flate2::{Compression, read::MultiGzDecoder, write::GzEncoder};
use posthaste_core::Timestamp;
use posthaste_store::{ArchiveFile, Place, Retire};
use serde::{Deserialize, Serialize};

use super::lines::Record;

/// Bytes of text after which a file is full. The last record may take it beyond.
const TEXT_BYTES_MAX: usize = 8 * 1024 * 1024;

/// Records after which a file is full.
const RECORDS_MAX: usize = 10_000;

/// Gathers records for one file.
#[derive(Default)]
pub(crate) struct Packer {
    text: Vec<u8>,
    records: Vec<(Record, u64, u64)>,
}

impl Packer {
    /// Adds a record.
    pub(crate) fn add(&mut self, record: Record, tenant: &str) {
        let line = record.to_line(tenant);
        self.records.push((record, self.text.len() as u64, line.len() as u64));
        self.text.extend_from_slice(&line);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    pub(crate) fn is_full(&self) -> bool {
        self.text.len() >= TEXT_BYTES_MAX || self.records.len() >= RECORDS_MAX
    }

    /// What is to be retired where no archive keeps it.
    pub(crate) fn given_up(self) -> Vec<Retire> {
        self.records.into_iter().map(|(record, ..)| retire(record, None)).collect()
    }

    /// The file, its manifest, and what is to be retired once it is in place. Blocks: packs.
    ///
    /// `None` if a line doesn't come back as it was written: nothing of it may be deleted.
    pub(crate) fn pack(self, name: &str, written_at: Timestamp) -> Option<Packed> {
        let came_back = self.records.iter().all(|(record, at, bytes)| {
            let line = slice(&self.text, *at, *bytes);
            line.is_some_and(|line| Record::from_line(line).is_ok_and(|read| read == *record))
        });
        if !came_back {
            return None;
        }
        let mut encoder = GzEncoder::new(Vec::new(), Compression::default());
        encoder.write_all(&self.text).ok()?;
        let packed = Bytes::from(encoder.finish().ok()?);
        let file = ArchiveFile {
            file: name.into(),
            records: self.records.len() as u64,
            bytes: packed.len() as u64,
            sha256: sha256(&packed),
            first_key: self.records.first()?.0.key().into(),
            last_key: self.records.last()?.0.key().into(),
            written_at,
        };
        let manifest = Manifest::of(&file).to_bytes();
        let place = |at_byte, bytes| Some(Place { file: name.into(), at_byte, bytes });
        let records = self.records.into_iter();
        let retire = records.map(|(record, at, bytes)| retire(record, place(at, bytes))).collect();
        Some(Packed { file, packed, manifest, retire })
    }
}

fn retire(record: Record, place: Option<Place>) -> Retire {
    match record {
        Record::Message(record) => Retire::Message { record, place },
        Record::Entry(record) => Retire::Entry { record, place },
    }
}

/// A file that is ready.
pub(crate) struct Packed {
    pub(crate) file: ArchiveFile,
    pub(crate) packed: Bytes,
    pub(crate) manifest: Bytes,
    pub(crate) retire: Vec<Retire>,
}

/// What stands beside a file.
#[derive(Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Manifest {
    version: u32,
    file: String,
    records: u64,
    bytes: u64,
    sha256: String,
    first_key: String,
    last_key: String,
    written_at: i64,
}

impl Manifest {
    pub(crate) fn of(file: &ArchiveFile) -> Self {
        Self {
            version: 1,
            file: file.file.to_string(),
            records: file.records,
            bytes: file.bytes,
            sha256: hex(&file.sha256),
            first_key: file.first_key.to_string(),
            last_key: file.last_key.to_string(),
            written_at: file.written_at.0,
        }
    }

    fn to_bytes(&self) -> Bytes {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a manifest is plain data");
        bytes.push(b'\n');
        bytes.into()
    }
}

pub(crate) fn sha256(bytes: &[u8]) -> [u8; 32] {
    digest(&SHA256, bytes).as_ref().try_into().expect("SHA-256 has 32 bytes")
}

/// Hexadecimal digits, in lower case.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().flat_map(|byte| [byte >> 4, byte & 15]).map(digit).collect()
}

fn digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).expect("four bits")
}

/// The whole text. Blocks. Errors: what the unpacker says.
pub(crate) fn unpack(packed: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut text = Vec::new();
    MultiGzDecoder::new(packed).read_to_end(&mut text)?;
    Ok(text)
}

/// The record at `place`; the text is unpacked as far as needed. Blocks.
///
/// Errors: what is wrong with the file.
pub(crate) fn line_at(packed: &[u8], place: &Place) -> Result<Record, String> {
    let end = place.at_byte.checked_add(place.bytes).ok_or("there is no such place")?;
    let mut text = Vec::new();
    MultiGzDecoder::new(packed).take(end).read_to_end(&mut text).map_err(|error| error.to_string())?;
    let line = slice(&text, place.at_byte, place.bytes).ok_or("it is shorter than it was")?;
    Record::from_line(line).map_err(|error| error.to_string())
}

fn slice(text: &[u8], at: u64, bytes: u64) -> Option<&[u8]> {
    let at = usize::try_from(at).ok()?;
    text.get(at..at.checked_add(usize::try_from(bytes).ok()?)?)
}
