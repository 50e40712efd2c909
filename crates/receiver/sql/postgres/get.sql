-- Shows an entry. For people and look-ups: what it says may be over when it arrives, so never decide an effect by it.
--
--   $1 event_key text
--
-- retry_after_ms: what is left of the lease; 0 or less: it ran out.
SELECT
    e.event_key::text AS event_key, e.status::text AS status, e.attempts::integer AS attempts, e.fence, e.locked_until, e.fingerprint, e.claim_id, e.previous, e.on_expired,
    CASE WHEN e.status = 'done' THEN coalesce(e.outcome, 'committed') END AS outcome,
    coalesce(e.result_bytes, convert_to(e.result::text, 'UTF8')) AS result_bytes,
    CASE WHEN e.result_bytes IS NULL AND e.result IS NOT NULL THEN 'application/json' ELSE e.result_type END AS result_type,
    e.result_status, e.error_class, e.error_message, e.reset_at, e.reset_by, e.reset_reason, e.created_at, e.updated_at,
    CASE WHEN e.status = 'in_progress'
        THEN ceil(extract(epoch FROM e.locked_until - clock_timestamp()) * 1000)::bigint
    END AS retry_after_ms
FROM webhook_events AS e
WHERE e.event_key = $1::text;
