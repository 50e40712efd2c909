//! `endpoints`, `queues`, `sources`: list, show, add and remove.

use clap::{Args, Subcommand};
use posthaste_store::DestinationKind;
use serde_json::{Map, Value, json};

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, STRONG, shown, styled},
};

#[derive(Debug, Subcommand)]
pub(super) enum DestinationsCommand {
    /// List them
    List(ServerArgs),
    /// One of them, without its secrets
    Show(OneArgs),
    /// Make one
    Add(Box<AddArgs>),
    /// Delete one; jobs that it is still owed are dead-lettered
    Remove(OneArgs),
    /// Endpoints: let one go on that was disabled
    Enable(super::pauses::EnableArgs),
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// Its id
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

/// Settings that are asked for often have a flag; the others are given by `--spec`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Its id
    id: String,
    /// All settings as JSON, named as in the configuration: @FILE, - for standard input, or the text itself
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true)]
    spec: String,
    /// A secret: env:NAME, file:PATH (both read here), or the secret itself; may be given several times
    #[arg(long, value_name = "SECRET")]
    secret: Vec<String>,
    /// Who answers for it
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// Endpoints: where to send
    #[arg(long, value_name = "URL")]
    to_url: Option<String>,
    /// Endpoints: an event type it wants; may be given several times
    #[arg(long = "type", value_name = "PATTERN")]
    types: Vec<String>,
    /// Endpoints and queues: the receiver guards the idempotency key
    #[arg(long)]
    idempotent: bool,
    /// Queues: how long a lease holds
    #[arg(long, value_name = "DURATION")]
    lease: Option<String>,
    /// Sources: who signs, and how
    #[arg(long, value_name = "NAME")]
    scheme: Option<String>,
    /// Sources of AWS SNS: the ARN of a topic that may send; may be given several times
    #[arg(long, value_name = "ARN")]
    topic_arn: Vec<String>,
    /// Sources: the URL that the provider was given, if it signs that
    #[arg(long, value_name = "URL")]
    public_url: Option<String>,
    /// Sources: how the key is derived, for example json:/id; may be given several times
    #[arg(long, value_name = "RULE")]
    key: Vec<String>,
    /// Sources: to this queue; without it to every endpoint subscribed to the type
    #[arg(long, value_name = "NAME")]
    queue: Option<String>,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(kind: DestinationKind, command: DestinationsCommand) -> Result<Outcome, Failure> {
    let path = path(kind);
    match command {
        DestinationsCommand::Enable(args) if kind == DestinationKind::Endpoint => {
            super::pauses::enable(args).await
        }
        DestinationsCommand::Enable(_) => {
            Err(Failure::usage("only endpoints are disabled by their receivers; see resume"))
        }
        DestinationsCommand::List(server) => list(kind, &server).await,
        DestinationsCommand::Show(args) => {
            let answer = Client::new(&args.server)?.get(&format!("{path}/{}", encoded(&args.id))).await?.body;
            print_one(&answer, &args.server)
        }
        DestinationsCommand::Add(args) => {
            let client = Client::new(&args.server)?;
            let body = spec(kind, &args)?.to_string();
            let answer = client.post(path, body.into()).await?.body;
            print_one(&answer, &args.server)?;
            if !args.server.output.json && !answer["secret"].is_null() {
                output::note("the secret signs what we send; it is not shown again");
            }
            Ok(Outcome::Done)
        }
        DestinationsCommand::Remove(args) => {
            let answer =
                Client::new(&args.server)?.delete(&format!("{path}/{}", encoded(&args.id))).await?.body;
            if args.server.output.json {
                output::json(&answer)
            } else {
                output::text(&format!("removed {} {}", kind.as_str(), args.id))
            }
        }
    }
}

fn path(kind: DestinationKind) -> &'static str {
    match kind {
        DestinationKind::Endpoint => "/v1/endpoints",
        DestinationKind::Queue => "/v1/queues",
        DestinationKind::Source => "/v1/sources",
    }
}

/// The request's body: what `--spec` says, and the flags over it. What doesn't fit the kind is refused by the server.
fn spec(kind: DestinationKind, args: &AddArgs) -> Result<Value, Failure> {
    let given = super::publish::data(&args.spec)?;
    let mut spec: Map<String, Value> = serde_json::from_slice(&given)
        .map_err(|error| Failure::usage(format!("--spec is no JSON object: {error}")))?;
    let mut set = |name: &str, value: Option<Value>| {
        if let Some(value) = value {
            spec.insert(name.to_owned(), value);
        }
    };
    set(if kind == DestinationKind::Endpoint { "id" } else { "name" }, Some(json!(args.id)));
    set("url", args.to_url.as_ref().map(|url| json!(url)));
    set("types", (!args.types.is_empty()).then(|| json!(args.types)));
    let secrets = args.secret.iter().map(|secret| match crate::config::follow(secret) {
        Some(followed) => followed.map_err(|problem| Failure::usage(format!("--secret: {problem}"))),
        None => Ok(secret.clone()),
    });
    let secrets: Vec<String> = secrets.collect::<Result<_, _>>()?;
    set("secrets", (!secrets.is_empty()).then(|| json!(secrets)));
    set("idempotent", args.idempotent.then_some(Value::Bool(true)));
    set("lease", args.lease.as_ref().map(|lease| json!(lease)));
    set("scheme", args.scheme.as_ref().map(|scheme| json!(scheme)));
    set("topic_arns", (!args.topic_arn.is_empty()).then(|| json!(args.topic_arn)));
    set("public_url", args.public_url.as_ref().map(|url| json!(url)));
    set("key", (!args.key.is_empty()).then(|| json!(args.key)));
    set("to", args.queue.as_ref().map(|queue| json!({ "queue": queue })));
    set("owner", args.owner.as_ref().map(|owner| json!(owner)));
    Ok(Value::Object(spec))
}

async fn list(kind: DestinationKind, server: &ServerArgs) -> Result<Outcome, Failure> {
    let answer = Client::new(server)?.all(path(kind)).await?;
    if server.output.json {
        return output::json(&answer);
    }
    let rows = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return output::text(&format!("no {}s", kind.as_str()));
    }
    let columns: &[(&str, &str)] = match kind {
        DestinationKind::Endpoint => &[("URL", "url"), ("TYPES", "types")],
        DestinationKind::Queue => &[("LEASE", "lease")],
        DestinationKind::Source => &[("SCHEME", "scheme"), ("KEY", "key"), ("TO", "to")],
    };
    let mut headings = vec!["ID"];
    headings.extend(columns.iter().map(|(heading, _)| *heading));
    headings.extend(["OWNER", "MANAGED BY", "STATE"]);
    let rows = rows.iter().map(|row| {
        let mut cells = vec![shown(&row["id"])];
        cells.extend(columns.iter().map(|(_, field)| words(&row[*field])));
        let state = state(row);
        cells.extend([shown(&row["owner"]), shown(&row["managed_by"]), state]);
        cells
    });
    output::table(&headings, rows.collect())
}

/// Whether it takes part, and why not.
fn state(row: &Value) -> String {
    let said = |word: &str, reason: &Value| match reason.as_str() {
        Some(reason) => format!("{word}: {}", output::printable(reason)),
        None => word.to_owned(),
    };
    if row["problem"].is_string() {
        return said("broken", &row["problem"]);
    }
    if row["enabled"].as_bool() == Some(false) {
        return said("disabled", &row["disabled_reason"]);
    }
    if row["paused_at"].is_string() {
        return said("paused", &row["paused_reason"]);
    }
    match row["circuit"].as_str() {
        Some("open" | "half_open") => format!("circuit {}", shown(&row["circuit"])),
        Some(_) | None => "enabled".to_owned(),
    }
}

fn print_one(answer: &Value, server: &ServerArgs) -> Result<Outcome, Failure> {
    if server.output.json {
        return output::json(answer);
    }
    let fields = answer.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let line = |(name, value): (&String, &Value)| format!("  {name:<14} {}", words(value));
    let lines: Vec<String> = fields.filter(|(name, _)| *name != "id").map(line).collect();
    output::text(&format!("{}\n{}", styled(STRONG, &shown(&answer["id"])), lines.join("\n")))
}

/// A list as its members, an object as its pairs, anything else as it is.
pub(super) fn words(value: &Value) -> String {
    match value {
        Value::Array(items) if items.is_empty() => "-".to_owned(),
        Value::Array(items) => items.iter().map(words).collect::<Vec<_>>().join(" "),
        Value::Object(fields) => {
            let pairs =
                fields.iter().map(|(name, value)| format!("{}={}", output::printable(name), words(value)));
            pairs.collect::<Vec<_>>().join(" ")
        }
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => shown(value),
    }
}
