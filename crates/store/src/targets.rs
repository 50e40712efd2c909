//! The targets of a fan-out that is running, as bytes in its row.
//!
//! Version 1: the byte 1; then for each target in the order of acceptance the lane (4 bytes, big-endian), a byte of
//! flags, and for each flag of a text its length (2 bytes, big-endian) and its bytes in UTF-8. Flags: 1 is pulled by
//! workers, 2 has a `webhook-id` of its own, 4 has an owner. The destination is the lane's.

use posthaste_core::{Kind, LaneId};

use crate::{Target, rows::job::Extra};

const VERSION: u8 = 1;
const PULL: u8 = 1;
const WIRE_ID: u8 = 2;
const OWNER: u8 = 4;

/// One target as it is decoded.
#[derive(Debug)]
pub(crate) struct Owed {
    pub(crate) lane: LaneId,
    pub(crate) kind: Kind,
    pub(crate) extra: Extra,
}

/// The targets that are owed a job: one a lane, the first. Same rule as [`crate::accepting::distinct`].
pub(crate) fn distinct(targets: &[Target]) -> Vec<&Target> {
    if let [_] | [] = targets {
        return targets.iter().collect();
    }
    let mut lanes = std::collections::HashSet::with_capacity(targets.len());
    targets.iter().filter(|target| lanes.insert(target.lane)).collect()
}

pub(crate) fn encode(targets: &[&Target]) -> Result<Vec<u8>, &'static str> {
    let mut bytes = Vec::with_capacity(1 + targets.len() * 8);
    bytes.push(VERSION);
    for target in targets {
        let pull = if target.kind == Kind::Pull { PULL } else { 0 };
        let wire_id = if target.wire_id.is_some() { WIRE_ID } else { 0 };
        let owner = if target.owner.is_some() { OWNER } else { 0 };
        bytes.extend_from_slice(&target.lane.0.to_be_bytes());
        bytes.push(pull | wire_id | owner);
        for text in [&target.wire_id, &target.owner].into_iter().flatten() {
            let length = u16::try_from(text.len()).map_err(|_| "a target's text is too long")?;
            bytes.extend_from_slice(&length.to_be_bytes());
            bytes.extend_from_slice(text.as_bytes());
        }
    }
    Ok(bytes)
}

/// Up to `limit` targets after the first `made`, and whether more follow.
pub(crate) fn decode(bytes: &[u8], made: usize, limit: usize) -> Result<(Vec<Owed>, bool), &'static str> {
    let [VERSION, targets @ ..] = bytes else {
        return Err("a fan-out's targets have an unknown version");
    };
    let mut rest = targets;
    let mut owed = Vec::new();
    let mut index = 0;
    while !rest.is_empty() && owed.len() < limit {
        let Some(target) = next(&mut rest) else {
            return Err("a fan-out's targets end in the middle");
        };
        if index >= made {
            owed.push(target);
        }
        index += 1;
    }
    Ok((owed, !rest.is_empty()))
}

fn next(rest: &mut &[u8]) -> Option<Owed> {
    let lane = LaneId(u32::from_be_bytes(*rest.split_off(..4)?.as_array()?));
    let flags = *rest.split_off_first()?;
    let mut text = |flag| -> Option<Option<Box<str>>> {
        if flags & flag == 0 {
            return Some(None);
        }
        let length = u16::from_be_bytes(*rest.split_off(..2)?.as_array()?);
        let text = rest.split_off(..usize::from(length))?;
        Some(Some(std::str::from_utf8(text).ok()?.into()))
    };
    let extra = Extra { wire_id: text(WIRE_ID)?, owner: text(OWNER)? };
    Some(Owed { lane, kind: if flags & PULL == 0 { Kind::Push } else { Kind::Pull }, extra })
}

#[cfg(test)]
mod tests {
    use posthaste_core::DestinationId;

    use super::*;

    fn target(lane: u32, kind: Kind, wire_id: Option<&str>, owner: Option<&str>) -> Target {
        Target {
            lane: LaneId(lane),
            destination: DestinationId::new("d").unwrap(),
            kind,
            wire_id: wire_id.map(Box::from),
            owner: owner.map(Box::from),
        }
    }

    #[test]
    fn targets_come_back_in_any_chunks() {
        let targets = [
            target(u32::MAX, Kind::Pull, Some("msg_1"), Some("team")),
            target(1, Kind::Push, None, None),
            target(3, Kind::Pull, None, Some("é")),
            target(2, Kind::Push, Some(""), None),
        ];
        let bytes = encode(&targets.each_ref()).unwrap();
        for chunk in 1..=5 {
            let mut made = 0;
            let mut more = true;
            while more {
                let (owed, left) = decode(&bytes, made, chunk).unwrap();
                for (owed, target) in owed.iter().zip(&targets[made..]) {
                    assert_eq!((target.lane, target.kind), (owed.lane, owed.kind));
                    assert_eq!((&target.wire_id, &target.owner), (&owed.extra.wire_id, &owed.extra.owner));
                }
                made += owed.len();
                more = left;
            }
            assert_eq!(targets.len(), made);
        }
    }

    #[test]
    fn what_is_cut_short_is_refused() {
        let bytes = encode(&[&target(7, Kind::Push, Some("wire"), Some("owner"))]).unwrap();
        for length in 2..bytes.len() {
            assert!(decode(&bytes[..length], 0, 10).is_err(), "{length}");
        }
        assert!(decode(&[], 0, 10).is_err());
        assert!(decode(&[9], 0, 10).is_err());
    }
}
