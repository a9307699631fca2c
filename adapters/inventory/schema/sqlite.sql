-- The tables of lockkeeper::inventory on SQLite. Names compare byte by byte, which is SQLite's default.

-- One row for each article. Every write of a row counts its version up.
CREATE TABLE IF NOT EXISTS lockkeeper_stock (
  sku     TEXT    NOT NULL PRIMARY KEY,
  level   INTEGER NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  fence   INTEGER NOT NULL DEFAULT 0,
  version INTEGER NOT NULL DEFAULT 0
);

-- One row for each order that was deducted; attempt tells which call of deduct() wrote it.
CREATE TABLE IF NOT EXISTS lockkeeper_orders (
  order_id TEXT    NOT NULL PRIMARY KEY,
  sku      TEXT    NOT NULL,
  quantity INTEGER NOT NULL CHECK (quantity > 0),
  attempt  INTEGER NOT NULL
);

CREATE INDEX IF NOT EXISTS lockkeeper_orders_sku ON lockkeeper_orders (sku, order_id);
