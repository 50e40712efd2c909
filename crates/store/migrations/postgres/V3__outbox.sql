-- An application publishes within its own transaction: `SELECT posthaste.publish('{"to": …, "key": …, "payload": …}')`, with
-- the body of `POST /v1/messages`. A row is taken because it is there, whatever its number: numbers are given before their
-- transactions commit. What can't be published stays, with the problem.

CREATE TABLE outbox (
    id             bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    tenant         text   NOT NULL DEFAULT 'default',
    message        json   NOT NULL,
    inserted_at    timestamptz NOT NULL DEFAULT clock_timestamp(),
    problem        text
) WITH (autovacuum_vacuum_scale_factor = 0, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_cost_delay = 0);

CREATE INDEX outbox_waiting ON outbox (id) WHERE problem IS NULL;

-- Whoever may execute it need not be allowed to write the table.
DO $do$
BEGIN
    EXECUTE format($sql$
        CREATE FUNCTION %1$I.publish(message json, tenant text DEFAULT 'default') RETURNS bigint
        LANGUAGE sql SECURITY DEFINER SET search_path = %1$I, pg_temp
        AS $body$ INSERT INTO outbox (tenant, message) VALUES ($2, $1) RETURNING id $body$
    $sql$, current_schema());
END $do$;
