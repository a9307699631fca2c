-- Values that are kept for a time: results of caches, answers to repeated requests, marks of latches. Only programs that
-- keep such values on this database need the table. A value is gone when expires_at has passed, on the server's own clock.
-- The writers of values delete such rows, which they find by the second index.
CREATE TABLE IF NOT EXISTS "public"."lockkeeper_locks_values" (
  value_key  BYTEA       NOT NULL PRIMARY KEY CHECK (octet_length(value_key) BETWEEN 1 AND 512),
  value      BYTEA       NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  UNIQUE (expires_at, value_key)
);
