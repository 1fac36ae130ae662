CREATE TABLE IF NOT EXISTS fi_async_task (
  id {id},
  task_code VARCHAR(64) NOT NULL,
  task_type VARCHAR(64) NOT NULL,
  business_key VARCHAR(255) NOT NULL DEFAULT '',
  task_data {json} NULL,
  task_status SMALLINT NOT NULL DEFAULT 0 CHECK (task_status IN (0, 1, 2, 3, 4)),
  retry_count INT NULL DEFAULT 0,
  max_retry_count INT NULL DEFAULT 3,
  next_execute_time {instant} NULL,
  running_attempt BIGINT NULL DEFAULT 0,
  lost_attempts INT NOT NULL DEFAULT 0,
  error_message VARCHAR(1000) NULL,
  update_user_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_async_task_code ON fi_async_task (task_code);
CREATE INDEX IF NOT EXISTS ix_async_task_due
  ON fi_async_task (task_type, task_status, next_execute_time {nulls_first}, retry_count {nulls_first}, id);
CREATE INDEX IF NOT EXISTS ix_async_task_key ON fi_async_task (business_key);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_async_operation_log (
  id {id},
  task_id BIGINT NOT NULL DEFAULT 0,
  task_code VARCHAR(64) NOT NULL DEFAULT '',
  task_type VARCHAR(64) NOT NULL DEFAULT '',
  business_key VARCHAR(255) NOT NULL DEFAULT '',
  action VARCHAR(32) NOT NULL DEFAULT '',
  source_task_code VARCHAR(64) NULL,
  payment_order_id BIGINT NULL,
  payment_order_version_id BIGINT NULL,
  data_version BIGINT NULL,
  submit_round BIGINT NULL,
  result VARCHAR(32) NOT NULL DEFAULT '',
  detail {json} NULL,
  operator_user_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_operation_log_once
  ON fi_resident_income_payment_async_operation_log (task_code, action, source_task_code);
CREATE INDEX IF NOT EXISTS ix_operation_log_order
  ON fi_resident_income_payment_async_operation_log (payment_order_id, id);
