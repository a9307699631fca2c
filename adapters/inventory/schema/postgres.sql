-- The tables of lockkeeper::inventory on PostgreSQL. Names are BYTEA, so that they compare byte by byte and hold any bytes:
-- 'a', 'A' and 'a ' are three articles. convert_from(sku, 'UTF8') shows them as text.

-- One row for each article. Every change of a row counts its version up. An article is split into `buckets`; 1: it is not.
-- Each change writes the row anew: the room that is left in its page keeps the index out of that.
CREATE TABLE IF NOT EXISTS lockkeeper_stock (
  sku     BYTEA  NOT NULL PRIMARY KEY CHECK (octet_length(sku) BETWEEN 1 AND 64),
  level   BIGINT NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  fence   BIGINT NOT NULL DEFAULT 0,
  version BIGINT NOT NULL DEFAULT 0,
  buckets BIGINT NOT NULL DEFAULT 1
) WITH (fillfactor = 20);

-- One row for each bucket of an article that is split: what it holds besides the article's row. `buckets` is their number, so
-- that whoever knows another number finds none of them.
CREATE TABLE IF NOT EXISTS lockkeeper_buckets (
  sku     BYTEA  NOT NULL,
  buckets BIGINT NOT NULL,
  bucket  BIGINT NOT NULL,
  level   BIGINT NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  version BIGINT NOT NULL DEFAULT 0,
  PRIMARY KEY (sku, buckets, bucket)
) WITH (fillfactor = 20);

-- The ledger: lockkeeper_orders, each of which took its quantity, and lockkeeper_changes, whose amounts have a sign. An
-- article's stock, with that of its buckets, is the sum of both. Times are milliseconds since 1970, by the server's clock.
-- level_after is the article's level when the row was written, unless it was split then.

-- One row for each order that was deducted; attempt tells which call of deduct() wrote it.
CREATE TABLE IF NOT EXISTS lockkeeper_orders (
  order_id    BYTEA  NOT NULL PRIMARY KEY CHECK (octet_length(order_id) BETWEEN 1 AND 64),
  sku         BYTEA  NOT NULL,
  quantity    BIGINT NOT NULL CHECK (quantity > 0),
  attempt     BIGINT NOT NULL,
  written_at  BIGINT NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000),
  written_by  BYTEA  NOT NULL DEFAULT '',
  level_after BIGINT NULL
);

CREATE INDEX IF NOT EXISTS lockkeeper_orders_ledger ON lockkeeper_orders (sku, written_at, order_id);

-- One row for each other change of an article. order_id names the order that goods came back from.
CREATE TABLE IF NOT EXISTS lockkeeper_changes (
  reason      BYTEA  NOT NULL,
  id          BYTEA  NOT NULL,
  line        BIGINT NOT NULL DEFAULT 0,
  sku         BYTEA  NOT NULL,
  amount      BIGINT NOT NULL,
  order_id    BYTEA  NULL,
  attempt     BIGINT NOT NULL,
  written_at  BIGINT NOT NULL DEFAULT floor(extract(epoch FROM clock_timestamp()) * 1000),
  written_by  BYTEA  NOT NULL DEFAULT '',
  level_after BIGINT NULL,
  PRIMARY KEY (reason, id, line)
);

CREATE INDEX IF NOT EXISTS lockkeeper_changes_sku ON lockkeeper_changes (sku, reason);
CREATE INDEX IF NOT EXISTS lockkeeper_changes_ledger ON lockkeeper_changes (sku, written_at, reason, id, line);
CREATE INDEX IF NOT EXISTS lockkeeper_changes_order ON lockkeeper_changes (order_id);

-- One row for each article of a reservation, in the order of their skus. What is held has left the stock; `wanted` is
-- what the cart asked for. expires_at is by the server's clock, as written_at is.
CREATE TABLE IF NOT EXISTS lockkeeper_reservations (
  reservation_id BYTEA  NOT NULL,
  line           BIGINT NOT NULL,
  sku            BYTEA  NOT NULL,
  wanted         BIGINT NOT NULL,
  quantity       BIGINT NOT NULL CHECK (quantity BETWEEN 0 AND wanted),
  state          BYTEA  NOT NULL,
  expires_at     BIGINT NOT NULL,
  PRIMARY KEY (reservation_id, line)
);

CREATE INDEX IF NOT EXISTS lockkeeper_reservations_sku
  ON lockkeeper_reservations (sku, state, expires_at, reservation_id);
CREATE INDEX IF NOT EXISTS lockkeeper_reservations_state ON lockkeeper_reservations (state, expires_at);
