CREATE TABLE IF NOT EXISTS fi_monthly_income_difference (
  id {id},
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  payment_status SMALLINT NOT NULL DEFAULT 20
    CHECK (payment_status IN (10, 20, 30, 40, 50, 60)),
  paid_amount BIGINT NOT NULL DEFAULT 0,
  cumulative_paid_amount BIGINT NOT NULL DEFAULT 0,
  locked_payment_order_id BIGINT NULL,
  locked_order_bill_id BIGINT NULL,
  payment_status_update_time {instant} NULL,
  pre_rent BIGINT NULL,
  contract_rent BIGINT NULL,
  actual_rent BIGINT NULL,
  financial_version BIGINT NOT NULL DEFAULT 0,
  partner_query_status SMALLINT NOT NULL DEFAULT 10
    CHECK (partner_query_status IN (10, 20, 30)),
  unqualified_flag SMALLINT NOT NULL DEFAULT 0,
  unqualified_reason VARCHAR(255) NULL,
  check_result VARCHAR(255) NULL,
  check_time {instant} NULL,
  partner_id BIGINT NULL,
  project_company_id BIGINT NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_difference_bill
  ON fi_monthly_income_difference (station_id, bill_yearmonth, id);
CREATE INDEX IF NOT EXISTS ix_difference_month
  ON fi_monthly_income_difference (bill_yearmonth, id);
CREATE TABLE IF NOT EXISTS fi_customer_bill (
  id {id},
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  payment_status SMALLINT NOT NULL DEFAULT 20
    CHECK (payment_status IN (10, 20, 30, 40, 50, 60)),
  paid_amount BIGINT NOT NULL DEFAULT 0,
  cumulative_paid_amount BIGINT NOT NULL DEFAULT 0,
  locked_payment_order_id BIGINT NULL,
  locked_order_bill_id BIGINT NULL,
  payment_status_update_time {instant} NULL,
  amount BIGINT NOT NULL DEFAULT 0,
  customer_account_id BIGINT NULL,
  pushed_flag SMALLINT NOT NULL DEFAULT 1,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_customer_bill_bill
  ON fi_customer_bill (station_id, bill_yearmonth, id);
CREATE TABLE IF NOT EXISTS fi_customer_bill_partner (
  id {id},
  station_id VARCHAR(64) NOT NULL DEFAULT '',
  bill_yearmonth CHAR(6) NOT NULL DEFAULT '',
  payment_status SMALLINT NOT NULL DEFAULT 20
    CHECK (payment_status IN (10, 20, 30, 40, 50, 60)),
  paid_amount BIGINT NOT NULL DEFAULT 0,
  cumulative_paid_amount BIGINT NOT NULL DEFAULT 0,
  locked_payment_order_id BIGINT NULL,
  locked_order_bill_id BIGINT NULL,
  payment_status_update_time {instant} NULL,
  amount BIGINT NOT NULL DEFAULT 0,
  partner_id BIGINT NULL,
  partner_account_id BIGINT NULL,
  partner_query_status SMALLINT NOT NULL DEFAULT 10
    CHECK (partner_query_status IN (10, 20, 30)),
  unqualified_flag SMALLINT NOT NULL DEFAULT 0,
  unqualified_reason VARCHAR(255) NULL,
  last_unqualified_order_bill_id BIGINT NULL,
  check_result VARCHAR(255) NULL,
  check_time {instant} NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_partner_bill_bill
  ON fi_customer_bill_partner (station_id, bill_yearmonth, id);
CREATE TABLE IF NOT EXISTS fi_customer_account (
  id {id},
  customer_id VARCHAR(64) NOT NULL DEFAULT '',
  holder_name VARCHAR(128) NOT NULL DEFAULT '',
  account_no VARCHAR(64) NOT NULL DEFAULT '',
  bank_name VARCHAR(128) NOT NULL DEFAULT '',
  bank_code VARCHAR(32) NOT NULL DEFAULT '',
  status SMALLINT NOT NULL DEFAULT 1,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_customer_account_no ON fi_customer_account (account_no, id);
CREATE TABLE IF NOT EXISTS fi_customer_account_partner (
  id {id},
  partner_id BIGINT NULL,
  holder_name VARCHAR(128) NOT NULL DEFAULT '',
  account_no VARCHAR(64) NOT NULL DEFAULT '',
  bank_name VARCHAR(128) NOT NULL DEFAULT '',
  bank_code VARCHAR(32) NOT NULL DEFAULT '',
  status SMALLINT NOT NULL DEFAULT 1,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_partner_account_partner
  ON fi_customer_account_partner (partner_id, id);
CREATE TABLE IF NOT EXISTS sys_partner (
  id {id},
  name VARCHAR(128) NOT NULL DEFAULT '',
  partner_no VARCHAR(64) NOT NULL DEFAULT '',
  org_code VARCHAR(64) NOT NULL DEFAULT '',
  manager_a_user_id BIGINT NULL,
  manager_b_user_id BIGINT NULL,
  retry_policy VARCHAR(16) NOT NULL DEFAULT 'definite'
    CHECK (retry_policy IN ('never', 'definite', 'idempotent')),
  endpoint VARCHAR(255) NULL,
  key_id VARCHAR(64) NULL,
  split_rule VARCHAR(32) NOT NULL DEFAULT 'NONE',
  {standard_columns}
) {table_options};
CREATE TABLE IF NOT EXISTS sys_project_company (
  id {id},
  name VARCHAR(128) NOT NULL DEFAULT '',
  asset_manager_code VARCHAR(64) NULL,
  payer_account VARCHAR(64) NULL,
  organisation VARCHAR(64) NOT NULL DEFAULT '',
  epctenantid VARCHAR(64) NOT NULL DEFAULT '',
  {standard_columns}
) {table_options};
CREATE TABLE IF NOT EXISTS sys_dict (
  id {id},
  dict_type VARCHAR(64) NOT NULL DEFAULT '',
  dict_key VARCHAR(64) NOT NULL DEFAULT '',
  dict_value VARCHAR(255) NOT NULL DEFAULT '',
  status SMALLINT NOT NULL DEFAULT 1,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_dict_key ON sys_dict (dict_type, dict_key);
CREATE TABLE IF NOT EXISTS month_close (
  id {id},
  bill_yearmonth CHAR(6) NOT NULL,
  closed_by BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_month_close ON month_close (bill_yearmonth);
