//! Whether several tenants are at work; and then how much of the process one of them may have at once. Rows B6, G6.
//!
//! Whatever has begun must be finished by the same few cores: were one tenant's requests all begun as they come, those of
//! the others would wait behind them at every step. So while others are at work, a tenant has so many of each kind on
//! their way, and its next ones wait where waiting costs nothing. Alone, it has all there is.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use posthaste_core::{DurationMs, TenantId, Timestamp};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Acceptances of one tenant on their way at once, while others are at work: enough for a commit that is worth its sync.
const ACCEPTANCES_MAX: usize = 8;

/// Deliveries of one tenant on their way at once, while others are at work and the process has so many slots; of fewer
/// slots, the same part.
const DELIVERIES_MAX: usize = 64;

/// For so long after two tenants' work came one after the other, both count as being at work.
const TOGETHER_FOR: DurationMs = DurationMs::from_secs(1);

/// Doors of tenants that are kept, so that they need not be made again.
const DOORS_KEPT_MAX: usize = 1_024;

#[derive(Default)]
pub(crate) struct Company {
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    last: Option<TenantId>,
    /// Several are at work until then.
    together_until: Option<Timestamp>,
    doors: HashMap<TenantId, Arc<Semaphore>>,
}

impl Company {
    /// Waits for a tenant's turn to have something accepted; the turn ends with what is given. Alone it has no need of one.
    ///
    /// Cancel: safe.
    pub(crate) async fn enter(&self, tenant: TenantId, now: Timestamp) -> Option<OwnedSemaphorePermit> {
        let door = self.door(tenant, now)?;
        // Doors are never closed.
        door.acquire_owned().await.ok()
    }

    fn door(&self, tenant: TenantId, now: Timestamp) -> Option<Arc<Semaphore>> {
        let mut state = self.state.lock();
        if state.last.replace(tenant).is_some_and(|last| last != tenant) {
            state.together_until = Some(now.after(TOGETHER_FOR));
        }
        if state.together_until.is_none_or(|until| now >= until) {
            return None;
        }
        if state.doors.len() >= DOORS_KEPT_MAX && !state.doors.contains_key(&tenant) {
            state.doors.retain(|_, door| Arc::strong_count(door) > 1);
        }
        let door = state.doors.entry(tenant).or_insert_with(|| Arc::new(Semaphore::new(ACCEPTANCES_MAX)));
        Some(Arc::clone(door))
    }

    /// How many deliveries one tenant may have on their way, of `slots` for all.
    pub(crate) fn deliveries_max(&self, slots: usize, now: Timestamp) -> usize {
        let together = self.state.lock().together_until.is_some_and(|until| now < until);
        if together { DELIVERIES_MAX.min(slots / 8).max(1) } else { usize::MAX }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const AT: Timestamp = Timestamp(1_000_000);
    const ONE: TenantId = TenantId(1);
    const OTHER: TenantId = TenantId(2);

    #[tokio::test]
    async fn r_g6_beside_others_a_tenant_has_so_many_acceptances_on_their_way() {
        let company = Company::default();
        for _ in 0..100 {
            assert!(company.enter(ONE, AT).await.is_none(), "alone, all that it asks for");
        }
        assert_eq!(usize::MAX, company.deliveries_max(512, AT));
        let quiet = company.enter(OTHER, AT).await;
        assert!(quiet.is_some());
        let mut turns = Vec::new();
        for _ in 0..ACCEPTANCES_MAX {
            turns.push(company.enter(ONE, AT).await);
        }
        let mut next = std::pin::pin!(company.enter(ONE, AT));
        assert!(futures_poll(&mut next).await, "the next one waits");
        assert!(company.enter(OTHER, AT).await.is_some(), "others don't");
        turns.pop();
        assert!(next.await.is_some());
        assert_eq!(64, company.deliveries_max(512, AT));
        assert_eq!(1, company.deliveries_max(4, AT));
        let later = AT.after(TOGETHER_FOR);
        assert_eq!(usize::MAX, company.deliveries_max(512, later));
        assert!(company.enter(OTHER, later).await.is_none(), "the other one is gone");
    }

    /// Whether `future` waits when it is polled once.
    async fn futures_poll<F: Future>(future: &mut std::pin::Pin<&mut F>) -> bool {
        std::future::poll_fn(|context| std::task::Poll::Ready(future.as_mut().poll(context).is_pending()))
            .await
    }
}
