//! `doctor`: what is wrong, or will be: the configuration, how long providers go on trying, the server. Row C11.

use std::path::PathBuf;

use clap::Args;
use posthaste_engine::config::format_duration;

use super::{
    ServerArgs,
    client::Client,
    exit::{Failure, Outcome},
    output::{self, BAD, GOOD, ODD, styled},
};
use crate::config::{self, Config, FILE_DEFAULT, Sources, Spec, horizons};

#[derive(Debug, Args)]
pub(super) struct DoctorArgs {
    /// The configuration; nothing is said of it if this file isn't there and none is named
    #[arg(value_name = "FILE", env = "POSTHASTE_CONFIG")]
    file: Option<PathBuf>,
    #[command(flatten)]
    server: ServerArgs,
}

/// Exit 0: nothing is wrong; 1: something is; 3: the server can't be reached, and the rest is well.
pub(super) async fn run(args: &DoctorArgs) -> Result<Outcome, Failure> {
    let named = args.file.clone();
    let file = named.clone().unwrap_or_else(|| FILE_DEFAULT.into());
    let mut well = true;
    if named.is_some() || file.exists() {
        match config::load(&Sources::of_process(Some(file))) {
            Ok(config) => of_config(&config)?,
            Err(faults) => {
                well = false;
                for fault in &faults.0 {
                    say(BAD, "fault", &fault.to_string())?;
                }
            }
        }
    }
    let ready = Client::new(&args.server)?.get("/readyz").await;
    match ready {
        Ok(_) => say(GOOD, "server", &format!("{} takes messages", args.server.url))?,
        Err(Failure::Refused(why)) => {
            well = false;
            say(BAD, "server", &format!("{} does not take messages: {why}", args.server.url))?;
        }
        Err(unreachable) if well => return Err(unreachable),
        Err(_) => say(BAD, "server", &format!("{} can't be reached", args.server.url))?,
    }
    Ok(if well { Outcome::Done } else { Outcome::Refused })
}

fn of_config(config: &Config) -> Result<(), Failure> {
    for warning in &config.warnings {
        say(ODD, "warning", &warning.to_string())?;
    }
    for one in &config.declared {
        let Spec::Source(source) = &one.spec else { continue };
        let told = match horizons::of_scheme(&source.scheme) {
            Some(horizon) => format!(
                "{}: {} retries {}; what we can't take for {} is lost ({})",
                source.name,
                source.scheme,
                horizon.schedule,
                format_duration(horizon.retries_for),
                horizon.source
            ),
            None => format!("{}: how long its provider retries is not known here: ask it", source.name),
        };
        say(GOOD, "source", &told)?;
    }
    Ok(())
}

fn say(style: anstyle::Style, what: &str, text: &str) -> Result<(), Failure> {
    output::text(&format!("{} {text}", styled(style, &format!("{what}:")))).map(drop)
}
