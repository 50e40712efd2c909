//! Many jobs at once: `jobs replay` and `jobs cancel` with a filter, and `jobs runs`. Rows B8, B9.

use std::time::Duration;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, shown},
    times,
};

/// Between two looks at a run.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Which jobs, and how fast.
#[derive(Debug, Args)]
#[command(next_help_heading = "Many jobs at once")]
pub(super) struct ManyArgs {
    /// All: every dead letter, or, to cancel, every job that lives
    #[arg(long)]
    all: bool,
    /// Only of this state
    #[arg(long, value_name = "STATE")]
    state: Option<String>,
    /// Only of this queue
    #[arg(long, value_name = "NAME", conflicts_with_all = ["endpoint", "source"])]
    queue: Option<String>,
    /// Only of this endpoint
    #[arg(long, value_name = "ID", conflicts_with = "source")]
    endpoint: Option<String>,
    /// Only of this source
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
    /// Only dead letters of this cause
    #[arg(long, value_name = "CAUSE")]
    cause: Option<String>,
    /// Only jobs whose last attempt failed with this class
    #[arg(long, value_name = "CLASS")]
    class: Option<String>,
    /// Only of messages whose key begins so
    #[arg(long, value_name = "TEXT")]
    key_prefix: Option<String>,
    /// Only of messages of this type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// Only jobs made then or later, such as 2026-12-01T09:00:00Z
    #[arg(long, value_name = "TIME")]
    created_since: Option<String>,
    /// Only jobs made before then
    #[arg(long, value_name = "TIME")]
    created_until: Option<String>,
    /// Only dead letters since then
    #[arg(long, value_name = "TIME")]
    dead_lettered_since: Option<String>,
    /// Only dead letters from before then
    #[arg(long, value_name = "TIME")]
    dead_lettered_until: Option<String>,
    /// Jobs a second [default: 500/s]
    #[arg(long, value_name = "RATE")]
    rate: Option<String>,
    /// Only count the jobs that fit
    #[arg(long)]
    dry_run: bool,
    /// Begin it, and don't wait for its end
    #[arg(long, conflicts_with = "dry_run")]
    detach: bool,
    /// Names the request: it begins one run, however often it is sent
    #[arg(long, value_name = "KEY", conflicts_with = "dry_run")]
    idempotency_key: Option<String>,
}

/// What is asked for many jobs.
pub(super) struct Order<'a> {
    pub(super) kind: Kind,
    pub(super) reason: &'a str,
    pub(super) assume_not_done: bool,
}

/// What a run does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Kind {
    /// Sends dead letters round again
    Replay,
    /// Calls jobs off
    Cancel,
}

#[derive(Debug, Subcommand)]
pub(super) enum RunsCommand {
    /// List runs over many jobs, newest first
    List(RunsListArgs),
    /// A run with its progress
    Show(RunArgs),
    /// Watch a run until it ends
    Watch(RunArgs),
    /// Let a run wait
    Pause(RunArgs),
    /// Let a run go on
    Resume(RunArgs),
    /// End a run for good
    Stop(RunArgs),
}

#[derive(Debug, Args)]
pub(super) struct RunsListArgs {
    /// Only of this kind
    #[arg(long)]
    kind: Option<Kind>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct RunArgs {
    /// The run's id
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

impl Kind {
    fn path(self) -> &'static str {
        match self {
            Self::Replay => "/v1/replays",
            Self::Cancel => "/v1/cancels",
        }
    }
}

impl ManyArgs {
    fn conditions(&self) -> Map<String, Value> {
        let texts = [
            ("state", &self.state),
            ("queue", &self.queue),
            ("endpoint", &self.endpoint),
            ("source", &self.source),
            ("cause", &self.cause),
            ("class", &self.class),
            ("key_prefix", &self.key_prefix),
            ("type", &self.event_type),
            ("created_since", &self.created_since),
            ("created_until", &self.created_until),
            ("dead_lettered_since", &self.dead_lettered_since),
            ("dead_lettered_until", &self.dead_lettered_until),
        ];
        let given = texts.into_iter().filter_map(|(name, value)| Some((name, value.as_deref()?)));
        let mut filter: Map<String, Value> =
            given.map(|(name, value)| (name.to_owned(), value.into())).collect();
        if self.all {
            filter.insert("all".to_owned(), true.into());
        }
        filter
    }

    /// Whether many jobs are meant. What is only of many must not be given with one.
    ///
    /// Errors: neither a job nor a filter, or both.
    pub(super) fn are_meant(&self, id: Option<&str>, verb: &str) -> Result<bool, Failure> {
        let extras = self.rate.is_some() || self.dry_run || self.detach || self.idempotency_key.is_some();
        match (id, self.conditions().is_empty()) {
            (Some(_), true) if !extras => Ok(false),
            (None, false) => Ok(true),
            (Some(_), _) => Err(Failure::usage(format!(
                "a job's id and what is for many jobs exclude each other\n  one: posthaste jobs {verb} job_… --reason …"
            ))),
            (None, true) => Err(Failure::usage(format!(
                "which jobs? name one by its id, give a filter such as --queue carts, or say --all\n  count first: \
                 posthaste jobs {verb} --all --dry-run --reason …"
            ))),
        }
    }
}

/// Begins a run, or counts; and watches the run to its end.
pub(super) async fn order(
    many: &ManyArgs,
    order: &Order<'_>,
    server: &ServerArgs,
) -> Result<Outcome, Failure> {
    let mut body = json!({ "filter": many.conditions(), "reason": order.reason });
    if order.assume_not_done {
        body["assume"] = "not_done".into();
    }
    if let Some(rate) = &many.rate {
        body["rate"] = rate.as_str().into();
    }
    if many.dry_run {
        body["dry_run"] = true.into();
    }
    let client = Client::new(server)?.with_idempotency_key(many.idempotency_key.as_deref());
    let answer = client.post(order.kind.path(), body.to_string().into()).await?.body;
    if many.dry_run {
        return if server.output.json { output::json(&answer) } else { output::text(&counted(&answer)) };
    }
    if many.detach {
        return said(&answer, server);
    }
    watch(&client, order.kind, &answer, server).await
}

pub(super) async fn runs(command: RunsCommand) -> Result<Outcome, Failure> {
    match command {
        RunsCommand::List(args) => list(args).await,
        RunsCommand::Show(args) => {
            let (_, run) = find(&Client::new(&args.server)?, &args.id).await?;
            said(&run, &args.server)
        }
        RunsCommand::Watch(args) => {
            let client = Client::new(&args.server)?;
            let (kind, run) = find(&client, &args.id).await?;
            watch(&client, kind, &run, &args.server).await
        }
        RunsCommand::Pause(args) => control(&args, "pause").await,
        RunsCommand::Resume(args) => control(&args, "resume").await,
        RunsCommand::Stop(args) => control(&args, "stop").await,
    }
}

async fn list(args: RunsListArgs) -> Result<Outcome, Failure> {
    let client = Client::new(&args.server)?;
    let kinds = args.kind.map_or_else(|| vec![Kind::Replay, Kind::Cancel], |kind| vec![kind]);
    let mut runs = Vec::new();
    for kind in kinds {
        let page = client.get(&format!("{}?limit=50", kind.path())).await?.body;
        runs.extend(page["data"].as_array().cloned().unwrap_or_default());
    }
    // Ids are by time.
    runs.sort_by_key(|run| std::cmp::Reverse(run["id"].as_str().unwrap_or_default().to_owned()));
    if args.server.output.json {
        return output::json(&json!({ "data": runs }));
    }
    if runs.is_empty() {
        return output::text("no runs");
    }
    let rows = runs.iter().map(|run| {
        let began = run["created_at"].as_str().map_or_else(|| "-".to_owned(), times::short);
        let counts = &run["counts"];
        vec![
            shown(&run["id"]),
            shown(&run["kind"]),
            shown(&run["state"]),
            began,
            shown(&counts["done"]),
            shown(&counts["refused"]),
            shown(&run["expected"]),
            shown(&run["reason"]),
        ]
    });
    let headings = &["ID", "KIND", "STATE", "BEGAN (UTC)", "DONE", "REFUSED", "EXPECTED", "REASON"];
    output::table(headings, rows.collect())
}

/// The run, of whichever kind it is.
async fn find(client: &Client, id: &str) -> Result<(Kind, Value), Failure> {
    let path = |kind: Kind| format!("{}/{}", kind.path(), encoded(id));
    match client.get(&path(Kind::Replay)).await {
        Ok(answer) => Ok((Kind::Replay, answer.body)),
        Err(refused @ Failure::Refused(_)) => match client.get(&path(Kind::Cancel)).await {
            Ok(answer) => Ok((Kind::Cancel, answer.body)),
            Err(Failure::Refused(_)) => Err(refused),
            Err(failure) => Err(failure),
        },
        Err(failure) => Err(failure),
    }
}

async fn control(args: &RunArgs, verb: &str) -> Result<Outcome, Failure> {
    let client = Client::new(&args.server)?;
    let (kind, _) = find(&client, &args.id).await?;
    let path = format!("{}/{}/{verb}", kind.path(), encoded(&args.id));
    let run = client.post(&path, "{}".into()).await?.body;
    said(&run, &args.server)
}

/// Shows progress on standard error until the run ends or waits. To go away doesn't stop it.
async fn watch(client: &Client, kind: Kind, begun: &Value, server: &ServerArgs) -> Result<Outcome, Failure> {
    let id = begun["id"].as_str().unwrap_or_default().to_owned();
    let mut run = begun.clone();
    let mut last = String::new();
    output::note(&format!("{id}: it goes on without you; stop it: posthaste jobs runs stop {id}"));
    loop {
        let line = progress(&run);
        if line != last {
            output::note(&line);
            last = line;
        }
        if run["state"] != "running" {
            break;
        }
        tokio::time::sleep(LOOK_EVERY).await;
        run = client.get(&format!("{}/{}", kind.path(), encoded(&id))).await?.body;
    }
    said(&run, server)
}

/// `1200 of 10000: 1190 replayed, 10 refused`.
fn progress(run: &Value) -> String {
    let counts = &run["counts"];
    let of = run["expected"].as_u64().map_or_else(String::new, |expected| format!(" of {expected}"));
    format!("{}{of}: {}", shown(&counts["matched"]), tally(run))
}

fn tally(run: &Value) -> String {
    let counts = &run["counts"];
    let done = if run["kind"] == "cancel" { "cancelled" } else { "replayed" };
    let parts = [
        ("done", done),
        ("requested", "asked to stop"),
        ("settled", "settled, since it has happened"),
        ("refused", "refused"),
        ("skipped", "skipped, since they came later"),
    ];
    let parts = parts.iter().filter_map(|(name, word)| {
        let count = counts[*name].as_u64().unwrap_or(0);
        (count > 0 || *name == "done").then(|| format!("{count} {word}"))
    });
    parts.collect::<Vec<_>>().join(", ")
}

fn counted(answer: &Value) -> String {
    let matched = shown(&answer["matched"]);
    if answer["complete"] == true {
        format!("{matched} jobs fit; nothing was changed")
    } else {
        let examined = shown(&answer["examined"]);
        format!("at least {matched} jobs fit, among the first {examined}; nothing was changed")
    }
}

/// How a run stands. One that failed, or was stopped, is no success.
fn said(run: &Value, server: &ServerArgs) -> Result<Outcome, Failure> {
    let ended = match run["state"].as_str() {
        Some("failed" | "stopped") => Outcome::Refused,
        Some(_) | None => Outcome::Done,
    };
    if server.output.json {
        output::json(run)?;
        return Ok(ended);
    }
    let mut lines = vec![format!("{} {}: {}", shown(&run["id"]), shown(&run["state"]), tally(run))];
    if let Some(codes) = run["counts"]["refused_by_code"].as_object().filter(|codes| !codes.is_empty()) {
        let codes = codes.iter().map(|(code, count)| format!("{} {}", shown(count), output::printable(code)));
        lines.push(format!("  refused: {}; they stay as they are", codes.collect::<Vec<_>>().join(", ")));
    }
    let jobs = run["refused_jobs"].as_array().map(Vec::as_slice).unwrap_or_default();
    lines
        .extend(jobs.iter().take(5).map(|one| format!("    {} {}", shown(&one["job"]), shown(&one["code"]))));
    lines.extend(run["problem"].as_str().map(|problem| format!("  failed: {}", output::printable(problem))));
    output::text(&lines.join("\n"))?;
    Ok(ended)
}
