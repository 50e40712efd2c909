//! Bodies of requests: read under a limit of bytes and of time. Row A3.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::body::Body;
use bytes::{Bytes, BytesMut};
use http::{HeaderMap, header};
use http_body_util::BodyExt as _;

use super::{Code, Problem};

/// What is still read of a body beyond its limit, so that a client that sends before it listens gets its answer.
const DISCARD_BYTES_MAX: usize = 1024 * 1024;

/// How long that may take.
const DISCARD_TIME_MAX: Duration = Duration::from_secs(2);

/// Room that is made for an announced length before its bytes are there.
const ANNOUNCED_TRUSTED: usize = 64 * 1024;

/// How much of a body is taken, and how long it may take to arrive.
#[derive(Clone, Copy, Debug)]
pub(crate) struct BodyLimit {
    /// Bytes.
    pub(crate) bytes_max: usize,
    /// From the head to the last byte.
    pub(crate) read_timeout: Duration,
    /// What a body that is too long is called.
    pub(crate) code: Code,
}

/// Bytes that the bodies of all requests may take while they are read. What has arrived counts, not what is announced: a
/// client that announces much and sends little holds little.
#[derive(Debug)]
pub(crate) struct Budget {
    held: AtomicUsize,
    max: usize,
}

/// One body's part of a [`Budget`], given back when dropped.
struct Share<'b> {
    budget: &'b Budget,
    held: usize,
}

impl Budget {
    pub(crate) fn new(max: usize) -> Self {
        Self { held: AtomicUsize::new(0), max }
    }

    fn share(&self) -> Share<'_> {
        Share { budget: self, held: 0 }
    }
}

impl Share<'_> {
    fn add(&mut self, bytes: usize) -> Result<(), Problem> {
        self.held += bytes;
        let all = self.budget.held.fetch_add(bytes, Ordering::Relaxed) + bytes;
        // Alone, any body that is not too large is taken: otherwise it never would be.
        if all > self.budget.max && all > self.held {
            return Err(Problem::new(Code::Overloaded, "too many large bodies arrive at once; try again"));
        }
        Ok(())
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        self.budget.held.fetch_sub(self.held, Ordering::Relaxed);
    }
}

/// Reads a body whole.
///
/// Errors: `limit.code` beyond its bytes, `body_timeout`, `overloaded` where `budget` is used up, and `invalid_body` if the
/// connection broke.
pub(crate) async fn read(
    headers: &HeaderMap,
    mut body: Body,
    limit: BodyLimit,
    budget: &Budget,
) -> Result<Bytes, Problem> {
    let announced = announced(headers);
    if announced.is_some_and(|length| length > limit.bytes_max) {
        // Whoever asks before sending has sent nothing yet.
        if !headers.contains_key(header::EXPECT) {
            discard(body, limit).await;
        }
        return Err(too_large(limit));
    }
    let reading = collect(&mut body, announced.unwrap_or(0), limit, budget.share());
    match tokio::time::timeout(limit.read_timeout, reading).await {
        Ok(Err(problem)) if problem.code() == limit.code => {
            discard(body, limit).await;
            Err(problem)
        }
        Ok(read) => read,
        Err(_) => {
            let seconds = limit.read_timeout.as_secs_f32();
            Err(Problem::new(Code::BodyTimeout, format!("the body was not complete after {seconds} s")))
        }
    }
}

/// Refuses what is compressed, where nobody would unpack it.
pub(crate) fn refuse_encoding(headers: &HeaderMap) -> Result<(), Problem> {
    match headers.get(header::CONTENT_ENCODING) {
        Some(encoding) if !encoding.as_bytes().eq_ignore_ascii_case(b"identity") => {
            Err(Problem::new(Code::UnsupportedEncoding, "send the body without `content-encoding`"))
        }
        _ => Ok(()),
    }
}

fn announced(headers: &HeaderMap) -> Option<usize> {
    headers.get(header::CONTENT_LENGTH)?.to_str().ok()?.parse().ok()
}

/// A body that comes in one piece is not copied.
async fn collect(
    body: &mut Body,
    announced: usize,
    limit: BodyLimit,
    mut share: Share<'_>,
) -> Result<Bytes, Problem> {
    let mut first = Bytes::new();
    let mut rest: Option<BytesMut> = None;
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| Problem::new(Code::InvalidBody, "the body broke off"))?;
        let Ok(data) = frame.into_data() else { continue };
        let length = rest.as_ref().map_or(first.len(), BytesMut::len) + data.len();
        if length > limit.bytes_max {
            return Err(too_large(limit));
        }
        share.add(data.len())?;
        match &mut rest {
            Some(rest) => rest.extend_from_slice(&data),
            None if first.is_empty() => first = data,
            None => {
                let mut joined = BytesMut::with_capacity(announced.min(ANNOUNCED_TRUSTED).max(length));
                joined.extend_from_slice(&first);
                joined.extend_from_slice(&data);
                rest = Some(joined);
            }
        }
    }
    Ok(rest.map_or(first, BytesMut::freeze))
}

fn too_large(limit: BodyLimit) -> Problem {
    Problem::new(limit.code, format!("the body is too large; at most {} bytes are taken", limit.bytes_max))
}

async fn discard(mut body: Body, limit: BodyLimit) {
    let bytes_max = limit.bytes_max + DISCARD_BYTES_MAX;
    let discarding = async {
        let mut length = 0;
        while let Some(Ok(frame)) = body.frame().await
            && length < bytes_max
        {
            length += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    let _ = tokio::time::timeout(DISCARD_TIME_MAX, discarding).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limit() -> BodyLimit {
        BodyLimit { bytes_max: 1_000, read_timeout: Duration::from_secs(10), code: Code::BodyTooLarge }
    }

    #[tokio::test]
    async fn r_b16_bodies_share_a_budget_and_give_it_back() {
        let budget = Budget::new(1_500);
        let headers = HeaderMap::new();
        let mut elsewhere = budget.share();
        elsewhere.add(1_000).unwrap();
        let refused = read(&headers, Body::from(vec![0; 600]), limit(), &budget).await.unwrap_err();
        assert_eq!(Code::Overloaded, refused.code());
        assert_eq!(500, read(&headers, Body::from(vec![0; 500]), limit(), &budget).await.unwrap().len());
        drop(elsewhere);
        assert_eq!(0, budget.held.load(Ordering::Relaxed));
        let small = Budget::new(1);
        assert!(read(&headers, Body::from(vec![0; 600]), limit(), &small).await.is_ok(), "alone it is taken");
    }
}
