CREATE TABLE IF NOT EXISTS selection_session (
  id {id},
  mode VARCHAR(16) NOT NULL DEFAULT 'NEW' CHECK (mode IN ('NEW', 'REVISE')),
  status VARCHAR(32) NOT NULL DEFAULT 'EDITING' CHECK (status IN
    ('EDITING', 'SUBMITTING', 'PUBLISHED_LOCK_SYNCING', 'COMPLETED', 'SUBMIT_FAILED')),
  creator_user_id BIGINT NOT NULL DEFAULT 0,
  target_payment_order_id BIGINT NULL,
  submit_attempt INT NOT NULL DEFAULT 0,
  active_submit_id BIGINT NULL,
  active_scope_key VARCHAR(128) NULL,
  active_revise_key VARCHAR(128) NULL,
  failure_phase VARCHAR(64) NULL,
  invalidated_flag SMALLINT NOT NULL DEFAULT 0,
  invalidated_reason VARCHAR(128) NULL,
  state_version BIGINT NOT NULL DEFAULT 0,
  heartbeat_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_session_scope ON selection_session (active_scope_key);
CREATE UNIQUE INDEX IF NOT EXISTS uk_session_revise ON selection_session (active_revise_key);
CREATE INDEX IF NOT EXISTS ix_session_status ON selection_session (status, id);
CREATE INDEX IF NOT EXISTS ix_session_order ON selection_session (target_payment_order_id, id);
CREATE TABLE IF NOT EXISTS selection_session_item (
  id {id},
  session_id BIGINT NOT NULL DEFAULT 0,
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  diff_id BIGINT NULL,
  small_bill_id BIGINT NULL,
  partner_bill_id BIGINT NULL,
  line_type SMALLINT NOT NULL DEFAULT 10 CHECK (line_type IN (10, 20)),
  unqualified_reason VARCHAR(255) NULL,
  source_order_bill_id BIGINT NULL,
  pre_rent BIGINT NULL,
  pay_amount BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_session_item_bill
  ON selection_session_item (session_id, station_id, bill_yearmonth);
CREATE INDEX IF NOT EXISTS ix_session_item_walk ON selection_session_item (session_id, id);
CREATE TABLE IF NOT EXISTS selection_submit_batch (
  id {id},
  payment_order_version_id BIGINT NOT NULL DEFAULT 0,
  session_id BIGINT NOT NULL DEFAULT 0,
  batch_phase VARCHAR(32) NOT NULL DEFAULT 'BUILD'
    CHECK (batch_phase IN ('BUILD', 'LOCK_ACTIVATE', 'LOCK_RELEASE')),
  batch_status VARCHAR(16) NOT NULL DEFAULT 'INIT'
    CHECK (batch_status IN ('INIT', 'RUNNING', 'FAILED', 'DONE')),
  batch_size INT NULL,
  worker_id VARCHAR(128) NULL,
  lease_version BIGINT NOT NULL DEFAULT 0,
  lease_expire_time {instant} NULL,
  heartbeat_time {instant} NULL,
  last_item_id BIGINT NOT NULL DEFAULT 0,
  processed_count BIGINT NOT NULL DEFAULT 0,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_submit_batch_phase
  ON selection_submit_batch (payment_order_version_id, batch_phase);
CREATE TABLE IF NOT EXISTS selection_conflict (
  id {id},
  payment_order_version_id BIGINT NOT NULL,
  station_id VARCHAR(64) NOT NULL,
  bill_yearmonth CHAR(6) NOT NULL,
  holder_lock_id BIGINT NOT NULL,
  holder_order_id BIGINT NOT NULL,
  holder_order_no VARCHAR(64) NULL,
  holder_lock_status VARCHAR(16) NOT NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_selection_conflict_version
  ON selection_conflict (payment_order_version_id, id);
