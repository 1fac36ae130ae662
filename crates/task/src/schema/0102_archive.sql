CREATE TABLE IF NOT EXISTS fi_async_task_archive (
  id BIGINT NOT NULL PRIMARY KEY,
  task_code VARCHAR(64) NOT NULL,
  task_type VARCHAR(64) NOT NULL,
  business_key VARCHAR(255) NOT NULL DEFAULT '',
  task_data {json} NULL,
  task_status SMALLINT NOT NULL CHECK (task_status IN (2, 4)),
  retry_count INT NULL,
  max_retry_count INT NULL,
  running_attempt BIGINT NULL,
  error_message VARCHAR(1000) NULL,
  update_user_id BIGINT NULL,
  create_time {instant} NOT NULL,
  update_time {instant} NOT NULL,
  archived_time {instant} NOT NULL
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_async_task_archive_code ON fi_async_task_archive (task_code);
CREATE INDEX IF NOT EXISTS ix_async_task_archive_key ON fi_async_task_archive (business_key);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_async_operation_log_archive (
  id BIGINT NOT NULL PRIMARY KEY,
  task_id BIGINT NOT NULL,
  task_code VARCHAR(64) NOT NULL,
  task_type VARCHAR(64) NOT NULL,
  business_key VARCHAR(255) NOT NULL,
  action VARCHAR(32) NOT NULL,
  source_task_code VARCHAR(64) NULL,
  payment_order_id BIGINT NULL,
  payment_order_version_id BIGINT NULL,
  data_version BIGINT NULL,
  submit_round BIGINT NULL,
  result VARCHAR(32) NOT NULL,
  detail {json} NULL,
  operator_user_id BIGINT NULL,
  create_time {instant} NOT NULL,
  archived_time {instant} NOT NULL
) {table_options};
CREATE INDEX IF NOT EXISTS ix_operation_log_archive_task
  ON fi_resident_income_payment_async_operation_log_archive (task_code, id);
CREATE INDEX IF NOT EXISTS ix_operation_log_archive_order
  ON fi_resident_income_payment_async_operation_log_archive (payment_order_id, id);
