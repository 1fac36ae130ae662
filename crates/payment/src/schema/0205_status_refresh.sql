CREATE TABLE IF NOT EXISTS fi_resident_income_payment_status_refresh_shard (
  id {id},
  source_type VARCHAR(32) NOT NULL DEFAULT 'REVIEW_APPROVED'
    CHECK (source_type IN ('REVIEW_APPROVED', 'PAYMENT_RESULT', 'MANUAL')),
  source_id BIGINT NOT NULL DEFAULT 0,
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  start_order_bill_id BIGINT NOT NULL DEFAULT 0,
  end_order_bill_id BIGINT NOT NULL DEFAULT 0,
  scope_count BIGINT NOT NULL DEFAULT 0,
  processed_scope_count BIGINT NOT NULL DEFAULT 0,
  scope_hash VARCHAR(64) NOT NULL DEFAULT '',
  scope_builder_version INT NOT NULL DEFAULT 1,
  cursor_order_bill_id BIGINT NOT NULL DEFAULT 0,
  task_status VARCHAR(16) NOT NULL DEFAULT 'PENDING'
    CHECK (task_status IN ('PENDING', 'RUNNING', 'FAILED', 'SUCCESS')),
  worker_id VARCHAR(128) NULL,
  running_attempt BIGINT NOT NULL DEFAULT 0,
  lease_expire_time {instant} NULL,
  heartbeat_time {instant} NULL,
  retry_count BIGINT NOT NULL DEFAULT 0,
  next_retry_time {instant} NULL,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_refresh_shard
  ON fi_resident_income_payment_status_refresh_shard
  (source_type, source_id, start_order_bill_id);
CREATE INDEX IF NOT EXISTS ix_refresh_shard_due
  ON fi_resident_income_payment_status_refresh_shard
  (source_type, task_status, update_time, id);
CREATE INDEX IF NOT EXISTS ix_refresh_shard_order
  ON fi_resident_income_payment_status_refresh_shard (payment_order_id, id);
CREATE TABLE IF NOT EXISTS status_refresh_turn (
  id {id},
  turn_name VARCHAR(32) NOT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_status_refresh_turn ON status_refresh_turn (turn_name);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_status_refresh_scope_guard (
  id {id},
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  holder VARCHAR(128) NULL,
  guard_version BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_scope_guard
  ON fi_resident_income_payment_status_refresh_scope_guard (station_id, bill_yearmonth);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_bill_dimension_snapshot (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  order_bill_id BIGINT NOT NULL DEFAULT 0,
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  pay_amount BIGINT NULL,
  payee_name VARCHAR(128) NULL,
  payee_account VARCHAR(64) NULL,
  payee_bank VARCHAR(128) NULL,
  payment_status SMALLINT NULL,
  finalize_time {instant} NULL,
  source_progress_id BIGINT NOT NULL DEFAULT 0,
  snapshot_version BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_bill_snapshot_line
  ON fi_resident_income_payment_bill_dimension_snapshot (order_bill_id);
CREATE INDEX IF NOT EXISTS ix_bill_snapshot_order
  ON fi_resident_income_payment_bill_dimension_snapshot (payment_order_id, data_version, id);
CREATE INDEX IF NOT EXISTS ix_bill_snapshot_bill
  ON fi_resident_income_payment_bill_dimension_snapshot (station_id, bill_yearmonth);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_snapshot_refresh_progress (
  id {id},
  async_task_id BIGINT NULL,
  progress_id BIGINT NOT NULL DEFAULT 0,
  shard_id BIGINT NOT NULL DEFAULT 0,
  cursor_order_bill_id BIGINT NOT NULL DEFAULT 0,
  processed_count BIGINT NOT NULL DEFAULT 0,
  status VARCHAR(16) NOT NULL DEFAULT 'INIT'
    CHECK (status IN ('INIT', 'RUNNING', 'FAILED', 'SUCCESS')),
  worker_id VARCHAR(128) NULL,
  running_attempt BIGINT NOT NULL DEFAULT 0,
  lease_expire_time {instant} NULL,
  heartbeat_time {instant} NULL,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_snapshot_progress
  ON fi_resident_income_payment_snapshot_refresh_progress (progress_id, shard_id);
