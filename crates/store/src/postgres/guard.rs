//! Panics on the way: each ends one operation, never a task that serves others.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
};

use crate::panic_text::PanicText;

/// Does `work`; `None` if it panicked. Whatever it was in the middle of must be thrown away then.
pub(super) fn guarded<T>(work: impl FnOnce() -> T) -> Option<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(done) => Some(done),
        Err(panic) => {
            tracing::error!(panic = %PanicText(&*panic), "an operation panicked");
            None
        }
    }
}

/// The same for what waits on the way.
pub(super) async fn guarded_future<T>(work: impl Future<Output = T>) -> Option<T> {
    let mut work = pin!(work);
    std::future::poll_fn(|context| match guarded(|| work.as_mut().poll(context)) {
        Some(Poll::Ready(done)) => Poll::Ready(Some(done)),
        Some(Poll::Pending) => Poll::Pending,
        None => Poll::Ready(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_panic_ends_no_more_than_what_panicked() {
        assert_eq!(Some(1), guarded_future(async { 1 }).await);
        let late = async {
            tokio::task::yield_now().await;
            panic!("on purpose");
        };
        assert_eq!(None::<()>, guarded_future(late).await);
    }
}
