//! `classes`: how failures are classified; of a destination, as its server has it.

use clap::Args;
use serde_json::Value;

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, shown},
    reference,
};

#[derive(Debug, Args)]
pub(super) struct ClassesArgs {
    /// As this endpoint's rules say
    #[arg(long, value_name = "ID", conflicts_with = "queue")]
    endpoint: Option<String>,
    /// As this queue's rules say
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(args: ClassesArgs) -> Result<Outcome, Failure> {
    let named = args.endpoint.as_deref().map(|id| ("endpoint", id));
    let Some((kind, name)) = named.or(args.queue.as_deref().map(|name| ("queue", name))) else {
        return reference::classes(args.server.output);
    };
    let path = format!("/v1/classes?{kind}={}", encoded(name));
    let answer = Client::new(&args.server)?.get(&path).await?.body;
    if args.server.output.json {
        return output::json(&answer);
    }
    let rows = |list: &str, first: &str, cells: &[&str]| -> Vec<Vec<String>> {
        let lines = answer[list].as_array().map(Vec::as_slice).unwrap_or_default();
        lines.iter().map(|line| row(line, first, cells)).collect()
    };
    let answers = rows("answers", "answer", &["class", "effect", "follows", "by"]);
    if !answers.is_empty() {
        output::table(&["ANSWER", "CLASS", "EFFECT", "WHAT FOLLOWS", "BY"], answers)?;
        output::text("")?;
    }
    let classes = rows("classes", "class", &["effect", "follows", "by"]);
    output::table(&["CLASS", "EFFECT", "WHAT FOLLOWS", "BY"], classes)
}

fn row(line: &Value, first: &str, cells: &[&str]) -> Vec<String> {
    std::iter::once(first).chain(cells.iter().copied()).map(|cell| shown(&line[cell])).collect()
}
