//! Ids of new messages.

use parking_lot::Mutex;
use posthaste_core::{MessageId, Timestamp};
use uuid::{ContextV7, Uuid};

/// Makes ids whose first 96 bits differ, which is what job ids hold of them: within a millisecond they count. By chance
/// alone, two of thirty thousand a second would be alike within months.
#[derive(Debug)]
pub(crate) struct MessageIds(Mutex<ContextV7>);

impl MessageIds {
    pub(crate) fn new() -> Self {
        Self(Mutex::new(ContextV7::new()))
    }

    /// A fresh UUIDv7 of this time.
    pub(crate) fn next(&self, now: Timestamp) -> MessageId {
        let now = u64::try_from(now.0).unwrap_or(0);
        let nanos = u32::try_from(now % 1_000).unwrap_or(0) * 1_000_000;
        let stamp = uuid::Timestamp::from_unix(&*self.0.lock(), now / 1_000, nanos);
        MessageId(Uuid::new_v7(stamp).as_u128())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn ids_of_one_millisecond_make_different_jobs() {
        let ids = MessageIds::new();
        let now = Timestamp(1_790_000_000_123);
        let made: Vec<MessageId> = (0..50_000).map(|_| ids.next(now)).collect();
        let families: HashSet<u128> = made.iter().map(|id| id.0 >> 32).collect();
        assert_eq!(made.len(), families.len());
        assert!(made.is_sorted_by(|one, next| one.0 >> 32 < next.0 >> 32), "they count, and not by chance");
        let earlier = ids.next(Timestamp(now.0 - 1));
        assert!(!families.contains(&(earlier.0 >> 32)), "a clock that goes back doesn't begin again");
    }
}
