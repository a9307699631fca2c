-- The rate limits of lockkeeper on PostgreSQL: one row for each key that is not full. Rows that have been as good as none
-- for an hour are deleted by the clients, a few at a time.
--
-- family is 0 for buckets, 1 for sliding windows, 2 for windows of the calendar. first and second are, of a bucket, when it
-- is full again, in microseconds and parts of one (see lockkeeper/limit/rate_rules.h); of a window of the calendar, when it
-- begins and what was used in it; of a sliding window, what was used in it and the last of its admissions, all of which are
-- in admitted. Times are microseconds since 1970, UTC, on the server's own clock. The row is as good as none from
-- unused_from on. granted is how often the cost of the last charge that came alone has fitted.
CREATE TABLE IF NOT EXISTS "public"."lockkeeper_rates" (
  family      SMALLINT NOT NULL,
  rate_key    BYTEA    NOT NULL CHECK (octet_length(rate_key) BETWEEN 1 AND 642),
  first       BIGINT   NOT NULL DEFAULT 0,
  second      BIGINT   NOT NULL DEFAULT 0,
  admitted    BIGINT[],
  unused_from BIGINT   NOT NULL DEFAULT 0,
  granted     BIGINT   NOT NULL DEFAULT 0,
  PRIMARY KEY (family, rate_key)
) WITH (fillfactor = 50);
