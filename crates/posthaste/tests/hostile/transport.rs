//! Receivers that hang, drip, reset, flood, or speak no HTTP; names that don't resolve and certificates that don't fit.
//! Field cases B23, B24.

use std::net::TcpListener;

use crate::{
    receiver::Act,
    stage::{Expected, Fault, Stage, again, given_up, taken},
};

fn write(text: &str) -> Act {
    Act::Write(text.as_bytes().to_vec())
}

/// Scripts of raw bytes, and what must be recorded of each.
fn table() -> Vec<(&'static str, Vec<Act>, Expected)> {
    let line = "x".repeat(64 * 1024);
    let megabyte = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "y".repeat(1024 * 1024));
    let thousand = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: y\r\n".repeat(1_000));
    let interim = "HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n\
                   HTTP/1.1 102 Processing\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let protocol = || again("protocol", "possible", None);
    let timeout = || again("timeout", "possible", None);
    vec![
        ("hang", vec![Act::Hang], timeout()),
        ("drip-head", vec![Act::Drip(b"HTTP/1.1 200 OK\r\nx: y")], timeout()),
        ("drip-body", vec![write("HTTP/1.1 200 OK\r\n\r\n"), Act::Drip(b"z")], taken(200)),
        ("endless-body", vec![write("HTTP/1.1 200 OK\r\n\r\n"), Act::Flood(vec![b'z'; 4_096])], taken(200)),
        (
            "endless-error",
            vec![write("HTTP/1.1 500 X\r\n\r\n"), Act::Flood(vec![b'z'; 4_096])],
            again("server_error", "possible", Some(500)),
        ),
        ("reset-before", vec![Act::Reset], again("reset", "possible", None)),
        (
            "reset-in-head",
            vec![write("HTTP/1.1 200 OK\r\nx: "), Act::Reset],
            again("reset", "possible", None),
        ),
        (
            "reset-in-body",
            vec![write("HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\nabc"), Act::Pause, Act::Reset],
            taken(200),
        ),
        ("empty", vec![Act::Close], again("reset", "possible", None)),
        ("interim", vec![write(interim), Act::Hang], taken(200)),
        ("interim-forever", vec![Act::Drip(b"HTTP/1.1 100 Continue\r\n\r\n")], timeout()),
        ("interim-flood", vec![Act::Flood(b"HTTP/1.1 103 Early Hints\r\n\r\n".to_vec())], timeout()),
        (
            "letter-in-length",
            vec![write("HTTP/1.1 200 OK\r\ncontent-length: 5O\r\n\r\nhello"), Act::Hang],
            protocol(),
        ),
        (
            "control-in-cookie",
            vec![write("HTTP/1.1 200 OK\r\nset-cookie: a=b\u{1}c\r\n\r\n"), Act::Hang],
            taken(200),
        ),
        (
            "short-body",
            vec![write("HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\nhalf"), Act::Close],
            taken(200),
        ),
        (
            "no-last-chunk",
            vec![
                write("HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n3\r\nabc\r\n"),
                Act::Pause,
                Act::Reset,
            ],
            taken(200),
        ),
        ("no-reason", vec![write("HTTP/1.1 200\r\ncontent-length: 0\r\n\r\n"), Act::Hang], taken(200)),
        ("icy", vec![write("ICY 200 OK\r\n\r\n"), Act::Close], protocol()),
        ("status-099", vec![write("HTTP/1.1 099 X\r\n\r\n"), Act::Hang], protocol()),
        ("garbage", vec![Act::Write(vec![0xff; 300]), Act::Close], protocol()),
        ("tls-bytes", vec![Act::Write(vec![0x16, 0x03, 0x01, 0x02, 0x00, 0x01]), Act::Close], protocol()),
        ("long-line", vec![write(&format!("HTTP/1.1 200 OK\r\nx: {line}\r\n\r\n")), Act::Hang], taken(200)),
        ("megabyte-head", vec![write(&megabyte), Act::Hang], protocol()),
        ("thousand-headers", vec![write(&thousand), Act::Hang], protocol()),
        (
            "early-413",
            vec![write("HTTP/1.1 413 X\r\nconnection: close\r\ncontent-length: 0\r\n\r\n"), Act::Hang],
            given_up(413),
        ),
    ]
}

#[test]
fn case_b23_malformed_truncated_and_endless_answers_are_stored_attempts() {
    let faults = table().into_iter().map(|(id, script, _)| Fault::new(id, script)).collect();
    let stage = Stage::play(faults);
    for (id, _, expected) in table() {
        stage.check(id, &expected);
    }
    for id in ["letter-in-length", "icy", "megabyte-head", "reset-before", "hang"] {
        let said = stage.attempt(id)["message"].as_str().unwrap_or_default();
        assert!(!said.is_empty(), "{id} says why");
    }
}

#[test]
fn case_b24_what_fails_before_a_byte_leaves_is_retried_and_had_no_effect() {
    // A port where nobody listens.
    let free = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let to = |id: &str, url: String| Fault { id: id.to_owned(), script: None, url: Some(url) };
    let mut faults = vec![
        to("refused", format!("http://{free}/")),
        to("no-name", "http://no-such-name.invalid/".to_owned()),
    ];
    // The same receiver speaks no TLS: what it reads is no request.
    let clear = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = clear.local_addr().unwrap();
    std::thread::spawn(move || {
        for stream in clear.incoming().map_while(Result::ok) {
            use std::io::Write as _;
            let mut stream = stream;
            let _ = stream.write_all(b"HTTP/1.1 400 Bad Request\r\ncontent-length: 0\r\n\r\n");
        }
    });
    faults.push(to("clear", format!("https://{address}/")));
    let stage = Stage::play(faults);
    stage.check("refused", &again("connect", "none", None));
    stage.check("clear", &again("tls", "none", None));
    let no_name = stage.attempt("no-name");
    // Without a resolver in reach, the look-up ends at its deadline; either way nothing left.
    assert!(matches!(no_name["class"].as_str(), Some("dns" | "connect")), "{no_name:#}");
    for id in ["refused", "no-name", "clear"] {
        assert_eq!(
            ("retryable", "none"),
            (stage.job(id)["state"].as_str().unwrap(), stage.attempt(id)["effect"].as_str().unwrap()),
            "{id}"
        );
        assert!(stage.attempt(id)["message"].as_str().is_some_and(|said| !said.is_empty()), "{id} says why");
    }
}
