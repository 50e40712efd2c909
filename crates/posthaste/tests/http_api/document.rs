//! The API's description, the list of its codes, and health.

use expect_test::expect_file;
use posthaste::http::{Code, openapi_document};
use serde_json::Value;

use crate::harness::Server;

#[test]
fn the_description_is_the_committed_one() {
    expect_file!["../../../../docs/openapi.json"].assert_eq(openapi_document());
}

#[test]
fn every_operation_says_what_can_go_wrong_and_who_may() {
    let document: Value = serde_json::from_str(openapi_document()).unwrap();
    assert_eq!("3.1.0", document["openapi"]);
    for (path, operations) in document["paths"].as_object().unwrap() {
        for (method, operation) in operations.as_object().unwrap() {
            let id = operation["operationId"].as_str().unwrap();
            assert!(operation["summary"].as_str().is_some_and(|text| !text.is_empty()), "{id}");
            if path.starts_with("/v1") {
                let refused = &operation["responses"]["4XX"]["content"]["application/problem+json"];
                assert!(refused.is_object(), "{method} {path}");
            }
        }
    }
}

/// docs/errors.md has one heading a code, in the order of the table.
#[test]
fn every_code_is_explained() {
    let text = include_str!("../../../../docs/errors.md");
    let explained: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("### ")).collect();
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    assert_eq!(codes, explained);
    for code in Code::ALL {
        let section = text.split(&format!("### {}\n", code.as_str())).nth(1).unwrap();
        let section = section.split("\n#").next().unwrap();
        assert!(section.contains(&format!("**{}**", code.status())), "{}", code.as_str());
        for part in ["Caller:", "Operator:"] {
            assert!(section.contains(part), "{} lacks {part}", code.as_str());
        }
    }
}

#[tokio::test]
async fn what_is_served_is_described() {
    let server = Server::start().await;
    let served = server.send("GET", "/openapi.json", &[], b"").await;
    assert_eq!((200, Some("application/json")), (served.status, served.header("content-type")));
    assert_eq!(openapi_document(), served.text());
}

#[tokio::test]
async fn health_needs_no_key() {
    let server = Server::start().await;
    assert_eq!("ok", server.send("GET", "/healthz", &[], b"").await.expect(200)["status"]);
    assert_eq!("ready", server.send("GET", "/readyz", &[], b"").await.expect(200)["status"]);
    let metrics = server.send("GET", "/metrics", &[], b"").await;
    assert_eq!(200, metrics.status);
    assert!(metrics.header("content-type").unwrap().starts_with("application/openmetrics-text"));
    assert!(metrics.text().contains("# TYPE posthaste_jobs gauge"), "{}", metrics.text());
}

#[tokio::test]
async fn what_is_not_there_is_a_problem_too() {
    let server = Server::start().await;
    for path in ["/v2", "/v1/", "/v1/nothing", "/v1/messages/msg_x/payload/y", "/favicon.ico"] {
        server.get(path).await.problem(404, "not_found");
    }
    for (method, path, allow) in [
        ("DELETE", "/v1/messages", "GET,HEAD,POST"),
        ("GET", "/v1/queue/consume", "POST"),
        ("POST", "/v1/jobs", "GET,HEAD"),
        ("PATCH", "/v1/queues/a", "DELETE,GET,HEAD,PUT"),
    ] {
        let reply = server.call(method, path, &server.admin, b"").await;
        reply.problem(405, "method_not_allowed");
        let mut allowed: Vec<&str> = reply.header("allow").unwrap().split(',').collect();
        allowed.sort_unstable();
        assert_eq!(allow.split(',').collect::<Vec<_>>(), allowed, "{method} {path}");
    }
}
