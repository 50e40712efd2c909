//! What is asked of the database, a few statements for everything. Arrays of parameters are rows: the first of each, the
//! second of each.
//!
//! Where a message or jobs are found by a range of ids, the range is asked for row by row (`LATERAL` with a `LIMIT`): a
//! planner that takes a range for a good part of the table would read all of it.

use crate::postgres::columns::{
    api_key_columns, archive_file_columns, archived_columns, archived_entry_columns, attempt_columns,
    bulk_run_columns, custody_columns, destination_columns, done_job_columns, entry_columns, fanout_columns,
    key_columns, lane_columns, live_job_columns, message_columns, schedule_columns, scheduling_columns,
    thin_message_columns, untold_columns,
};

/// Locks names that have no row, in the order of their numbers.
pub(crate) const GUARDS: &str = "SELECT pg_advisory_xact_lock(g.number)
    FROM (SELECT DISTINCT hashtextextended(w.name, 7) AS number FROM unnest($1::text[]) AS w(name) ORDER BY 1) AS g";

pub(crate) const RUNS_LOCK: &str = concat!(
    "SELECT ",
    bulk_run_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN bulk_runs b ON b.tenant = w.tenant AND b.id = w.id
    ORDER BY b.tenant, b.id
    FOR NO KEY UPDATE OF b"
);

pub(crate) const RUNS: &str = concat!(
    "SELECT ",
    bulk_run_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN bulk_runs b ON b.tenant = w.tenant AND b.id = w.id"
);

pub(crate) const RUNS_OF_KEYS: &str = concat!(
    "SELECT ",
    bulk_run_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, idempotency_key)
    JOIN bulk_runs b ON b.tenant = w.tenant AND b.idempotency_key = w.idempotency_key"
);

/// Few of each tenant.
pub(crate) const RUNS_LIVE: &str = concat!(
    "SELECT ",
    bulk_run_columns!(),
    " FROM unnest($1::bigint[]) AS w(tenant)
    JOIN bulk_runs b ON b.tenant = w.tenant AND b.finished_at IS NULL"
);

pub(crate) const SCHEDULES_LOCK: &str = concat!(
    "SELECT ",
    schedule_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, id)
    JOIN schedules s ON s.tenant = w.tenant AND s.id = w.id
    ORDER BY s.tenant, s.id
    FOR UPDATE OF s"
);

pub(crate) const UNTOLD_LOCK: &str = concat!(
    "SELECT ",
    untold_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[], $3::bigint[]) AS w(tenant, job, at)
    JOIN untold u ON u.tenant = w.tenant AND u.job = w.job AND u.at = w.at
    ORDER BY u.tenant, u.job, u.at
    FOR UPDATE OF u"
);

pub(crate) const NAMES: &str = concat!(
    "SELECT ",
    key_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, key)
    JOIN keys k ON k.tenant = w.tenant AND k.key = w.key"
);

/// The business keys of messages, where duplicates are counted.
pub(crate) const BUSINESS_KEYS_LOCK: &str = concat!(
    "SELECT ",
    key_columns!(),
    " FROM (
        SELECT m.tenant, m.key
        FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
        JOIN messages m ON m.tenant = w.tenant AND m.id = w.id
        UNION
        SELECT r.tenant, r.key
        FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
        JOIN archived r ON r.tenant = w.tenant AND r.message = w.id
    ) AS n
    JOIN keys k ON k.tenant = n.tenant AND k.key = n.key
    ORDER BY k.tenant, k.key
    FOR NO KEY UPDATE OF k"
);

/// The other names of messages.
pub(crate) const OTHER_NAMES: &str = concat!(
    "SELECT ",
    key_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, message)
    JOIN keys k ON k.tenant = w.tenant AND k.message = w.message AND k.kind <> 'key'"
);

/// The next places in the order of acceptance.
pub(crate) const PLACES: &str = "SELECT nextval('acceptances') FROM generate_series(1, $1::bigint)";

/// Locks lanes, by their numbers and by their destinations.
pub(crate) const LANES_LOCK: &str = concat!(
    "SELECT ",
    lane_columns!(),
    " FROM (
        SELECT w.tenant, w.lane FROM unnest($1::bigint[], $2::bigint[]) AS w(tenant, lane)
        UNION
        SELECT o.tenant, o.lane
        FROM unnest($3::bigint[], $4::text[]) AS w(tenant, destination)
        JOIN lanes o ON o.tenant = w.tenant AND o.destination = w.destination
    ) AS w
    JOIN lanes l ON l.tenant = w.tenant AND l.lane = w.lane
    ORDER BY l.tenant, l.lane
    FOR NO KEY UPDATE OF l"
);

pub(crate) const LANES: &str = concat!(
    "SELECT ",
    lane_columns!(),
    " FROM unnest($1::bigint[], $2::bigint[]) AS w(tenant, lane)
    JOIN lanes l ON l.tenant = w.tenant AND l.lane = w.lane"
);

pub(crate) const LANES_OF_DESTINATIONS: &str = concat!(
    "SELECT ",
    lane_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, destination)
    JOIN lanes l ON l.tenant = w.tenant AND l.destination = w.destination"
);

/// The last lane of each tenant.
pub(crate) const LAST_LANES: &str = concat!(
    "SELECT ",
    lane_columns!(),
    " FROM unnest($1::bigint[]) AS w(tenant)
    CROSS JOIN LATERAL (
        SELECT * FROM lanes WHERE lanes.tenant = w.tenant ORDER BY lanes.lane DESC LIMIT 1
    ) AS l"
);

pub(crate) const SCHEDULING_LOCK: &str = concat!(
    "SELECT ",
    scheduling_columns!(),
    " FROM scheduling s WHERE s.tenant = ANY($1::bigint[]) ORDER BY s.tenant FOR NO KEY UPDATE OF s"
);

pub(crate) const SCHEDULING: &str =
    concat!("SELECT ", scheduling_columns!(), " FROM scheduling s WHERE s.tenant = ANY($1::bigint[])");

pub(crate) const JOBS: &str = concat!(
    "SELECT ",
    live_job_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN jobs j ON j.tenant = w.tenant AND j.id = w.id
    LEFT JOIN leases l ON l.tenant = j.tenant AND l.job = j.id"
);

pub(crate) const JOBS_DONE: &str = concat!(
    "SELECT ",
    done_job_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN jobs_done j ON j.tenant = w.tenant AND j.id = w.id"
);

/// The first jobs of messages, by lane.
pub(crate) const FIRST_JOBS: &str = concat!(
    "SELECT ",
    live_job_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[]) AS w(tenant, first, last, jobs_max)
    CROSS JOIN LATERAL (
        SELECT * FROM jobs
        WHERE jobs.tenant = w.tenant AND jobs.id BETWEEN w.first AND w.last
        ORDER BY jobs.id LIMIT w.jobs_max
    ) AS j
    LEFT JOIN leases l ON l.tenant = j.tenant AND l.job = j.id"
);

/// The first jobs of messages that are settled, by lane.
pub(crate) const FIRST_JOBS_DONE: &str = concat!(
    "SELECT ",
    done_job_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[]) AS w(tenant, first, last, jobs_max)
    CROSS JOIN LATERAL (
        SELECT * FROM jobs_done
        WHERE jobs_done.tenant = w.tenant AND jobs_done.id BETWEEN w.first AND w.last
        ORDER BY jobs_done.id LIMIT w.jobs_max
    ) AS j"
);

/// Of each share of each lane what waits for an attempt, so many, the oldest first.
pub(crate) const WAITING: &str = concat!(
    "SELECT ",
    live_job_columns!(),
    " FROM unnest($1::bigint[], $2::bigint[], $3::bigint[]) AS w(tenant, lane, jobs_max)
    CROSS JOIN (VALUES ('fresh'), ('retry'), ('bulk')) AS s(share)
    CROSS JOIN LATERAL (
        SELECT * FROM jobs
        WHERE jobs.tenant = w.tenant AND jobs.lane = w.lane AND jobs.share = s.share
          AND jobs.due_at IS NOT NULL AND jobs.next_step IS DISTINCT FROM 'look_up'
        ORDER BY jobs.due_at, jobs.id LIMIT w.jobs_max
    ) AS j
    LEFT JOIN leases l ON false"
);

/// The messages of jobs, each by the range of ids that share a job's first bits.
pub(crate) const MESSAGES_OF_JOBS: &str = concat!(
    "SELECT ",
    thin_message_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[], $3::uuid[]) AS w(tenant, first, last)
    CROSS JOIN LATERAL (
        SELECT * FROM messages
        WHERE messages.tenant = w.tenant AND messages.id BETWEEN w.first AND w.last
        ORDER BY messages.id LIMIT 1
    ) AS m"
);

/// The same with their payloads.
pub(crate) const BODIES_OF_JOBS: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[], $3::uuid[]) AS w(tenant, first, last)
    CROSS JOIN LATERAL (
        SELECT * FROM messages
        WHERE messages.tenant = w.tenant AND messages.id BETWEEN w.first AND w.last
        ORDER BY messages.id LIMIT 1
    ) AS m"
);

/// The messages of jobs that may be leased, in the order in which they are tried: with their payloads while there is room for
/// them in the lane's grant. What doesn't surely weigh takes no room. The column behind says whether the payload is here.
pub(crate) const BODIES_TO_LEASE: &str = "SELECT m.tenant, m.id, m.seq, m.key, m.type, m.source, m.accepted_at,
        m.jobs_total, m.fingerprint, m.correlation_id, m.traceparent, m.content_type, m.headers, m.metadata,
        m.payload_ref, CASE WHEN m.fits THEN m.payload ELSE ''::bytea END, m.fits, m.bytes
    FROM (
        SELECT m.*, octet_length(m.payload)::bigint AS bytes,
               sum(w.weighs) OVER line = w.weighs
               OR sum(w.weighs * octet_length(m.payload)) OVER line <= w.bytes_max AS fits
        FROM unnest($1::bigint[], $2::bigint[], $3::bigint[], $4::uuid[], $5::uuid[], $6::bigint[], $7::bigint[])
            AS w(tenant, lane, place, first, last, weighs, bytes_max)
        CROSS JOIN LATERAL (
            SELECT * FROM messages
            WHERE messages.tenant = w.tenant AND messages.id BETWEEN w.first AND w.last
            ORDER BY messages.id LIMIT 1
        ) AS m
        WINDOW line AS (PARTITION BY w.tenant, w.lane ORDER BY w.place ROWS UNBOUNDED PRECEDING)
    ) AS m";

pub(crate) const MESSAGES: &str = concat!(
    "SELECT ",
    thin_message_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN messages m ON m.tenant = w.tenant AND m.id = w.id"
);

pub(crate) const BODIES: &str = concat!(
    "SELECT ",
    message_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN messages m ON m.tenant = w.tenant AND m.id = w.id"
);

pub(crate) const ARCHIVED: &str = concat!(
    "SELECT ",
    archived_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, message)
    JOIN archived r ON r.tenant = w.tenant AND r.message = w.message"
);

/// Which messages have a fan-out that is running.
pub(crate) const FANOUTS_RUNNING: &str = "SELECT f.seq, f.tenant, f.message
    FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, message)
    CROSS JOIN LATERAL (
        SELECT seq, tenant, message FROM fanouts
        WHERE fanouts.tenant = w.tenant AND fanouts.message = w.message LIMIT 1
    ) AS f";

pub(crate) const ATTEMPTS: &str = concat!(
    "SELECT ",
    attempt_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[], $3::bigint[], $4::bigint[]) AS w(tenant, job, first, last)
    JOIN attempts a ON a.tenant = w.tenant AND a.job = w.job AND a.attempt BETWEEN w.first AND w.last"
);

pub(crate) const CUSTODY: &str = concat!(
    "SELECT ",
    custody_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, message)
    JOIN custody c ON c.tenant = w.tenant AND c.message = w.message
    ORDER BY c.seq"
);

/// How many refused reports of each job are noted.
pub(crate) const STALE_REPORTS: &str = "SELECT c.tenant, c.message, c.job, count(*)
    FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, job)
    JOIN custody c ON c.tenant = w.tenant AND c.job = w.job AND c.stage = 'stale_report'
    GROUP BY c.tenant, c.message, c.job";

/// How many duplicates of each message are noted.
pub(crate) const DUPLICATES: &str = "SELECT c.tenant, c.message, count(*)
    FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, message)
    JOIN custody c ON c.tenant = w.tenant AND c.message = w.message AND c.stage = 'duplicate'
    GROUP BY c.tenant, c.message";

/// Whether anybody uses the ledger: if not, no job looks for an entry.
pub(crate) const LEDGER_ANY: &str = "SELECT EXISTS (SELECT FROM ledger)
    OR EXISTS (SELECT FROM archived_entries WHERE of_job IS NULL)";

/// The keys of entries beside jobs.
macro_rules! keys_beside {
    () => {
        " FROM unnest($1::bigint[], $2::uuid[], $3::uuid[], $4::bigint[]) AS w(tenant, first, last, lane)
    CROSS JOIN LATERAL (
        SELECT m.key || ':' || l.destination AS key
        FROM messages m
        JOIN lanes l ON l.tenant = w.tenant AND l.lane = w.lane
        WHERE m.tenant = w.tenant AND m.id BETWEEN w.first AND w.last
        ORDER BY m.id LIMIT 1
    ) AS n"
    };
}

pub(crate) const ENTRIES_BESIDE: &str = concat!(
    "SELECT ",
    entry_columns!(),
    keys_beside!(),
    " JOIN ledger e ON e.tenant = w.tenant AND e.key = n.key"
);

pub(crate) const ARCHIVED_ENTRIES_BESIDE: &str = concat!(
    "SELECT ",
    archived_entry_columns!(),
    keys_beside!(),
    " JOIN archived_entries e ON e.tenant = w.tenant AND e.key = n.key"
);

pub(crate) const ENTRIES: &str = concat!(
    "SELECT ",
    entry_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, key)
    JOIN ledger e ON e.tenant = w.tenant AND e.key = w.key"
);

pub(crate) const ARCHIVED_ENTRIES: &str = concat!(
    "SELECT ",
    archived_entry_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, key)
    JOIN archived_entries e ON e.tenant = w.tenant AND e.key = w.key"
);

pub(crate) const FIRST_FENCE: &str = "SELECT f.first_fence FROM ledger_fences f";

pub(crate) const TENANTS: &str = "SELECT t.tenant, t.name FROM tenants t WHERE t.name = ANY($1::text[])
    UNION
    (SELECT t.tenant, t.name FROM tenants t WHERE cardinality($1::text[]) > 0 ORDER BY t.tenant DESC LIMIT 1)";

pub(crate) const DESTINATIONS: &str = concat!(
    "SELECT ",
    destination_columns!(),
    " FROM unnest($1::bigint[], $2::text[]) AS w(tenant, id)
    JOIN destinations d ON d.tenant = w.tenant AND d.id = w.id"
);

pub(crate) const API_KEYS: &str = concat!(
    "SELECT ",
    api_key_columns!(),
    " FROM unnest($1::bigint[], $2::uuid[]) AS w(tenant, id)
    JOIN api_keys k ON k.tenant = w.tenant AND k.id = w.id"
);

pub(crate) const API_KEYS_OF_HASHES: &str =
    concat!("SELECT ", api_key_columns!(), " FROM api_keys k WHERE k.secret_hash = ANY($1::bytea[])");

pub(crate) const ARCHIVE_FILES: &str =
    concat!("SELECT ", archive_file_columns!(), " FROM archive_files f WHERE f.file = ANY($1::text[])");

/// The next live jobs of a tenant, by id.
pub(crate) const BULK_LIVE: &str = concat!(
    "SELECT ",
    live_job_columns!(),
    " FROM (
        SELECT * FROM jobs WHERE jobs.tenant = $1 AND jobs.id > $2 ORDER BY jobs.id LIMIT $3
    ) AS j
    LEFT JOIN leases l ON l.tenant = j.tenant AND l.job = j.id
    ORDER BY j.id"
);

/// The next dead letters of a tenant, by id.
pub(crate) const BULK_DEAD: &str = concat!(
    "SELECT ",
    done_job_columns!(),
    " FROM jobs_done j
    WHERE j.tenant = $1 AND j.id > $2 AND j.state = 'dead_lettered'
    ORDER BY j.id LIMIT $3"
);

/// The oldest fan-outs that no source holds, and how many jobs are left of each.
pub(crate) const FANOUTS_FREE: &str = "SELECT f.seq, f.tenant, f.message, f.held_by, m.jobs_total - f.made
    FROM (
        SELECT seq, tenant, message, held_by, made FROM fanouts WHERE held_by IS NULL ORDER BY seq LIMIT $1
    ) AS f
    LEFT JOIN messages m ON m.tenant = f.tenant AND m.id = f.message
    ORDER BY f.seq";

/// The oldest fan-outs of sources that were paused and go on: from each source that has some to the next.
pub(crate) const FANOUTS_RESUMED: &str = "WITH RECURSIVE sources(tenant, lane) AS (
        (SELECT tenant, held_by FROM fanouts WHERE held_by IS NOT NULL ORDER BY tenant, held_by LIMIT 1)
        UNION ALL
        SELECT n.tenant, n.held_by
        FROM sources s
        CROSS JOIN LATERAL (
            SELECT tenant, held_by FROM fanouts
            WHERE held_by IS NOT NULL AND (fanouts.tenant, fanouts.held_by) > (s.tenant, s.lane)
            ORDER BY fanouts.tenant, fanouts.held_by LIMIT 1
        ) AS n
    )
    SELECT f.seq, f.tenant, f.message, f.held_by, m.jobs_total - f.made
    FROM sources s
    CROSS JOIN LATERAL (
        SELECT seq, tenant, message, held_by, made FROM fanouts
        WHERE fanouts.tenant = s.tenant AND fanouts.held_by = s.lane
        ORDER BY fanouts.seq LIMIT $1
    ) AS f
    LEFT JOIN messages m ON m.tenant = f.tenant AND m.id = f.message
    WHERE NOT EXISTS (
        SELECT FROM lanes l WHERE l.tenant = s.tenant AND l.lane = s.lane AND l.paused_at IS NOT NULL
    )
    ORDER BY f.tenant, f.held_by, f.seq LIMIT $1";

pub(crate) const FANOUTS: &str =
    concat!("SELECT ", fanout_columns!(), " FROM fanouts f WHERE f.seq = ANY($1::bigint[])");
