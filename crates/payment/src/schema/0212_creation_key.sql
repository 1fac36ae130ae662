-- Keys (Idempotency-Key) under which programs open sessions, kept with the session for ever.
CREATE TABLE IF NOT EXISTS selection_session_creation_key (
  creation_key VARCHAR(191) NOT NULL PRIMARY KEY,
  body_sha256 CHAR(64) NOT NULL DEFAULT '',
  session_id BIGINT NOT NULL DEFAULT 0,
  create_time {instant} NOT NULL
) {table_options};
