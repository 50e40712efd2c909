//! How the slots of a lane are shared between fresh, retried and bulk work. Row B6.

use crate::{Share, Timestamp};

/// Tenths of the slots that each share is owed, in the order of [`Share::ALL`].
const OWED_TENTHS: [usize; 3] = [7, 2, 1];

/// How many jobs of each share to take, in the order of [`Share::ALL`], given how many wait: 70/20/10, and what
/// one share leaves unused goes to the others, fresh work first.
///
/// A share that is owed less than one slot gets one while it has work and slots are left. Where there are fewer slots than
/// shares, `now` says whose turn it is: seven times in ten fresh work's, twice retried, once bulk. So nothing starves, not
/// even in a lane that gets its slots one by one.
pub fn share_out(slots: usize, waiting: [usize; 3], now: Timestamp) -> [usize; 3] {
    debug_assert_eq!(Share::ALL.len(), waiting.len());
    let mut taken = [0; 3];
    let mut free = slots;
    let owed = OWED_TENTHS.map(|tenths| slots.saturating_mul(tenths) / 10);
    let mut take = |share: usize, limit: usize| {
        let more = limit.min(waiting[share]).saturating_sub(taken[share]).min(free);
        taken[share] += more;
        free -= more;
    };
    // One slot each, then what each is owed, then whatever is left.
    let first = first_in_turn(now);
    for share in [first, 0, 1, 2] {
        take(share, 1);
    }
    for limits in [owed, waiting] {
        for (share, limit) in limits.into_iter().enumerate() {
            take(share, limit);
        }
    }
    taken
}

/// The share whose turn it is, as an index into [`Share::ALL`]. Well mixed, so that no rhythm of the caller's favours one.
fn first_in_turn(now: Timestamp) -> usize {
    // Fibonacci hashing: <https://en.wikipedia.org/wiki/Hash_function#Fibonacci_hashing>.
    let mixed = now.0.cast_unsigned().wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    match mixed % 10 {
        0..=6 => 0,
        7 | 8 => 1,
        _ => 2,
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn r_b6_slots_are_shared_70_20_10_and_none_is_wasted() {
        let cases = [
            (10, [100, 100, 100], [7, 2, 1]),
            (100, [1_000, 1_000, 1_000], [70, 20, 10]),
            (10, [0, 100, 100], [0, 9, 1]),
            (10, [0, 0, 100], [0, 0, 10]),
            (10, [100, 0, 0], [10, 0, 0]),
            (10, [3, 1, 0], [3, 1, 0]),
            (1, [5, 5, 5], [1, 0, 0]),
            (3, [5, 5, 5], [1, 1, 1]),
            (3, [5, 5, 0], [2, 1, 0]),
            (0, [5, 5, 5], [0, 0, 0]),
        ];
        for (slots, waiting, expected) in cases {
            assert_eq!(expected, share_out(slots, waiting, FRESH_TURN), "{slots} slots, {waiting:?}");
        }
    }

    /// A time at which it is fresh work's turn.
    const FRESH_TURN: Timestamp = Timestamp(0);

    #[test]
    fn r_b6_slots_that_come_one_by_one_are_shared_70_20_10_too() {
        for step in [1, 2, 10, 250, 1_000, 1_024] {
            let mut taken = [0; 3];
            for turn in 0..10_000 {
                let now = Timestamp(1_800_000_000_000 + turn * step);
                for (sum, more) in taken.iter_mut().zip(share_out(1, [5, 5, 5], now)) {
                    *sum += more;
                }
            }
            for (taken, tenths) in taken.into_iter().zip(OWED_TENTHS) {
                let owed = tenths * 1_000;
                assert!(taken.abs_diff(owed) < owed / 5, "every {step} ms: {taken} for {owed}");
            }
        }
        assert_eq!([0, 1, 0], share_out(1, [0, 5, 0], FRESH_TURN), "a turn that is not taken is not wasted");
    }

    proptest! {
        #[test]
        fn r_b6_sharing_is_work_conserving(
            slots in 0_usize..500,
            waiting in proptest::array::uniform3(0_usize..500),
            now in 0_i64..2_000_000_000_000,
        ) {
            let taken = share_out(slots, waiting, Timestamp(now));
            prop_assert_eq!(slots.min(waiting.iter().sum()), taken.iter().sum());
            prop_assert!(taken.iter().zip(waiting).all(|(taken, waiting)| *taken <= waiting));
        }
    }
}
