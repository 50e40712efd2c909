//! The scenarios, one file each.

mod accept;
mod archive;
mod backlog;
mod end_to_end;
mod fan_out;
mod isolation;
mod ledger;
mod publish;
mod pull;
mod replay;
mod slow_clients;
mod soak;

use super::{figures::Figure, stage::Stage};

/// What can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Scenario {
    /// Signed webhooks taken in, one a request
    Accept,
    /// Messages published, one a request
    Publish,
    /// From the request to the committed delivery
    EndToEnd,
    /// Jobs consumed and acknowledged in batches
    Pull,
    /// A store full of jobs for later, against an empty one
    Backlog,
    /// One endpoint or tenant beside others that hang, lag or flood
    Isolation,
    /// One message for thousands of endpoints
    FanOut,
    /// Honest connections beside some that send a byte a second
    SlowClients,
    /// Claims of the receiver's ledger, with few entries and with very many
    Ledger,
    /// Fresh messages beside a bulk replay of dead letters
    Replay,
    /// What was settled leaves for the archive beside traffic; only if it is named
    Archive,
    /// Everything at once for a long time, unhurried; only if it is named
    Soak,
}

impl Scenario {
    /// What is measured unless told, in this order: every one that is done after some seconds.
    pub(crate) const ALL: &[Self] = &[
        Self::Accept,
        Self::Publish,
        Self::EndToEnd,
        Self::Pull,
        Self::Backlog,
        Self::Isolation,
        Self::FanOut,
        Self::SlowClients,
        Self::Ledger,
        Self::Replay,
    ];

    /// Its name on the command line.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Accept => "accept",
            Self::Publish => "publish",
            Self::EndToEnd => "end-to-end",
            Self::Pull => "pull",
            Self::Backlog => "backlog",
            Self::Isolation => "isolation",
            Self::FanOut => "fan-out",
            Self::SlowClients => "slow-clients",
            Self::Ledger => "ledger",
            Self::Replay => "replay",
            Self::Archive => "archive",
            Self::Soak => "soak",
        }
    }

    /// What its figures mean.
    pub(crate) fn about(self) -> &'static str {
        match self {
            Self::Accept => accept::ABOUT,
            Self::Publish => publish::ABOUT,
            Self::EndToEnd => end_to_end::ABOUT,
            Self::Pull => pull::ABOUT,
            Self::Backlog => backlog::ABOUT,
            Self::Isolation => isolation::ABOUT,
            Self::FanOut => fan_out::ABOUT,
            Self::SlowClients => slow_clients::ABOUT,
            Self::Ledger => ledger::ABOUT,
            Self::Replay => replay::ABOUT,
            Self::Archive => archive::ABOUT,
            Self::Soak => soak::ABOUT,
        }
    }

    pub(super) fn measure(self, stage: &Stage) -> anyhow::Result<Vec<Figure>> {
        match self {
            Self::Accept => accept::measure(stage),
            Self::Publish => publish::measure(stage),
            Self::EndToEnd => end_to_end::measure(stage),
            Self::Pull => pull::measure(stage),
            Self::Backlog => backlog::measure(stage),
            Self::Isolation => isolation::measure(stage),
            Self::FanOut => fan_out::measure(stage),
            Self::SlowClients => slow_clients::measure(stage),
            Self::Ledger => ledger::measure(stage),
            Self::Replay => replay::measure(stage),
            Self::Archive => archive::measure(stage),
            Self::Soak => soak::measure(stage),
        }
    }
}
