//! `pause` and `resume`, and `endpoints enable`: what came of it, in one line. Rows B10, D4.

use clap::{ArgGroup, Args};
use serde_json::{Map, Value};

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, shown},
    times,
};

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("what").required(true).args(["scheduling", "queue", "endpoint", "source"])))]
struct WhatArgs {
    /// New work: schedules don't fire, and what becomes due is not begun
    #[arg(long)]
    scheduling: bool,
    /// This queue: nothing is handed to workers
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    /// This endpoint: nothing is sent to it
    #[arg(long, value_name = "ID")]
    endpoint: Option<String>,
    /// This source: it answers 503, or accepts and keeps, as configured
    #[arg(long, value_name = "NAME")]
    source: Option<String>,
}

#[derive(Debug, Args)]
pub(super) struct PauseArgs {
    #[command(flatten)]
    what: WhatArgs,
    /// Why; the next person on call sees it
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct ResumeArgs {
    #[command(flatten)]
    what: WhatArgs,
    /// Why; kept with the pause
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct EnableArgs {
    /// Its id
    id: String,
    /// Why; kept with what disabled it
    #[arg(long)]
    reason: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn pause(args: PauseArgs) -> Result<Outcome, Failure> {
    ask("/v1/pause", args.what.body(Some(args.reason)), &args.server).await
}

pub(super) async fn resume(args: ResumeArgs) -> Result<Outcome, Failure> {
    ask("/v1/resume", args.what.body(args.reason), &args.server).await
}

pub(super) async fn enable(args: EnableArgs) -> Result<Outcome, Failure> {
    let path = format!("/v1/endpoints/{}/enable", encoded(&args.id));
    ask(&path, with_reason(Map::new(), args.reason), &args.server).await
}

impl WhatArgs {
    fn body(self, reason: Option<String>) -> Map<String, Value> {
        let mut body = Map::new();
        if self.scheduling {
            body.insert("scope".to_owned(), "scheduling".into());
        }
        let named = [("queue", self.queue), ("endpoint", self.endpoint), ("source", self.source)];
        for (name, id) in named {
            body.extend(id.map(|id| (name.to_owned(), Value::from(id))));
        }
        with_reason(body, reason)
    }
}

fn with_reason(mut body: Map<String, Value>, reason: Option<String>) -> Map<String, Value> {
    body.extend(reason.map(|reason| ("reason".to_owned(), Value::from(reason))));
    body
}

async fn ask(path: &str, body: Map<String, Value>, server: &ServerArgs) -> Result<Outcome, Failure> {
    let answer = Client::new(server)?.post(path, Value::Object(body).to_string().into()).await?.body;
    if server.output.json { output::json(&answer) } else { output::text(&told(&answer)) }
}

/// What came of it.
fn told(answer: &Value) -> String {
    let name = match answer["id"].as_str() {
        Some(id) => format!("{} {}", shown(&answer["scope"]), output::printable(id)),
        None => shown(&answer["scope"]),
    };
    let since = answer["paused_at"].as_str().map_or_else(String::new, times::short);
    let (by, reason) = (shown(&answer["paused_by"]), shown(&answer["paused_reason"]));
    match answer["result"].as_str() {
        Some("paused") => format!("paused {name}: {reason}"),
        Some("already_paused") => format!("{name} is paused already, since {since} by {by}: {reason}"),
        Some("resumed") => format!("resumed {name}"),
        Some("not_paused") => format!("{name} is not paused"),
        Some("enabled") => format!("enabled {name}"),
        Some("already_enabled") => format!("{name} is enabled already"),
        Some(_) | None => "the server gave no result".to_owned(),
    }
}
