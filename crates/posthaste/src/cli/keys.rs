//! `keys`: API keys.

use clap::{Args, Subcommand};
use serde_json::json;

use super::{
    ServerArgs,
    client::{Client, encoded},
    exit::{Failure, Outcome},
    output::{self, shown},
    times,
};

#[derive(Debug, Subcommand)]
pub(super) enum KeysCommand {
    /// List the keys; a key itself is never shown again
    List(ServerArgs),
    /// Make a key; it is shown this once
    Add(AddArgs),
    /// Refuse a key from now on
    #[command(visible_alias = "remove")]
    Revoke(OneArgs),
}

#[derive(Debug, Args)]
pub(super) struct AddArgs {
    /// A name for people, such as the service that uses it
    name: String,
    /// What it may do: admin, publish, read, work, operate; publish:NAME and work:NAME for one destination
    #[arg(long, required = true, value_name = "SCOPE")]
    scope: Vec<String>,
    #[command(flatten)]
    server: ServerArgs,
}

#[derive(Debug, Args)]
pub(super) struct OneArgs {
    /// The key's id
    id: String,
    #[command(flatten)]
    server: ServerArgs,
}

pub(super) async fn run(command: KeysCommand) -> Result<Outcome, Failure> {
    match command {
        KeysCommand::List(server) => {
            let answer = Client::new(&server)?.all("/v1/keys").await?;
            if server.output.json {
                return output::json(&answer);
            }
            let rows = answer["data"].as_array().into_iter().flatten().map(|key| {
                let revoked = key["revoked_at"].as_str().map_or_else(|| "-".to_owned(), times::short);
                let created = times::short(key["created_at"].as_str().unwrap_or("-"));
                vec![
                    shown(&key["id"]),
                    shown(&key["name"]),
                    super::destinations::words(&key["scopes"]),
                    created,
                    revoked,
                ]
            });
            output::table(&["ID", "NAME", "SCOPES", "MADE", "REVOKED"], rows.collect())
        }
        KeysCommand::Add(args) => {
            let body = json!({ "name": args.name, "scopes": args.scope }).to_string();
            let answer = Client::new(&args.server)?.post("/v1/keys", body.into()).await?.body;
            if args.server.output.json {
                return output::json(&answer);
            }
            output::text(&format!("{}  {}", shown(&answer["id"]), shown(&answer["name"])))?;
            output::text(&format!("{}\nIt is not shown again.", shown(&answer["key"])))
        }
        KeysCommand::Revoke(args) => {
            let answer =
                Client::new(&args.server)?.delete(&format!("/v1/keys/{}", encoded(&args.id))).await?.body;
            if args.server.output.json {
                output::json(&answer)
            } else {
                output::text(&format!("revoked {}", args.id))
            }
        }
    }
}
