//! `jobs replay`, `jobs resend` and `jobs reconcile`: what was done, or why not, and what to do next. Row B9.

use clap::{Args, ValueEnum, builder::PossibleValuesParser};
use posthaste_core::LookUpVerdict;
use serde_json::{Map, Value, json};

use super::{
    ServerArgs,
    bulk::{self, Kind, ManyArgs, Order},
    client::{Client, Reply, encoded},
    exit::{Failure, Outcome},
    jobs::{ATTEMPT_HEADINGS, attempt_row},
    output::{self, shown},
    times,
};

#[derive(Debug, Args)]
pub(super) struct ReplayArgs {
    /// The job's id; or say by a filter which jobs
    id: Option<String>,
    /// The last attempt, as you saw it; 0 if it was never tried
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,
    /// Why; kept with the job
    #[arg(long)]
    reason: String,
    /// Vouch for what the records don't show
    #[arg(long, value_name = "WHAT")]
    assume: Option<Assume>,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Assume {
    /// The effect has not happened, though an attempt may have acted
    NotDone,
}

#[derive(Debug, Args)]
pub(super) struct ResendArgs {
    /// The job's id
    id: String,
    /// The last attempt, as you saw it; 0 if it was never tried
    #[arg(long, value_name = "NUMBER")]
    attempt: Option<u32>,
    /// Why; kept with the job
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReconcileArgs {
    /// The job's id
    id: String,
    /// Why, or how you know; kept with the job
    #[arg(long, required_if_eq_any([("verdict", "present"), ("verdict", "absent"), ("verdict", "in_progress"), ("verdict", "unsure")]))]
    reason: Option<String>,
    /// What you found out: did the last attempt have its effect?
    #[arg(long, value_name = "WHAT", value_parser = PossibleValuesParser::new(LookUpVerdict::ALL.iter().map(|verdict| verdict.as_str())))]
    verdict: Option<String>,
    /// With a verdict: the last attempt, as you saw it; 0 if it was never tried
    #[arg(long, value_name = "NUMBER", requires = "verdict")]
    attempt: Option<u32>,
    /// Ask the receiver now, as the endpoint's [reconcile] says
    #[arg(long, conflicts_with = "verdict")]
    look_up: bool,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn replay(args: ReplayArgs) -> Result<Outcome, Failure> {
    let assume_not_done = matches!(args.assume, Some(Assume::NotDone));
    let many = args.many.are_meant(args.id.as_deref(), "replay")?;
    let Some(id) = args.id.filter(|_| !many) else {
        if args.attempt.is_some() {
            return Err(Failure::usage(
                "--attempt is for one job; a run names for each job the attempt that it sees",
            ));
        }
        let order = Order { kind: Kind::Replay, reason: &args.reason, assume_not_done };
        return bulk::order(&args.many, &order, &args.server).await;
    };
    let client = Client::new(&args.server)?;
    let attempt = seen(&client, "replay", &id, args.attempt).await?;
    let mut body = json!({ "attempt": attempt, "reason": args.reason });
    if assume_not_done {
        body["assume"] = "not_done".into();
    }
    ask(&client, "replay", &id, &body, &args.server).await
}

pub(super) async fn resend(args: ResendArgs) -> Result<Outcome, Failure> {
    let client = Client::new(&args.server)?;
    let attempt = seen(&client, "resend", &args.id, args.attempt).await?;
    let body = json!({ "attempt": attempt, "reason": args.reason });
    ask(&client, "resend", &args.id, &body, &args.server).await
}

pub(super) async fn reconcile(args: ReconcileArgs) -> Result<Outcome, Failure> {
    let client = Client::new(&args.server)?;
    let reason = args.reason.as_ref().map(|reason| ("reason".to_owned(), Value::from(reason.as_str())));
    let mut body: Map<String, Value> = reason.into_iter().collect();
    if let Some(verdict) = &args.verdict {
        let attempt = seen(&client, "reconcile", &args.id, args.attempt).await?;
        body.insert("attempt".to_owned(), attempt);
        body.insert("verdict".to_owned(), verdict.as_str().into());
    }
    if args.look_up {
        body.insert("look_up".to_owned(), true.into());
    }
    ask(&client, "reconcile", &args.id, &body.into(), &args.server).await
}

/// The attempt to name. Whoever left it out is shown the job: filling it in here would defeat what it is for.
async fn seen(client: &Client, verb: &str, id: &str, given: Option<u32>) -> Result<Value, Failure> {
    match given {
        Some(0) => Ok(Value::Null),
        Some(attempt) => Ok(attempt.into()),
        None => {
            let job = client.get(&format!("/v1/jobs/{}", encoded(id))).await?.body;
            let current = job["attempt"].as_u64().unwrap_or(0);
            let cause = job["cause"].as_str().map(|cause| format!(" ({})", output::printable(cause)));
            Err(Failure::usage(format!(
                "name the attempt that you saw, so that nothing is sent which you did not look at\n  now: {}{}, \
                 attempt {current}, effect {}\n  look: posthaste jobs show {id}\n  then: posthaste jobs {verb} {id} \
                 --attempt {current} --reason …",
                shown(&job["state"]),
                cause.unwrap_or_default(),
                effect_words(&job),
            )))
        }
    }
}

async fn ask(
    client: &Client,
    verb: &str,
    id: &str,
    body: &Value,
    server: &ServerArgs,
) -> Result<Outcome, Failure> {
    let path = format!("/v1/jobs/{}/{verb}", encoded(id));
    let reply = client.ask(&path, body.to_string().into()).await?;
    if reply.status.is_success() {
        return if server.output.json { output::json(&reply.body) } else { output::text(&done(&reply.body)) };
    }
    if server.output.json {
        // What it is refused with is data, too.
        output::json(&reply.body)?;
        return Ok(Outcome::Refused);
    }
    refused(verb, id, &reply)
}

/// What was done.
fn done(answer: &Value) -> String {
    let next = answer["attempt"].as_u64().unwrap_or(0).saturating_add(1);
    if let Some(message) = answer["message_id"].as_str() {
        return format!("settled: it fits its source now, and went on as {}", output::printable(message));
    }
    let due = answer["due_at"].as_str().map_or_else(|| "now".to_owned(), times::short);
    match (answer["result"].as_str(), answer["state"].as_str()) {
        (Some(result @ ("replayed" | "resent")), _) => {
            format!("{result}: attempt {next} is due {due}, with fresh budgets and the same identity")
        }
        (Some("waits"), state) => {
            let verdict = shown(&answer["verdict"]);
            match (answer["believed_at"].as_str(), state) {
                (Some(at), _) => format!(
                    "{verdict}: not believed before {}, since the last request may act until then; it is asked again",
                    times::short(at)
                ),
                (None, _) if verdict == "absent" => format!("absent: attempt {next} is due {due}"),
                (None, _) => format!("{verdict}: it is asked again, {due}"),
            }
        }
        (Some("settled"), Some("dead_lettered")) => {
            format!("{}: dead-lettered, since its budgets are spent", shown(&answer["verdict"]))
        }
        (Some("settled"), Some("cancelled")) => {
            "settled, nothing was sent: cancelled, since it no longer applied".to_owned()
        }
        (Some("settled"), _) => {
            let evidence = match answer["evidence"].as_str() {
                Some("ledger") => "the receiver's ledger says so",
                Some("answered") => "the receiver answered so",
                Some("worker") => "a worker reported so",
                Some("reconciled") if !answer["verdict"].is_null() => "somebody looked",
                Some(_) | None => "an attempt was reported to have acted",
            };
            format!("settled, nothing was sent: it has happened ({evidence}), and the job is committed")
        }
        (Some(_) | None, _) => "the server gave no result".to_owned(),
    }
}

/// Why nothing was done, by what evidence, and what may be done next.
fn refused(verb: &str, id: &str, reply: &Reply) -> Result<Outcome, Failure> {
    let problem = &reply.body;
    let Failure::Refused(said) = reply.refusal() else { return Err(reply.refusal()) };
    let mut lines = vec![said];
    let current = problem["current_attempt"].as_u64().unwrap_or(0);
    let code = problem["code"].as_str().unwrap_or_default();
    let evidence = matches!(code, "outcome_unknown" | "no_evidence");
    if evidence {
        lines.push(format!("effect: {}", effect_words(problem)));
        lines.push(format!("ledger: {}", ledger_words(&problem["ledger"])));
    }
    lines.extend(next_steps(verb, id, code, current, problem["state"].as_str().unwrap_or_default()));
    let attempts = problem["attempts"].as_array().filter(|attempts| evidence && !attempts.is_empty());
    if let Some(attempts) = attempts {
        output::table(ATTEMPT_HEADINGS, attempts.iter().map(attempt_row).collect())?;
    }
    Err(Failure::refused(lines.join("\n  ")))
}

/// What an operator may do next, a line each.
fn next_steps(verb: &str, id: &str, code: &str, current: u64, state: &str) -> Vec<String> {
    let happened = format!("it happened: posthaste jobs cancel {id} --reason …");
    match (code, state) {
        ("outcome_unknown", _) => vec![
            "ask the receiver whether it happened; then".to_owned(),
            happened,
            format!(
                "it did not: posthaste jobs replay {id} --attempt {current} --assume not-done --reason …"
            ),
        ],
        ("no_evidence", _) => vec![
            "ask the receiver whether it happened; then".to_owned(),
            happened,
            format!("it did not: posthaste jobs replay {id} --attempt {current} --reason …"),
        ],
        ("attempt_changed", _) => vec![
            format!("the last attempt is {current} now; look: posthaste jobs show {id}"),
            format!("then: posthaste jobs {verb} {id} --attempt {current} --reason …"),
        ],
        ("still_quarantined", _) => vec![
            "change its source's configuration, and replay it again; or".to_owned(),
            format!("discard it: posthaste jobs cancel {id} --reason …"),
        ],
        ("not_dead_lettered", "committed") => {
            vec![format!(
                "the receiver has it; if it lost it: posthaste jobs resend {id} --attempt … --reason …"
            )]
        }
        ("not_dead_lettered", "cancelled") => vec!["it is called off for good".to_owned()],
        ("not_committed", "dead_lettered") => {
            vec![format!("posthaste jobs replay {id} --attempt … --reason …")]
        }
        ("wrong_state", "dead_lettered") => vec![
            "it happened: --verdict present".to_owned(),
            format!(
                "it did not: posthaste jobs replay {id} --attempt {current} --assume not-done --reason …"
            ),
        ],
        ("not_dead_lettered" | "not_committed" | "wrong_state", _) => {
            vec![format!("it is on its way by itself; look: posthaste jobs show {id}")]
        }
        (_, _) => Vec::new(),
    }
}

/// `possible, 0 to 1 times`.
pub(super) fn effect_words(job: &Value) -> String {
    let (lo, hi) = (&job["effects"]["lo"], &job["effects"]["hi"]);
    let times = if lo == hi { shown(hi) } else { format!("{} to {}", shown(lo), shown(hi)) };
    match job["effect"].as_str() {
        Some("none") => "none: no attempt can have acted".to_owned(),
        Some(effect) => format!("{}, {times} times", output::printable(effect)),
        None => "-".to_owned(),
    }
}

fn ledger_words(entry: &Value) -> String {
    match entry["status"].as_str() {
        None => "no entry of this event id, which proves nothing".to_owned(),
        Some(status) => {
            let outcome =
                entry["outcome"].as_str().map(|outcome| format!(" ({})", output::printable(outcome)));
            format!(
                "{}{}, {} grants",
                output::printable(status),
                outcome.unwrap_or_default(),
                shown(&entry["attempts"])
            )
        }
    }
}
