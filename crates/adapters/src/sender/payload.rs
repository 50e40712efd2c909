//! The request's body: one piece, and the instant it was taken.

use std::{
    convert::Infallible,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use bytes::Bytes;
use hyper::body::{Body, Frame, SizeHint};
use tokio::time::Instant;

use super::link::Mark;

/// A body of known length that notes when the connection asked for it.
#[derive(Debug)]
pub(super) struct Payload {
    bytes: Bytes,
    taken_at: Arc<Mark>,
}

impl Payload {
    pub(super) fn new(bytes: Bytes, taken_at: Arc<Mark>) -> Self {
        Self { bytes, taken_at }
    }
}

impl Body for Payload {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.taken_at.advance(Instant::now());
        let bytes = std::mem::take(&mut self.bytes);
        Poll::Ready((!bytes.is_empty()).then(|| Ok(Frame::data(bytes))))
    }

    fn is_end_stream(&self) -> bool {
        self.bytes.is_empty()
    }

    fn size_hint(&self) -> SizeHint {
        SizeHint::with_exact(self.bytes.len() as u64)
    }
}
