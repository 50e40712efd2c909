//! The pages.

use serde_json::json;

use crate::harness::{Reply, Server};

async fn browse(server: &Server, path: &str, cookie: &str) -> Reply {
    server.send("GET", path, &[("cookie", cookie)], b"").await
}

async fn log_in(server: &Server, key: &str, next: &str) -> Reply {
    let form = format!("key={key}&next={next}");
    let headers = [("content-type", "application/x-www-form-urlencoded")];
    server.send("POST", "/login", &headers, form.as_bytes()).await
}

/// No script can run on it, and no other site can frame it.
fn assert_protected(reply: &Reply) {
    assert_eq!(Some("text/html; charset=utf-8"), reply.header("content-type"));
    let policy = reply.header("content-security-policy").unwrap();
    assert!(
        policy.starts_with("default-src 'none';") && policy.contains("frame-ancestors 'none'"),
        "{policy}"
    );
    assert_eq!(Some("no-store"), reply.header("cache-control"));
    assert_eq!(Some("no-referrer"), reply.header("referrer-policy"));
    assert!(!reply.text().contains("<script") && !reply.text().contains("style=\""));
}

#[tokio::test]
async fn r_f2_a_person_logs_in_looks_and_logs_out() {
    let server = Server::with_queue().await;
    let sent_away = server.send("GET", "/timeline?key=a%2Fb", &[], b"").await;
    assert_eq!(
        (303, Some("/login?next=%2Ftimeline%3Fkey%3Da%252Fb")),
        (sent_away.status, sent_away.header("location"))
    );
    let form = server.send("GET", sent_away.header("location").unwrap(), &[], b"").await;
    assert_eq!(200, form.status);
    assert!(form.text().contains("value=\"/timeline?key=a%2Fb\""), "{}", form.text());
    assert_protected(&form);

    let in_again = log_in(&server, &server.admin, "%2Ftimeline%3Fkey%3Da%252Fb").await;
    assert_eq!((303, Some("/timeline?key=a%2Fb")), (in_again.status, in_again.header("location")));
    let cookie = in_again.header("set-cookie").unwrap();
    assert!(cookie.contains("; HttpOnly; SameSite=Strict;"), "{cookie}");
    let cookie = cookie.split(';').next().unwrap();

    let overview = browse(&server, "/", cookie).await;
    assert_eq!(200, overview.status);
    assert_protected(&overview);
    for part in ["dead_lettered", "Given up.", "carts"] {
        assert!(overview.text().contains(part), "{part}");
    }
    let out = server.send("POST", "/logout", &[("cookie", cookie)], b"").await;
    assert!(out.header("set-cookie").unwrap().contains("Max-Age=0"));
}

#[tokio::test]
async fn r_e5_a_wrong_or_too_small_key_gets_no_cookie() {
    let server = Server::with_queue().await;
    let worker = server.key(server.tenant, "work").await;
    for key in ["phk_nonsense", "", &worker] {
        let reply = log_in(&server, key, "/").await;
        assert_eq!((401, None), (reply.status, reply.header("set-cookie")), "{key}");
        assert_protected(&reply);
    }
    let page = browse(&server, "/", &format!("posthaste_key={worker}")).await;
    assert_eq!(403, page.status);
    assert_protected(&page);
    let elsewhere = log_in(&server, &server.admin, "//evil.example").await;
    assert_eq!(Some("/"), elsewhere.header("location"));
}

#[tokio::test]
async fn r_f2_a_key_is_a_story_in_one_glance() {
    let server = Server::with_queue().await;
    let cookie = format!("posthaste_key={}", server.admin);
    server.publish("cart:<b>1</b>").await;
    let job = server.consume().await;
    let reject =
        json!({"job": job["id"], "fence": job["fence"], "class": "connect", "message": "no route & <i>"});
    server.post("/v1/queue/reject", &reject).await.expect(200);
    let page = browse(&server, "/timeline?key=cart:%3Cb%3E1%3C/b%3E", &cookie).await;
    assert_eq!(200, page.status, "{}", page.text());
    assert_protected(&page);
    let text = page.text();
    for part in [
        "cart:&#60;b&#62;1&#60;/b&#62;",
        "retryable",
        "the next one follows by itself",
        "failed; the receiver did not act",
        "no route &#38; &#60;i&#62;",
        "What you may do:",
        "w-1",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
    assert!(!text.contains("<b>1"));
    let unknown = browse(&server, "/timeline?key=nobody", &cookie).await;
    assert_eq!(404, unknown.status);
    assert_protected(&unknown);
    assert_eq!(422, browse(&server, "/timeline?key=", &cookie).await.status);
}

#[tokio::test]
async fn the_style_sheet_needs_no_login_and_names_nothing_outside() {
    let server = Server::start().await;
    let style = server.send("GET", "/ui/style.css", &[], b"").await;
    assert_eq!((200, Some("text/css; charset=utf-8")), (style.status, style.header("content-type")));
    assert!(!style.text().contains("url(") && style.text().contains("prefers-color-scheme: dark"));
}
