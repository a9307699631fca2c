-- The rate limits of lockkeeper on MariaDB and MySQL: one row for each key that is not full. InnoDB, because what was
-- charged must not be forgotten by a crash. Rows that have been as good as none for an hour are cleared away by the
-- clients, a few at a time.
--
-- state is two numbers in one, first * 10^10 + second (see lockkeeper/rate_rules.h); of a sliding window, whose
-- admissions are in log with 8 bytes each, it is the last one. Times are microseconds since 1970, UTC, on the server's
-- own clock; a row is as good as none when kept_for have passed since the first number of its state. granted is how
-- often the cost of the last charge that was granted fitted.
CREATE TABLE IF NOT EXISTS lockkeeper_rates (
  family   TINYINT        NOT NULL,
  id       VARBINARY(642) NOT NULL,
  state    DECIMAL(27)    NOT NULL DEFAULT 0,
  granted  INT            NOT NULL DEFAULT 0,
  kept_for BIGINT         NOT NULL DEFAULT 0,
  log      MEDIUMBLOB     NULL,
  PRIMARY KEY (family, id)
) ENGINE = InnoDB ROW_FORMAT = DYNAMIC;
