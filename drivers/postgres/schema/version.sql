-- The tables of postgres+version. The first has one row for each key that was ever locked. Keys are BYTEA, so that they
-- compare byte by byte. Times are on the server's own clock. There is no index but the keys', and room is left in each
-- page, so that an update writes no index.
--
-- Somebody holds the key until expires_at: the claim with this token or, if token is empty, those in the table of shares,
-- who have named so many permits. fence counts up with each grant, except for shares that leave room for others: so rows
-- stay when locks are released. fences says how many in a row the last grant has reserved, 0 after it was granted again.
-- asked is when the holder's client sent its last request, on that machine's clock: one that comes late changes nothing.
-- Somebody waits for the key until waited_until, unless he gets it before.
CREATE TABLE IF NOT EXISTS "public"."lockkeeper_locks" (
  lock_key     BYTEA       NOT NULL PRIMARY KEY CHECK (octet_length(lock_key) BETWEEN 1 AND 512),
  fence        BIGINT      NOT NULL,
  fences       INTEGER     NOT NULL DEFAULT 0,
  token        BYTEA       NOT NULL DEFAULT '',
  owner        TEXT        NOT NULL DEFAULT '',
  expires_at   TIMESTAMPTZ NOT NULL DEFAULT '-infinity',
  asked        BIGINT      NOT NULL DEFAULT 0,
  permits      INTEGER,
  waited_until TIMESTAMPTZ NOT NULL DEFAULT '-infinity'
) WITH (fillfactor = 50);

-- For shared locks and semaphores only: one row for each claim that has a share of a key.
CREATE TABLE IF NOT EXISTS "public"."lockkeeper_locks_shares" (
  lock_key   BYTEA       NOT NULL,
  token      BYTEA       NOT NULL,
  owner      TEXT        NOT NULL,
  weight     INTEGER     NOT NULL,
  fence      BIGINT      NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  asked      BIGINT      NOT NULL,
  PRIMARY KEY (lock_key, token)
) WITH (fillfactor = 50);

-- One row for each claim that waits for a key, in the order of their places. One whose expires_at has passed is gone.
CREATE TABLE IF NOT EXISTS "public"."lockkeeper_locks_waiters" (
  lock_key   BYTEA       NOT NULL,
  token      BYTEA       NOT NULL,
  place      BIGINT      NOT NULL,
  owner      TEXT        NOT NULL,
  weight     INTEGER,
  permits    INTEGER,
  since      TIMESTAMPTZ NOT NULL,
  expires_at TIMESTAMPTZ NOT NULL,
  PRIMARY KEY (lock_key, token)
) WITH (fillfactor = 50);
CREATE SEQUENCE IF NOT EXISTS "public"."lockkeeper_locks_places";
