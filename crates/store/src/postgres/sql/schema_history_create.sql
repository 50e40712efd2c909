CREATE TABLE schema_history (
    version        bigint NOT NULL PRIMARY KEY,
    name           text   NOT NULL,
    checksum       text   NOT NULL,
    applied_at     bigint NOT NULL
)
