-- Claims a key, before its effect. Always one row, or an error.
--
--   $1 event_key   text
--   $2 claim_id    text; the caller's token: random, new for each claim. Only a claim whose answer was lost is sent
--                  again with the same token, and gets its own grant again
--   $3 lease_ms    bigint; how long the grant is in force
--   $4 fingerprint text or NULL; what the payload is
--   $5 on_expired  text; 'retake', or 'hold': a grant that runs out is not taken over until somebody resets it
--
-- Column path tells what to do:
--   first_run              do the effect; report with the fence
--   retry_after_failure    the same; previous says whether the grant before this one failed or expired, in which case
--                          its effect may still be on its way, and rolls back if complete.sql finds no row
--   duplicate_done         don't; answer outcome, result_bytes, result_type, result_status
--   in_progress_elsewhere  don't; answer 409 with Retry-After (retry_after_ms; NULL while held), never 2xx
--   key_reused             don't; the key came before with another fingerprint. The entry is untouched
--
-- Two transactions (the default): commit this one; then the effect and complete.sql in one transaction.
-- One transaction: this, the effect and complete.sql in one; others wait at their claim until it ends.
-- In both, SET lock_timeout: error 55P03 means in_progress_elsewhere.
-- Errors 40001 (at REPEATABLE READ, SERIALIZABLE) and 40P01: run the transaction again.
--
-- Why it is so:
-- * One statement under the primary key: two first claims can't both find nothing.
-- * No WHERE on the update, so that a row comes back whatever the path. With WHERE a refused claim returns no row, and a
--   SELECT in the same statement reads an older snapshot: it finds nothing, or 'failed' where 'done' is committed.
-- * The clock is read once, after the row is locked, and one verdict decides every column: time passing between two
--   columns can't tear the row. It is the database's clock, whatever the callers' clocks say.
-- * A done entry is never granted, however old its lease: locked_until counts only while in_progress.
-- * A retake moves failed to in_progress: the next of two concurrent retries finds it taken.
-- * Each grant has a fence one higher, so that a report of an older one changes nothing.
-- * A key without a row starts at the microseconds since 1970, not at 1: grants of a key come less than one a microsecond,
--   and purge.sql takes nothing younger than an hour, so a new row's fence is above all that a purged row ever had.
--   A counter in a table would need a lock across all claims to promise the same; a sequence is lost in logical
--   replication. It needs a clock that does not go back by more than the retention.
INSERT INTO webhook_events AS e (
    event_key, status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired, created_at, updated_at
)
SELECT
    $1::text, 'in_progress', 1, floor(extract(epoch FROM clock.now) * 1000000)::bigint,
    clock.now + $3::bigint * interval '1 millisecond', $4::text, $2::text, 'none', $5::text, clock.now, clock.now
FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock
ON CONFLICT (event_key) DO UPDATE SET (
    status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired, updated_at,
    error_class, error_message
) = (
    SELECT
        CASE WHEN v.granted THEN 'in_progress' ELSE e.status END,
        CASE WHEN v.granted THEN e.attempts + 1 ELSE e.attempts END,
        CASE WHEN v.granted THEN e.fence + 1 ELSE e.fence END,
        CASE WHEN v.granted THEN v.now + $3::bigint * interval '1 millisecond' ELSE e.locked_until END,
        CASE WHEN v.granted THEN coalesce(e.fingerprint, excluded.fingerprint) ELSE e.fingerprint END,
        CASE WHEN v.granted THEN excluded.claim_id ELSE e.claim_id END,
        CASE WHEN v.granted THEN CASE e.status WHEN 'failed' THEN 'failed' ELSE 'expired' END ELSE e.previous END,
        CASE WHEN v.granted THEN excluded.on_expired ELSE e.on_expired END,
        CASE WHEN v.granted THEN v.now ELSE e.updated_at END,
        CASE WHEN v.granted THEN NULL ELSE e.error_class END,
        CASE WHEN v.granted THEN NULL ELSE e.error_message END
    FROM (
        SELECT
            clock.now,
            (e.fingerprint = excluded.fingerprint OR e.fingerprint IS NULL OR excluded.fingerprint IS NULL) AND (
                e.status = 'failed'
                OR (e.status = 'in_progress' AND e.on_expired = 'retake' AND e.locked_until <= clock.now)
            ) AS granted
        FROM (SELECT clock_timestamp() AS now OFFSET 0) AS clock
        OFFSET 0
    ) AS v
)
RETURNING
    CASE
        WHEN e.fingerprint <> $4::text THEN 'key_reused'
        WHEN e.status = 'done' THEN 'duplicate_done'
        -- In progress under the caller's token: granted just now, or before to this very request and still in force.
        WHEN e.claim_id = $2::text AND e.previous = 'none' THEN 'first_run'
        WHEN e.claim_id = $2::text THEN 'retry_after_failure'
        ELSE 'in_progress_elsewhere'
    END AS path,
    -- Nobody else's fence is told to anybody.
    CASE WHEN e.fingerprint <> $4::text THEN NULL
        WHEN e.status = 'in_progress' AND e.claim_id = $2::text THEN e.fence END AS fence,
    e.attempts::integer AS attempts, e.previous, e.locked_until,
    CASE WHEN e.status = 'in_progress' AND (e.on_expired = 'retake' OR e.locked_until > clock_timestamp())
        THEN greatest(ceil(extract(epoch FROM e.locked_until - clock_timestamp()) * 1000), 0)::bigint
    END AS retry_after_ms,
    CASE WHEN e.status = 'done' THEN coalesce(e.outcome, 'committed') END AS outcome,
    -- A program that kept its answer in `result` left no bytes: then it is the text of that.
    CASE WHEN e.status = 'done' THEN coalesce(e.result_bytes, convert_to(e.result::text, 'UTF8')) END AS result_bytes,
    CASE WHEN e.status = 'done' AND e.result_bytes IS NULL AND e.result IS NOT NULL THEN 'application/json'
        WHEN e.status = 'done' THEN e.result_type
    END AS result_type,
    e.result_status;
