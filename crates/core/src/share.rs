//! How the slots of a lane are shared between fresh, retried and bulk work. Row B6.

use crate::Share;

/// Tenths of the slots that each share is owed, in the order of [`Share::ALL`].
const OWED_TENTHS: [usize; 3] = [7, 2, 1];

/// How many jobs of each share to take, in the order of [`Share::ALL`], given how many wait: 70/20/10, and what
/// one share leaves unused goes to the others, fresh work first.
///
/// A share that is owed less than one slot gets one while it has work and slots are left, so that nothing starves
/// where slots are few.
pub fn share_out(slots: usize, waiting: [usize; 3]) -> [usize; 3] {
    debug_assert_eq!(Share::ALL.len(), waiting.len());
    let mut taken = [0; 3];
    let mut free = slots;
    let owed = OWED_TENTHS.map(|tenths| slots.saturating_mul(tenths) / 10);
    // One slot each, then what each is owed, then whatever is left.
    for limits in [[1; 3], owed, waiting] {
        for ((taken, waiting), limit) in taken.iter_mut().zip(waiting).zip(limits) {
            let more = limit.min(waiting).saturating_sub(*taken).min(free);
            *taken += more;
            free -= more;
        }
    }
    taken
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
            assert_eq!(expected, share_out(slots, waiting), "{slots} slots, {waiting:?}");
        }
    }

    proptest! {
        #[test]
        fn r_b6_sharing_is_work_conserving(slots in 0_usize..500, waiting in proptest::array::uniform3(0_usize..500)) {
            let taken = share_out(slots, waiting);
            prop_assert_eq!(slots.min(waiting.iter().sum()), taken.iter().sum());
            prop_assert!(taken.iter().zip(waiting).all(|(taken, waiting)| *taken <= waiting));
        }
    }
}
