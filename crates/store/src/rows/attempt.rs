//! An attempt's row: written once when it ends, with a late report beside it.

use posthaste_core::{
    Attempt, AttemptEnd, AttemptOutcome, Class, CorruptRow, Details, DurationMs, Effect, JobId, Kind,
    LateReport, Path, Report, RetryWish, StateName, Timestamp,
};
use serde_json::{Value, json};

use super::cells::Cells;
use crate::{AttemptView, policy_line};

/// The columns of an attempt from its number on.
pub(crate) fn view(cells: &mut Cells<'_>, job: JobId) -> Result<AttemptView, CorruptRow> {
    let attempt = attempt(cells, job)?;
    let (kind, path, worker) = (cells.word(Kind::parse)?, cells.word(Path::parse)?, cells.text()?);
    let (due_at, leased_at, started_at, finished_at) =
        (cells.at()?, cells.at()?, cells.maybe_at()?, cells.at()?);
    let end = AttemptEnd {
        attempt,
        kind,
        path,
        worker,
        due_at,
        leased_at,
        started_at,
        finished_at,
        report: report(cells)?,
        reported: cells.flag()?,
        state: cells.word(StateName::parse)?,
        next_at: cells.maybe_at()?,
        policy: policy_line(&cells.str()?),
        details: Details {
            status: cells.maybe_int()?,
            duration: cells.maybe_int()?.map(DurationMs),
            code: cells.maybe_text()?,
            message: cells.maybe_text()?,
            excerpt: cells.maybe_bytes()?.map(Box::from),
            result: cells.maybe_bytes()?.map(Box::from),
        },
    };
    let commit_heard_at = cells.maybe_at()?;
    let late = match cells.maybe_at()? {
        Some(at) => Some(late_report(cells, attempt, at)?),
        None => None,
    };
    Ok(AttemptView { end, late, commit_heard_at })
}

fn attempt(cells: &mut Cells<'_>, job: JobId) -> Result<Attempt, CorruptRow> {
    Attempt::new(cells.int()?).ok_or(CorruptRow { id: job.0, what: "an attempt has number 0" })
}

fn report(cells: &mut Cells<'_>) -> Result<Report, CorruptRow> {
    Ok(Report {
        outcome: cells.word(AttemptOutcome::parse)?,
        class: cells.maybe_word(Class::parse)?,
        effect: cells.word(Effect::parse)?,
        wish: cells.maybe_word(RetryWish::parse)?,
    })
}

fn late_report(cells: &mut Cells<'_>, attempt: Attempt, at: Timestamp) -> Result<LateReport, CorruptRow> {
    Ok(LateReport {
        attempt,
        at,
        report: report(cells)?,
        state: cells.word(StateName::parse)?,
        next_at: cells.maybe_at()?,
        accepted: cells.flag()?,
        details: cells.maybe_str()?.map(|text| details_from_json(&text)).unwrap_or_default(),
    })
}

/// A late report's details as JSON. Bytes are spelled in Latin-1, one character a byte: mostly they are text.
pub(crate) fn details_to_json(details: &Details) -> String {
    let bytes = |bytes: &Option<Box<[u8]>>| bytes.as_ref().map(|bytes| latin1(bytes));
    json!({
        "status": details.status,
        "duration_ms": details.duration.map(|duration| duration.0),
        "code": details.code,
        "message": details.message,
        "excerpt": bytes(&details.excerpt),
        "result": bytes(&details.result),
    })
    .to_string()
}

/// What [`details_to_json`] wrote; what can't be read is left out, since it is for people only.
fn details_from_json(text: &str) -> Details {
    let fields: Value = serde_json::from_str(text).unwrap_or_default();
    let text = |name: &str| fields[name].as_str().map(Box::from);
    let bytes = |name: &str| fields[name].as_str().map(from_latin1);
    Details {
        status: fields["status"].as_u64().and_then(|status| u16::try_from(status).ok()),
        duration: fields["duration_ms"].as_u64().map(DurationMs),
        code: text("code"),
        message: text("message"),
        excerpt: bytes("excerpt"),
        result: bytes("result"),
    }
}

fn latin1(bytes: &[u8]) -> String {
    bytes.iter().copied().map(char::from).collect()
}

fn from_latin1(text: &str) -> Box<[u8]> {
    text.chars().filter_map(|character| u8::try_from(u32::from(character)).ok()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn late_details_come_back_byte_for_byte() {
        let all: Box<[u8]> = (0..=u8::MAX).collect();
        let details = Details {
            status: Some(503),
            duration: Some(DurationMs(17)),
            code: Some("e".into()),
            message: Some("naïve \u{0} \"text\"".into()),
            excerpt: Some(all.clone()),
            result: Some(all),
        };
        assert_eq!(details, details_from_json(&details_to_json(&details)));
        assert_eq!(Details::default(), details_from_json(&details_to_json(&Details::default())));
        assert_eq!(Details::default(), details_from_json("not JSON"));
    }
}
