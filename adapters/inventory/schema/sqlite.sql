-- The tables of lockkeeper::inventory on SQLite. Names compare byte by byte, which is SQLite's default.

-- One row for each article. Every change of a row counts its version up. An article is split into `buckets`; 1: it is not.
CREATE TABLE IF NOT EXISTS lockkeeper_stock (
  sku     TEXT    NOT NULL PRIMARY KEY,
  level   INTEGER NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  fence   INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 0,
  buckets INTEGER NOT NULL DEFAULT 1
);

-- One row for each bucket of an article that is split: what it holds besides the article's row. `buckets` is their number, so
-- that whoever knows another number finds none of them.
CREATE TABLE IF NOT EXISTS lockkeeper_buckets (
  sku     TEXT    NOT NULL,
  buckets INTEGER NOT NULL,
  bucket  INTEGER NOT NULL,
  level   INTEGER NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  version INTEGER NOT NULL DEFAULT 0,
  PRIMARY KEY (sku, buckets, bucket)
);

-- The ledger: lockkeeper_orders, each of which took its quantity, and lockkeeper_changes, whose amounts have a sign. An
-- article's stock, with that of its buckets, is the sum of both. Times are milliseconds since 1970, by this machine's clock; rows of former
-- versions have none. level_after is the article's level when the row was written, unless it was split then.

-- One row for each order that was deducted; attempt tells which call of deduct() wrote it.
CREATE TABLE IF NOT EXISTS lockkeeper_orders (
  order_id    TEXT    NOT NULL PRIMARY KEY,
  sku         TEXT    NOT NULL,
  quantity    INTEGER NOT NULL CHECK (quantity > 0),
  attempt     INTEGER NOT NULL,
  written_at  INTEGER NULL,
  written_by  TEXT    NOT NULL DEFAULT '',
  level_after INTEGER NULL
);

CREATE INDEX IF NOT EXISTS lockkeeper_orders_ledger ON lockkeeper_orders (sku, written_at, order_id);

-- One row for each other change of an article. order_id names the order that goods came back from.
CREATE TABLE IF NOT EXISTS lockkeeper_changes (
  reason      TEXT    NOT NULL,
  id          TEXT    NOT NULL,
  line        INTEGER NOT NULL DEFAULT 0,
  sku         TEXT    NOT NULL,
  amount      INTEGER NOT NULL,
  order_id    TEXT    NULL,
  attempt     INTEGER NOT NULL,
  written_at  INTEGER NULL,
  written_by  TEXT    NOT NULL DEFAULT '',
  level_after INTEGER NULL,
  PRIMARY KEY (reason, id, line)
);

CREATE INDEX IF NOT EXISTS lockkeeper_changes_sku ON lockkeeper_changes (sku, reason);
CREATE INDEX IF NOT EXISTS lockkeeper_changes_ledger ON lockkeeper_changes (sku, written_at, reason, id, line);
CREATE INDEX IF NOT EXISTS lockkeeper_changes_order ON lockkeeper_changes (order_id);

-- One row for each article of a reservation, in the order of their skus. What is held has left the stock; `wanted` is
-- what the cart asked for. expires_at is by this machine's clock, as written_at is.
CREATE TABLE IF NOT EXISTS lockkeeper_reservations (
  reservation_id TEXT    NOT NULL,
  line           INTEGER NOT NULL,
  sku            TEXT    NOT NULL,
  wanted         INTEGER NOT NULL,
  quantity       INTEGER NOT NULL CHECK (quantity BETWEEN 0 AND wanted),
  state          TEXT    NOT NULL,
  expires_at     INTEGER NOT NULL,
  PRIMARY KEY (reservation_id, line)
);

CREATE INDEX IF NOT EXISTS lockkeeper_reservations_sku ON lockkeeper_reservations (sku, state, expires_at);
CREATE INDEX IF NOT EXISTS lockkeeper_reservations_state ON lockkeeper_reservations (state, expires_at);
