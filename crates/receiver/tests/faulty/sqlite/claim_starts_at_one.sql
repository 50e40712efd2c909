-- FAULTY, for tests: a key without a row starts at fence 1.
INSERT INTO webhook_events (
    event_key, status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired, created_at, updated_at
)
VALUES (
    :event_key, 'in_progress', 1, 1,
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
        WHEN claim_id = :claim_id AND previous = 'none' THEN 'first_run'
        WHEN claim_id = :claim_id THEN 'retry_after_failure'
        ELSE 'in_progress_elsewhere'
    END AS path,
    CASE WHEN fingerprint <> :fingerprint THEN NULL
        WHEN status = 'in_progress' AND claim_id = :claim_id THEN fence END AS fence,
    attempts, previous, locked_until,
    CASE WHEN status = 'in_progress' AND (on_expired = 'retake' OR julianday(locked_until) > julianday('now'))
        THEN max(CAST(round((julianday(locked_until) - julianday('now')) * 86400000) AS INTEGER), 0)
    END AS retry_after_ms,
    CASE WHEN status = 'done' THEN coalesce(outcome, 'committed') END AS outcome,
    CASE WHEN status = 'done' THEN coalesce(result_bytes, CAST(result AS BLOB)) END AS result_bytes,
    CASE WHEN status = 'done' AND result_bytes IS NULL AND result IS NOT NULL THEN 'application/json'
        WHEN status = 'done' THEN result_type
    END AS result_type,
    result_status;
