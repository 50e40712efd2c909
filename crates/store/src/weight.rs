//! How many bytes an operation holds: near enough to bound a queue and a batch.

use crate::{
    BulkStep, Configure, CustodyEntry, JobCommand, LeaseRequest, LedgerAction, LedgerCommand, NewMessage,
    Retire, ScheduleChange,
};
use posthaste_core::{Command, Details};

/// A row, its index entries and its place in memory.
const ROW: usize = 256;

pub(crate) fn of_messages(messages: &[NewMessage]) -> usize {
    messages.iter().map(of_message).sum()
}

fn of_message(message: &NewMessage) -> usize {
    let texts = [&message.headers, &message.metadata, &message.payload_ref, &message.content_type];
    let texts: usize = texts.into_iter().flatten().map(|text| text.len()).sum();
    let rows = 2 + message.aliases.len() + message.targets.len();
    message.payload.len() + texts + rows * ROW
}

pub(crate) fn of_commands(commands: &[JobCommand]) -> usize {
    commands.iter().map(|command| 2 * ROW + of_details(&command.command)).sum()
}

fn of_details(command: &Command) -> usize {
    match command {
        Command::Finish { details, .. } | Command::Fail { details, .. } => {
            let Details { excerpt, result, message, .. } = details;
            let bytes = [excerpt, result].into_iter().flatten().map(|bytes| bytes.len());
            bytes.sum::<usize>() + message.as_ref().map_or(0, |text| text.len())
        }
        Command::Extend { checkpoint, .. } => checkpoint.as_ref().map_or(0, |bytes| bytes.len()),
        Command::Lease { .. }
        | Command::Start { .. }
        | Command::Release { .. }
        | Command::Expire
        | Command::Cancel { .. }
        | Command::Settle { .. }
        | Command::Replay { .. }
        | Command::Resend { .. }
        | Command::Abandon { .. }
        | Command::LookUp { .. } => 0,
    }
}

pub(crate) fn of_requests(requests: &[LeaseRequest]) -> usize {
    requests.iter().map(|request| 2 * ROW * request.limit.min(posthaste_core::limits::CONSUME_MAX)).sum()
}

pub(crate) fn of_fan_out(jobs_max: usize) -> usize {
    jobs_max.saturating_mul(ROW)
}

pub(crate) fn of_changes(changes: &[Configure]) -> usize {
    let size = |change: &Configure| match change {
        Configure::PutDestination(new) => new.config.len(),
        Configure::Tenant { .. }
        | Configure::DeleteDestination { .. }
        | Configure::PutApiKey(_)
        | Configure::RevokeApiKey { .. } => 0,
    };
    changes.iter().map(|change| ROW + size(change)).sum()
}

pub(crate) fn of_ledger(commands: &[LedgerCommand]) -> usize {
    let size = |command: &LedgerCommand| match &command.action {
        LedgerAction::Complete { result, .. } => result.bytes.as_ref().map_or(0, bytes::Bytes::len),
        LedgerAction::Claim { .. }
        | LedgerAction::Fail { .. }
        | LedgerAction::Extend { .. }
        | LedgerAction::Reset { .. } => 0,
    };
    commands.iter().map(|command| 2 * ROW + size(command)).sum()
}

pub(crate) fn of_schedules(changes: &[ScheduleChange]) -> usize {
    let size = |change: &ScheduleChange| match change {
        ScheduleChange::Put(new) => new.config.len(),
        ScheduleChange::Delete { .. }
        | ScheduleChange::Pause { .. }
        | ScheduleChange::Resume { .. }
        | ScheduleChange::Advance { .. } => 0,
    };
    changes.iter().map(|change| ROW + size(change)).sum()
}

pub(crate) fn of_entries(entries: &[CustodyEntry]) -> usize {
    entries.iter().map(|entry| ROW + entry.detail.as_ref().map_or(0, |detail| detail.len())).sum()
}

pub(crate) fn of_run() -> usize {
    4 * ROW
}

/// As commands of the same number: what looks at more rows reads them where they lie together.
pub(crate) fn of_bulk_step(step: &BulkStep) -> usize {
    step.jobs_max.saturating_mul(2 * ROW)
}

pub(crate) fn of_retired(records: &[Retire]) -> usize {
    let size = |retire: &Retire| match retire {
        Retire::Message { record, .. } => crate::retention::weight_of(record),
        Retire::Entry { record, .. } => ROW + record.entry.result.bytes.as_ref().map_or(0, bytes::Bytes::len),
    };
    records.iter().map(size).sum()
}

pub(crate) fn of_untold(rows: &[crate::Untold]) -> usize {
    rows.len() * ROW
}
