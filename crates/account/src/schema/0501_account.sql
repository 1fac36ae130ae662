CREATE TABLE IF NOT EXISTS account (
  id {id},
  login VARCHAR(64) NOT NULL,
  display_name VARCHAR(128) NOT NULL DEFAULT '',
  role VARCHAR(16) NOT NULL CHECK (role IN ('viewer', 'operator', 'reviewer', 'admin')),
  password_hash VARCHAR(255) NOT NULL,
  password_time {instant} NOT NULL,
  is_disabled SMALLINT NOT NULL DEFAULT 0 CHECK (is_disabled IN (0, 1)),
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_account_login ON account (login);
CREATE TABLE IF NOT EXISTS account_session (
  id {id},
  account_id BIGINT NOT NULL,
  token_hash VARCHAR(64) NOT NULL,
  seen_time {instant} NOT NULL,
  expire_time {instant} NOT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_account_session_token ON account_session (token_hash);
CREATE INDEX IF NOT EXISTS ix_account_session_account ON account_session (account_id, id);
CREATE INDEX IF NOT EXISTS ix_account_session_expire ON account_session (expire_time, id);
CREATE TABLE IF NOT EXISTS account_login_failure (
  bucket VARCHAR(16) NOT NULL PRIMARY KEY,
  failures BIGINT NOT NULL DEFAULT 0,
  last_time {instant} NOT NULL,
  blocked_until {instant} NULL
) {table_options};
CREATE TABLE IF NOT EXISTS account_audit (
  id {id},
  request_id VARCHAR(64) NOT NULL,
  account_id BIGINT NULL,
  login VARCHAR(64) NOT NULL DEFAULT '',
  role VARCHAR(16) NOT NULL DEFAULT '',
  address VARCHAR(64) NOT NULL DEFAULT '',
  action VARCHAR(64) NOT NULL,
  subject VARCHAR(191) NOT NULL DEFAULT '',
  reason VARCHAR(1000) NOT NULL DEFAULT '',
  outcome VARCHAR(16) NOT NULL CHECK (outcome IN ('ASKED', 'DONE', 'REFUSED', 'FAILED')),
  detail VARCHAR(1000) NOT NULL DEFAULT '',
  create_time {instant} NOT NULL
) {table_options};
CREATE INDEX IF NOT EXISTS ix_account_audit_account ON account_audit (account_id, id);
CREATE INDEX IF NOT EXISTS ix_account_audit_subject ON account_audit (subject, id);
