//! What an operator's act came to.

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CameTo {
    /// The dead letter goes round again.
    Replayed,
    /// The committed job goes round again.
    Resent,
    /// Nothing is sent: the records show how it ended.
    Settled,
    /// It was judged, and goes on by itself.
    Waits,
}

impl CameTo {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Replayed => "replayed",
            Self::Resent => "resent",
            Self::Settled => "settled",
            Self::Waits => "waits",
        }
    }
}
