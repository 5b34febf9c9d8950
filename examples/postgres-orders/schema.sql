-- For a database of its own: CREATE DATABASE shop. The server needs wal_level = logical.
CREATE ROLE watchtide LOGIN REPLICATION;
CREATE TABLE orders (
    id    bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    state text NOT NULL DEFAULT 'open',
    total numeric(12,2) NOT NULL,
    lines jsonb NOT NULL DEFAULT '[]'
);
GRANT SELECT ON orders TO watchtide;
CREATE PUBLICATION watchtide FOR TABLE orders;
