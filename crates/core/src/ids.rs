//! Ids of rows, and their text: TypeIDs such as `job_01jd…`.
//!
//! A job's id is its message's id with the last 32 bits replaced by the lane's number. So one primary key serves
//! three questions (the job by id, a message's jobs, "does this destination have this message already"), and a
//! fan-out that is resumed after a crash can't make a job twice.

use std::fmt;

/// The Crockford base32 alphabet of the TypeID specification, version 0.3:
/// <https://github.com/jetify-com/typeid/tree/main/spec>.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";

/// The characters of a 128-bit suffix.
const SUFFIX_LENGTH: usize = 26;

/// Names a tenant's rows. Numbers are given by the store, from 1; they never leave the process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TenantId(pub u32);

/// Names one destination's lane within a tenant, for ever: a destination that is deleted and made again keeps it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LaneId(pub u32);

/// Names a message (`msg_…`): a UUIDv7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct MessageId(pub u128);

/// Names a job (`job_…`): its message's first 96 bits, then the lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct JobId(pub u128);

/// Names an API key (`key_…`): a UUIDv7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ApiKeyId(pub u128);

/// Names a bulk run (`run_…`): a UUIDv7.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct RunId(pub u128);

impl JobId {
    /// The one job that `message` owes to `lane`.
    pub fn of(message: MessageId, lane: LaneId) -> Self {
        Self((message.0 & !0xFFFF_FFFF) + u128::from(lane.0))
    }

    /// The lane that the id names.
    #[allow(clippy::cast_possible_truncation)] // the low 32 bits are what is asked for
    pub fn lane(self) -> LaneId {
        LaneId(self.0 as u32)
    }
}

impl MessageId {
    /// The smallest and the largest id that a job of this message can have.
    pub fn job_range(self) -> (JobId, JobId) {
        (JobId(self.0 & !0xFFFF_FFFF), JobId(self.0 | 0xFFFF_FFFF))
    }
}

macro_rules! typeid {
    ($name:ident, $prefix:literal) => {
        impl $name {
            /// The id that `text` spells: the prefix, `_`, and 26 characters of lower-case base32.
            pub fn parse(text: &str) -> Option<Self> {
                decode(text.strip_prefix(concat!($prefix, "_"))?).map(Self)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                let suffix = encode(self.0);
                f.write_str(concat!($prefix, "_"))?;
                f.write_str(std::str::from_utf8(&suffix).expect("the alphabet is ASCII"))
            }
        }
    };
}

typeid!(MessageId, "msg");
typeid!(JobId, "job");
typeid!(ApiKeyId, "key");
typeid!(RunId, "run");

fn encode(value: u128) -> [u8; SUFFIX_LENGTH] {
    let mut suffix = [0; SUFFIX_LENGTH];
    let mut rest = value;
    for character in suffix.iter_mut().rev() {
        *character = ALPHABET[usize::try_from(rest & 31).expect("five bits")];
        rest >>= 5;
    }
    suffix
}

fn decode(suffix: &str) -> Option<u128> {
    // 26 characters hold 130 bits: the first may only be 0 to 7.
    if suffix.len() != SUFFIX_LENGTH || suffix.as_bytes()[0] > b'7' {
        return None;
    }
    suffix.bytes().try_fold(0, |value: u128, character| {
        let digit = ALPHABET.iter().position(|&known| known == character)?;
        Some((value << 5) + u128::try_from(digit).ok()?)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// From the valid.json of the TypeID specification.
    #[test]
    fn text_follows_the_typeid_specification() {
        let valid = [
            (0, "00000000000000000000000000"),
            (1, "00000000000000000000000001"),
            (10, "0000000000000000000000000a"),
            (16, "0000000000000000000000000g"),
            (32, "00000000000000000000000010"),
            (u128::MAX, "7zzzzzzzzzzzzzzzzzzzzzzzzz"),
            (0x0110_c853_1d09_52d8_d73e_1194_e95b_5f19, "0123456789abcdefghjkmnpqrs"),
            (0x0189_0a5d_ac96_774b_bcce_b302_099a_8057, "01h455vb4pex5vsknk084sn02q"),
        ];
        for (value, text) in valid {
            assert_eq!(format!("msg_{text}"), MessageId(value).to_string());
            assert_eq!(Some(MessageId(value)), MessageId::parse(&format!("msg_{text}")));
        }
    }

    #[test]
    fn malformed_text_is_no_id() {
        for text in [
            "",
            "msg_",
            "msg",
            "job_00000000000000000000000000",
            "msg_0000000000000000000000000",
            "msg_000000000000000000000000000",
            "msg_8zzzzzzzzzzzzzzzzzzzzzzzzz",
            "msg_0123456789ABCDEFGHJKMNPQRS",
            "msg_0123456789abcdefghjkmnpqru",
            "msg_0123456789abcdefghjkmnpqr-",
            "msg_0123456789abcdefghjkmnpq\u{e9}",
        ] {
            assert_eq!(None, MessageId::parse(text), "{text}");
        }
    }

    #[test]
    fn a_job_id_is_its_message_and_lane() {
        let message = MessageId(0x0189_0a5d_ac96_774b_bcce_b302_099a_8057);
        let job = JobId::of(message, LaneId(7));
        assert_eq!(JobId(0x0189_0a5d_ac96_774b_bcce_b302_0000_0007), job);
        assert_eq!(LaneId(7), job.lane());
        let (first, last) = message.job_range();
        assert!(first <= job && job <= last);
        assert_eq!(JobId(0x0189_0a5d_ac96_774b_bcce_b302_ffff_ffff), last);
        assert_eq!(first, JobId::of(message, LaneId(0)));
    }
}
