//! An attempt's row to and from SQL: written once when it ends, with a late report beside it.

use posthaste_core::{
    Attempt, AttemptEnd, AttemptOutcome, Class, CorruptRow, Details, DurationMs, Effect, JobId, Kind,
    LateReport, Path, Report, RetryWish, RowWrite, StateName, TenantId, Timestamp,
};
use rusqlite::{Row, Statement, params};
use serde_json::{Value, json};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    session::Session,
};
use crate::{AttemptView, policy_line};

/// Every ended attempt of a job, oldest first.
pub(super) fn all_of(
    attempts_of_job: &mut Statement<'_>,
    tenant: TenantId,
    job: JobId,
) -> Result<Result<Vec<AttemptView>, CorruptRow>, Fault> {
    let mut rows = attempts_of_job.query(params![tenant.0, job.0.to_be_bytes()])?;
    let mut views = Vec::new();
    while let Some(row) = rows.next()? {
        match view(row, job) {
            Ok(view) => views.push(view),
            Err(corrupt) => return Ok(Err(corrupt)),
        }
    }
    Ok(Ok(views))
}

pub(super) fn view(row: &Row<'_>, job: JobId) -> Result<AttemptView, CorruptRow> {
    let mut cells = Cells::of(row, job.0);
    let attempt = attempt(&mut cells, job)?;
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
        report: report(&mut cells)?,
        reported: cells.flag()?,
        state: cells.word(StateName::parse)?,
        next_at: cells.maybe_at()?,
        policy: policy_line(cells.str()?),
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
        Some(at) => Some(late_report(&mut cells, attempt, at)?),
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
        details: cells.maybe_str()?.map(details_from_json).unwrap_or_default(),
    })
}

impl Session<'_> {
    /// Writes the attempt's row, or beside it; gives the row if it is new.
    pub(super) fn write_attempt(
        &mut self,
        tenant: TenantId,
        job: JobId,
        row: RowWrite,
    ) -> Result<Option<Box<AttemptEnd>>, Fault> {
        match row {
            RowWrite::End { row, commit_heard_at } => {
                self.insert_attempt(tenant, job, &row, commit_heard_at)?;
                Ok(Some(row))
            }
            RowWrite::Late { report, commit_heard_at } => {
                self.write_late(tenant, job, &report, commit_heard_at)?;
                Ok(None)
            }
            RowWrite::Heard { attempt, at } => {
                let at = params![tenant.0, job.0.to_be_bytes(), attempt.get(), at.0];
                one(self.sql.attempts_heard.execute(at)?)?;
                Ok(None)
            }
        }
    }

    fn insert_attempt(
        &mut self,
        tenant: TenantId,
        job: JobId,
        end: &AttemptEnd,
        commit_heard_at: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let details = &end.details;
        let inserted = self.sql.attempts_insert.execute(params![
            tenant.0,
            job.0.to_be_bytes(),
            end.attempt.get(),
            end.kind.as_str(),
            end.path.as_str(),
            end.worker,
            end.due_at.0,
            end.leased_at.0,
            end.started_at.map(|at| at.0),
            end.finished_at.0,
            end.report.outcome.as_str(),
            end.report.class.map(Class::as_str),
            end.report.effect.as_str(),
            end.report.wish.map(RetryWish::as_str),
            end.reported,
            end.state.as_str(),
            end.next_at.map(|at| at.0),
            end.policy,
            details.status,
            details.duration.map(|duration| signed(duration.0)),
            details.code,
            details.message,
            details.excerpt,
            details.result,
            commit_heard_at.map(|at| at.0),
        ])?;
        one(inserted)
    }

    fn write_late(
        &mut self,
        tenant: TenantId,
        job: JobId,
        late: &LateReport,
        commit_heard_at: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let written = self.sql.attempts_late.execute(params![
            tenant.0,
            job.0.to_be_bytes(),
            late.attempt.get(),
            late.at.0,
            late.report.outcome.as_str(),
            late.report.class.map(Class::as_str),
            late.report.effect.as_str(),
            late.report.wish.map(RetryWish::as_str),
            late.state.as_str(),
            late.next_at.map(|at| at.0),
            late.accepted,
            details_to_json(&late.details),
            commit_heard_at.map(|at| at.0),
        ])?;
        one(written)
    }
}

/// A late report's details as JSON. Bytes are spelled in Latin-1, one character a byte: mostly they are text.
fn details_to_json(details: &Details) -> String {
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
