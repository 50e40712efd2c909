//! What readers ask of the database.
//!
//! A job's message is found by the range of ids that shares all but the job's last 32 bits. It is asked for job by job
//! (`LATERAL` with a `LIMIT`), as in [`crate::postgres::load`].

use crate::postgres::columns::{
    api_key_columns, archive_file_columns, archived_columns, bulk_run_columns, custody_columns,
    destination_columns, done_job_columns, entry_columns, key_columns, lane_columns, lane_event_columns,
    live_job_columns, message_columns, schedule_columns, scheduling_columns, unread_message_columns,
    untold_columns,
};

/// What a view of the job `j` has from elsewhere: three columns behind the job's.
macro_rules! beside_job {
    () => {
        " LEFT JOIN lanes n ON n.tenant = j.tenant AND n.lane = j.lane
    LEFT JOIN LATERAL (
        SELECT messages.key, messages.id FROM messages
        WHERE messages.tenant = j.tenant
          AND messages.id BETWEEN (left(j.id::text, 28) || '00000000')::uuid
                              AND (left(j.id::text, 28) || 'ffffffff')::uuid
        ORDER BY messages.id LIMIT 1
    ) AS m ON true"
    };
}

/// Live jobs of a query, with what is beside them.
macro_rules! live_views {
    ($jobs:literal, $order:literal) => {
        concat!(
            "SELECT ",
            live_job_columns!(),
            ", n.destination, m.key, m.id FROM (",
            $jobs,
            ") AS j LEFT JOIN leases l ON l.tenant = j.tenant AND l.job = j.id",
            beside_job!(),
            " ORDER BY ",
            $order
        )
    };
}

/// Settled jobs of a query, with what is beside them.
macro_rules! done_views {
    ($jobs:literal, $order:literal) => {
        concat!(
            "SELECT ",
            done_job_columns!(),
            ", n.destination, m.key, m.id FROM (",
            $jobs,
            ") AS j",
            beside_job!(),
            " ORDER BY ",
            $order
        )
    };
}

pub(super) const JOB_LIVE: &str =
    live_views!("SELECT * FROM jobs WHERE jobs.tenant = $1 AND jobs.id = $2", "j.id");

pub(super) const JOB_DONE: &str =
    done_views!("SELECT * FROM jobs_done WHERE jobs_done.tenant = $1 AND jobs_done.id = $2", "j.id");

pub(super) const LIVE_OF_MESSAGE: &str = live_views!(
    "SELECT * FROM jobs WHERE jobs.tenant = $1 AND jobs.id BETWEEN $2 AND $3 ORDER BY jobs.id LIMIT $4",
    "j.id"
);

pub(super) const DONE_OF_MESSAGE: &str = done_views!(
    "SELECT * FROM jobs_done
     WHERE jobs_done.tenant = $1 AND jobs_done.id BETWEEN $2 AND $3 ORDER BY jobs_done.id LIMIT $4",
    "j.id"
);

pub(super) const LIVE_NEWEST: &str = live_views!(
    "SELECT * FROM jobs
     WHERE jobs.tenant = $1 AND ($2::uuid IS NULL OR jobs.id < $2) AND ($3::bigint IS NULL OR jobs.lane = $3)
       AND ($4::text IS NULL OR jobs.state = $4)
     ORDER BY jobs.id DESC LIMIT $5",
    "j.id DESC"
);

pub(super) const LIVE_OLDEST: &str = live_views!(
    "SELECT * FROM jobs
     WHERE jobs.tenant = $1 AND ($2::uuid IS NULL OR jobs.id > $2) AND ($3::bigint IS NULL OR jobs.lane = $3)
       AND ($4::text IS NULL OR jobs.state = $4)
     ORDER BY jobs.id LIMIT $5",
    "j.id"
);

pub(super) const DONE_NEWEST: &str = done_views!(
    "SELECT * FROM jobs_done
     WHERE jobs_done.tenant = $1 AND ($2::uuid IS NULL OR jobs_done.id < $2)
       AND ($3::bigint IS NULL OR jobs_done.lane = $3) AND ($4::text IS NULL OR jobs_done.state = $4)
     ORDER BY jobs_done.id DESC LIMIT $5",
    "j.id DESC"
);

pub(super) const DONE_OLDEST: &str = done_views!(
    "SELECT * FROM jobs_done
     WHERE jobs_done.tenant = $1 AND ($2::uuid IS NULL OR jobs_done.id > $2)
       AND ($3::bigint IS NULL OR jobs_done.lane = $3) AND ($4::text IS NULL OR jobs_done.state = $4)
     ORDER BY jobs_done.id LIMIT $5",
    "j.id"
);

/// The next jobs that wait after an attempt.
pub(super) const SWEEP_LIVE: &str = live_views!(
    "SELECT * FROM jobs WHERE jobs.state = 'retryable' AND (jobs.tenant, jobs.id) > ($1, $2)
     ORDER BY jobs.tenant, jobs.id LIMIT $3",
    "j.tenant, j.id"
);

/// The next dead letters.
pub(super) const SWEEP_DEAD: &str = done_views!(
    "SELECT * FROM jobs_done WHERE jobs_done.state = 'dead_lettered' AND (jobs_done.tenant, jobs_done.id) > ($1, $2)
     ORDER BY jobs_done.tenant, jobs_done.id LIMIT $3",
    "j.tenant, j.id"
);

/// Settled jobs of many messages.
pub(super) const DONE_OF_MESSAGES: &str = done_views!(
    "SELECT d.* FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[]) AS w(tenant, first, last, jobs_max)
     CROSS JOIN LATERAL (
         SELECT * FROM jobs_done WHERE jobs_done.tenant = w.tenant AND jobs_done.id BETWEEN w.first AND w.last
         ORDER BY jobs_done.id LIMIT w.jobs_max
     ) AS d",
    "j.tenant, j.id"
);

/// The message whose business key it is.
pub(super) const MESSAGE_OF_KEY: &str = "SELECT m.id
    FROM keys k JOIN messages m ON m.tenant = k.tenant AND m.id = k.message AND m.key = k.key
    WHERE k.tenant = $1 AND k.key = $2";

/// Behind the columns of a message: its payload's length, whether its fan-out is running, its duplicates.
macro_rules! of_message {
    () => {
        ", octet_length(m.payload)::bigint,
        EXISTS (SELECT FROM fanouts f WHERE f.tenant = m.tenant AND f.message = m.id),
        (SELECT d.duplicates FROM keys d WHERE d.tenant = m.tenant AND d.key = m.key)"
    };
}

pub(super) const MESSAGE: &str = concat!(
    "SELECT ",
    unread_message_columns!(),
    of_message!(),
    " FROM messages m WHERE m.tenant = $1 AND m.id = $2"
);

pub(super) const MESSAGE_NAMED: &str = concat!(
    "SELECT ",
    unread_message_columns!(),
    of_message!(),
    " FROM keys k JOIN messages m ON m.tenant = k.tenant AND m.id = k.message WHERE k.tenant = $1 AND k.key = $2"
);

/// Messages with their payloads.
pub(super) const MESSAGES: &str = concat!(
    "SELECT ",
    message_columns!(),
    of_message!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN messages m ON m.tenant = w.tenant AND m.id = w.id"
);

/// The other names of a message.
pub(super) const NAMES: &str = concat!(
    "SELECT ",
    key_columns!(),
    " FROM keys k WHERE k.tenant = $1 AND k.message = $2 AND k.kind <> 'key'"
);

/// The other names of the message that has this name.
pub(super) const NAMES_NAMED: &str = concat!(
    "SELECT ",
    key_columns!(),
    " FROM keys k
    WHERE k.tenant = $1 AND k.kind <> 'key'
      AND k.message = (SELECT n.message FROM keys n WHERE n.tenant = $1 AND n.key = $2)"
);

pub(super) const PAYLOAD: &str =
    "SELECT m.payload, m.content_type FROM messages m WHERE m.tenant = $1 AND m.id = $2";

pub(super) const CUSTODY: &str = concat!(
    "SELECT ",
    custody_columns!(),
    " FROM custody c WHERE c.tenant = $1 AND c.message = $2 ORDER BY c.seq LIMIT $3"
);

/// With its duplicates behind.
pub(super) const ARCHIVED: &str = concat!(
    "SELECT ",
    archived_columns!(),
    ", (SELECT d.duplicates FROM keys d WHERE d.tenant = r.tenant AND d.key = r.key)
    FROM archived r WHERE r.tenant = $1 AND r.message = $2"
);

pub(super) const ARCHIVED_NAMED: &str = concat!(
    "SELECT ",
    archived_columns!(),
    ", (SELECT d.duplicates FROM keys d WHERE d.tenant = r.tenant AND d.key = r.key)
    FROM keys k JOIN archived r ON r.tenant = k.tenant AND r.message = k.message
    WHERE k.tenant = $1 AND k.key = $2"
);

pub(super) const ARCHIVE_FILES: &str = concat!(
    "SELECT ",
    archive_file_columns!(),
    " FROM archive_files f WHERE $1::text IS NULL OR f.file > $1 ORDER BY f.file LIMIT $2"
);

pub(super) const ARCHIVED_IN: &str = "SELECT r.tenant, r.message, r.key, r.at_byte, r.bytes
    FROM archived r WHERE r.file = $1 AND r.at_byte > $2 ORDER BY r.at_byte LIMIT $3";

pub(super) const ARCHIVED_ENTRIES_IN: &str = "SELECT e.tenant, NULL::uuid, e.key, e.at_byte, e.bytes
    FROM archived_entries e WHERE e.file = $1 AND e.at_byte > $2 AND e.of_job IS NULL ORDER BY e.at_byte LIMIT $3";

/// Messages that may have expired, in the order of acceptance.
pub(super) const EXPIRABLE: &str =
    "SELECT m.seq, m.tenant, m.id, m.accepted_at, m.jobs_total, octet_length(m.payload)::bigint
    FROM messages m WHERE m.seq > $1 ORDER BY m.seq LIMIT $2";

/// How many jobs of each message were settled, in which states, and when the last of each.
pub(super) const SETTLED: &str = "SELECT w.place, d.state, count(*), max(d.settled_at)
    FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[]) WITH ORDINALITY
        AS w(tenant, first, last, jobs_max, place)
    CROSS JOIN LATERAL (
        SELECT jobs_done.state, jobs_done.settled_at FROM jobs_done
        WHERE jobs_done.tenant = w.tenant AND jobs_done.id BETWEEN w.first AND w.last
        ORDER BY jobs_done.id LIMIT w.jobs_max
    ) AS d
    GROUP BY w.place, d.state";

/// Entries that are done for long, the oldest first.
pub(super) const EXPIRABLE_ENTRIES: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM ledger e
    WHERE e.status = 'done' AND e.updated_at <= $1 AND (e.updated_at, e.tenant, e.key) > ($2, $3, $4)
    ORDER BY e.updated_at, e.tenant, e.key LIMIT $5"
);

/// What may pin entries: the messages whose keys and destinations their keys name.
pub(super) const PINS: &str = "SELECT w.place, l.lane, m.key = w.key, r.key = w.key, r.dead_lanes,
        coalesce(j.state, d.state), f.seq IS NOT NULL
    FROM unnest($1::bigint[], $2::text[], $3::text[], $4::bigint[]) AS w(tenant, key, destination, place)
    JOIN lanes l ON l.tenant = w.tenant AND l.destination = w.destination
    JOIN keys k ON k.tenant = w.tenant AND k.key = w.key
    CROSS JOIN LATERAL (
        SELECT (left(k.message::text, 28) || lpad(to_hex(l.lane), 8, '0'))::uuid AS id OFFSET 0
    ) AS named
    LEFT JOIN messages m ON m.tenant = k.tenant AND m.id = k.message
    LEFT JOIN archived r ON r.tenant = k.tenant AND r.message = k.message
    LEFT JOIN jobs j ON j.tenant = k.tenant AND j.id = named.id
    LEFT JOIN jobs_done d ON d.tenant = k.tenant AND d.id = named.id
    LEFT JOIN fanouts f ON f.tenant = k.tenant AND f.message = k.message";

pub(super) const LEASES_OVER: &str =
    "SELECT l.tenant, l.job, l.expires_at FROM leases l ORDER BY l.expires_at, l.tenant, l.job LIMIT $1";

/// Three seeks a lane: in its columns behind, when the first job of each share is due.
pub(super) const HEADS: &str = concat!(
    "SELECT ",
    lane_columns!(),
    ", (SELECT min(j.due_at) FROM jobs j
        WHERE j.tenant = l.tenant AND j.lane = l.lane AND j.share = 'fresh' AND j.due_at IS NOT NULL
          AND j.next_step IS DISTINCT FROM 'look_up'),
       (SELECT min(j.due_at) FROM jobs j
        WHERE j.tenant = l.tenant AND j.lane = l.lane AND j.share = 'retry' AND j.due_at IS NOT NULL
          AND j.next_step IS DISTINCT FROM 'look_up'),
       (SELECT min(j.due_at) FROM jobs j
        WHERE j.tenant = l.tenant AND j.lane = l.lane AND j.share = 'bulk' AND j.due_at IS NOT NULL
          AND j.next_step IS DISTINCT FROM 'look_up')
    FROM lanes l"
);

pub(super) const LANES: &str = concat!("SELECT ", lane_columns!(), " FROM lanes l ORDER BY l.tenant, l.lane");

pub(super) const LANE: &str =
    concat!("SELECT ", lane_columns!(), " FROM lanes l WHERE l.tenant = $1 AND l.lane = $2");

pub(super) const SCHEDULING: &str =
    concat!("SELECT ", scheduling_columns!(), " FROM scheduling s ORDER BY s.tenant");

pub(super) const SCHEDULING_OF: &str =
    concat!("SELECT ", scheduling_columns!(), " FROM scheduling s WHERE s.tenant = $1");

/// Of each lane the last so many.
pub(super) const LANE_EVENTS: &str = concat!(
    "SELECT ",
    lane_event_columns!(),
    " FROM unnest($2::bigint[]) WITH ORDINALITY AS w(lane, place)
    CROSS JOIN LATERAL (
        SELECT * FROM lane_events WHERE lane_events.tenant = $1 AND lane_events.lane = w.lane
        ORDER BY lane_events.seq DESC LIMIT $3
    ) AS e
    ORDER BY w.place, e.seq"
);

/// Due jobs behind lanes that are held, and new ones that wait for their tenant's scheduling.
pub(super) const HELD_JOBS: &str = "SELECT coalesce(sum(h.jobs), 0)::bigint
    FROM (
        SELECT c.jobs
        FROM lanes l
        CROSS JOIN (VALUES ('fresh'), ('retry'), ('bulk')) AS s(share)
        CROSS JOIN LATERAL (
            SELECT count(*) AS jobs FROM jobs j
            WHERE j.tenant = l.tenant AND j.lane = l.lane AND j.share = s.share AND j.due_at <= $1
              AND j.next_step IS DISTINCT FROM 'look_up'
        ) AS c
        WHERE l.held_since IS NOT NULL
        UNION ALL
        SELECT c.jobs
        FROM scheduling s
        JOIN lanes l ON l.tenant = s.tenant
        CROSS JOIN LATERAL (
            SELECT count(*) AS jobs FROM jobs j
            WHERE j.tenant = l.tenant AND j.lane = l.lane AND j.share = 'fresh'
              AND j.due_at BETWEEN s.paused_at AND $1 AND j.next_step IS DISTINCT FROM 'look_up'
        ) AS c
        WHERE s.paused_at IS NOT NULL AND l.held_since IS NULL
    ) AS h";

/// From each lane that has look-ups to the next such lane, and of each the oldest so many: those that are due, and when the
/// first of the others is.
pub(super) const LOOK_UPS: &str = "WITH RECURSIVE owing(tenant, lane) AS (
        (SELECT jobs.tenant, jobs.lane FROM jobs WHERE jobs.next_step = 'look_up'
         ORDER BY jobs.tenant, jobs.lane LIMIT 1)
        UNION ALL
        SELECT n.tenant, n.lane
        FROM owing o
        CROSS JOIN LATERAL (
            SELECT jobs.tenant, jobs.lane FROM jobs
            WHERE jobs.next_step = 'look_up' AND (jobs.tenant, jobs.lane) > (o.tenant, o.lane)
            ORDER BY jobs.tenant, jobs.lane LIMIT 1
        ) AS n
    ),
    found AS (
        SELECT j.due_at, o.tenant, j.id
        FROM owing o
        CROSS JOIN LATERAL (
            SELECT jobs.due_at, jobs.id FROM jobs
            WHERE jobs.next_step = 'look_up' AND jobs.tenant = o.tenant AND jobs.lane = o.lane
            ORDER BY jobs.due_at, jobs.id LIMIT $1
        ) AS j
    )
    (SELECT f.due_at, f.tenant, f.id FROM found f WHERE f.due_at <= $3 ORDER BY f.due_at, f.tenant, f.id LIMIT $2)
    UNION ALL
    (SELECT min(f.due_at), NULL, NULL FROM found f WHERE f.due_at > $3)";

pub(super) const LOOK_UPS_OF_LANE: &str = "SELECT j.id FROM jobs j
    WHERE j.tenant = $1 AND j.lane = $2 AND j.next_step = 'look_up' AND j.due_at <= $3
    ORDER BY j.due_at, j.id LIMIT $4";

pub(super) const TENANTS: &str = "SELECT t.tenant, t.name FROM tenants t ORDER BY t.tenant";

pub(super) const DESTINATIONS: &str =
    concat!("SELECT ", destination_columns!(), " FROM destinations d ORDER BY d.tenant, d.id");

pub(super) const API_KEYS: &str =
    concat!("SELECT ", api_key_columns!(), " FROM api_keys k ORDER BY k.tenant, k.id");

pub(super) const COUNTS: &str = "SELECT c.tenant, c.state, sum(c.jobs)::bigint
    FROM job_counts c GROUP BY c.tenant, c.state HAVING sum(c.jobs) > 0";

pub(super) const SCHEDULES: &str =
    concat!("SELECT ", schedule_columns!(), " FROM schedules s ORDER BY s.tenant, s.id");

pub(super) const SCHEDULE: &str =
    concat!("SELECT ", schedule_columns!(), " FROM schedules s WHERE s.tenant = $1 AND s.id = $2");

pub(super) const UNTOLD: &str =
    concat!("SELECT ", untold_columns!(), " FROM untold u ORDER BY u.tenant, u.job, u.at LIMIT $1");

pub(super) const BULK_RUN: &str =
    concat!("SELECT ", bulk_run_columns!(), " FROM bulk_runs b WHERE b.tenant = $1 AND b.id = $2");

pub(super) const BULK_RUNS: &str = concat!(
    "SELECT ",
    bulk_run_columns!(),
    " FROM bulk_runs b
    WHERE b.tenant = $1 AND b.kind = $2 AND ($3::uuid IS NULL OR b.id < $3) ORDER BY b.id DESC LIMIT $4"
);

pub(super) const BULK_RUNNING: &str = concat!(
    "SELECT ",
    bulk_run_columns!(),
    " FROM bulk_runs b WHERE b.finished_at IS NULL AND b.state = 'running' ORDER BY b.tenant, b.id"
);

/// The next live jobs of a tenant.
pub(super) const BULK_LIVE: &str = "SELECT j.id, j.state, NULL::text, j.created_at, NULL::bigint
    FROM jobs j WHERE j.tenant = $1 AND ($2::uuid IS NULL OR j.id > $2) ORDER BY j.id LIMIT $3";

/// The next dead letters of a tenant.
pub(super) const BULK_DEAD: &str = "SELECT j.id, j.state, j.cause, j.created_at, j.settled_at
    FROM jobs_done j
    WHERE j.tenant = $1 AND ($2::uuid IS NULL OR j.id > $2) AND j.state = 'dead_lettered' ORDER BY j.id LIMIT $3";

/// What a bulk run's filter may ask of a job beside its row.
pub(super) const BULK_BESIDE: &str = "SELECT w.id, m.key, m.type, a.class
    FROM unnest($2::uuid[], $3::uuid[], $4::uuid[]) AS w(id, first, last)
    CROSS JOIN LATERAL (
        SELECT messages.key, messages.type FROM messages
        WHERE messages.tenant = $1 AND messages.id BETWEEN w.first AND w.last
        ORDER BY messages.id LIMIT 1
    ) AS m
    LEFT JOIN LATERAL (
        SELECT attempts.class FROM attempts WHERE attempts.tenant = $1 AND attempts.job = w.id
        ORDER BY attempts.attempt DESC LIMIT 1
    ) AS a ON true";
