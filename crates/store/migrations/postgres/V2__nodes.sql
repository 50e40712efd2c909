-- Nodes that share this store, who does what only one of them should, and what tells them to read the configuration again.

CREATE TABLE nodes (
    name           text   COLLATE "C" NOT NULL PRIMARY KEY,
    version        text   NOT NULL,
    started_at     bigint NOT NULL,
    seen_at        bigint NOT NULL,
    skew_ms        bigint NOT NULL
);

CREATE TABLE duties (
    duty           text   COLLATE "C" NOT NULL PRIMARY KEY,
    node           text   NOT NULL,
    until          bigint NOT NULL
);

CREATE TABLE configuration (
    singleton      bigint NOT NULL PRIMARY KEY CHECK (singleton = 1),
    changes        bigint NOT NULL
);

INSERT INTO configuration (singleton, changes) VALUES (1, 0);

CREATE FUNCTION configuration_changed() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    EXECUTE format('UPDATE %I.configuration SET changes = changes + 1', TG_TABLE_SCHEMA);
    RETURN NULL;
END $$;

CREATE TRIGGER configuration_changed AFTER INSERT OR UPDATE OR DELETE ON tenants
    FOR EACH STATEMENT EXECUTE FUNCTION configuration_changed();

CREATE TRIGGER configuration_changed AFTER INSERT OR UPDATE OR DELETE ON destinations
    FOR EACH STATEMENT EXECUTE FUNCTION configuration_changed();

CREATE TRIGGER configuration_changed AFTER INSERT OR UPDATE OR DELETE ON api_keys
    FOR EACH STATEMENT EXECUTE FUNCTION configuration_changed();
