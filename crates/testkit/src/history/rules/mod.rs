//! The rules. Each is a function that reads the index and notes what it finds.

mod attempts;
mod messages;
mod reports;
mod times;
mod words;

use super::{checker::Findings, index::Index};

/// A rule, or a few that are read from the same place.
pub(super) type Check = fn(&Index<'_>, &mut Findings);

/// All of them.
pub(super) const ALL: &[Check] = &[
    messages::lost,
    messages::unfinished,
    messages::ghost,
    messages::payload,
    messages::one_message,
    messages::key_reused,
    messages::path,
    attempts::given_out_twice,
    attempts::order,
    attempts::recorded,
    attempts::unearned,
    attempts::two_leases,
    attempts::fence,
    reports::stale,
    reports::repeat,
    reports::refused,
    reports::settled,
    times::early,
    words::identity,
    words::states,
];
