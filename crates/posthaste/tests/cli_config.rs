//! Configuration as its author meets it: `check-config`, and what `serve` refuses.

#![allow(clippy::unwrap_used)]

mod cli_support;

use cli_support::{Ended, posthaste, run};
use expect_test::{Expect, expect};
use std::process::Command;

fn checked(toml: &str, change: impl FnOnce(&mut Command)) -> Ended {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("posthaste.toml"), toml).unwrap();
    std::fs::write(folder.path().join("secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
    let mut command = posthaste(folder.path(), &["check-config"]);
    change(&mut command);
    run(&mut command)
}

/// Exit 1, and exactly these words.
#[allow(clippy::needless_pass_by_value)] // `expect!` gives a value
fn refused(toml: &str, expected: Expect) {
    let ended = checked(toml, |_| {});
    expected.assert_eq(&ended.out);
    assert_eq!((Some(1), ""), (ended.code, ended.err.as_str()));
}

#[test]
fn r_g2_every_mistake_is_found_with_line_key_and_remedy() {
    refused(
        r#"
listn = "127.0.0.1:1"
accept_deadline = "2"

[outbound]
private_networks = ["10.0.0.0/33"]

[log]
level = "loud"

[[source]]
name = "gh"
scheme = "github"
secrets = ["env:NOT_SET"]
key = 5

[[endpoint]]
id = "fan_17"
url = "http://example.com/hooks"
timeout = "30"
concurrency = "ten"
[endpoint.retry]
delays = ["5s", "5x"]
jiter = 0.5

[[queue]]
nme = "carts"
"#,
        expect![[r#"
            fault: posthaste.toml:2:1: listn: there is no such setting; did you mean `listen`?
              2 | listn = …
                | ^^^^^
            fault: posthaste.toml:3:1: accept_deadline: the duration "2" has no unit; write for example "2s"
              3 | accept_deadline = "2"
                | ^^^^^^^^^^^^^^^
            fault: posthaste.toml:6:1: outbound.private_networks: "10.0.0.0/33" is no network; write for example "10.0.0.0/8" or "::1/128"
              6 | private_networks = ["10.0.0.0/33"]
                | ^^^^^^^^^^^^^^^^
            fault: posthaste.toml:9:1: log.level: "loud" is no level; write error, warn, info, debug or trace, or for example "info,posthaste_engine=debug"
              9 | level = "loud"
                | ^^^^^
            fault: posthaste.toml:14:12: source[gh].secrets[0]: the environment variable NOT_SET is not set
            fault: posthaste.toml:15:1: source[gh].key: text, or a list of texts, is expected
              15 | key = 5
                 | ^^^
            fault: posthaste.toml:19:1: endpoint[fan_17].url: plain http is allowed to listed private networks only; use https, or add the network to outbound.private_networks, or set outbound.allow_http
              19 | url = …
                 | ^^^
            fault: posthaste.toml:20:1: endpoint[fan_17].timeout: the duration "30" has no unit; write for example "30s"
              20 | timeout = "30"
                 | ^^^^^^^
            fault: posthaste.toml:21:1: endpoint[fan_17].concurrency: a number is expected, not a string
              21 | concurrency = "ten"
                 | ^^^^^^^^^^^
            fault: posthaste.toml:23:1: endpoint[fan_17].retry.delays: "5x" is no duration; write whole numbers with ms, s, m, h or d, for example "1h30m"
              23 | delays = ["5s", "5x"]
                 | ^^^^^^
            fault: posthaste.toml:24:1: endpoint[fan_17].retry.jiter: there is no such setting; did you mean `jitter`?
              24 | jiter = …
                 | ^^^^^
            fault: posthaste.toml:26:1: queue[1]: `name` is missing; add for example name = "carts"
              26 | [[queue]]
                 | ^^^^^^^^^
            fault: posthaste.toml:27:1: queue[1].nme: there is no such setting; did you mean `name`?
              27 | nme = …
                 | ^^^
            posthaste.toml: 13 faults
        "#]],
    );
}

#[test]
fn r_b14_every_mistake_of_a_schedule_is_found() {
    refused(
        r#"
[[queue]]
name = "carts"

[[schedule]]
name = "carts"
cron = "0 25 * * *"
timezone = "Berlin"
to = { queue = "carts" }
catch_up = "some"

[[schedule]]
name = "never"
cron = "0 0 30 2 *"
to = { queue = "carts" }

[[schedule]]
name = "often"
cron = "@every 5s"
type = "tick"

[[schedule]]
name = "often"
cron = "@daily"

[[schedule]]
name = "lost"
type = "tick"
"#,
        expect![[r#"
            fault: posthaste.toml:7:1: schedule[carts].cron: "25" is no hour; give 0 to 23
              7 | cron = "0 25 * * *"
                | ^^^^
            fault: posthaste.toml:8:1: schedule[carts].timezone: "Berlin" is no time zone that is known; give a name of the IANA database, for example "Europe/Berlin", or "UTC"
              8 | timezone = "Berlin"
                | ^^^^^^^^
            fault: posthaste.toml:10:1: schedule[carts].catch_up: unknown variant `some`, expected one of `skip`, `once`, `all`
              10 | catch_up = "some"
                 | ^^^^^^^^
            fault: posthaste.toml:14:1: schedule[never].cron: "0 0 30 2 *" never comes: no month has such a day; correct the day or the month
              14 | cron = "0 0 30 2 *"
                 | ^^^^
            fault: posthaste.toml:19:1: schedule[often].cron: the interval "5s" is out of range; write @every and 1m to 366d
              19 | cron = "@every 5s"
                 | ^^^^
            fault: posthaste.toml:22:1: schedule[often].to: without a destination or a type the messages would reach nobody; give to = { queue = "…" } or to = { endpoints = ["…"] }, or a type to which endpoints subscribe
              22 | [[schedule]]
                 | ^^^^^^^^^^^^
            fault: posthaste.toml:26:1: schedule[lost]: `cron` is missing; add for example cron = "30 2 * * *"
              26 | [[schedule]]
                 | ^^^^^^^^^^^^
            posthaste.toml: 7 faults
        "#]],
    );
}

#[test]
fn r_b14_a_schedule_to_what_is_not_there_is_warned_about() {
    let toml = "[[schedule]]\nname = \"a\"\ncron = \"@daily\"\nto = { queue = \"gone\" }\n";
    let ended = checked(toml, |_| {});
    assert_eq!(Some(0), ended.code, "{}{}", ended.out, ended.err);
    let text = format!("{}{}", ended.out, ended.err);
    assert!(text.contains("schedule[a].to: \"gone\" is not in this configuration"), "{text}");
}

#[test]
fn r_g2_an_id_that_is_taken_names_both_places() {
    refused(
        "[[queue]]\nname = \"carts\"\n[[queue]]\nname = \"carts\"\ntenant = \"acme\"\n[[endpoint]]\nid = \"carts\"\n\
         url = \"https://example.com\"\n[[endpoint]]\nid = \"a\"\nurl = \"https://example.com\"\ntenant = \"no/t\"\n",
        expect![[r#"
            fault: posthaste.toml:6:1: endpoint[carts]: the id is taken by the queue at posthaste.toml:1:1; sources, endpoints and queues of a tenant share one namespace: choose another id
            fault: posthaste.toml:12:1: endpoint[a].tenant: this is no tenant's name; use 1 to 64 letters, digits, `.`, `_` or `-`, for example "acme"
              12 | tenant = "no/t"
                 | ^^^^^^
            posthaste.toml: 2 faults
        "#]],
    );
}

#[test]
fn r_g2_text_that_is_no_toml_is_pointed_at() {
    refused(
        "listen = 127.0.0.1\n[[queue\nname = \"a\nstore = \"sqlite:a.db\"\nstore = \"b\"\n",
        expect![[r"
            fault: posthaste.toml:2:8: this is no TOML: unclosed array table, expected `]]`
            posthaste.toml: 1 fault
        "]],
    );
}

#[test]
fn r_g2_no_fault_shows_a_secret() {
    let ended = checked(
        r#"
master_key = "verysecret-1"
secret = "verysecret-2"
store = "mysql://user:verysecret-3@localhost/posthaste"
[[source]]
name = "a"
scheme = "github"
secret = "verysecret-4"
secrets = "verysecret-5"
[[source]]
name = "b"
scheme = "github"
secrets = [
  "verysecret-6=",
]
[[endpoint]]
id = "c"
url = "https://user:verysecret-7@example.com"
headers = { Authorization = "verysecret-8\u0000", webhook-id = "verysecret-9" }
[[endpoint]]
id = "d"
url = "ftp://example.com/verysecret-a"
tokn = { a = "verysecret-b" }
"#,
        |_| {},
    );
    assert_eq!(Some(1), ended.code);
    assert!(!ended.out.contains("verysecret") && !ended.err.contains("verysecret"), "{}", ended.out);
    assert!(ended.out.ends_with("posthaste.toml: 11 faults\n"), "{}", ended.out);
    let ended =
        checked("[[source]]\nname = \"a\"\nscheme = \"github\"\nsecrets = [\n\"verysecret=\", 5]\n", |_| {});
    assert_eq!(Some(1), ended.code);
    assert!(!ended.out.contains("verysecret"), "{}", ended.out);
}

#[test]
fn r_g2_c10_a_good_configuration_is_good_and_warned_about() {
    let good = r#"
store = "sqlite:data.db"
listen = "localhost:0"
accept_deadline = "1s500ms"
[outbound]
destinations = ["*.example.com"]
private_networks = ["10.0.0.0/8", "::1"]
allow_http = false
[limits]
payload_bytes_max = 1000000
[log]
format = "json"
level = "warn,posthaste_engine=debug"
[[source]]
name = "gh"
scheme = "github"
secrets = ["file:secret", "env:GH"]
to = { queue = "payments" }
[[endpoint]]
id = "fan_17"
url = "https://hooks.example.com"
types = ["shipment.*"]
secrets = ["file:secret"]
idempotent = true
[[queue]]
name = "carts"
tenant = "acme"
"#;
    let ended = checked(good, |command| {
        command.env("GH", "It's a Secret to Everybody");
    });
    expect![[r#"
        warning: posthaste.toml:14:1: source[gh].to: "payments" is not in this configuration; make it over the API before messages arrive, or add it here
        warning: posthaste.toml:25:1: queue[carts].on_unknown: an attempt that may have had its effect (time-out, reset, 5xx, lost lease) is tried again; say idempotent = true if the receiver guards the idempotency key, on_unknown = "reconcile" to ask first, or on_unknown = "dead_letter" to leave it to a person
        posthaste.toml: good, 2 warnings
    "#]].assert_eq(&ended.out);
    assert_eq!(Some(0), ended.code);
}

#[test]
fn r_g2_flags_over_environment_over_file() {
    let toml = "listen = \"nowhere\"\nstore = \"file\"\n";
    let ended = checked(toml, |command| {
        command.env("POSTHASTE_LISTEN", "elsewhere").env("POSTHASTE_LIMITS__DELIVERIES_MAX", "0");
        command.env("POSTHASTE_OUTBOUND__PRIVATE_NETWORKS", "10.0.0.0/8, x").env("POSTHASTE_LISTN", "1");
    });
    expect![[r#"
        fault: posthaste.toml:2:1: store: this is no store; write for example store = "sqlite:posthaste.db", or "postgres://user@host/database"
          2 | store = …
            | ^^^^^
        fault: environment variable POSTHASTE_LIMITS__DELIVERIES_MAX: limits.deliveries_max: 0 is out of range; give 1 to 100000
        fault: environment variable POSTHASTE_LISTEN: listen: "elsewhere" is no address to listen on; write an IP address and a port, for example "127.0.0.1:8484"
        fault: environment variable POSTHASTE_LISTN: there is no such setting; did you mean `POSTHASTE_LISTEN`?
        fault: environment variable POSTHASTE_OUTBOUND__PRIVATE_NETWORKS: outbound.private_networks: "x" is no network; write for example "10.0.0.0/8" or "::1/128"
        posthaste.toml: 5 faults
    "#]].assert_eq(&ended.out);
    let folder = tempfile::tempdir().unwrap();
    let arguments = ["serve", "--store", "mysql://x", "--listen", "0.0.0.0:0"];
    let mut serve = posthaste(folder.path(), &arguments);
    let ended = run(serve.env("POSTHASTE_LISTEN", "elsewhere").env("POSTHASTE_STORE", "sqlite:a.db"));
    expect![[r#"
        error: --listen: 0.0.0.0:0 can be reached from other machines, and this build has no TLS of its own; listen on 127.0.0.1 behind a TLS proxy; if the network in between is yours alone, pass --insecure
        --store: this is no store; write for example store = "sqlite:posthaste.db", or "postgres://user@host/database"
    "#]].assert_eq(&ended.err);
    assert_eq!(Some(1), ended.code);
}

#[test]
fn exit_codes_tell_usage_refusal_and_an_unreachable_server_apart() {
    let folder = tempfile::tempdir().unwrap();
    let code = |arguments: &[&str]| run(&mut posthaste(folder.path(), arguments)).code;
    assert_eq!(Some(0), code(&["--version"]));
    assert_eq!(Some(0), code(&["states"]));
    assert_eq!(Some(0), code(&["classes", "--json"]));
    assert_eq!(Some(0), code(&["completions", "bash"]));
    assert_eq!(Some(2), code(&[]));
    assert_eq!(Some(2), code(&["publish"]));
    assert_eq!(Some(2), code(&["publish", "--key", "a", "--delay", "5"]));
    assert_eq!(
        Some(2),
        code(&["publish", "--key", "a", "--delay", "5s", "--due-at", "2026-12-01T09:00:00Z"])
    );
    assert_eq!(Some(2), code(&["jobs", "list", "--state", "sleeping"]));
    assert_eq!(Some(1), code(&["check-config", "missing.toml"]));
    assert_eq!(Some(1), code(&["publish", "--key", "a", "--data", "@missing"]));
    // Port 1 is nobody's.
    assert_eq!(Some(3), code(&["publish", "--key", "a", "--url", "http://127.0.0.1:1"]));
    assert_eq!(Some(2), code(&["jobs", "list", "--url", "https://example.com"]));
}

#[test]
fn r_f2_the_six_states_are_told_with_what_an_operator_can_do() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(&mut posthaste(folder.path(), &["states"]));
    for state in ["scheduled", "leased", "retryable", "committed", "dead_lettered", "cancelled"] {
        assert!(ended.out.lines().any(|line| line.starts_with(state)), "{state}: {}", ended.out);
    }
    let ended = run(&mut posthaste(folder.path(), &["classes", "--json"]));
    let classes: serde_json::Value = serde_json::from_str(&ended.out).unwrap();
    assert_eq!(15, classes["classes"].as_array().unwrap().len());
    assert_eq!("503 with Retry-After", classes["answers"][19]["answer"]);
}

#[test]
fn r_c11_a_retry_within_the_lease_of_the_receivers_ledger_is_warned_about() {
    let endpoint = |retry: &str| {
        format!(
            "[[endpoint]]\nid = \"fan_17\"\nurl = \"https://example.com\"\nidempotent = true\nledger_lease = \"30s\"\n{retry}"
        )
    };
    let ended = checked(&endpoint(""), |_| {});
    assert_eq!(Some(0), ended.code);
    assert!(ended.out.contains("the first retry may come after 5s"), "{}", ended.out);
    assert!(ended.out.contains("for 30s"), "{}", ended.out);
    // Half of an exponential delay is random.
    let ended = checked(&endpoint("[endpoint.retry]\nbase = \"50s\"\njitter = 0.5\n"), |_| {});
    assert!(ended.out.contains("after 25s"), "{}", ended.out);
    let ended = checked(&endpoint("[endpoint.retry]\ndelays = [\"30s\"]\n"), |_| {});
    assert!(!ended.out.contains("ledger_lease"), "{}", ended.out);
}

#[test]
fn r_c10_look_ups_and_rules_are_checked_where_they_stand() {
    let good = r#"
[[endpoint]]
id = "fan_17"
url = "https://hooks.example.com"
on_unknown = "reconcile"
[endpoint.reconcile]
url = "https://hooks.example.com/status?key={event_id}"
settle = "2m"
pointer = "/state"
present = ["done"]
absent = ["none", 404]
[endpoint.classify]
"404" = "permanent"
"5xx" = { follows = "retry", effect = "none" }
[[queue]]
name = "carts"
on_unknown = "reconcile"
[queue.reconcile]
settle = "1m"
[queue.classify]
client_error = "retry"
"#;
    let ended = checked(good, |_| {});
    assert_eq!((Some(0), "posthaste.toml: good\n"), (ended.code, &*ended.out), "{}", ended.err);
    refused(
        r#"[[endpoint]]
id = "a"
url = "https://hooks.example.com"
on_unknown = "reconcile"
[endpoint.reconcile]
url = "http://hooks.example.com/{key}"
settle = "1s"
[endpoint.classify]
"200" = "retry"
[[queue]]
name = "carts"
on_unknown = "reconcile"
[queue.classify]
"404" = "retry"
"#,
        expect![[r#"
            fault: posthaste.toml:1:1: endpoint[a]: `settle` is missing; add it
              1 | [[endpoint]]
                | ^^^^^^^^^^^^
            fault: posthaste.toml:7:1: endpoint[a].reconcile.settle: 1s is shorter than the timeout, 15s: a request that was cut off may be at work for as long again; give at least the timeout and the receiver's longest handling
              7 | settle = "1s"
                | ^^^^^^
            fault: posthaste.toml:9:1: endpoint[a].classify.200: a 2xx is taken, whatever its body says; write a status ("404"), a range ("5xx") or a class ("timeout")
              9 | "200" = "retry"
                | ^^^^^
            fault: posthaste.toml:12:1: queue[carts].on_unknown: nothing says how to look; add [queue.reconcile] with settle = "2m"
              12 | on_unknown = "reconcile"
                 | ^^^^^^^^^^
            fault: posthaste.toml:14:1: queue[carts].classify.404: workers report classes, not statuses; write a class, for example "timeout": see `posthaste classes`
              14 | "404" = "retry"
                 | ^^^^^
            posthaste.toml: 5 faults
        "#]],
    );
}
