//! `schedules`: list, show, add, remove, pause, resume, run, and what comes next.

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{
    ServerArgs,
    client::{Client, encoded},
    destinations::words,
    exit::{Failure, Outcome},
    output::{self, STRONG, shown, styled},
    times,
};

const PATH: &str = "/v1/schedules";

#[derive(Debug, Subcommand)]
pub(super) enum SchedulesCommand {
    /// List them, with when each fired last and fires next
    List(ServerArgs),
    /// One of them
    Show(OneArgs),
    /// Make one
    Add(Box<AddArgs>),
    /// Delete one; what it published stays
    Remove(OneArgs),
    /// Let one fire no more until it is resumed
    Pause(ReasonArgs),
    /// End a pause
    Resume(ReasonArgs),
    /// Fire one now, out of turn
    Run(OneArgs),
    /// The next firings of one, in local time and UTC
    Next(NextArgs),
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// Its name
    name: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct ReasonArgs {
    /// Its name
    name: String,
    /// Why
    #[arg(long, value_name = "TEXT")]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct NextArgs {
    /// Its name
    name: String,
    /// How many
    #[arg(long, short = 'n', default_value_t = 5, value_parser = clap::value_parser!(u8).range(1..=100))]
    count: u8,
    #[command(flatten)]
    server: ServerArgs,
}

/// Settings that are asked for often have a flag; the others are given by `--spec`.
#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// Its name
    name: String,
    /// When: "30 2 * * *", @daily, or "@every 15m"
    #[arg(long, value_name = "EXPRESSION")]
    cron: Option<String>,
    /// The place whose clocks count, for example Europe/Berlin; UTC unless told
    #[arg(long, value_name = "NAME")]
    timezone: Option<String>,
    /// To this queue
    #[arg(long, value_name = "NAME", conflicts_with = "endpoint")]
    queue: Option<String>,
    /// To this endpoint; may be given several times. Without a queue or endpoint to all that are subscribed to the type
    #[arg(long, value_name = "ID")]
    endpoint: Vec<String>,
    /// The messages' event type
    #[arg(long = "type", value_name = "TYPE")]
    event_type: Option<String>,
    /// The messages' payload as JSON: @FILE, - for standard input, or the text itself
    #[arg(long, value_name = "JSON")]
    data: Option<String>,
    /// What becomes of firings that were missed
    #[arg(long, value_name = "HOW", value_parser = ["skip", "once", "all"])]
    catch_up: Option<String>,
    /// The jobs of each firing wait for up to so long
    #[arg(long, value_name = "DURATION")]
    jitter: Option<String>,
    /// Who answers for it
    #[arg(long, value_name = "NAME")]
    owner: Option<String>,
    /// All settings as JSON, named as in the configuration: @FILE, - for standard input, or the text itself
    #[arg(long, value_name = "JSON", default_value = "{}", hide_default_value = true)]
    spec: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(command: SchedulesCommand) -> Result<Outcome, Failure> {
    match command {
        SchedulesCommand::List(server) => list(&server).await,
        SchedulesCommand::Show(args) => {
            let answer = Client::new(&args.server)?.get(&one(&args.name)).await?.body;
            print_one(&answer, &args.server)
        }
        SchedulesCommand::Add(args) => {
            let body = spec(&args)?.to_string();
            let answer = Client::new(&args.server)?.post(PATH, body.into()).await?.body;
            print_one(&answer, &args.server)
        }
        SchedulesCommand::Remove(args) => {
            let answer = Client::new(&args.server)?.delete(&one(&args.name)).await?.body;
            if args.server.output.json {
                return output::json(&answer);
            }
            output::text(&format!("removed schedule {}", args.name))
        }
        SchedulesCommand::Pause(args) => tell(&args, "pause").await,
        SchedulesCommand::Resume(args) => tell(&args, "resume").await,
        SchedulesCommand::Run(args) => {
            let path = format!("{}/run", one(&args.name));
            let answer = Client::new(&args.server)?.post(&path, bytes::Bytes::new()).await?.body;
            if args.server.output.json {
                return output::json(&answer);
            }
            let (key, message) = (shown(&answer["key"]), shown(&answer["message_id"]));
            output::text(&format!("published {key} ({message})"))
        }
        SchedulesCommand::Next(args) => next(&args).await,
    }
}

fn one(name: &str) -> String {
    format!("{PATH}/{}", encoded(name))
}

/// The request's body: what `--spec` says, and the flags over it.
fn spec(args: &AddArgs) -> Result<Value, Failure> {
    let given = super::publish::data(&args.spec)?;
    let mut spec: Map<String, Value> = serde_json::from_slice(&given)
        .map_err(|error| Failure::usage(format!("--spec is no JSON object: {error}")))?;
    let payload = args.data.as_ref().map(|data| {
        let data = super::publish::data(data)?;
        serde_json::from_slice::<Value>(&data)
            .map_err(|error| Failure::usage(format!("--data is no JSON: {error}")))
    });
    let to = match &args.queue {
        Some(queue) => Some(json!({ "queue": queue })),
        None => (!args.endpoint.is_empty()).then(|| json!({ "endpoints": args.endpoint })),
    };
    let text = |value: &Option<String>| value.as_ref().map(|value| json!(value));
    for (name, value) in [
        ("name", Some(json!(args.name))),
        ("cron", text(&args.cron)),
        ("timezone", text(&args.timezone)),
        ("to", to),
        ("type", text(&args.event_type)),
        ("payload", payload.transpose()?),
        ("catch_up", text(&args.catch_up)),
        ("jitter", text(&args.jitter)),
        ("owner", text(&args.owner)),
    ] {
        if let Some(value) = value {
            spec.insert(name.to_owned(), value);
        }
    }
    Ok(Value::Object(spec))
}

async fn tell(args: &ReasonArgs, what: &str) -> Result<Outcome, Failure> {
    let body = json!({ "reason": args.reason }).to_string();
    let path = format!("{}/{what}", one(&args.name));
    let answer = Client::new(&args.server)?.post(&path, body.into()).await?.body;
    if args.server.output.json {
        return output::json(&answer);
    }
    let (state, next) = (shown(&answer["state"]), moment(&answer["next_fire_at"]));
    output::text(&format!("{} is {state}; next firing {next}", args.name))
}

async fn list(server: &ServerArgs) -> Result<Outcome, Failure> {
    let answer = Client::new(server)?.all(PATH).await?;
    if server.output.json {
        return output::json(&answer);
    }
    let rows = answer["data"].as_array().map(Vec::as_slice).unwrap_or_default();
    if rows.is_empty() {
        return output::text("no schedules");
    }
    let rows = rows.iter().map(|row| {
        let state = match row["problem"].as_str() {
            Some(problem) => format!("broken: {}", output::printable(problem)),
            None => shown(&row["state"]),
        };
        vec![
            shown(&row["id"]),
            shown(&row["cron"]),
            shown(&row["timezone"]),
            words(&row["to"]),
            moment(&row["last_fired_at"]),
            moment(&row["next_fire_at"]),
            shown(&row["owner"]),
            state,
        ]
    });
    let headings = ["NAME", "CRON", "TIME ZONE", "TO", "LAST (UTC)", "NEXT (UTC)", "OWNER", "STATE"];
    output::table(&headings, rows.collect())
}

async fn next(args: &NextArgs) -> Result<Outcome, Failure> {
    let path = format!("{}/next?limit={}", one(&args.name), args.count);
    let answer = Client::new(&args.server)?.get(&path).await?.body;
    if args.server.output.json {
        return output::json(&answer);
    }
    let rows = answer["data"].as_array().into_iter().flatten();
    let rows = rows.map(|row| vec![shown(&row["local"]), shown(&row["at"])]);
    output::table(&["LOCAL", "UTC"], rows.collect())
}

fn print_one(answer: &Value, server: &ServerArgs) -> Result<Outcome, Failure> {
    if server.output.json {
        return output::json(answer);
    }
    let fields = answer.as_object().into_iter().flatten().filter(|(_, value)| !value.is_null());
    let line = |(name, value): (&String, &Value)| format!("  {name:<15} {}", words(value));
    let lines: Vec<String> =
        fields.filter(|(name, _)| !["id", "name"].contains(&name.as_str())).map(line).collect();
    output::text(&format!("{}\n{}", styled(STRONG, &shown(&answer["id"])), lines.join("\n")))
}

fn moment(value: &Value) -> String {
    value.as_str().map_or_else(|| "-".to_owned(), times::short)
}
