CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_batch (
  id {id},
  batch_no VARCHAR(64) NOT NULL,
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  project_company_id BIGINT NOT NULL DEFAULT 0,
  split_key VARCHAR(128) NOT NULL DEFAULT '',
  status VARCHAR(32) NOT NULL DEFAULT 'WAIT_PUSH' CHECK (status IN
    ('WAIT_PUSH', 'PUSHING', 'PUSH_SUCCESS', 'PUSH_PARTIAL_SUCCESS', 'WAIT_DATA_FIX',
     'PUSH_FAIL')),
  total_amount BIGINT NOT NULL DEFAULT 0,
  detail_count BIGINT NOT NULL DEFAULT 0,
  push_count INT NOT NULL DEFAULT 0,
  next_handle_time {instant} NULL,
  strategy VARCHAR(64) NOT NULL DEFAULT 'iso20022-pain001',
  external_ref VARCHAR(128) NULL,
  error_message VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_batch_no
  ON fi_resident_income_payment_push_batch (batch_no);
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_batch_split
  ON fi_resident_income_payment_push_batch
  (payment_order_id, data_version, submit_round, project_company_id, split_key);
CREATE INDEX IF NOT EXISTS ix_push_batch_due
  ON fi_resident_income_payment_push_batch (status, next_handle_time, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_batch_detail (
  id {id},
  push_batch_id BIGINT NOT NULL DEFAULT 0,
  order_bill_id BIGINT NOT NULL,
  amount BIGINT NOT NULL DEFAULT 0,
  payee_name VARCHAR(128) NULL,
  payee_account VARCHAR(64) NULL,
  payee_bank VARCHAR(128) NULL,
  push_status VARCHAR(16) NOT NULL DEFAULT 'WAIT_PUSH'
    CHECK (push_status IN ('WAIT_PUSH', 'PUSHED', 'REJECTED', 'WAIT_DATA_FIX')),
  pay_status VARCHAR(16) NULL CHECK (pay_status IN ('PAYING', 'PAID', 'PAY_FAILED')),
  external_ref VARCHAR(128) NULL,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  paid_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_detail_line
  ON fi_resident_income_payment_push_batch_detail (order_bill_id);
CREATE INDEX IF NOT EXISTS ix_push_detail_batch
  ON fi_resident_income_payment_push_batch_detail (push_batch_id, id);
