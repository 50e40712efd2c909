//! Two stores, the same random commands: every answer and the whole of both compared.
//!
//! A run goes in rounds, each on two new stores. It goes on until every edge and every cell of the transition table
//! that a store can reach ([`reachable`]) was seen by both, and then for as long again as its [`Settings`] ask.

mod commands;
mod edges;
mod ledger;
mod limits;
mod pair;
mod rng;
mod steps;
mod world;

use std::sync::Arc;

pub use edges::{Cell, Coverage, Edge, reachable};
pub use limits::same_limits;
pub use pair::{Disagreement, Pair};

use self::{rng::Rng, world::World};
use super::Harness;
use crate::ManualClock;

/// How long a run is.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// Where chance begins.
    pub seed: u64,
    /// Steps of one round.
    pub steps: usize,
    /// Steps from one comparison of everything to the next.
    pub snapshot_every: usize,
    /// Rounds at most.
    pub rounds_max: usize,
    /// Rounds without anything new after which a complete run ends.
    pub plateau: usize,
}

impl Settings {
    /// A run from `POSTHASTE_SEED`, or from seed 3 if that is not set: it sees everything early.
    pub fn from_env() -> Self {
        let seed = std::env::var("POSTHASTE_SEED")
            .ok()
            .map_or(3, |text| text.parse().expect("POSTHASTE_SEED is a number"));
        Self { seed, steps: 500, snapshot_every: 125, rounds_max: 160, plateau: 3 }
    }
}

/// Runs until `goal` is covered and nothing new comes, and tells what was covered in how many rounds.
///
/// Errors: the first [`Disagreement`], with all that is needed to see it again.
pub async fn run(
    settings: Settings,
    goal: &Coverage,
    make: impl AsyncFn(Arc<ManualClock>) -> (Harness, Harness),
) -> Result<(Coverage, usize), Box<Disagreement>> {
    let mut seen = Coverage::default();
    let mut since_new = 0;
    for round in 0..settings.rounds_max {
        let clock = Arc::new(ManualClock::default());
        let (left, right) = make(clock.clone()).await;
        let rng = Rng::new(settings.seed.wrapping_mul(1_000_003).wrapping_add(round as u64));
        let mut world = World::new(Pair::new(left, right, clock), rng);
        let place = |step: usize, fault: Disagreement| {
            let place = format!("seed {}, round {round}, step {step}", settings.seed);
            Box::new(Disagreement { place, ..fault })
        };
        world.begin().await.map_err(|fault| place(0, fault))?;
        for step in 1..=settings.steps {
            world.step().await.map_err(|fault| place(step, fault))?;
            if step % settings.snapshot_every == 0 || step == settings.steps {
                world.compare_all().await.map_err(|fault| place(step, fault))?;
            }
        }
        let new = world.coverage.beyond(&seen);
        seen.edges.extend(&new.edges);
        seen.cells.extend(&new.cells);
        since_new = if new.is_empty() { since_new + 1 } else { 0 };
        if since_new >= settings.plateau && goal.beyond(&seen).is_empty() {
            return Ok((seen, round + 1));
        }
    }
    Ok((seen, settings.rounds_max))
}
