-- The tables of lockkeeper::inventory on MariaDB and MySQL. Names are VARBINARY, so that they compare byte by byte:
-- 'a', 'A' and 'a ' are three articles. InnoDB, because stock and order must be written together or not at all.

-- One row for each article. Every change of a row counts its version up, so that it never counts as "unchanged". An article
-- is split into `buckets`; 1: it is not.
CREATE TABLE IF NOT EXISTS lockkeeper_stock (
  sku     VARBINARY(64) NOT NULL PRIMARY KEY,
  level   BIGINT        NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  fence   BIGINT        NOT NULL DEFAULT 0,
  version BIGINT        NOT NULL DEFAULT 0,
  buckets BIGINT        NOT NULL DEFAULT 1
) ENGINE = InnoDB;

-- One row for each bucket of an article that is split: what it holds besides the article's row. `buckets` is their number, so
-- that whoever knows another number finds none of them.
CREATE TABLE IF NOT EXISTS lockkeeper_buckets (
  sku     VARBINARY(64) NOT NULL,
  buckets BIGINT        NOT NULL,
  bucket  BIGINT        NOT NULL,
  level   BIGINT        NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  version BIGINT        NOT NULL DEFAULT 0,
  PRIMARY KEY (sku, buckets, bucket)
) ENGINE = InnoDB;

-- The ledger: lockkeeper_orders, each of which took its quantity, and lockkeeper_changes, whose amounts have a sign. An
-- article's stock, with that of its buckets, is the sum of both. Times are milliseconds since 1970, by the server's clock; rows of former versions
-- have none. level_after is the article's level when the row was written, unless it was split then.

-- One row for each order that was deducted; attempt tells which call of deduct() wrote it.
CREATE TABLE IF NOT EXISTS lockkeeper_orders (
  order_id    VARBINARY(64) NOT NULL PRIMARY KEY,
  sku         VARBINARY(64) NOT NULL,
  quantity    BIGINT        NOT NULL CHECK (quantity > 0),
  attempt     BIGINT        NOT NULL,
  written_at  BIGINT        NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
  written_by  VARBINARY(64) NOT NULL DEFAULT '',
  level_after BIGINT        NULL,
  KEY lockkeeper_orders_ledger (sku, written_at)
) ENGINE = InnoDB;

-- One row for each other change of an article. order_id names the order that goods came back from.
CREATE TABLE IF NOT EXISTS lockkeeper_changes (
  reason      VARBINARY(16) NOT NULL,
  id          VARBINARY(64) NOT NULL,
  line        BIGINT        NOT NULL DEFAULT 0,
  sku         VARBINARY(64) NOT NULL,
  amount      BIGINT        NOT NULL,
  order_id    VARBINARY(64) NULL,
  attempt     BIGINT        NOT NULL,
  written_at  BIGINT        NULL DEFAULT (TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6)) DIV 1000),
  written_by  VARBINARY(64) NOT NULL DEFAULT '',
  level_after BIGINT        NULL,
  PRIMARY KEY (reason, id, line),
  KEY lockkeeper_changes_sku (sku, reason),
  KEY lockkeeper_changes_ledger (sku, written_at),
  KEY lockkeeper_changes_order (order_id)
) ENGINE = InnoDB;

-- One row for each article of a reservation, in the order of their skus. What is held has left the stock; `wanted` is
-- what the cart asked for. expires_at is by the server's clock, as written_at is.
CREATE TABLE IF NOT EXISTS lockkeeper_reservations (
  reservation_id VARBINARY(64) NOT NULL,
  line           BIGINT        NOT NULL,
  sku            VARBINARY(64) NOT NULL,
  wanted         BIGINT        NOT NULL,
  quantity       BIGINT        NOT NULL,
  state          VARBINARY(16) NOT NULL,
  expires_at     BIGINT        NOT NULL,
  PRIMARY KEY (reservation_id, line),
  KEY lockkeeper_reservations_sku (sku, state, expires_at),
  KEY lockkeeper_reservations_state (state, expires_at),
  CHECK (quantity BETWEEN 0 AND wanted)
) ENGINE = InnoDB;
