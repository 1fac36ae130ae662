CREATE TABLE IF NOT EXISTS fi_resident_income_payment_order (
  id {id},
  order_no VARCHAR(64) NULL,
  status SMALLINT NOT NULL DEFAULT 10 CHECK (status IN (10, 20, 30, 40, 50, 55, 90)),
  business_status VARCHAR(32) NULL DEFAULT 'DRAFT',
  current_publish_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  build_status VARCHAR(16) NULL
    CHECK (build_status IN ('BUILDING', 'BUILT', 'PUBLISHED', 'BUILD_FAILED')),
  review_plan_id BIGINT NULL,
  audit_plan_status VARCHAR(16) NULL
    CHECK (audit_plan_status IN ('CREATING', 'CREATED', 'CREATE_FAILED')),
  payment_type VARCHAR(16) NULL CHECK (payment_type IN ('TREASURY', 'OFFLINE')),
  push_status VARCHAR(16) NULL CHECK (push_status IN
    ('NOT_PUSHED', 'PUSHING', 'PUSHED', 'PUSH_PARTIAL', 'PUSH_FAILED')),
  review_finish_time {instant} NULL,
  total_amount BIGINT NOT NULL DEFAULT 0,
  payable_count BIGINT NOT NULL DEFAULT 0,
  unqualified_count BIGINT NOT NULL DEFAULT 0,
  create_user_id BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_order_no ON fi_resident_income_payment_order (order_no);
CREATE INDEX IF NOT EXISTS ix_order_status ON fi_resident_income_payment_order (status, id);
CREATE INDEX IF NOT EXISTS ix_order_creator
  ON fi_resident_income_payment_order (create_user_id, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_order_version (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  session_id BIGINT NOT NULL DEFAULT 0,
  mode VARCHAR(16) NOT NULL DEFAULT 'NEW' CHECK (mode IN ('NEW', 'REVISE')),
  source_data_version INT NOT NULL DEFAULT 0,
  target_data_version INT NOT NULL DEFAULT 0,
  source_submit_round INT NOT NULL DEFAULT 0,
  target_submit_round INT NOT NULL DEFAULT 0,
  submit_attempt INT NOT NULL DEFAULT 0,
  version_build_status VARCHAR(16) NOT NULL DEFAULT 'BUILDING'
    CHECK (version_build_status IN ('BUILDING', 'BUILT', 'PUBLISHED', 'BUILD_FAILED')),
  audit_plan_status VARCHAR(16) NULL
    CHECK (audit_plan_status IN ('CREATING', 'CREATED', 'CREATE_FAILED')),
  publish_time {instant} NULL,
  error_code VARCHAR(64) NULL,
  error_message VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_order_version_data
  ON fi_resident_income_payment_order_version (payment_order_id, target_data_version);
CREATE INDEX IF NOT EXISTS ix_order_version_session
  ON fi_resident_income_payment_order_version (session_id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_order_bill (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  line_type SMALLINT NOT NULL DEFAULT 10,
  line_status SMALLINT NOT NULL DEFAULT 10 CHECK (line_status IN (10, 20, 30, 40, 50)),
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  diff_id BIGINT NULL,
  small_bill_id BIGINT NULL,
  partner_bill_id BIGINT NULL,
  source_order_bill_id BIGINT NULL,
  pre_rent BIGINT NULL,
  pay_amount BIGINT NULL,
  unqualified_reason VARCHAR(255) NULL,
  before_payment_status SMALLINT NULL,
  before_partner_query_status SMALLINT NULL,
  unqualified_effective_time {instant} NULL,
  project_company_id BIGINT NULL,
  partner_id BIGINT NULL,
  payee_name VARCHAR(128) NULL,
  payee_account VARCHAR(64) NULL,
  payee_bank VARCHAR(128) NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_order_bill_walk ON fi_resident_income_payment_order_bill
  (payment_order_id, data_version, submit_round, line_type, id);
CREATE INDEX IF NOT EXISTS ix_order_bill_source ON fi_resident_income_payment_order_bill
  (payment_order_id, data_version, source_order_bill_id);
CREATE INDEX IF NOT EXISTS ix_order_bill_bill ON fi_resident_income_payment_order_bill
  (station_id, bill_yearmonth, id);
CREATE INDEX IF NOT EXISTS ix_order_bill_revised ON fi_resident_income_payment_order_bill
  (source_order_bill_id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_bill_lock (
  id {id},
  lock_key VARCHAR(128) NOT NULL,
  lock_status VARCHAR(16) NOT NULL DEFAULT 'RESERVED'
    CHECK (lock_status IN ('RESERVED', 'ACTIVE', 'RELEASED')),
  lock_scene VARCHAR(32) NULL DEFAULT 'BUILD_RESERVE',
  lock_origin VARCHAR(32) NULL,
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  order_bill_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  session_id BIGINT NOT NULL DEFAULT 0,
  submit_attempt INT NOT NULL DEFAULT 0,
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  diff_id BIGINT NULL,
  small_bill_id BIGINT NULL,
  partner_bill_id BIGINT NULL,
  source_payment_status SMALLINT NULL,
  source_partner_query_status SMALLINT NULL,
  release_time {instant} NULL,
  release_reason VARCHAR(64) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_lock_key ON fi_resident_income_payment_bill_lock (lock_key);
CREATE INDEX IF NOT EXISTS ix_bill_lock_walk ON fi_resident_income_payment_bill_lock
  (payment_order_id, session_id, submit_attempt, data_version, lock_status, id);
CREATE INDEX IF NOT EXISTS ix_bill_lock_version ON fi_resident_income_payment_bill_lock
  (payment_order_id, data_version, submit_round, lock_status, id);
CREATE INDEX IF NOT EXISTS ix_bill_lock_line ON fi_resident_income_payment_bill_lock
  (order_bill_id);
CREATE INDEX IF NOT EXISTS ix_bill_lock_bill ON fi_resident_income_payment_bill_lock
  (station_id, bill_yearmonth, id);
CREATE INDEX IF NOT EXISTS ix_bill_lock_difference ON fi_resident_income_payment_bill_lock
  (diff_id);
CREATE INDEX IF NOT EXISTS ix_bill_lock_small_bill ON fi_resident_income_payment_bill_lock
  (small_bill_id);
CREATE INDEX IF NOT EXISTS ix_bill_lock_partner_bill ON fi_resident_income_payment_bill_lock
  (partner_bill_id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_order_approval_instance (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  approval_attempt INT NOT NULL DEFAULT 0,
  review_plan_id BIGINT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  approval_status VARCHAR(16) NOT NULL DEFAULT 'IN_REVIEW'
    CHECK (approval_status IN ('IN_REVIEW', 'APPROVED', 'REJECTED')),
  finish_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_approval_instance
  ON fi_resident_income_payment_order_approval_instance
  (payment_order_id, data_version, approval_attempt, review_plan_id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_order_log (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  operation_type VARCHAR(32) NOT NULL DEFAULT '',
  from_status SMALLINT NULL,
  to_status SMALLINT NULL,
  operation_time {instant} NULL,
  operation_remark VARCHAR(1000) NULL,
  review_plan_id BIGINT NULL,
  data_version INT NULL,
  payable_count BIGINT NULL,
  unqualified_count BIGINT NULL,
  operator_user_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_order_log_order
  ON fi_resident_income_payment_order_log (payment_order_id, id);
CREATE TABLE IF NOT EXISTS fi_resident_income_payment_order_project_payment (
  id {id},
  payment_order_id BIGINT NOT NULL DEFAULT 0,
  data_version INT NOT NULL DEFAULT 0,
  submit_round INT NOT NULL DEFAULT 0,
  project_company_id BIGINT NOT NULL DEFAULT 0,
  payment_status VARCHAR(32) NOT NULL DEFAULT 'WAIT_PAYMENT',
  payer_account VARCHAR(64) NULL,
  amount BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_project_payment
  ON fi_resident_income_payment_order_project_payment
  (payment_order_id, data_version, submit_round, project_company_id);
