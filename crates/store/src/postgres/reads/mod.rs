//! What can be read. Each function looks at one snapshot, answers from SQL where SQL says it plainly, and else loads what the
//! rules of [`crate::memory`] look at and asks them.

mod bulk;
mod configured;
mod jobs;
mod lanes;
mod messages;
mod records;
mod retention;
mod statements;
mod unsettled;
mod views;

pub(crate) use self::{
    bulk::{bulk_count, bulk_run, bulk_running, bulk_runs},
    configured::{api_keys, counts, destinations, schedule, schedules, tenants, untold},
    jobs::{briefs, entry, expired, job, jobs, message_jobs},
    lanes::{heads, held_jobs, lane_events, lanes, scheduling},
    messages::{custody, message, payload},
    retention::{archive_files, archived, archived_in, expirable},
    unsettled::{lane_held_ms, lane_look_ups, look_ups, provable},
};
