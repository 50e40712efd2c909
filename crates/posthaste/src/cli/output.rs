//! What is printed: tables and lines for people, JSON for programs. The only place that writes to the terminal.

use std::io::{self, IsTerminal, Write};

use anstyle::{AnsiColor, Style};
use comfy_table::{ContentArrangement, Table, presets};
use serde_json::Value;

use super::exit::{Failure, Outcome};

/// Green: it is done.
pub(crate) const GOOD: Style = AnsiColor::Green.on_default();
/// Yellow: look at it.
pub(crate) const ODD: Style = AnsiColor::Yellow.on_default();
/// Red: it needs a person.
pub(crate) const BAD: Style = AnsiColor::Red.on_default();
/// For what is less important.
pub(crate) const FAINT: Style = Style::new().dimmed();
/// For headings.
pub(crate) const STRONG: Style = Style::new().bold();

/// `text` in a style; colours are left out where nobody sees them.
pub(crate) fn styled(style: Style, text: &str) -> String {
    format!("{style}{text}{style:#}")
}

/// Prints `text` as it is, with a line's end if it has none.
pub(super) fn text(text: &str) -> Result<Outcome, Failure> {
    let end = if text.ends_with('\n') { "" } else { "\n" };
    written(write!(anstream::stdout().lock(), "{text}{end}"))
}

/// Prints bytes.
pub(super) fn bytes(bytes: &[u8]) -> Result<Outcome, Failure> {
    written(io::stdout().lock().write_all(bytes))
}

/// Prints a value as JSON, readable.
pub(super) fn json(value: &Value) -> Result<Outcome, Failure> {
    text(&serde_json::to_string_pretty(value).expect("a value can be written"))
}

/// A reader that went away (`… | head`) is no failure.
fn written(result: io::Result<()>) -> Result<Outcome, Failure> {
    match result {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(Failure::refused(format!("standard output can't be written to: {error}")))
        }
        Ok(()) | Err(_) => Ok(Outcome::Done),
    }
}

/// A line on standard error, for whoever started the process. Losing it loses nothing.
pub(super) fn note(line: &str) {
    let _ = writeln!(anstream::stderr().lock(), "{line}");
}

/// An error on standard error.
pub(super) fn error(text: &str) {
    note(&format!("{} {text}", styled(BAD.bold(), "error:")));
}

/// A table without colours, which would count as width: on a terminal as wide as it is, elsewhere one line a row.
pub(super) fn table(headings: &[&str], rows: Vec<Vec<String>>) -> Result<Outcome, Failure> {
    let mut table = Table::new();
    table.load_style(presets::NOTHING).set_header(headings.iter().copied());
    let arrangement =
        if io::stdout().is_terminal() { ContentArrangement::Dynamic } else { ContentArrangement::Disabled };
    table.set_content_arrangement(arrangement);
    for row in rows {
        table.add_row(row);
    }
    for column in table.column_iter_mut() {
        column.set_padding((0, 1));
    }
    text(&table.trim_fmt())
}

/// A value's text as it is shown to people: `-` for nothing.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => "-".to_owned(),
        Value::String(text) if text.is_empty() => "-".to_owned(),
        Value::String(text) => printable(text),
        Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
            printable(&value.to_string())
        }
    }
}

/// `text` without what would steer the terminal: it may come from anybody who sends webhooks.
pub(super) fn printable(text: &str) -> String {
    text.chars().map(|character| if character.is_control() { '\u{FFFD}' } else { character }).collect()
}
