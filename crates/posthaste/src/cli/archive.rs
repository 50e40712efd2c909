//! `archive`: what left the store. Exit 1 if a file is not what it should be.

use bytes::Bytes;
use clap::Subcommand;
use serde_json::{Value, json};

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, BAD, GOOD, note, printable, shown, styled},
};

#[derive(Debug, Subcommand)]
pub(super) enum ArchiveCommand {
    /// Move what expired to the archive now
    Now(ServerArgs),
    /// List the archive's files
    List(ServerArgs),
    /// Check every file: checksums, counts, and that every key is where the store has it
    Verify(ServerArgs),
}

pub(super) async fn run(command: ArchiveCommand) -> Result<Outcome, Failure> {
    match command {
        ArchiveCommand::Now(args) => now(&args).await,
        ArchiveCommand::List(args) => list(&args).await,
        ArchiveCommand::Verify(args) => verify(&args).await,
    }
}

async fn now(args: &ServerArgs) -> Result<Outcome, Failure> {
    let client = Client::new(args)?;
    loop {
        let pass = client.post("/v1/archive/run", Bytes::from_static(b"{}")).await?.body;
        if pass["state"] == "running" {
            note("still at it");
            continue;
        }
        if args.output.json {
            return output::json(&pass);
        }
        let changed = match pass["changed"].as_u64() {
            None | Some(0) => String::new(),
            Some(changed) => format!("; {changed} changed meanwhile and stay"),
        };
        return output::text(&format!(
            "archived {} in {} files{changed}",
            shown(&pass["archived"]),
            shown(&pass["files"])
        ));
    }
}

async fn list(args: &ServerArgs) -> Result<Outcome, Failure> {
    let files = Client::new(args)?.all("/v1/archive/files").await?;
    if args.output.json {
        return output::json(&files);
    }
    let rows = files["data"].as_array().into_iter().flatten();
    let row = |file: &Value| {
        ["file", "records", "bytes", "first_key", "last_key", "written_at"]
            .map(|name| shown(&file[name]))
            .to_vec()
    };
    output::table(
        &["file", "records", "bytes", "first key", "last key", "written at"],
        rows.map(row).collect(),
    )
}

async fn verify(args: &ServerArgs) -> Result<Outcome, Failure> {
    let client = Client::new(args)?;
    let files = client.all("/v1/archive/files").await?;
    let files: Vec<&str> =
        files["data"].as_array().into_iter().flatten().filter_map(|file| file["file"].as_str()).collect();
    let mut checks = Vec::new();
    for (at, file) in files.iter().enumerate() {
        if at % 100 == 99 {
            note(&format!("{} of {} files checked", at + 1, files.len()));
        }
        checks.push(client.get(&format!("/v1/archive/verify?file={}", encoded(file))).await?.body);
    }
    let bad = checks.iter().filter(|check| check["ok"] != true).count();
    if args.output.json {
        output::json(&json!({ "ok": bad == 0, "files": checks }))?;
    } else {
        for check in checks.iter().filter(|check| check["ok"] != true) {
            for problem in check["problems"].as_array().into_iter().flatten() {
                let problem = printable(problem.as_str().unwrap_or_default());
                output::text(&format!("{} {}: {problem}", styled(BAD, "fault:"), shown(&check["file"])))?;
            }
        }
        let said = if bad == 0 { styled(GOOD, "good") } else { format!("{bad} not good") };
        output::text(&format!("{} files: {said}", files.len()))?;
    }
    Ok(if bad == 0 { Outcome::Done } else { Outcome::Refused })
}
