//! HTTP/2: the same promises on a shared connection.

use std::{
    convert::Infallible,
    net::SocketAddr,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use bytes::Bytes;
use http_body_util::{BodyExt as _, Full, StreamBody, combinators::BoxBody};
use hyper::{
    Request, Response,
    body::{Frame, Incoming},
    service::service_fn,
};
use hyper_util::rt::{TokioExecutor, TokioIo};
use posthaste_adapters::sender::Protocols;
use posthaste_core::TransportFault;
use posthaste_engine::ports::{HttpSender as _, SendLimits};
use tokio::net::TcpListener;

use super::{
    AMPLE, BRIEF, answered, post, send,
    tls::{Authority, sender_trusting},
    unanswered, within_bound,
};

type Answer = Response<BoxBody<Bytes, Infallible>>;

/// A receiver that speaks HTTP/2 only and answers by path; counts its connections.
struct H2Receiver {
    address: SocketAddr,
    accepted: Arc<AtomicUsize>,
    authority: Authority,
}

impl H2Receiver {
    async fn start() -> Self {
        let authority = Authority::vouching_for(&["hooks.test"], &[b"h2"]);
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let (address, accepted) = (listener.local_addr().unwrap(), Arc::new(AtomicUsize::new(0)));
        let (acceptor, counter) = (authority.acceptor(), Arc::clone(&accepted));
        tokio::spawn(async move {
            loop {
                let (stream, _) = listener.accept().await.unwrap();
                counter.fetch_add(1, Ordering::SeqCst);
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let io = TokioIo::new(acceptor.accept(stream).await.unwrap());
                    let builder = hyper::server::conn::http2::Builder::new(TokioExecutor::new());
                    let _ = builder.serve_connection(io, service_fn(answer)).await;
                });
            }
        });
        Self { address, accepted, authority }
    }

    fn url(&self, path: &str) -> String {
        format!("https://hooks.test:{}/{path}", self.address.port())
    }
}

async fn answer(request: Request<Incoming>) -> Result<Answer, Infallible> {
    let path = request.uri().path().to_owned();
    let body = match path.as_str() {
        "/silent" => std::future::pending().await,
        "/endless" => StreamBody::new(Endless).boxed(),
        "/half" => StreamBody::new(Half(false)).boxed(),
        _ => {
            let authority = request.uri().authority().map(ToString::to_string).unwrap_or_default();
            let sent = request.into_body().collect().await.unwrap().to_bytes();
            Full::from([authority.as_bytes(), b" ", &sent].concat()).boxed()
        }
    };
    Ok(Response::new(body))
}

/// A body that never ends.
struct Endless;

/// A body that gives a piece and then nothing, without ending.
struct Half(bool);

impl futures_core::Stream for Endless {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(
        self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(&[b'e'; 1_024])))))
    }
}

impl futures_core::Stream for Half {
    type Item = Result<Frame<Bytes>, Infallible>;

    fn poll_next(
        mut self: std::pin::Pin<&mut Self>,
        _: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Self::Item>> {
        if std::mem::replace(&mut self.0, true) {
            return std::task::Poll::Pending;
        }
        std::task::Poll::Ready(Some(Ok(Frame::data(Bytes::from_static(b"half")))))
    }
}

#[tokio::test]
async fn r_d3_http2_requests_share_a_connection_even_after_cut_bodies() {
    let receiver = H2Receiver::start().await;
    let sender = sender_trusting(vec![receiver.authority.root.clone()], Protocols::Http1AndHttp2);
    for path in ["a", "endless", "b"] {
        let answer = answered(send(&sender, post(receiver.url(path), AMPLE)).await);
        assert_eq!((answer.status, answer.peer), (200, Some(receiver.address)));
        assert_eq!(answer.excerpt_truncated, path == "endless");
        if path != "endless" {
            let expected = format!("hooks.test:{} {{\"a\":1}}", receiver.address.port());
            assert_eq!(&*answer.excerpt, expected.as_bytes());
        }
    }
    assert_eq!(receiver.accepted.load(Ordering::SeqCst), 1);
}

#[tokio::test]
async fn r_d3_http2_silence_is_a_time_out_that_leaves_other_requests_alone() {
    let receiver = H2Receiver::start().await;
    let sender = Arc::new(sender_trusting(vec![receiver.authority.root.clone()], Protocols::Http1AndHttp2));
    answered(send(&sender, post(receiver.url("warm"), AMPLE)).await);
    let long = SendLimits { total_timeout: BRIEF.total_timeout * 3, ..AMPLE };
    let (other, url) = (Arc::clone(&sender), receiver.url("half"));
    let other = tokio::spawn(async move { other.send(post(url, long)).await });
    let outcome = send(&sender, post(receiver.url("silent"), BRIEF)).await;
    assert_eq!(unanswered(&outcome), (TransportFault::Timeout, true));
    let answer = answered(within_bound(other).await.unwrap());
    assert_eq!((&*answer.excerpt, answer.excerpt_truncated), (b"half".as_slice(), true));
    // The connection that fell silent is not trusted with the next request.
    answered(send(&sender, post(receiver.url("again"), AMPLE)).await);
    assert_eq!(receiver.accepted.load(Ordering::SeqCst), 2);
}
