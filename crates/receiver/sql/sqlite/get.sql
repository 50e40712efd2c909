-- Shows an entry. For people and look-ups: what it says may be over when it arrives, so never decide an effect by it.
--
--   :event_key TEXT
--
-- retry_after_ms: what is left of the lease; 0 or less: it ran out.
SELECT
    event_key, status, attempts, fence, locked_until, fingerprint, claim_id, previous, on_expired,
    CASE WHEN status = 'done' THEN coalesce(outcome, 'committed') END AS outcome,
    coalesce(result_bytes, CAST(result AS BLOB)) AS result_bytes,
    CASE WHEN result_bytes IS NULL AND result IS NOT NULL THEN 'application/json' ELSE result_type END AS result_type,
    result_status, error_class, error_message, reset_at, reset_by, reset_reason, created_at, updated_at,
    CASE WHEN status = 'in_progress'
        THEN CAST(round((julianday(locked_until) - julianday('now')) * 86400000) AS INTEGER)
    END AS retry_after_ms
FROM webhook_events
WHERE event_key = :event_key;
