CREATE TABLE IF NOT EXISTS fi_resident_income_payment_external_log (
  id {id},
  idempotency_key VARCHAR(191) NOT NULL,
  log_type VARCHAR(64) NOT NULL DEFAULT '',
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  partner_id BIGINT NULL,
  chunk_no BIGINT NOT NULL DEFAULT 0,
  chunk_count BIGINT NOT NULL DEFAULT 0,
  request_body {json} NULL,
  response_body {json} NULL,
  status VARCHAR(16) NOT NULL DEFAULT 'WAIT_PROCESS'
    CHECK (status IN ('WAIT_PROCESS', 'SUCCESS', 'FAIL', 'UNKNOWN', 'SKIPPED')),
  attempt_count BIGINT NOT NULL DEFAULT 0,
  last_error VARCHAR(1000) NULL,
  http_status INT NULL,
  sent_time {instant} NULL,
  progress_id BIGINT NOT NULL DEFAULT 0,
  line_count BIGINT NOT NULL DEFAULT 0,
  last_line_id BIGINT NOT NULL DEFAULT 0,
  operator_user_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_external_log_key
  ON fi_resident_income_payment_external_log (idempotency_key);
CREATE INDEX IF NOT EXISTS ix_external_log_order
  ON fi_resident_income_payment_external_log (payment_order_id, data_version, submit_round, id);
CREATE INDEX IF NOT EXISTS ix_external_log_status
  ON fi_resident_income_payment_external_log (status, id);
CREATE INDEX IF NOT EXISTS ix_external_log_chunk ON fi_resident_income_payment_external_log
  (payment_order_id, data_version, submit_round, log_type, partner_id, chunk_no);
CREATE INDEX IF NOT EXISTS ix_order_bill_partner ON fi_resident_income_payment_order_bill
  (payment_order_id, data_version, submit_round, partner_id, id);
CREATE TABLE IF NOT EXISTS partner_key (
  id {id},
  partner_id BIGINT NOT NULL,
  key_id VARCHAR(64) NOT NULL,
  suite VARCHAR(16) NOT NULL DEFAULT 'jose' CHECK (suite IN ('jose', 'gm')),
  signing_secret_ref VARCHAR(255) NOT NULL DEFAULT '',
  encryption_key_ref VARCHAR(255) NOT NULL DEFAULT '',
  valid_from {instant} NULL,
  retired_time {instant} NULL,
  added_by BIGINT NOT NULL DEFAULT 0,
  retired_by BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_partner_key ON partner_key (partner_id, key_id);
CREATE TABLE IF NOT EXISTS partner_received (
  id {id},
  idempotency_key VARCHAR(191) NOT NULL,
  partner_id BIGINT NOT NULL DEFAULT 0,
  body {json} NULL,
  received_count BIGINT NOT NULL DEFAULT 1,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_partner_received ON partner_received (idempotency_key);
