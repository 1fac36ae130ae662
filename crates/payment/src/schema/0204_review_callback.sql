CREATE TABLE IF NOT EXISTS fi_resident_income_payment_review_callback_progress (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  review_plan_id BIGINT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  approval_attempt INT NOT NULL DEFAULT 0,
  async_task_id BIGINT NULL,
  phase VARCHAR(16) NOT NULL DEFAULT 'PREPARE' CHECK (phase IN
    ('PREPARE', 'BILL_UPDATE', 'FINALIZE', 'LOCK_RELEASE', 'REFRESH_SHARD', 'DONE')),
  phase_status VARCHAR(16) NOT NULL DEFAULT 'SUCCESS'
    CHECK (phase_status IN ('INIT', 'RUNNING', 'FAILED', 'SUCCESS')),
  main_task_status VARCHAR(16) NOT NULL DEFAULT 'RUNNING'
    CHECK (main_task_status IN ('RUNNING', 'SUCCESS', 'SUPERSEDED')),
  target_order_status SMALLINT NOT NULL DEFAULT 40 CHECK (target_order_status IN (40, 55)),
  target_business_status VARCHAR(32) NULL,
  review_time {instant} NULL,
  review_remark VARCHAR(1000) NULL,
  total_count BIGINT NOT NULL DEFAULT 0,
  payable_count BIGINT NOT NULL DEFAULT 0,
  unqualified_count BIGINT NOT NULL DEFAULT 0,
  payable_updated_count BIGINT NOT NULL DEFAULT 0,
  unqualified_updated_count BIGINT NOT NULL DEFAULT 0,
  payable_cursor_id BIGINT NOT NULL DEFAULT 0,
  unqualified_cursor_id BIGINT NOT NULL DEFAULT 0,
  lock_cursor_id BIGINT NOT NULL DEFAULT 0,
  lock_release_expected BIGINT NOT NULL DEFAULT 0,
  lock_release_success BIGINT NOT NULL DEFAULT 0,
  shard_expected BIGINT NOT NULL DEFAULT 0,
  shard_success BIGINT NOT NULL DEFAULT 0,
  refresh_ready SMALLINT NOT NULL DEFAULT 0 CHECK (refresh_ready IN (0, 1)),
  batch_size INT NULL DEFAULT 1000,
  worker_id VARCHAR(128) NULL,
  running_attempt BIGINT NOT NULL DEFAULT 0,
  lease_expire_time {instant} NULL,
  heartbeat_time {instant} NULL,
  retry_count BIGINT NOT NULL DEFAULT 0,
  next_retry_time {instant} NULL,
  last_error_code VARCHAR(64) NULL,
  last_error_message VARCHAR(1000) NULL,
  finalize_time {instant} NULL,
  done_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_callback_progress
  ON fi_resident_income_payment_review_callback_progress
  (payment_order_id, data_version, review_plan_id, submit_round, approval_attempt);
CREATE INDEX IF NOT EXISTS ix_callback_progress_due
  ON fi_resident_income_payment_review_callback_progress
  (main_task_status, phase, phase_status, update_time);
CREATE INDEX IF NOT EXISTS ix_callback_progress_task
  ON fi_resident_income_payment_review_callback_progress (async_task_id);
CREATE TABLE IF NOT EXISTS payment_recheck_violation (
  id {id},
  progress_id BIGINT NOT NULL DEFAULT 0,
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  order_bill_id BIGINT NOT NULL DEFAULT 0,
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  violation_code VARCHAR(64) NOT NULL DEFAULT '',
  detail VARCHAR(255) NOT NULL DEFAULT '',
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_recheck_violation
  ON payment_recheck_violation (progress_id, order_bill_id, violation_code);
CREATE TABLE IF NOT EXISTS review_callback_evidence (
  id {id},
  task_code VARCHAR(64) NOT NULL,
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  app_key VARCHAR(64) NOT NULL DEFAULT '',
  received_body {json} NULL,
  body_sha256 CHAR(64) NOT NULL DEFAULT '',
  signature_verdict VARCHAR(32) NOT NULL DEFAULT '',
  received_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_callback_evidence_order
  ON review_callback_evidence (payment_order_id, id);
CREATE UNIQUE INDEX IF NOT EXISTS uk_callback_evidence
  ON review_callback_evidence (task_code, body_sha256);
