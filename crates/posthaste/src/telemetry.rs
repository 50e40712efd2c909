//! Log lines: one JSON object a decision, or text for people. Row F5.

use std::io::IsTerminal;

use tracing_subscriber::{EnvFilter, fmt, layer::SubscriberExt, util::SubscriberInitExt};

use crate::config::{LogConfig, LogFormat};

/// Libraries that tell at `info` what is none of our decisions.
const QUIET: &str = "refinery_core=warn";

/// Sends log lines to standard output from here on. Call it once.
///
/// Standard output, so that what the process decides can be piped into a file while what it tells its starter (where it
/// listens, the first key) stays on standard error.
pub(crate) fn start(config: &LogConfig) -> anyhow::Result<()> {
    let to_terminal = std::io::stdout().is_terminal();
    let format = config.format.unwrap_or(if to_terminal { LogFormat::Text } else { LogFormat::Json });
    let filter = EnvFilter::builder().parse(format!("{QUIET},{}", config.level))?;
    let lines = tracing_subscriber::registry().with(filter);
    match format {
        LogFormat::Json => {
            let json = fmt::layer().json().flatten_event(true).with_current_span(false).with_span_list(false);
            lines.with(json).try_init()?;
        }
        LogFormat::Text => {
            lines.with(fmt::layer().compact().with_target(false).with_ansi(to_terminal)).try_init()?;
        }
    }
    Ok(())
}
