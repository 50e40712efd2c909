//! The conformance suite.

use posthaste_testkit::store_suite::run_all;

use crate::support::harness;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn postgres_conforms() {
    run_all(harness).await;
}
