//! The archive in a bucket, against a server that keeps objects in memory and checks what it is sent.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

use std::{
    collections::HashMap,
    io::{BufRead, BufReader, Read, Write},
    net::{TcpListener, TcpStream},
    sync::{Arc, Mutex},
    thread,
    time::Duration,
};

use aws_lc_rs::digest::{SHA256, digest};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use posthaste_adapters::{
    guard::{Guard, GuardConfig, PlainHttp},
    s3::{S3Archive, S3Place},
    sender::{GuardedSender, Protocols, SenderConfig, Trust},
};
use posthaste_engine::archive::{Archive, ArchiveError};

const CHECKSUM: &str = "x-amz-checksum-sha256";

/// What the server does with a put.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Keeps {
    Faithfully,
    Nothing,
}

#[derive(Default)]
struct Bucket {
    objects: HashMap<String, Vec<u8>>,
    seen: Vec<String>,
}

/// A server for one bucket.
fn server(keeps: Keeps) -> (String, Arc<Mutex<Bucket>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let endpoint = format!("http://{}", listener.local_addr().unwrap());
    let bucket = Arc::new(Mutex::new(Bucket::default()));
    let shared = Arc::clone(&bucket);
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let shared = Arc::clone(&shared);
            thread::spawn(move || while serve(&stream, &shared, keeps).is_some() {});
        }
    });
    (endpoint, bucket)
}

/// One request; `None` at the end of the connection.
fn serve(stream: &TcpStream, bucket: &Mutex<Bucket>, keeps: Keeps) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let lines = reader.by_ref().lines().map_while(Result::ok);
    let head: Vec<String> = lines.take_while(|line| !line.is_empty()).collect();
    let (method, target) = head.first()?.split_once(' ')?;
    let target = target.split(' ').next()?.to_owned();
    let header = |name: &str| {
        head.iter().find_map(|line| {
            let (known, value) = line.split_once(": ")?;
            known.eq_ignore_ascii_case(name).then(|| value.to_owned())
        })
    };
    let mut body = vec![0; header("content-length").map_or(0, |length| length.parse().unwrap())];
    reader.read_exact(&mut body).ok()?;
    let (path, query) = target.split_once('?')?;
    let signed = query.contains("X-Amz-Signature=") && query.contains("X-Amz-Credential=AKIATEST");
    let mut bucket = bucket.lock().unwrap();
    bucket.seen.push(format!("{method} {path}"));
    let (status, answer) = match method {
        _ if !signed => ("403 Forbidden", b"<Code>AccessDenied</Code>".to_vec()),
        "PUT" if !query.contains("X-Amz-SignedHeaders=host%3Bx-amz-checksum-sha256") => {
            ("403 Forbidden", b"<Code>SignatureDoesNotMatch</Code>".to_vec())
        }
        "PUT" if header(CHECKSUM) != Some(STANDARD.encode(digest(&SHA256, &body))) => {
            ("400 Bad Request", b"<Code>BadDigest</Code>".to_vec())
        }
        "PUT" => {
            if keeps == Keeps::Faithfully {
                bucket.objects.insert(path.to_owned(), body);
            }
            ("200 OK", Vec::new())
        }
        _ => match bucket.objects.get(path) {
            Some(object) => ("200 OK", object.clone()),
            None => ("404 Not Found", b"<Code>NoSuchKey</Code>".to_vec()),
        },
    };
    let head = format!("HTTP/1.1 {status}\r\ncontent-length: {}\r\n\r\n", answer.len());
    let mut stream = stream;
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&answer).ok()
}

fn archive(endpoint: &str, access_key: &str, private_networks: &[&str]) -> S3Archive {
    let guard = Guard::new(GuardConfig {
        private_networks: private_networks.iter().map(|network| network.parse().unwrap()).collect(),
        destinations: Vec::new(),
        plain_http: PlainHttp::PrivateNetworksOnly,
    });
    let config = SenderConfig {
        trust: Trust::Only { roots: Vec::new() },
        protocols: Protocols::Http1AndHttp2,
        idle_timeout: Duration::from_secs(20),
        idle_connections_per_host_max: 4,
        connections_kept_max: 64,
        connection_age_max: Duration::from_secs(20),
    };
    let sender = GuardedSender::new(Arc::new(guard), &config).unwrap();
    let place = S3Place {
        endpoint,
        region: "eu-test-1",
        bucket: "bucket.one",
        prefix: "a/b/",
        access_key,
        secret_key: "a secret",
    };
    S3Archive::new(&place, Arc::new(sender)).unwrap()
}

const LOOPBACK: &[&str] = &["127.0.0.0/8"];

#[tokio::test]
async fn r_c9_what_was_put_in_a_bucket_is_read_back_byte_for_byte() {
    let (endpoint, bucket) = server(Keeps::Faithfully);
    let archive = archive(&endpoint, "AKIATEST", LOOPBACK);
    assert_eq!("s3://bucket.one/a/b/", archive.place());
    assert_eq!(None, archive.get("one.gz").await.unwrap());
    let bytes: Bytes = (0..=u8::MAX).cycle().take(3_000_000).collect::<Vec<u8>>().into();
    archive.put("one.gz", bytes.clone()).await.unwrap();
    assert_eq!(Some(bytes), archive.get("one.gz").await.unwrap());
    let object = "/bucket.one/a/b/one.gz";
    let expected = ["GET", "PUT", "GET"].map(|method| format!("{method} {object}"));
    assert_eq!(expected, *bucket.lock().unwrap().seen);
}

#[tokio::test]
async fn r_c9_a_bucket_that_refuses_or_keeps_nothing_is_no_archive() {
    let (endpoint, _) = server(Keeps::Faithfully);
    let refused = archive(&endpoint, "AKIAOTHER", LOOPBACK).put("one", Bytes::from_static(b"x")).await;
    let ArchiveError::Unavailable { problem, .. } = refused.unwrap_err() else { panic!("it is refused") };
    assert_eq!("answered 403: <Code>AccessDenied</Code>", problem);
    let (endpoint, _) = server(Keeps::Nothing);
    let forgetful = archive(&endpoint, "AKIATEST", LOOPBACK);
    forgetful.put("one", Bytes::from_static(b"x")).await.unwrap();
    assert_eq!(None, forgetful.get("one").await.unwrap(), "reading back shows it");
}

#[tokio::test]
async fn r_d2_a_bucket_is_spoken_to_through_the_guard() {
    let (endpoint, bucket) = server(Keeps::Faithfully);
    let refused = archive(&endpoint, "AKIATEST", &[]).get("one").await.unwrap_err().to_string();
    assert!(refused.contains("it may not be spoken to"), "{refused}");
    assert!(bucket.lock().unwrap().seen.is_empty());
}
