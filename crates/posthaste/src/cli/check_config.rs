//! `check-config`: finds every mistake of a configuration without starting anything.

use std::path::PathBuf;

use clap::Args;

use super::{
    exit::{Failure, Outcome},
    output::{self, BAD, GOOD, ODD, styled},
};
use crate::config::{self, FILE_DEFAULT, Sources};

#[derive(Debug, Args)]
pub(super) struct CheckConfigArgs {
    /// The configuration
    #[arg(value_name = "FILE", env = "POSTHASTE_CONFIG", default_value = FILE_DEFAULT)]
    file: PathBuf,
}

/// Faults on standard output, one after the other: exit 1. Warnings alone: exit 0.
pub(super) fn run(args: &CheckConfigArgs) -> Result<Outcome, Failure> {
    let name = args.file.display();
    match config::load(&Sources::of_process(Some(args.file.clone()))) {
        Ok(config) => {
            for warning in &config.warnings {
                output::text(&format!("{} {warning}", styled(ODD, "warning:")))?;
            }
            let warned = match config.warnings.len() {
                0 => String::new(),
                1 => ", 1 warning".to_owned(),
                many => format!(", {many} warnings"),
            };
            output::text(&format!("{}: {}{warned}", name, styled(GOOD, "good")))
        }
        Err(faults) => {
            for fault in &faults.0 {
                output::text(&format!("{} {fault}", styled(BAD, "fault:")))?;
            }
            let count = faults.0.len();
            output::text(&format!(
                "{name}: {}",
                if count == 1 { "1 fault".to_owned() } else { format!("{count} faults") }
            ))?;
            Ok(Outcome::Refused)
        }
    }
}
