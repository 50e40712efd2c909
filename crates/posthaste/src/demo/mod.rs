//! The demo: the main job, end to end, on a real server and over real HTTP on this machine.
//!
//! Every step checks what it shows: the story ends well only if the promise held. A hidden flag breaks one step on
//! purpose, so that a test can see that the demo would notice.

mod client;
mod narrator;
pub(crate) mod provider;
mod stage;
mod steps;
mod subscriber;

use std::io::Write;

use anyhow::Context;
use narrator::Narrator;
use secrecy::ExposeSecret;
use stage::Stage;

/// One step that is broken on purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Sabotage {
    /// The provider signs with another secret.
    Accept,
    /// The redelivery has another delivery id.
    Duplicate,
    /// The tampered request isn't tampered with.
    Tamper,
    /// The cart is due at once.
    Delay,
    /// The subscriber never takes it.
    Retry,
    /// The first worker reports in time.
    Fence,
}

/// Shows the main job; with `exit`, ends after the story, otherwise keeps the server up until it is interrupted.
///
/// Errors: which step did not hold, and how.
pub(crate) async fn run(exit: bool, sabotage: Option<Sabotage>) -> anyhow::Result<()> {
    let mut narrator = Narrator::new();
    narrator.opening();
    let stage = Stage::set(exit).await.context("the demo's server could not be started")?;
    narrator.place(&stage);
    let told = steps::tell(&mut narrator, &stage, sabotage).await;
    match &told {
        Ok(()) => narrator.closing(&stage),
        Err(error) => narrator.broken(error),
    }
    if told.is_ok() && !exit {
        stay(&stage).await;
    }
    stage.strike().await;
    told
}

async fn stay(stage: &Stage) {
    let key = stage.admin_key();
    let _ = writeln!(
        anstream::stdout().lock(),
        "\nThe server stays up. In another terminal:\n\n  export POSTHASTE_URL={} POSTHASTE_API_KEY={}\n  \
         posthaste timeline cart:8f31:expire\n\nor open {} and log in with that key. Ctrl-C ends it and removes its store.",
        stage.url(),
        key.expose_secret(),
        stage.url(),
    );
    let _ = tokio::signal::ctrl_c().await;
}
