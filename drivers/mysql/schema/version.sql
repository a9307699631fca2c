-- The tables of mysql+version on MariaDB and MySQL. The first has one row for each key that was ever locked. Keys are
-- VARBINARY, so that they compare byte by byte. InnoDB, because a claim must be whole and survive a crash.
--
-- A lock is free when token is empty or expires_at (UTC, on the server's own clock) has passed. version counts up with
-- each grant, except for shares that leave room for others, and is its fence. So rows stay when locks are released.
-- Those that nobody has used for a day are deleted by the clients, a few at a time. A row that comes back begins with the
-- time in microseconds as its version, above all that it had before. While somebody waits for the key, '@' and a time in
-- microseconds stand behind the owner, such as 'web-1:7@1795644000000000'.
CREATE TABLE IF NOT EXISTS `lockkeeper_locks` (
  lock_key   VARBINARY(512) NOT NULL PRIMARY KEY,
  version    BIGINT         NOT NULL,
  token      VARBINARY(32)  NOT NULL,
  owner      VARBINARY(64)  NOT NULL,
  expires_at DATETIME(6)    NOT NULL
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;

-- For shared locks and semaphores only: one row for each claim that has a share of a key, if there are several. They
-- count as long as the key's row above says so: its token is then 'shares/', the number of permits and how many of them
-- are taken, such as 'shares/7/3', and its expires_at the end of the longest of their leases. expires_us is in
-- microseconds since 1970, UTC. Nothing is left when all have been released. A share without others is in the row
-- above: its owner is then such as 'web-1:7@1/3@0', for 1 of 3 permits.
CREATE TABLE IF NOT EXISTS `lockkeeper_locks_shares` (
  lock_key   VARBINARY(512) NOT NULL,
  token      VARBINARY(32)  NOT NULL,
  owner      VARBINARY(64)  NOT NULL,
  weight     INT            NOT NULL,
  fence      BIGINT         NOT NULL,
  expires_us BIGINT         NOT NULL,
  PRIMARY KEY (lock_key, token),
  KEY (lock_key, expires_us)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
