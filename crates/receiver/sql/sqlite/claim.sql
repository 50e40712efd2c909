-- Claims a key, before its effect. Always one row, or an error.
--
--   :event_key   TEXT
--   :claim_id    TEXT; the caller's token: random, new for each claim. Only a claim whose answer was lost is sent
--                again with the same token, and gets its own grant again
--   :lease_ms    INTEGER; how long the grant is in force
--   :fingerprint TEXT or NULL; what the payload is
--   :on_expired  TEXT; 'retake', or 'hold': a grant that runs out is not taken over until somebody resets it
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
-- One transaction: this, the effect and complete.sql in one.
-- Each begins with BEGIN IMMEDIATE: one that begins by reading can't always become one that writes. SQLITE_BUSY after
-- the busy time-out means in_progress_elsewhere.
--
-- Why it is so:
-- * One statement under the primary key: two first claims can't both find nothing.
-- * No WHERE on the update, so that a row comes back whatever the path.
-- * One verdict decides every column. SQLite reads the clock once for a statement.
-- * A done entry is never granted, however old its lease: locked_until counts only while in_progress.
-- * A retake moves failed to in_progress: the next of two concurrent retries finds it taken.
-- * Each grant has a fence one higher, so that a report of an older one changes nothing.
-- * A key without a row starts at the microseconds since 1970, not at 1: grants of a key come less than one a microsecond,
--   and purge.sql takes nothing younger than an hour, so a new row's fence is above all that a purged row ever had.
--   It needs a clock that does not go back by more than the retention.
-- * Times are compared by julianday, which reads every way of writing them that SQLite knows.
INSERT INTO webhook_events (
    event_key, status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired, created_at, updated_at
)
VALUES (
    :event_key, 'in_progress', 1, CAST(round((julianday('now') - 2440587.5) * 86400000) AS INTEGER) * 1000,
    strftime('%Y-%m-%d %H:%M:%f', julianday('now') + :lease_ms / 86400000.0), :fingerprint, :claim_id, 'none',
    :on_expired, strftime('%Y-%m-%d %H:%M:%f', 'now'), strftime('%Y-%m-%d %H:%M:%f', 'now')
)
ON CONFLICT (event_key) DO UPDATE SET (
    status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired, updated_at,
    error_class, error_message
) = (
    SELECT
        CASE WHEN v.granted THEN 'in_progress' ELSE webhook_events.status END,
        CASE WHEN v.granted THEN webhook_events.attempts + 1 ELSE webhook_events.attempts END,
        CASE WHEN v.granted THEN webhook_events.fence + 1 ELSE webhook_events.fence END,
        CASE WHEN v.granted THEN excluded.locked_until ELSE webhook_events.locked_until END,
        CASE WHEN v.granted THEN coalesce(webhook_events.fingerprint, excluded.fingerprint)
            ELSE webhook_events.fingerprint END,
        CASE WHEN v.granted THEN excluded.claim_id ELSE webhook_events.claim_id END,
        CASE WHEN v.granted THEN CASE webhook_events.status WHEN 'failed' THEN 'failed' ELSE 'expired' END
            ELSE webhook_events.previous END,
        CASE WHEN v.granted THEN excluded.on_expired ELSE webhook_events.on_expired END,
        CASE WHEN v.granted THEN excluded.updated_at ELSE webhook_events.updated_at END,
        CASE WHEN v.granted THEN NULL ELSE webhook_events.error_class END,
        CASE WHEN v.granted THEN NULL ELSE webhook_events.error_message END
    FROM (
        SELECT
            (webhook_events.fingerprint = excluded.fingerprint
                OR webhook_events.fingerprint IS NULL OR excluded.fingerprint IS NULL)
            AND (
                webhook_events.status = 'failed'
                OR (webhook_events.status = 'in_progress' AND webhook_events.on_expired = 'retake'
                    AND julianday(webhook_events.locked_until) <= julianday('now'))
            ) AS granted
    ) AS v
)
RETURNING
    CASE
        WHEN fingerprint <> :fingerprint THEN 'key_reused'
        WHEN status = 'done' THEN 'duplicate_done'
        -- In progress under the caller's token: granted just now, or before to this very request and still in force.
        WHEN claim_id = :claim_id AND previous = 'none' THEN 'first_run'
        WHEN claim_id = :claim_id THEN 'retry_after_failure'
        ELSE 'in_progress_elsewhere'
    END AS path,
    -- Nobody else's fence is told to anybody.
    CASE WHEN fingerprint <> :fingerprint THEN NULL
        WHEN status = 'in_progress' AND claim_id = :claim_id THEN fence END AS fence,
    attempts, previous, locked_until,
    CASE WHEN status = 'in_progress' AND (on_expired = 'retake' OR julianday(locked_until) > julianday('now'))
        THEN max(CAST(round((julianday(locked_until) - julianday('now')) * 86400000) AS INTEGER), 0)
    END AS retry_after_ms,
    CASE WHEN status = 'done' THEN coalesce(outcome, 'committed') END AS outcome,
    -- A program that kept its answer in `result` left no bytes: then it is the text of that.
    CASE WHEN status = 'done' THEN coalesce(result_bytes, CAST(result AS BLOB)) END AS result_bytes,
    CASE WHEN status = 'done' AND result_bytes IS NULL AND result IS NOT NULL THEN 'application/json'
        WHEN status = 'done' THEN result_type
    END AS result_type,
    result_status;
