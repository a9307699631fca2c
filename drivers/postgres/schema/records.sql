-- The state of a migration to another store: small records, by which its processes agree. Only needed where this database
-- keeps such a state. stamp is another one after each write of the record. A record is gone when expires_at has passed.
CREATE TABLE IF NOT EXISTS "public"."lockkeeper_locks_records" (
  migration  BYTEA       NOT NULL,
  name       BYTEA       NOT NULL,
  body       BYTEA       NOT NULL,
  stamp      BIGINT      NOT NULL,
  written_at TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (migration, name)
) WITH (fillfactor = 50);
