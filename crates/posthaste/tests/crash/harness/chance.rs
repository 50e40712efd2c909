//! Chance that can be repeated: everything is drawn from one seed.

use std::time::Duration;

/// The environment variable that repeats a run.
pub(crate) const SEED: &str = "POSTHASTE_TEST_SEED";

/// The seed of this run: the one asked for, or one by the clock.
pub(crate) fn seed() -> u64 {
    match std::env::var(SEED) {
        Ok(text) => text.parse().unwrap_or_else(|_| panic!("{SEED} is no number: {text}")),
        Err(_) => u64::try_from(jiff::Timestamp::now().as_microsecond()).unwrap() % 1_000_000_007,
    }
}

/// A stream of numbers (SplitMix64).
pub(crate) struct Chance(u64);

impl Chance {
    /// The stream of one actor, of whom there may be several.
    pub(crate) fn of(seed: u64, actor: &str) -> Self {
        let folded = actor.bytes().fold(seed ^ 0x51_7c_c1_b7, |folded, byte| {
            (folded ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3).rotate_left(17)
        });
        let mut chance = Self(folded);
        chance.next();
        chance
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// A number in `range`.
    pub(crate) fn within(&mut self, range: std::ops::Range<u64>) -> u64 {
        range.start + self.next() % (range.end - range.start)
    }

    /// Any byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_le_bytes()[7]
    }

    /// True so many times in a thousand.
    pub(crate) fn permille(&mut self, times: u64) -> bool {
        self.within(0..1_000) < times
    }

    /// A pause of so many milliseconds: the pace of the load, never a wait for anything.
    pub(crate) async fn pause(&mut self, ms: std::ops::Range<u64>) {
        tokio::time::sleep(Duration::from_millis(self.within(ms))).await;
    }
}
