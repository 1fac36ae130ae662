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
  group_key VARCHAR(128) NOT NULL DEFAULT '',
  part_no INT NOT NULL DEFAULT 1,
  filling SMALLINT NOT NULL DEFAULT 0,
  push_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_batch_no
  ON fi_resident_income_payment_push_batch (batch_no);
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_batch_split
  ON fi_resident_income_payment_push_batch
  (payment_order_id, data_version, submit_round, project_company_id, split_key);
CREATE INDEX IF NOT EXISTS ix_push_batch_filling
  ON fi_resident_income_payment_push_batch
  (payment_order_id, data_version, submit_round, filling, group_key);
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
  push_id BIGINT NULL,
  fixed_flag SMALLINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_detail_line
  ON fi_resident_income_payment_push_batch_detail (order_bill_id);
CREATE INDEX IF NOT EXISTS ix_push_detail_batch
  ON fi_resident_income_payment_push_batch_detail (push_batch_id, id);
CREATE INDEX IF NOT EXISTS ix_push_detail_push
  ON fi_resident_income_payment_push_batch_detail (push_id, push_status);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_build (
  id {id},
  payment_order_id BIGINT NOT NULL,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  build_status VARCHAR(16) NOT NULL DEFAULT 'BUILDING'
    CHECK (build_status IN ('BUILDING', 'DONE', 'ABANDONED')),
  strategy VARCHAR(64) NOT NULL DEFAULT 'iso20022-pain001',
  split_rules {json} NULL,
  cursor_order_bill_id BIGINT NOT NULL DEFAULT 0,
  line_count BIGINT NOT NULL DEFAULT 0,
  batch_count BIGINT NOT NULL DEFAULT 0,
  total_amount BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_build
  ON fi_resident_income_payment_push_build (payment_order_id, data_version, submit_round);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push (
  id {id},
  push_batch_id BIGINT NOT NULL,
  push_no INT NOT NULL,
  message_id VARCHAR(35) NOT NULL,
  strategy VARCHAR(64) NOT NULL DEFAULT '',
  push_state VARCHAR(16) NOT NULL DEFAULT 'SENDING'
    CHECK (push_state IN ('SENDING', 'UNKNOWN', 'ACCEPTED', 'REFUSED')),
  detail_count BIGINT NOT NULL DEFAULT 0,
  total_amount BIGINT NOT NULL DEFAULT 0,
  body {json} NULL,
  body_sha256 CHAR(64) NOT NULL DEFAULT '',
  send_count INT NOT NULL DEFAULT 1,
  lease_expire_time {instant} NULL,
  external_ref VARCHAR(128) NULL,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  settled_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_number
  ON fi_resident_income_payment_push (push_batch_id, push_no);
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_message
  ON fi_resident_income_payment_push (message_id);
CREATE INDEX IF NOT EXISTS ix_push_open
  ON fi_resident_income_payment_push (push_state, lease_expire_time, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_item (
  id {id},
  push_id BIGINT NOT NULL,
  push_batch_detail_id BIGINT NOT NULL,
  end_to_end_id VARCHAR(35) NOT NULL,
  amount BIGINT NOT NULL DEFAULT 0,
  payee_name VARCHAR(128) NULL,
  payee_account VARCHAR(64) NULL,
  payee_bank VARCHAR(128) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_item_reference
  ON fi_resident_income_payment_push_item (end_to_end_id);
CREATE INDEX IF NOT EXISTS ix_push_item_push
  ON fi_resident_income_payment_push_item (push_id, id);
CREATE INDEX IF NOT EXISTS ix_push_item_detail
  ON fi_resident_income_payment_push_item (push_batch_detail_id, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_result (
  id {id},
  report_id VARCHAR(128) NOT NULL,
  content_sha256 CHAR(64) NOT NULL DEFAULT '',
  source VARCHAR(32) NOT NULL DEFAULT '',
  push_id BIGINT NOT NULL DEFAULT 0,
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  group_status VARCHAR(16) NULL,
  entry_count BIGINT NOT NULL DEFAULT 0,
  changed_count BIGINT NOT NULL DEFAULT 0,
  refused_count BIGINT NOT NULL DEFAULT 0,
  operator_user_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_result
  ON fi_resident_income_payment_push_result (report_id);
CREATE INDEX IF NOT EXISTS ix_push_result_push
  ON fi_resident_income_payment_push_result (push_id, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_result_entry (
  id {id},
  push_result_id BIGINT NOT NULL,
  entry_no BIGINT NOT NULL,
  end_to_end_id VARCHAR(64) NOT NULL DEFAULT '',
  push_batch_detail_id BIGINT NULL,
  reported VARCHAR(16) NOT NULL DEFAULT '',
  reason_code VARCHAR(64) NULL,
  reason VARCHAR(255) NULL,
  amount BIGINT NULL,
  outcome VARCHAR(24) NOT NULL DEFAULT '',
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_push_result_entry
  ON fi_resident_income_payment_push_result_entry (push_result_id, entry_no);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_push_fix (
  id {id},
  push_batch_detail_id BIGINT NOT NULL,
  order_bill_id BIGINT NOT NULL DEFAULT 0,
  old_payee_name VARCHAR(128) NULL,
  old_payee_account VARCHAR(64) NULL,
  old_payee_bank VARCHAR(128) NULL,
  new_payee_name VARCHAR(128) NULL,
  new_payee_account VARCHAR(64) NULL,
  new_payee_bank VARCHAR(128) NULL,
  reason VARCHAR(1000) NOT NULL DEFAULT '',
  operator_user_id BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_push_fix_detail
  ON fi_resident_income_payment_push_fix (push_batch_detail_id, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_offline_payment (
  id {id},
  payment_order_id BIGINT NOT NULL,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  record_status VARCHAR(16) NOT NULL DEFAULT 'RECORDING'
    CHECK (record_status IN ('RECORDING', 'DONE')),
  evidence VARCHAR(1000) NOT NULL DEFAULT '',
  paid_time {instant} NULL,
  operator_user_id BIGINT NOT NULL DEFAULT 0,
  cursor_order_bill_id BIGINT NOT NULL DEFAULT 0,
  line_count BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_offline_payment
  ON fi_resident_income_payment_offline_payment (payment_order_id, data_version, submit_round);
