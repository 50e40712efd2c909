//! `jobs`: list, show and cancel. The other verbs are in [`super::operate`].

use clap::{Args, Subcommand, builder::PossibleValuesParser};
use posthaste_core::StateName;
use serde_json::{Value, json};

use super::{
    ServerArgs,
    bulk::{self, Kind, ManyArgs, Order},
    client::{Client, encoded},
    exit::{Failure, Outcome},
    operate,
    output::{self, shown},
    reference, timeline, times,
};

/// What stands over [`attempt_row`].
pub(super) const ATTEMPT_HEADINGS: &[&str] =
    &["ATTEMPT", "STARTED (UTC)", "TOOK", "OUTCOME", "STATUS", "EFFECT", "NEXT (UTC)", "WORKER", "SAID"];

#[derive(Debug, Subcommand)]
pub(super) enum JobsCommand {
    /// List jobs, newest first
    List(ListArgs),
    /// A job with its attempts
    Show(ShowArgs),
    /// Call a job off, or ask the worker that runs it to stop
    Cancel(CancelArgs),
    /// Send a dead letter round again, unless its effect has, or may have, happened
    Replay(operate::ReplayArgs),
    /// Send a committed job round again: its receiver lost what it had
    Resend(operate::ResendArgs),
    /// Settle a job by what is known already; sends nothing
    Reconcile(operate::ReconcileArgs),
    /// Runs over many jobs: list, watch, pause, resume, stop
    #[command(subcommand)]
    Runs(bulk::RunsCommand),
}

#[derive(Debug, Args)]
pub(super) struct ListArgs {
    /// Only of this state
    #[arg(long, value_parser = PossibleValuesParser::new(StateName::ALL.iter().map(|state| state.as_str())))]
    state: Option<String>,
    /// Only of this queue
    #[arg(long, value_name = "NAME", conflicts_with = "endpoint")]
    queue: Option<String>,
    /// Only of this endpoint
    #[arg(long, value_name = "ID")]
    endpoint: Option<String>,
    /// Only of this source: what is quarantined
    #[arg(long, value_name = "ID", conflicts_with_all = ["queue", "endpoint"])]
    source: Option<String>,
    /// The oldest so many
    #[arg(long, value_name = "COUNT", conflicts_with = "limit", value_parser = clap::value_parser!(u16).range(1..=500))]
    oldest: Option<u16>,
    /// At most so many
    #[arg(long, value_name = "COUNT", default_value_t = 50, value_parser = clap::value_parser!(u16).range(1..=500))]
    limit: u16,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The job's id
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct CancelArgs {
    /// The job's id; or say by a filter which jobs
    id: Option<String>,
    /// Why; kept with the job
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    many: ManyArgs,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(command: JobsCommand) -> Result<Outcome, Failure> {
    match command {
        JobsCommand::List(args) => list(args).await,
        JobsCommand::Show(args) => show(args).await,
        JobsCommand::Cancel(args) => cancel(args).await,
        JobsCommand::Replay(args) => operate::replay(args).await,
        JobsCommand::Resend(args) => operate::resend(args).await,
        JobsCommand::Reconcile(args) => operate::reconcile(args).await,
        JobsCommand::Runs(command) => bulk::runs(command).await,
    }
}

async fn list(args: ListArgs) -> Result<Outcome, Failure> {
    let mut query = vec![format!("limit={}", args.oldest.unwrap_or(args.limit))];
    query.extend(args.oldest.map(|_| "order=oldest".to_owned()));
    let places = [("queue", &args.queue), ("endpoint", &args.endpoint), ("source", &args.source)];
    for (name, value) in places.into_iter().chain([("state", &args.state)]) {
        query.extend(value.as_deref().map(|value| format!("{name}={}", encoded(value))));
    }
    let answer = Client::new(&args.server)?.get(&format!("/v1/jobs?{}", query.join("&"))).await?.body;
    if args.server.output.json {
        return output::json(&answer);
    }
    let jobs = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if jobs.is_empty() {
        return output::text("no jobs");
    }
    let rows = jobs.iter().map(|job| {
        let due = job["due_at"].as_str().map_or_else(|| "-".to_owned(), times::short);
        vec![
            shown(&job["id"]),
            shown(&job["state"]),
            shown(&job["destination"]),
            shown(&job["key"]),
            shown(&job["attempt"]),
            due,
            shown(&job["cause"]),
        ]
    });
    output::table(&["ID", "STATE", "DESTINATION", "KEY", "ATTEMPT", "DUE (UTC)", "CAUSE"], rows.collect())?;
    if answer["next_cursor"].is_null() {
        return Ok(Outcome::Done);
    }
    output::note("there are more: narrow the list, or raise --limit");
    Ok(Outcome::Done)
}

async fn show(args: ShowArgs) -> Result<Outcome, Failure> {
    let answer = Client::new(&args.server)?.get(&format!("/v1/jobs/{}", encoded(&args.id))).await?.body;
    if args.server.output.json {
        return output::json(&answer);
    }
    let times = ["created_at", "scheduled_at", "due_at", "started_at", "finished_at"];
    let plain =
        ["event_id", "message_id", "kind", "owner", "budgets", "next_step", "evidence", "cause", "reason"];
    let mut lines = vec![timeline::job_line(&answer)];
    let field = |name: &str, value: &str| format!("  {name:<13} {value}");
    let present = |name: &str| Some(&answer[name]).filter(|value| !value.is_null());
    lines.extend(plain.iter().filter_map(|name| Some(field(name, &shown(present(name)?)))));
    lines.push(field("effect", &operate::effect_words(&answer)));
    lines.extend(times.iter().filter_map(|name| Some(field(name, &times::short(present(name)?.as_str()?)))));
    if let Some(state) = answer["state"].as_str().and_then(StateName::parse) {
        lines.push(field("means", reference::meaning(state)));
        lines.push(field("you can", reference::action(state)));
    }
    lines.extend(dead_letter_lines(&answer["dead_letter"]).iter().map(|(name, value)| field(name, value)));
    output::text(&lines.join("\n"))?;
    let attempts = answer["attempts"].as_array().map(Vec::as_slice).unwrap_or_default();
    if attempts.is_empty() {
        return Ok(Outcome::Done);
    }
    output::text("")?;
    output::table(ATTEMPT_HEADINGS, attempts.iter().map(attempt_row).collect())?;
    let decided = attempts.iter().filter_map(|attempt| {
        let policy = output::printable(attempt["policy"].as_str()?);
        Some(field(&format!("policy of {}", shown(&attempt["attempt"])), &policy))
    });
    output::text(&decided.collect::<Vec<_>>().join("\n"))
}

/// Why it was given up, and what is safe to do next.
fn dead_letter_lines(letter: &Value) -> Vec<(&'static str, String)> {
    let mut lines = Vec::new();
    let mut add = |name, value: Option<&str>| lines.extend(value.map(|text| (name, output::printable(text))));
    add("does not fit", letter["quarantine"]["problem"].as_str());
    add("last error", letter["last_error"]["message"].as_str());
    add("payload", letter["payload_ref"].as_str());
    for next in letter["next"].as_array().into_iter().flatten() {
        let safe = if next["safe"] == true { "safe" } else { "NOT SAFE by itself" };
        let (action, why) = (next["action"].as_str().unwrap_or(""), next["why"].as_str().unwrap_or(""));
        lines.push(("next", output::printable(&format!("{action} ({safe}): {why}"))));
    }
    lines
}

pub(super) fn attempt_row(attempt: &Value) -> Vec<String> {
    let time = |name: &str| attempt[name].as_str().map_or_else(|| "-".to_owned(), times::short);
    let took = attempt["duration_ms"].as_u64().map_or_else(|| "-".to_owned(), |ms| format!("{ms}ms"));
    let said =
        [&attempt["code"], &attempt["message"]].into_iter().filter_map(Value::as_str).collect::<Vec<_>>();
    vec![
        shown(&attempt["attempt"]),
        time("started_at"),
        took,
        timeline::ending(attempt),
        shown(&attempt["status"]),
        timeline::effect_words(attempt),
        time("next_at"),
        shown(&attempt["worker"]),
        output::printable(&said.join(" ")),
    ]
}

async fn cancel(args: CancelArgs) -> Result<Outcome, Failure> {
    let many = args.many.are_meant(args.id.as_deref(), "cancel")?;
    let Some(id) = args.id.filter(|_| !many) else {
        let order = Order { kind: Kind::Cancel, reason: &args.reason, assume_not_done: false };
        return bulk::order(&args.many, &order, &args.server).await;
    };
    let path = format!("/v1/jobs/{}/cancel", encoded(&id));
    let body = json!({ "reason": args.reason }).to_string();
    let answer = Client::new(&args.server)?.post(&path, body.into()).await?.body;
    if args.server.output.json {
        output::json(&answer)?;
    } else {
        output::text(match answer["result"].as_str() {
            Some("cancelled") => "cancelled",
            Some("requested") => {
                "requested: an attempt is running; its worker is told when it next extends its lease"
            }
            Some("too_late") => "too late: the job is committed",
            Some(_) | None => "the server gave no result",
        })?;
    }
    // A script that calls a job off must notice that it was not.
    Ok(if answer["result"] == "too_late" { Outcome::Refused } else { Outcome::Done })
}
