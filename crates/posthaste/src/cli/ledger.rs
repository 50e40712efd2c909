//! `ledger`: entries of the receiver's ledger, and the statements for a ledger of one's own.

use std::{fs, path::PathBuf};

use clap::{Args, Subcommand, ValueEnum, builder::PossibleValuesParser};
use posthaste_core::ledger::Status;
use posthaste_receiver::ledger::sql;
use serde_json::{Value, json};

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, shown},
    times,
};

#[derive(Debug, Subcommand)]
pub(super) enum LedgerCommand {
    /// An entry: what the server's ledger knows of one effect
    Show(ShowArgs),
    /// Want an effect anew: the entry is failed, and an old worker stays shut out
    Reset(ResetArgs),
    /// Print the table and the statements for a ledger in your own database
    Sql(SqlArgs),
}

#[derive(Debug, Args)]
pub(super) struct ShowArgs {
    /// The key: an event id (`KEY:DESTINATION`), or whatever the receiver claims by
    key: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct ResetArgs {
    /// The key
    key: String,
    /// The fence that you saw, as `ledger show` prints it
    #[arg(long)]
    fence: String,
    /// The status that you saw
    #[arg(long, value_parser = PossibleValuesParser::new(Status::ALL.iter().map(|status| status.as_str())))]
    status: String,
    /// Why; shown for ever
    #[arg(long)]
    reason: String,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Dialect {
    /// PostgreSQL
    Postgres,
    /// SQLite
    Sqlite,
}

#[derive(Debug, Args)]
pub(super) struct SqlArgs {
    /// For which database
    #[arg(long)]
    dialect: Dialect,
    /// Only this file, such as claim.sql
    #[arg(long, value_name = "NAME", conflicts_with = "dir")]
    file: Option<String>,
    /// Write each file into this folder instead
    #[arg(long, value_name = "DIR")]
    dir: Option<PathBuf>,
}

pub(super) async fn run(command: LedgerCommand) -> Result<Outcome, Failure> {
    match command {
        LedgerCommand::Show(args) => show(args).await,
        LedgerCommand::Reset(args) => reset(args).await,
        LedgerCommand::Sql(args) => print_sql(&args),
    }
}

async fn show(args: ShowArgs) -> Result<Outcome, Failure> {
    let path = format!("/v1/ledger?key={}", encoded(&args.key));
    let entry = Client::new(&args.server)?.get(&path).await?.body;
    if args.server.output.json {
        return output::json(&entry);
    }
    output::text(&told(&entry))
}

fn told(entry: &Value) -> String {
    let time = |value: &Value| value.as_str().map_or_else(|| "-".to_owned(), times::short);
    let mut lines = vec![
        format!("{}  {}", shown(&entry["key"]), shown(&entry["status"])),
        format!(
            "  fence {}, attempts {}, last path {}",
            shown(&entry["fence"]),
            shown(&entry["attempts"]),
            shown(&entry["path"])
        ),
        format!(
            "  first claimed {} UTC, changed {} UTC",
            time(&entry["created_at"]),
            time(&entry["updated_at"])
        ),
    ];
    match entry["status"].as_str() {
        Some("in_progress") => lines.push(format!(
            "  the grant holds until {} UTC; then the next claim {}",
            time(&entry["locked_until"]),
            if entry["on_expired"] == "hold" { "still waits for a person" } else { "takes it over" },
        )),
        Some("failed") => lines.push(format!(
            "  the last grant had no effect ({}: {}); the next claim may try",
            shown(&entry["class"]),
            shown(&entry["message"])
        )),
        _ => lines.push(format!(
            "  outcome {}; duplicates are answered {}",
            shown(&entry["done"]["outcome"]),
            answered(&entry["done"])
        )),
    }
    if let Some(reset) = entry.get("reset").filter(|reset| reset.is_object()) {
        let (at, by) = (time(&reset["at"]), shown(&reset["by"]));
        lines.push(format!("  reset {at} UTC by {by}: {}", shown(&reset["reason"])));
    }
    if entry["of_job"].is_string() {
        lines.push(format!(
            "  it is the entry of {}; only reports on that job change it",
            shown(&entry["of_job"])
        ));
    }
    lines.join("\n")
}

fn answered(done: &Value) -> String {
    let status = done["status"].as_u64().map(|status| format!("{status} ")).unwrap_or_default();
    let body = if done["result"].is_null() { &done["result_base64"] } else { &done["result"] };
    format!("{status}{}", shown(body))
}

async fn reset(args: ResetArgs) -> Result<Outcome, Failure> {
    let body = json!({
        "key": args.key, "fence": args.fence, "status": args.status, "reason": args.reason,
    });
    let answer = Client::new(&args.server)?.post("/v1/ledger/reset", body.to_string().into()).await?.body;
    if args.server.output.json {
        return output::json(&answer);
    }
    output::text(&format!(
        "reset {}: the next claim gets retry_after_failure; fence {} is in force",
        args.key,
        shown(&answer["fence"])
    ))
}

fn print_sql(args: &SqlArgs) -> Result<Outcome, Failure> {
    let dialect = match args.dialect {
        Dialect::Postgres => sql::Dialect::Postgres,
        Dialect::Sqlite => sql::Dialect::Sqlite,
    };
    let files = sql::files(dialect);
    if let Some(name) = &args.file {
        let Some(text) = sql::file(dialect, name) else {
            let known: Vec<&str> = files.iter().map(|(name, _)| *name).collect();
            return Err(Failure::usage(format!("--file: {name:?} is none of {}", known.join(", "))));
        };
        return output::text(text);
    }
    if let Some(folder) = &args.dir {
        let refused = |error| Failure::refused(format!("{} can't be written to: {error}", folder.display()));
        fs::create_dir_all(folder).map_err(refused)?;
        for (name, text) in files {
            fs::write(folder.join(name), text).map_err(refused)?;
        }
        return output::text(&format!("{} files in {}", files.len(), folder.display()));
    }
    let whole: Vec<String> =
        files.iter().map(|(name, text)| format!("-- ── {name}\n\n{}", text.trim_end())).collect();
    output::text(&format!("{}\n", whole.join("\n\n")))
}
