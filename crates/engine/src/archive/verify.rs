//! Whether a file is still what the store says that it is.

use std::collections::HashMap;

use posthaste_store::{ArchiveFile, Indexed};

use super::{
    file::{Manifest, hex, sha256, unpack},
    lines::Record,
};

/// Mistakes that are named for one file; then how many more there are.
const NAMED_MAX: usize = 20;

/// What is wrong with a file that is there: nothing, if it is as it was written, and every key that the store refers to
/// is where it says. Blocks.
pub(crate) fn problems_of(
    known: &ArchiveFile,
    packed: &[u8],
    manifest: Option<&[u8]>,
    indexed: &[Indexed],
) -> Vec<String> {
    let mut problems = Vec::new();
    if packed.len() as u64 != known.bytes {
        problems.push(format!("it has {} bytes, not {}", packed.len(), known.bytes));
    }
    let found = hex(&sha256(packed));
    if found != hex(&known.sha256) {
        problems.push(format!("its SHA-256 is {found}, not {}", hex(&known.sha256)));
    }
    match manifest.map(serde_json::from_slice::<Manifest>) {
        None => problems.push("its manifest is missing".to_owned()),
        Some(Err(error)) => problems.push(format!("its manifest can't be read: {error}")),
        Some(Ok(manifest)) if manifest != Manifest::of(known) => {
            problems.push("its manifest says something else than the store".to_owned());
        }
        Some(Ok(_)) => {}
    }
    match unpack(packed) {
        Ok(text) => check_text(known, &text, indexed, &mut problems),
        Err(error) => problems.push(format!("it can't be unpacked: {error}")),
    }
    if problems.len() > NAMED_MAX {
        let more = problems.len() - NAMED_MAX;
        problems.truncate(NAMED_MAX);
        problems.push(format!("and {more} more"));
    }
    problems
}

fn check_text(known: &ArchiveFile, text: &[u8], indexed: &[Indexed], problems: &mut Vec<String>) {
    let mut lines: HashMap<u64, (u64, Record)> = HashMap::new();
    let (mut at, mut count) = (0_u64, 0_u64);
    for line in text.split_inclusive(|byte| *byte == b'\n') {
        count += 1;
        match Record::from_line(line) {
            Ok(record) => drop(lines.insert(at, (line.len() as u64, record))),
            Err(error) => problems.push(format!("line {count}: {error}")),
        }
        at += line.len() as u64;
    }
    if count != known.records {
        problems.push(format!("it has {count} lines, not {}", known.records));
    }
    for index in indexed {
        let here = lines.get(&index.at_byte).is_some_and(|(bytes, record)| {
            let message = match record {
                Record::Message(record) => Some(record.message.id),
                Record::Entry(_) => None,
            };
            *bytes == index.bytes
                && (record.tenant(), record.key(), message) == (index.tenant, &*index.key, index.message)
        });
        if !here {
            problems
                .push(format!("{:?} is not at byte {}, where the store has it", index.key, index.at_byte));
        }
    }
}
