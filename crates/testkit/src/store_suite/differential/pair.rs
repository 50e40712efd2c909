//! Two stores on one clock, asked the same.

use std::{fmt, sync::Arc};

use posthaste_store::{Store, StoreError};

use crate::{
    ManualClock,
    store_suite::{Harness, Scope, actual_counts, snapshot},
};

/// Two stores on one clock.
pub struct Pair {
    left: Harness,
    right: Harness,
    pub(super) clock: Arc<ManualClock>,
}

/// Where two stores differ.
#[derive(Clone, Debug)]
pub struct Disagreement {
    /// Seed, round, step.
    pub place: String,
    /// What was asked.
    pub asked: String,
    /// What the left one said.
    pub left: String,
    /// What the right one said.
    pub right: String,
}

impl fmt::Display for Disagreement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { place, asked, left, right } = self;
        let same = left.chars().zip(right.chars()).take_while(|(left, right)| left == right).count();
        let near = |text: &str| -> String {
            text.chars().skip(same.saturating_sub(SHOWN / 2)).take(SHOWN).collect()
        };
        write!(f, "at {place}\nasked: {asked}\nthey part after {same} characters:\n")?;
        write!(f, "left:  …{}…\nright: …{}…", near(left), near(right))
    }
}

/// Characters shown around the first difference.
const SHOWN: usize = 600;

impl Pair {
    /// Two stores that take their time from `clock`.
    pub fn new(left: Harness, right: Harness, clock: Arc<ManualClock>) -> Self {
        Self { left, right, clock }
    }

    /// Asks both the same. The answers must be the same to the letter.
    pub(super) async fn ask<T: fmt::Debug>(
        &self,
        asked: impl fmt::Debug,
        ask: impl AsyncFn(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<Result<T, StoreError>, Disagreement> {
        let left = ask(&*self.left.store).await;
        let right = ask(&*self.right.store).await;
        let (said_left, said_right) = (format!("{left:?}"), format!("{right:?}"));
        if said_left == said_right {
            return Ok(left);
        }
        let asked = format!("{asked:?}");
        Err(Disagreement { place: String::new(), asked, left: said_left, right: said_right })
    }

    /// [`Self::ask`], where an error of both is no answer either.
    pub(super) async fn must<T: fmt::Debug>(
        &self,
        asked: impl fmt::Debug,
        ask: impl AsyncFn(&dyn Store) -> Result<T, StoreError>,
    ) -> Result<T, Disagreement> {
        let text = format!("{asked:?}");
        self.ask(asked, ask).await?.map_err(|error| Disagreement {
            place: String::new(),
            asked: text,
            left: format!("{error:?}"),
            right: "the same error".to_owned(),
        })
    }

    /// Compares all that can be read, and each store's counts with what it holds.
    pub(super) async fn compare_all(&self, scope: &Scope) -> Result<(), Disagreement> {
        let left = snapshot(&*self.left.store, scope).await;
        let right = snapshot(&*self.right.store, scope).await;
        let fault = |(asked, left, right)| Disagreement { place: String::new(), asked, left, right };
        if let Some(difference) = left.differences(&right).into_iter().next() {
            return Err(fault(difference));
        }
        for harness in [&self.left, &self.right] {
            let counts = harness.store.counts().await.unwrap();
            let kept: Vec<_> = counts.iter().map(|count| (count.tenant, count.state, count.jobs)).collect();
            let actual = actual_counts(&*harness.store).await;
            if kept != actual {
                return Err(fault((
                    "counts".to_owned(),
                    format!("kept {kept:?}"),
                    format!("actual {actual:?}"),
                )));
            }
        }
        Ok(())
    }
}
