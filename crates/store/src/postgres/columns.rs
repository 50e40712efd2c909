//! The columns of each table in the order in which [`super::decode`] reads them, for use in `concat!`. Each list names its
//! table by the alias that its comment tells; what else a statement selects comes after it.

/// How many columns [`live_job_columns`] and [`done_job_columns`] have.
pub(crate) const JOB_COLUMNS: usize = 34;
/// How many columns [`message_columns`] and [`thin_message_columns`] have.
pub(crate) const MESSAGE_COLUMNS: usize = 16;
/// How many columns [`archived_columns`] has.
pub(crate) const ARCHIVED_COLUMNS: usize = 12;

/// Of `jobs j LEFT JOIN leases l ON l.tenant = j.tenant AND l.job = j.id`.
macro_rules! live_job_columns {
    () => {
        "j.tenant, j.id, j.kind, j.state, j.share, j.due_at, j.next_step, NULL::bigint, NULL::text, NULL::text, \
         j.attempt, j.failed_before, j.created_at, j.scheduled_at, j.started_at, j.failures, j.lost_leases, \
         j.uncharged, j.budget_since, j.budget_held_ms, j.reason, j.cancel_requested, j.abandon, j.commit_heard, \
         j.evidence_floor, j.checkpoint, j.wire_id, j.owner, l.worker, l.due_at, l.leased_at, l.started_at, \
         l.expires_at, l.deadline_at"
    };
}

/// Of `jobs_done j`; of the same types as [`live_job_columns`].
macro_rules! done_job_columns {
    () => {
        "j.tenant, j.id, j.kind, j.state, j.share, NULL::bigint, NULL::text, j.settled_at, j.cause, j.evidence, \
         j.attempt, j.failed_before, j.created_at, j.scheduled_at, j.started_at, j.failures, j.lost_leases, \
         j.uncharged, j.budget_since, j.budget_held_ms, j.reason, j.cancel_requested, j.abandon, j.commit_heard, \
         j.evidence_floor, j.checkpoint, j.wire_id, j.owner, NULL::text, NULL::bigint, NULL::bigint, NULL::bigint, \
         NULL::bigint, NULL::bigint"
    };
}

/// Of `messages m`, with the payload.
macro_rules! message_columns {
    () => {
        "m.tenant, m.id, m.seq, m.key, m.type, m.source, m.accepted_at, m.jobs_total, m.fingerprint, \
         m.correlation_id, m.traceparent, m.content_type, m.headers, m.metadata, m.payload_ref, m.payload"
    };
}

/// The same without the payload.
macro_rules! unread_message_columns {
    () => {
        "m.tenant, m.id, m.seq, m.key, m.type, m.source, m.accepted_at, m.jobs_total, m.fingerprint, \
         m.correlation_id, m.traceparent, m.content_type, m.headers, m.metadata, m.payload_ref, ''::bytea"
    };
}

/// The same without what is long.
macro_rules! thin_message_columns {
    () => {
        "m.tenant, m.id, m.seq, m.key, m.type, m.source, m.accepted_at, m.jobs_total, m.fingerprint, \
         m.correlation_id, m.traceparent, m.content_type, NULL::text, NULL::text, m.payload_ref, ''::bytea"
    };
}

/// Of `attempts a`.
macro_rules! attempt_columns {
    () => {
        "a.tenant, a.job, a.attempt, a.kind, a.path, a.worker, a.due_at, a.leased_at, a.started_at, a.finished_at, \
         a.outcome, a.class, a.effect, a.wish, a.reported, a.state, a.next_at, a.policy, a.status, a.duration_ms, \
         a.code, a.message, a.excerpt, a.result, a.commit_heard_at, a.late_at, a.late_outcome, a.late_class, \
         a.late_effect, a.late_wish, a.late_state, a.late_next_at, a.late_accepted, a.late_details"
    };
}

/// Of `lanes l`.
macro_rules! lane_columns {
    () => {
        "l.tenant, l.lane, l.destination, l.not_before, l.paused_at, l.paused_reason, l.paused_by, l.disabled_at, \
         l.disabled_reason, l.disabled_by, l.switched_off, l.circuit_since, l.circuit_until, l.circuit_probe, \
         l.failures, l.refusals, l.failing_since, l.trips, l.held_ms, l.held_since, l.rate_used_us"
    };
}

/// Of `scheduling s`.
macro_rules! scheduling_columns {
    () => {
        "s.tenant, s.paused_at, s.paused_reason, s.paused_by, s.held_ms"
    };
}

/// Of `lane_events e`.
macro_rules! lane_event_columns {
    () => {
        "e.tenant, e.lane, e.at, e.event, e.actor, e.reason"
    };
}

/// Of `ledger e`.
macro_rules! entry_columns {
    () => {
        "e.tenant, e.key, e.status, e.fence, e.attempts, e.locked_until, e.fingerprint, e.claim_id, e.path, \
         e.previous, e.on_expired, e.outcome, e.result_bytes, e.result_type, e.result_status, e.class, e.message, \
         e.created_at, e.updated_at, e.reset_at, e.reset_by, e.reset_reason"
    };
}

/// Of `archived_entries e`.
macro_rules! archived_entry_columns {
    () => {
        "e.tenant, e.key, e.status, e.fence, e.attempts, e.locked_until, e.fingerprint, e.claim_id, e.path, \
         e.previous, e.on_expired, e.outcome, e.result_bytes, e.result_type, e.result_status, e.class, e.message, \
         e.created_at, e.updated_at, e.reset_at, e.reset_by, e.reset_reason, e.of_job, e.result_elsewhere, e.file, \
         e.at_byte, e.bytes"
    };
}

/// Of `archived r`.
macro_rules! archived_columns {
    () => {
        "r.tenant, r.message, r.key, r.accepted_at, r.jobs_total, r.fingerprint, r.correlation_id, r.dead_lanes, \
         r.archived_at, r.file, r.at_byte, r.bytes"
    };
}

/// Of `custody c`.
macro_rules! custody_columns {
    () => {
        "c.tenant, c.message, c.job, c.at, c.stage, c.attempt, c.actor, c.detail"
    };
}

/// Of `fanouts f`.
macro_rules! fanout_columns {
    () => {
        "f.seq, f.tenant, f.message, f.due_at, f.made, f.targets, f.held_by"
    };
}

/// Of `destinations d`.
macro_rules! destination_columns {
    () => {
        "d.tenant, d.id, d.kind, d.lane, d.config, d.managed_by, d.enabled, d.owner, d.created_at, d.updated_at"
    };
}

/// Of `api_keys k`.
macro_rules! api_key_columns {
    () => {
        "k.tenant, k.id, k.name, k.secret_hash, k.scopes, k.created_at, k.revoked_at"
    };
}

/// Of `schedules s`.
macro_rules! schedule_columns {
    () => {
        "s.tenant, s.id, s.config, s.managed_by, s.enabled, s.owner, s.next_fire_at, s.last_fired_at, s.paused_at, \
         s.paused_by, s.paused_reason, s.created_at, s.updated_at"
    };
}

/// Of `bulk_runs b`.
macro_rules! bulk_run_columns {
    () => {
        "b.tenant, b.id, b.kind, b.state, b.job_state, b.lane, b.destination, b.cause, b.class, b.key_prefix, b.type, \
         b.created_since, b.created_until, b.dead_since, b.dead_until, b.reason, b.assume_not_done, b.per_second, \
         b.idempotency_key, b.actor, b.expected, b.began_at, b.cursor, b.examined, b.matched, b.done, b.requested, \
         b.settled, b.skipped, b.refused, b.refused_jobs, b.problem, b.updated_at, b.finished_at"
    };
}

/// Of `untold u`.
macro_rules! untold_columns {
    () => {
        "u.tenant, u.job, u.at, u.attempt, u.cause"
    };
}

/// Of `archive_files f`.
macro_rules! archive_file_columns {
    () => {
        "f.file, f.records, f.bytes, f.sha256, f.first_key, f.last_key, f.written_at"
    };
}

/// Of `keys k`.
macro_rules! key_columns {
    () => {
        "k.tenant, k.key, k.kind, k.message, k.duplicates"
    };
}

pub(crate) use {
    api_key_columns, archive_file_columns, archived_columns, archived_entry_columns, attempt_columns,
    bulk_run_columns, custody_columns, destination_columns, done_job_columns, entry_columns, fanout_columns,
    key_columns, lane_columns, lane_event_columns, live_job_columns, message_columns, schedule_columns,
    scheduling_columns, thin_message_columns, unread_message_columns, untold_columns,
};
