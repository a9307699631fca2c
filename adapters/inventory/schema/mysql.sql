-- The tables of lockkeeper::inventory on MariaDB and MySQL. Names are VARBINARY, so that they compare byte by byte:
-- 'a', 'A' and 'a ' are three articles. InnoDB, because stock and order must be written together or not at all.

-- One row for each article. Every write of a row counts its version up, so that it never counts as "unchanged".
CREATE TABLE IF NOT EXISTS lockkeeper_stock (
  sku     VARBINARY(64) NOT NULL PRIMARY KEY,
  level   BIGINT        NOT NULL CHECK (level BETWEEN 0 AND 1000000000000000),
  fence   BIGINT        NOT NULL DEFAULT 0,
  version BIGINT        NOT NULL DEFAULT 0
) ENGINE = InnoDB;

-- One row for each order that was deducted; attempt tells which call of deduct() wrote it.
CREATE TABLE IF NOT EXISTS lockkeeper_orders (
  order_id VARBINARY(64) NOT NULL PRIMARY KEY,
  sku      VARBINARY(64) NOT NULL,
  quantity BIGINT        NOT NULL CHECK (quantity > 0),
  attempt  BIGINT        NOT NULL,
  KEY lockkeeper_orders_sku (sku)
) ENGINE = InnoDB;
