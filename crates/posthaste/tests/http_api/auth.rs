//! Who may do what, and for whom.

use serde_json::{Value, json};

use crate::harness::{Reply, Server};

async fn post(server: &Server, key: &str, path: &str, body: &Value) -> Reply {
    server.call("POST", path, key, body.to_string().as_bytes()).await
}

#[tokio::test]
async fn r_e5_without_a_valid_key_nothing_is_told() {
    let server = Server::with_queue().await;
    let wrong: [&[(&str, &str)]; 6] = [
        &[],
        &[("authorization", "")],
        &[("authorization", "Bearer")],
        &[("authorization", "Bearer phk_nonsense")],
        &[("authorization", "Basic cGhrXw==")],
        &[("cookie", "posthaste_key=phk_nonsense")],
    ];
    let paths =
        ["/v1/messages?key=k", "/v1/jobs", "/v1/overview", "/v1/keys", "/v1/queues", "/v1/timeline?key=k"];
    for headers in wrong {
        for path in paths {
            let reply = server.send("GET", path, headers, b"").await;
            reply.problem(401, "unauthenticated");
            assert_eq!(Some("Bearer realm=\"posthaste\""), reply.header("www-authenticate"));
        }
        server.send("POST", "/v1/messages", headers, b"{}").await.problem(401, "unauthenticated");
    }
    let cookie = format!("posthaste_key={}", server.admin);
    server.send("GET", "/v1/jobs", &[("cookie", &cookie)], b"").await.problem(401, "unauthenticated");
    let lower = format!("bearer {}", server.admin);
    server.send("GET", "/v1/jobs", &[("authorization", &lower)], b"").await.expect(200);
}

#[tokio::test]
async fn r_e5_a_key_may_do_what_its_scopes_say() {
    let server = Server::with_queue().await;
    let publish = json!({"queue": "carts", "key": "k"});
    let calls: [(&str, &str, Value, &str); 14] = [
        ("POST", "/v1/queue/publish", publish.clone(), "publish"),
        ("POST", "/v1/messages/batch", json!({"messages": []}), "publish"),
        ("POST", "/v1/queue/consume", json!({"queue": "carts"}), "work"),
        ("POST", "/v1/queue/ack", json!({"jobs": []}), "work"),
        ("GET", "/v1/messages?key=k", Value::Null, "read"),
        ("GET", "/v1/jobs", Value::Null, "read"),
        ("GET", "/v1/timeline?key=k", Value::Null, "read"),
        ("GET", "/v1/overview", Value::Null, "read"),
        ("POST", "/v1/jobs/job_x/cancel", json!({"reason": "r"}), "operate"),
        ("POST", "/v1/queues", json!({"name": "new"}), "operate"),
        ("DELETE", "/v1/endpoints/nobody", Value::Null, "operate"),
        ("GET", "/v1/keys", Value::Null, "admin"),
        ("POST", "/v1/keys", json!({"name": "n", "scopes": ["read"]}), "admin"),
        ("DELETE", "/v1/keys/key_x", Value::Null, "admin"),
    ];
    for scope in ["publish", "work", "read", "operate", "admin"] {
        let key = server.key(server.tenant, scope).await;
        for (method, path, body, needed) in &calls {
            let bytes = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
            let reply = server.call(method, path, &key, &bytes).await;
            if scope == *needed || scope == "admin" {
                assert_ne!(403, reply.status, "{scope} {path}: {}", reply.text());
            } else {
                let problem = reply.problem(403, "forbidden");
                assert_eq!(*needed, problem["scope"], "{scope} {path}");
            }
        }
    }
}

#[tokio::test]
async fn r_e5_a_scope_may_be_bound_to_a_destination() {
    let server = Server::with_queue().await;
    server.queue(server.tenant, json!({"name": "other"})).await;
    let publisher = server.key(server.tenant, "publish:carts").await;
    let publish = async |body: Value| post(&server, &publisher, "/v1/messages", &body).await;
    publish(json!({"key": "a", "to": {"queue": "carts"}})).await.expect(202);
    let problem = publish(json!({"key": "b", "to": {"queue": "other"}})).await.problem(403, "forbidden");
    assert_eq!("publish:other", problem["scope"]);
    publish(json!({"key": "c", "to": {"endpoints": ["carts", "x"]}})).await.problem(403, "forbidden");
    assert_eq!("publish", publish(json!({"key": "d"})).await.problem(403, "forbidden")["scope"]);
    let batch =
        json!({"messages": [{"key": "e", "to": {"queue": "carts"}}, {"key": "f", "to": {"queue": "other"}}]});
    let results =
        post(&server, &publisher, "/v1/messages/batch", &batch).await.expect(200)["results"].clone();
    assert_eq!((json!(202), json!(403)), (results[0]["status"].clone(), results[1]["status"].clone()));

    let worker = server.key(server.tenant, "work:other").await;
    let consume = json!({"queue": "carts"});
    post(&server, &worker, "/v1/queue/consume", &consume).await.problem(403, "forbidden");
    post(&server, &worker, "/v1/queue/consume", &json!({"queue": "other"})).await.expect(200);
    let job = server.consume().await;
    let ack = json!({"job": job["id"], "fence": job["fence"]});
    assert_eq!(
        "work:carts",
        post(&server, &worker, "/v1/queue/ack", &ack).await.problem(403, "forbidden")["scope"]
    );
    let many = post(&server, &worker, "/v1/queue/ack", &json!({"jobs": [ack]})).await.expect(200);
    assert_eq!("forbidden", many["results"][0]["code"]);
}

#[tokio::test]
async fn r_g6_tenants_do_not_see_each_other() {
    let server = Server::with_queue().await;
    let acme = server.engine.ensure_tenant("acme").await.unwrap();
    server.queue(acme, json!({"name": "carts"})).await;
    server.queue(acme, json!({"name": "private"})).await;
    let other = server.key(acme, "publish read work operate").await;
    let ours = server.publish("k").await;
    let leased = server.consume().await;
    let message = leased["message_id"].as_str().unwrap();
    let job = ours["id"].as_str().unwrap();

    for path in [
        format!("/v1/messages/{message}"),
        format!("/v1/messages/{message}/payload"),
        "/v1/messages?key=k".to_owned(),
        "/v1/timeline?key=k".to_owned(),
        format!("/v1/jobs/{job}"),
    ] {
        let theirs = server.call("GET", &path, &other, b"").await;
        theirs.problem(404, "not_found");
        let nobodys =
            path.replace(message, &message.replace('0', "1")).replace("=k", "=z").replace(job, "job_x");
        assert_eq!(404, server.call("GET", &nobodys, &other, b"").await.status);
    }
    let report = json!({"job": job, "fence": leased["fence"]});
    for verb in ["ack", "reject", "release", "extend"] {
        post(&server, &other, &format!("/v1/queue/{verb}"), &report).await.problem(404, "not_found");
    }
    let cancel = json!({"reason": "r"});
    post(&server, &other, &format!("/v1/jobs/{job}/cancel"), &cancel).await.problem(404, "not_found");
    assert_eq!(json!([]), server.call("GET", "/v1/jobs", &other, b"").await.expect(200)["data"]);
    let consumed = post(&server, &other, "/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200);
    assert_eq!(json!([]), consumed["jobs"]);
    let overview = server.call("GET", "/v1/overview", &other, b"").await.expect(200);
    assert_eq!((json!("acme"), json!(0)), (overview["tenant"].clone(), overview["jobs"]["leased"].clone()));

    let theirs = json!({"queue": "carts", "key": "k"});
    let published = post(&server, &other, "/v1/queue/publish", &theirs).await.expect(202);
    assert_ne!(message, published["message"]["id"]);
    server.get("/v1/queues/private").await.problem(404, "unknown_queue");
}

#[tokio::test]
async fn r_g6_an_admin_names_the_tenant_and_others_may_not() {
    let server = Server::with_queue().await;
    let acme = server.engine.ensure_tenant("acme").await.unwrap();
    server.queue(acme, json!({"name": "theirs"})).await;
    let queues = async |key: &str, tenant: &str| {
        let authorization = format!("Bearer {key}");
        let headers = [("authorization", authorization.as_str()), ("posthaste-tenant", tenant)];
        server.send("GET", "/v1/queues", &headers, b"").await
    };
    let theirs = queues(&server.admin, "acme").await.expect(200);
    assert_eq!("theirs", theirs["data"][0]["id"]);
    queues(&server.admin, "nobody").await.problem(404, "unknown_tenant");
    queues(&server.admin, "").await.problem(404, "unknown_tenant");
    let reader = server.key(server.tenant, "read").await;
    assert_eq!("carts", queues(&reader, "default").await.expect(200)["data"][0]["id"]);
    assert_eq!("admin", queues(&reader, "acme").await.problem(403, "forbidden")["scope"]);
    queues(&reader, "nobody").await.problem(403, "forbidden");
}
