//! `timeline`: the story of one key in one glance. Row F2.

use clap::Args;
use posthaste_core::StateName;
use serde_json::Value;

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, BAD, FAINT, GOOD, ODD, STRONG, shown, styled},
    reference, times,
};

#[derive(Debug, Args)]
pub(super) struct TimelineArgs {
    /// The key, or any other name of the message
    key: String,
    /// Only of this endpoint or queue
    #[arg(long, value_name = "ID")]
    destination: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(args: TimelineArgs) -> Result<Outcome, Failure> {
    let destination = args.destination.as_deref().map(|id| format!("&destination={}", encoded(id)));
    let path = format!("/v1/timeline?key={}{}", encoded(&args.key), destination.unwrap_or_default());
    let answer = Client::new(&args.server)?.get(&path).await?.body;
    if args.server.output.json { output::json(&answer) } else { output::text(&told(&answer)) }
}

/// The story of one key, as it is printed.
pub(crate) fn told(timeline: &Value) -> String {
    let mut lines = vec![
        format!(
            "{}  {}",
            styled(STRONG, &shown(&timeline["key"])),
            styled(FAINT, &shown(&timeline["message_id"]))
        ),
        shown(&timeline["summary"]),
        String::new(),
    ];
    for job in list(&timeline["jobs"]) {
        lines.push(job_line(job));
        if let Some(state) = job["state"].as_str().and_then(StateName::parse) {
            lines.push(format!("  {}\n  you can: {}", reference::meaning(state), reference::action(state)));
        }
        let event_id = &job["event_id"];
        // The job's own entry says what its line says.
        let other = |entry: &&Value| entry["key"] == *event_id && entry["of_job"].is_null();
        lines.extend(list(&timeline["ledger"]).iter().find(other).map(ledger_line));
    }
    lines.push(String::new());
    let entries = list(&timeline["entries"]);
    let width =
        |column: fn(&Value) -> String| entries.iter().map(|entry| column(entry).chars().count()).max();
    let widths = [width(stage).unwrap_or(0), width(where_to).unwrap_or(0), width(attempt).unwrap_or(0)];
    let mut day = String::new();
    for entry in entries {
        let at = entry["at"].as_str().unwrap_or_default();
        if times::day(at) != day {
            day = times::day(at);
            lines.push(styled(FAINT, &format!("{day} UTC")));
        }
        lines.push(entry_line(entry, at, widths));
    }
    lines.join("\n")
}

/// `carts  dead_lettered (exhausted)  job_…  attempt 25  25 to 25 …`.
pub(super) fn job_line(job: &Value) -> String {
    let cause =
        job["cause"].as_str().map(|cause| format!(" ({})", output::printable(cause))).unwrap_or_default();
    let attempt = match job["attempt"].as_u64() {
        Some(attempt) => format!("attempt {attempt}"),
        None => "not tried yet".to_owned(),
    };
    let waits = matches!(job["state"].as_str(), Some("scheduled" | "retryable"));
    let due = job["due_at"]
        .as_str()
        .filter(|_| waits)
        .map(|due| format!("  due {} ({})", times::short(due), times::from_now(due).unwrap_or_default()));
    let owner = job["owner"].as_str().map(|owner| format!("  owner {}", output::printable(owner)));
    format!(
        "{}  {}{cause}  {attempt}{}{}  {}",
        styled(STRONG, &shown(&job["destination"])),
        styled_state(&job["state"]),
        due.unwrap_or_default(),
        owner.unwrap_or_default(),
        styled(FAINT, &shown(&job["id"])),
    )
}

/// `  receiver's ledger: done (committed), 2 grants, fence 1.2`.
fn ledger_line(entry: &Value) -> String {
    let outcome =
        entry["done"]["outcome"].as_str().map(|outcome| format!(" ({})", output::printable(outcome)));
    let grants = match entry["attempts"].as_u64() {
        Some(1) => "1 grant".to_owned(),
        _ => format!("{} grants", shown(&entry["attempts"])),
    };
    let reset = entry["reset"]["reason"].as_str().map(|why| format!(", reset: {}", output::printable(why)));
    format!(
        "  receiver's ledger: {}{}, {grants}, fence {}{}",
        shown(&entry["status"]),
        outcome.unwrap_or_default(),
        shown(&entry["fence"]),
        reset.unwrap_or_default()
    )
}

/// A state's word in its colour.
fn styled_state(state: &Value) -> String {
    let word = shown(state);
    match StateName::parse(&word) {
        Some(StateName::Committed) => styled(GOOD, &word),
        Some(StateName::Retryable) => styled(ODD, &word),
        Some(StateName::DeadLettered) => styled(BAD, &word),
        Some(StateName::Scheduled | StateName::Leased | StateName::Cancelled) | None => word,
    }
}

fn entry_line(entry: &Value, at: &str, [stages, destinations, attempts]: [usize; 3]) -> String {
    let (mark, style) = mark(entry);
    let facts = [ending(entry), effect_words(entry), response(entry), next(entry), who(entry), why(entry)];
    let facts: Vec<String> = facts.into_iter().filter(|fact| !fact.is_empty() && fact != "-").collect();
    let head = format!(
        "  {}  {} {:<stages$}  {:<destinations$}  {:<attempts$}  ",
        times::of_day(at),
        styled(style, mark),
        stage(entry),
        where_to(entry),
        attempt(entry),
    );
    format!("{head}{}", facts.join("  ")).trim_end().to_owned()
}

fn stage(entry: &Value) -> String {
    shown(&entry["stage"])
}

fn where_to(entry: &Value) -> String {
    entry["destination"].as_str().map(output::printable).unwrap_or_default()
}

fn attempt(entry: &Value) -> String {
    entry["attempt"].as_u64().map(|attempt| format!("#{attempt}")).unwrap_or_default()
}

/// One sign for each kind of step, so that the eye finds what matters.
fn mark(entry: &Value) -> (&'static str, anstyle::Style) {
    match (entry["stage"].as_str().unwrap_or_default(), entry["effect"].as_str()) {
        ("committed" | "acknowledged", _) => ("✓", GOOD),
        ("dead_lettered", _) => ("✗", BAD),
        ("failed" | "lease_lost" | "late_report" | "stale_report", Some("none")) => ("○", ODD),
        ("failed" | "lease_lost" | "late_report" | "stale_report", _) => ("?", BAD),
        ("duplicate" | "cancelled" | "cancel_requested" | "released", _) => ("·", ODD),
        ("replayed" | "resent", _) => ("↻", ODD),
        ("reset", _) => ("!", ODD),
        (_, _) => ("·", FAINT),
    }
}

/// `committed`, or `failed: timeout`.
pub(super) fn ending(attempt: &Value) -> String {
    let outcome = attempt["outcome"].as_str().map(output::printable);
    let class = attempt["class"].as_str().map(output::printable);
    match (outcome, class) {
        (Some(outcome), Some(class)) => format!("{outcome}: {class}"),
        (Some(outcome), None) => outcome,
        (None, _) => "-".to_owned(),
    }
}

/// What is known about the effect, in words: a try that never reached the receiver must not look like one that acted
/// and whose acknowledgement was lost.
pub(super) fn effect_words(attempt: &Value) -> String {
    let class = attempt["class"].as_str().unwrap_or_default();
    let words = match (attempt["effect"].as_str(), attempt["outcome"].as_str()) {
        (None, _) => return "-".to_owned(),
        (Some("none"), _) if matches!(class, "dns" | "connect" | "tls" | "blocked") => {
            "never reached the receiver"
        }
        (Some("none"), Some("failed")) => "refused by the receiver: no effect",
        (Some("none"), _) => "no effect",
        (Some("possible"), _) if matches!(class, "server_error" | "protocol") => {
            "the receiver failed, or a proxy before it: MAY HAVE ACTED"
        }
        (Some("possible"), _) if class == "worker" => "the worker failed: MAY HAVE ACTED",
        (Some("possible"), Some("lease_lost")) => "the lease ran out without a word: MAY HAVE ACTED",
        (Some("possible"), _) => "no word from the receiver: MAY HAVE ACTED",
        (Some("reported"), Some("duplicate")) => "done before: a no-op",
        (Some("reported"), Some("failed" | "lease_lost")) => "acted, and the acknowledgement was lost",
        (Some("reported"), _) => "acted (reported)",
        (Some("confirmed"), _) => "acted (confirmed by the receiver's ledger)",
        (Some(other), _) => return output::printable(other),
    };
    words.to_owned()
}

fn response(entry: &Value) -> String {
    let detail = &entry["detail"];
    let took = detail["duration_ms"].as_u64().map(|ms| format!("{ms}ms"));
    let status = detail["status"].as_u64().map(|status| format!("HTTP {status}"));
    [status, took].into_iter().flatten().collect::<Vec<_>>().join(" in ")
}

fn next(entry: &Value) -> String {
    let stage = entry["stage"].as_str().unwrap_or_default();
    let word = if stage == "scheduled" { "for" } else { "next" };
    // Said once: by the entry that schedules the next attempt.
    let said = matches!(stage, "scheduled" | "retry_scheduled" | "released");
    entry["next_at"]
        .as_str()
        .filter(|_| said)
        .map(|at| format!("{word} {}", times::short(at)))
        .unwrap_or_default()
}

fn who(entry: &Value) -> String {
    let by_a_person = matches!(
        entry["stage"].as_str(),
        Some("cancelled" | "cancel_requested" | "replayed" | "resent" | "reconciled" | "reset")
    );
    let said = by_a_person || matches!(entry["stage"].as_str(), Some("leased" | "stale_report"));
    entry["actor"]
        .as_str()
        .filter(|_| said)
        .map(|actor| format!("by {}", output::printable(actor)))
        .unwrap_or_default()
}

fn why(entry: &Value) -> String {
    let detail = &entry["detail"];
    let words = ["cause", "source", "code", "message", "evidence", "verdict", "status", "reason"]
        .iter()
        .filter_map(|name| detail[*name].as_str().map(|text| format!("{name}: {}", output::printable(text))));
    let vouched = detail["assume_not_done"].as_bool() == Some(true);
    words.chain(vouched.then(|| "vouched that it was not done".to_owned())).collect::<Vec<_>>().join("  ")
}

fn list(value: &Value) -> &[Value] {
    value.as_array().map(Vec::as_slice).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn r_f2_an_attempt_that_never_arrived_looks_unlike_one_that_acted() {
        let words = |outcome: &str, class: Option<&str>, effect: &str| {
            effect_words(&json!({ "outcome": outcome, "class": class, "effect": effect }))
        };
        let all = [
            words("failed", Some("connect"), "none"),
            words("failed", Some("client_error"), "none"),
            words("failed", Some("timeout"), "possible"),
            words("failed", Some("server_error"), "possible"),
            words("lease_lost", Some("lease_lost"), "possible"),
            words("lease_lost", Some("lease_lost"), "reported"),
            words("committed", None, "reported"),
            words("duplicate", None, "reported"),
        ];
        for (at, one) in all.iter().enumerate() {
            assert!(all[at + 1..].iter().all(|other| other != one), "{one}");
        }
        let marks = [
            mark(&json!({ "stage": "failed", "effect": "none" })).0,
            mark(&json!({ "stage": "failed", "effect": "possible" })).0,
            mark(&json!({ "stage": "committed", "effect": "reported" })).0,
            mark(&json!({ "stage": "dead_lettered" })).0,
        ];
        assert_eq!(["○", "?", "✓", "✗"], marks);
    }

    #[test]
    fn r_f2_a_timeline_is_told_in_lines() {
        let entry = |at: &str, stage: &str, rest: Value| {
            let mut entry = json!({ "at": at, "stage": stage, "destination": "carts" });
            entry.as_object_mut().unwrap().extend(rest.as_object().cloned().unwrap());
            entry
        };
        let story = told(&json!({
            "key": "k:1", "message_id": "msg_1", "summary": "came once; carts: committed, 2 attempts",
            "jobs": [{ "destination": "carts", "state": "committed", "id": "job_1", "attempt": 2 }],
            "entries": [
                { "at": "2026-11-30T09:00:00.000Z", "stage": "accepted", "detail": {} },
                entry("2026-11-30T09:00:00.000Z", "scheduled", json!({ "next_at": "2026-11-30T09:00:00.000Z" })),
                entry("2026-11-30T09:00:00.010Z", "leased", json!({ "attempt": 1, "actor": "w\u{1b}[31m" })),
                entry("2026-11-30T09:00:15.010Z", "failed", json!({ "attempt": 1, "outcome": "failed",
                    "class": "timeout", "effect": "possible", "next_at": "2026-11-30T09:00:20.000Z" })),
                entry("2026-11-30T09:00:15.010Z", "retry_scheduled", json!({ "attempt": 1,
                    "next_at": "2026-11-30T09:00:20.000Z" })),
                entry("2026-12-01T00:00:00.000Z", "committed", json!({ "attempt": 2, "outcome": "committed",
                    "effect": "reported", "detail": { "status": 200, "duration_ms": 12 } })),
            ],
        }));
        let plain = anstream::adapter::strip_str(&story).to_string();
        expect_test::expect![[r"
            k:1  msg_1
            came once; carts: committed, 2 attempts

            carts  committed  attempt 2  job_1
              the receiver has it
              you can: nothing to do; `jobs resend` if the receiver lost it

            2026-11-30 UTC
              09:00:00.000  · accepted
              09:00:00.000  · scheduled        carts      for 2026-11-30 09:00:00.000
              09:00:00.010  · leased           carts  #1  by w�[31m
              09:00:15.010  ? failed           carts  #1  failed: timeout  no word from the receiver: MAY HAVE ACTED
              09:00:15.010  · retry_scheduled  carts  #1  next 2026-11-30 09:00:20.000
            2026-12-01 UTC
              00:00:00.000  ✓ committed        carts  #2  committed  acted (reported)  HTTP 200 in 12ms"]]
        .assert_eq(&plain);
    }
}
