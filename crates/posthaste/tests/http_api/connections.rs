//! Connections: their limits and their end.

use std::time::Duration;

use axum::{Router, routing::get};
use posthaste::http::{HttpLimits, serve};
use serde_json::json;
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::CancellationToken;

use crate::harness::{Server, read_reply};

/// Reads until the server closes.
async fn closed(stream: &mut TcpStream) -> Vec<u8> {
    let mut bytes = Vec::new();
    let reading = tokio::time::timeout(Duration::from_mins(1), stream.read_to_end(&mut bytes));
    let _ = reading.await.expect("the server keeps the connection");
    bytes
}

#[tokio::test]
async fn r_a3_a_client_that_says_nothing_is_sent_away() {
    let limits = HttpLimits { header_read_timeout: Duration::from_millis(50), ..HttpLimits::standard() };
    let server = Server::with_limits(limits).await;
    for begin in ["", "POST /in/a HTTP/1.1\r\nhost: a\r\nx-slow: ", "PRI * HTTP/2.0\r\n"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        stream.write_all(begin.as_bytes()).await.unwrap();
        assert_eq!(b"".as_slice(), closed(&mut stream).await, "{begin:?}");
    }
}

#[tokio::test]
async fn r_a3_an_idle_connection_is_closed() {
    let limits = HttpLimits { idle_timeout: Duration::from_millis(50), ..HttpLimits::standard() };
    let server = Server::with_limits(limits).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    stream.write_all(b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    assert!(closed(&mut stream).await.starts_with(b"HTTP/1.1 200"));
}

#[tokio::test]
async fn r_a3_a_huge_head_is_refused() {
    let server = Server::start().await;
    let huge = "x".repeat(64 * 1024);
    let reply = server.send("GET", "/healthz", &[("x-huge", &huge)], b"").await;
    assert_eq!(431, reply.status);
    let many: Vec<(&str, &str)> = vec![("x-one", "1"); 200];
    assert_eq!(431, server.send("GET", "/healthz", &many, b"").await.status);
}

#[tokio::test]
async fn a_connection_is_kept_for_the_next_request() {
    let server = Server::start().await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let request = b"GET /healthz HTTP/1.1\r\nhost: a\r\n\r\nGET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n";
    stream.write_all(request).await.unwrap();
    let answers = String::from_utf8(closed(&mut stream).await).unwrap();
    assert_eq!(2, answers.matches("HTTP/1.1 200").count(), "{answers}");
}

#[tokio::test]
async fn r_b15_a_running_request_is_answered_before_the_end() {
    let mut server = Server::with_queue().await;
    let mut idle = TcpStream::connect(server.address).await.unwrap();
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let body = json!({"queue": "carts", "key": "k"}).to_string();
    let head = format!(
        "POST /v1/queue/publish HTTP/1.1\r\nhost: a\r\nauthorization: Bearer {}\r\nexpect: 100-continue\r\ncontent-length: {}\r\n\r\n",
        server.admin,
        body.len()
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut go_on = [0; 25];
    stream.read_exact(&mut go_on).await.unwrap();
    assert_eq!(b"HTTP/1.1 100 Continue\r\n\r\n", &go_on);
    server.shutdown.cancel();
    assert_eq!(b"".as_slice(), closed(&mut idle).await);
    stream.write_all(body.as_bytes()).await.unwrap();
    read_reply(&mut stream).await.expect(202);
    server.served.take().unwrap().await.unwrap();
    assert!(TcpStream::connect(server.address).await.is_err());
}

#[tokio::test]
async fn r_b15_a_request_that_does_not_end_is_cut_off() {
    let limits = HttpLimits { shutdown_grace: Duration::from_millis(50), ..HttpLimits::standard() };
    let mut server = Server::with_limits(limits).await;
    let mut stream = TcpStream::connect(server.address).await.unwrap();
    let head = "POST /in/a HTTP/1.1\r\nhost: a\r\ncontent-length: 9\r\n\r\n{";
    stream.write_all(head.as_bytes()).await.unwrap();
    server.get("/healthz").await.expect(200);
    server.shutdown.cancel();
    server.served.take().unwrap().await.unwrap();
}

#[tokio::test]
async fn a_panic_is_answered_and_says_nothing_of_itself() {
    async fn broken() -> &'static str {
        assert!(std::env::args().count() == 0, "confidential");
        "unreachable"
    }
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let stop = CancellationToken::new();
    let router = Router::new().route("/broken", get(broken)).route("/whole", get(|| async { "fine" }));
    let served = tokio::spawn(serve(listener, router, HttpLimits::standard(), stop.clone()));
    let ask = async |path: &str| {
        let mut stream = TcpStream::connect(address).await.unwrap();
        let request = format!("GET {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n");
        stream.write_all(request.as_bytes()).await.unwrap();
        read_reply(&mut stream).await
    };
    let reply = ask("/broken").await;
    reply.problem(500, "internal");
    assert!(!reply.text().contains("confidential"));
    assert_eq!("fine", ask("/whole").await.text());
    stop.cancel();
    served.await.unwrap();
}
