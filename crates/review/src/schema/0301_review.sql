CREATE TABLE IF NOT EXISTS review_config (
  id {id},
  type VARCHAR(64) NOT NULL DEFAULT '',
  node_code VARCHAR(64) NOT NULL DEFAULT 'SUBMIT',
  node_name VARCHAR(128) NOT NULL DEFAULT '',
  sort INT NOT NULL DEFAULT 0,
  role VARCHAR(64) NOT NULL DEFAULT '',
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_config ON review_config (type, node_code);
CREATE TABLE IF NOT EXISTS review_config_node (
  id {id},
  type VARCHAR(64) NOT NULL DEFAULT '',
  node_code VARCHAR(64) NOT NULL DEFAULT '',
  node_name VARCHAR(128) NOT NULL DEFAULT '',
  sort INT NOT NULL DEFAULT 0,
  role VARCHAR(64) NOT NULL DEFAULT '',
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_config_node ON review_config_node (type, node_code);
CREATE TABLE IF NOT EXISTS review_config_link (
  id {id},
  type VARCHAR(64) NOT NULL DEFAULT '',
  from_node_code VARCHAR(64) NOT NULL DEFAULT '',
  to_node_code VARCHAR(64) NOT NULL DEFAULT '',
  sort INT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_config_link
  ON review_config_link (type, from_node_code, to_node_code);
CREATE TABLE IF NOT EXISTS review_config_node_user (
  id {id},
  type VARCHAR(64) NOT NULL DEFAULT '',
  node_code VARCHAR(64) NOT NULL DEFAULT '',
  user_id BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_config_node_user
  ON review_config_node_user (type, node_code, user_id);
CREATE TABLE IF NOT EXISTS review_business_plan (
  id {id},
  from_id BIGINT NOT NULL DEFAULT 0,
  from_num VARCHAR(64) NOT NULL DEFAULT '',
  type VARCHAR(64) NOT NULL DEFAULT '',
  epctenantid VARCHAR(64) NOT NULL DEFAULT '',
  organisation VARCHAR(64) NOT NULL DEFAULT '',
  status VARCHAR(16) NOT NULL DEFAULT 'NO_START'
    CHECK (status IN ('NO_START', 'DOING', 'PASSED', 'REJECTED', 'WITHDRAWN')),
  active_key VARCHAR(191) NULL,
  submit_round INT NULL,
  data_version INT NULL,
  submitter BIGINT NULL,
  start_time {instant} NULL,
  finish_time {instant} NULL,
  finish_user_id BIGINT NULL,
  finish_remark VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_plan_active ON review_business_plan (active_key);
CREATE INDEX IF NOT EXISTS ix_review_plan_from
  ON review_business_plan (from_id, type, epctenantid, submit_round, data_version);
CREATE TABLE IF NOT EXISTS review_business_node (
  id {id},
  plan_id BIGINT NOT NULL DEFAULT 0,
  node_code VARCHAR(64) NOT NULL DEFAULT '',
  node_name VARCHAR(128) NOT NULL DEFAULT '',
  sort INT NOT NULL DEFAULT 0,
  role VARCHAR(64) NOT NULL DEFAULT '',
  status VARCHAR(16) NOT NULL DEFAULT 'WAITING'
    CHECK (status IN ('WAITING', 'DOING', 'PASSED', 'REJECTED', 'CLOSED')),
  submitter BIGINT NULL,
  decided_by BIGINT NULL,
  decide_time {instant} NULL,
  remark VARCHAR(1000) NULL,
  {standard_columns},
  CONSTRAINT ck_review_node_own_order CHECK (decided_by IS NULL OR decided_by <> submitter)
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_node_decider
  ON review_business_node (plan_id, decided_by);
CREATE INDEX IF NOT EXISTS ix_review_node_status ON review_business_node (status, id);
CREATE TABLE IF NOT EXISTS review_business_link (
  id {id},
  plan_id BIGINT NOT NULL DEFAULT 0,
  from_node_id BIGINT NULL,
  to_node_id BIGINT NULL,
  sort INT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_review_link_plan ON review_business_link (plan_id, sort, id);
CREATE TABLE IF NOT EXISTS review_business_node_user (
  id {id},
  node_id BIGINT NOT NULL DEFAULT 0,
  user_id BIGINT NOT NULL DEFAULT 0,
  decision VARCHAR(16) NULL,
  decide_time {instant} NULL,
  submitter BIGINT NULL,
  has_turn SMALLINT NOT NULL DEFAULT 0,
  {standard_columns},
  CONSTRAINT ck_review_node_user_own_order CHECK (decision IS NULL OR user_id <> submitter)
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_review_node_user
  ON review_business_node_user (node_id, user_id);
CREATE INDEX IF NOT EXISTS ix_review_node_user_turn
  ON review_business_node_user (user_id, has_turn, id);
CREATE TABLE IF NOT EXISTS review_business_log (
  id {id},
  plan_id BIGINT NOT NULL DEFAULT 0,
  node_id BIGINT NULL,
  action VARCHAR(32) NOT NULL DEFAULT '',
  from_status VARCHAR(16) NULL,
  to_status VARCHAR(16) NULL,
  operator_user_id BIGINT NULL,
  operation_time {instant} NULL,
  operation_remark VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_review_log_plan ON review_business_log (plan_id, id);
