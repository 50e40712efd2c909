-- FAULTY, for tests: a key without a row starts at fence 1.
INSERT INTO webhook_events AS e (
    event_key, status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired, created_at, updated_at
)
SELECT
    $1::text, 'in_progress', 1, 1::bigint,
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
        WHEN e.claim_id = $2::text AND e.previous = 'none' THEN 'first_run'
        WHEN e.claim_id = $2::text THEN 'retry_after_failure'
        ELSE 'in_progress_elsewhere'
    END AS path,
    CASE WHEN e.fingerprint <> $4::text THEN NULL
        WHEN e.status = 'in_progress' AND e.claim_id = $2::text THEN e.fence END AS fence,
    e.attempts::integer AS attempts, e.previous, e.locked_until,
    CASE WHEN e.status = 'in_progress' AND (e.on_expired = 'retake' OR e.locked_until > clock_timestamp())
        THEN greatest(ceil(extract(epoch FROM e.locked_until - clock_timestamp()) * 1000), 0)::bigint
    END AS retry_after_ms,
    CASE WHEN e.status = 'done' THEN coalesce(e.outcome, 'committed') END AS outcome,
    CASE WHEN e.status = 'done' THEN coalesce(e.result_bytes, convert_to(e.result::text, 'UTF8')) END AS result_bytes,
    CASE WHEN e.status = 'done' AND e.result_bytes IS NULL AND e.result IS NOT NULL THEN 'application/json'
        WHEN e.status = 'done' THEN e.result_type
    END AS result_type,
    e.result_status;
