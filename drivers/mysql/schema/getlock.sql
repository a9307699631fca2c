-- The fence counters of mysql+getlock on MariaDB and MySQL: one row for each name that was ever locked. InnoDB, because
-- a fence must never be given twice, whatever crashes. fence=off in the store's URI does without this table.
--
-- A lock that lives elsewhere and takes its fences from here (fenceStore=mysql://…) leaves a digest of its claim.
-- session and owner tell who was granted the name last; who holds it now is known to the server alone (IS_USED_LOCK).
-- To purge names that nobody uses any more:
--   DELETE FROM lockkeeper_fences WHERE name LIKE 'order:%' AND fence < (UNIX_TIMESTAMP() - 86400) * 1000000;
-- A row that comes back begins with the time in microseconds, above all fences that it gave before. The second condition keeps
-- rows that are ahead of the time, because the server's clock was set back, or less than a day behind it: a statement that makes
-- a row begins it with the time at which it was sent.
CREATE TABLE IF NOT EXISTS lockkeeper_fences (
  name    VARBINARY(64)   NOT NULL PRIMARY KEY,
  fence   BIGINT UNSIGNED NOT NULL,
  session BIGINT UNSIGNED NOT NULL DEFAULT 0,
  claim   VARBINARY(64)   NOT NULL DEFAULT '',
  owner   VARBINARY(64)   NOT NULL DEFAULT ''
) ENGINE = InnoDB;
