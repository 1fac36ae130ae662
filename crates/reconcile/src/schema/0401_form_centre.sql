CREATE TABLE IF NOT EXISTS form (
  id {id},
  form_uuid VARCHAR(64) NOT NULL,
  name VARCHAR(255) NOT NULL DEFAULT '',
  current_version INT NOT NULL DEFAULT 1,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_form ON form (form_uuid);
CREATE TABLE IF NOT EXISTS answer (
  id {id},
  uuid VARCHAR(32) NOT NULL,
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  sch_id VARCHAR(64) NOT NULL DEFAULT '',
  revision BIGINT NOT NULL DEFAULT 0,
  version INT NOT NULL DEFAULT 1,
  seq_no BIGINT NOT NULL DEFAULT 0,
  values_json {json} NULL,
  is_deleted SMALLINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_answer ON answer (uuid);
CREATE INDEX IF NOT EXISTS ix_answer_form ON answer (form_uuid, sch_id, uuid);
CREATE INDEX IF NOT EXISTS ix_answer_seq ON answer (form_uuid, sch_id, seq_no);
CREATE TABLE IF NOT EXISTS form_consumer_grant (
  id {id},
  app_key VARCHAR(64) NOT NULL DEFAULT '',
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  sch_id VARCHAR(64) NOT NULL DEFAULT '',
  enabled SMALLINT NOT NULL DEFAULT 0,
  subscribe_allowed SMALLINT NOT NULL DEFAULT 0,
  read_allowed SMALLINT NOT NULL DEFAULT 0,
  epoch BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_form_consumer_grant
  ON form_consumer_grant (app_key, form_uuid, sch_id);
CREATE INDEX IF NOT EXISTS ix_form_consumer_grant_form ON form_consumer_grant (form_uuid, sch_id);
CREATE TABLE IF NOT EXISTS app_school_scope (
  id {id},
  app_key VARCHAR(64) NOT NULL DEFAULT '',
  sch_id VARCHAR(64) NOT NULL DEFAULT '',
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_app_school_scope ON app_school_scope (app_key, sch_id);
CREATE TABLE IF NOT EXISTS answer_delivery (
  id {id},
  delivery_id VARCHAR(64) NOT NULL,
  answer_uuid VARCHAR(32) NOT NULL DEFAULT '',
  revision BIGINT NOT NULL DEFAULT 0,
  consumer_app_key VARCHAR(64) NOT NULL DEFAULT '',
  sch_id VARCHAR(64) NOT NULL DEFAULT '',
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  state VARCHAR(16) NOT NULL DEFAULT 'PENDING',
  attempts INT NOT NULL DEFAULT 0,
  next_attempt_time {instant} NULL,
  last_error VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_answer_delivery ON answer_delivery (delivery_id);
CREATE INDEX IF NOT EXISTS ix_answer_delivery_state ON answer_delivery (state, next_attempt_time, id);
CREATE TABLE IF NOT EXISTS answer_reconcile_task (
  id {id},
  task_id VARCHAR(36) NOT NULL,
  schedule_key VARCHAR(191) NULL,
  trigger_type VARCHAR(16) NOT NULL DEFAULT 'MANUAL',
  scope VARCHAR(16) NOT NULL DEFAULT 'FORM',
  answer_uuid VARCHAR(32) NULL,
  consumer_app_key VARCHAR(64) NOT NULL DEFAULT '',
  consumer_school_id VARCHAR(64) NOT NULL DEFAULT '',
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  grant_epoch BIGINT NOT NULL DEFAULT 0,
  window_start {instant} NOT NULL DEFAULT {now},
  state VARCHAR(16) NOT NULL DEFAULT 'QUEUED',
  reason_code VARCHAR(64) NULL,
  reason VARCHAR(1000) NULL,
  attempt INT NOT NULL DEFAULT 0,
  next_dispatch_at {instant} NULL,
  lease_until {instant} NULL,
  active_consumer_key VARCHAR(191) NULL,
  manifest_state VARCHAR(16) NOT NULL DEFAULT 'PENDING',
  manifest_complete SMALLINT NOT NULL DEFAULT 0,
  total_rows BIGINT NOT NULL DEFAULT 0,
  total_pages BIGINT NOT NULL DEFAULT 0,
  counts {json} NULL,
  finished_at {instant} NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_reconcile_task ON answer_reconcile_task (task_id);
CREATE UNIQUE INDEX IF NOT EXISTS uk_reconcile_task_schedule ON answer_reconcile_task (schedule_key);
CREATE UNIQUE INDEX IF NOT EXISTS uk_reconcile_task_active
  ON answer_reconcile_task (active_consumer_key);
CREATE INDEX IF NOT EXISTS ix_reconcile_task_state
  ON answer_reconcile_task (state, manifest_complete, next_dispatch_at, id);
CREATE INDEX IF NOT EXISTS ix_reconcile_task_coordinate
  ON answer_reconcile_task (consumer_app_key, consumer_school_id, form_uuid, id);
CREATE TABLE IF NOT EXISTS answer_reconcile_manifest_row (
  id {id},
  task_id VARCHAR(36) NOT NULL,
  answer_uuid VARCHAR(32) NOT NULL,
  revision BIGINT NOT NULL DEFAULT 0,
  content_hash VARCHAR(64) NOT NULL DEFAULT '',
  is_deleted SMALLINT NOT NULL DEFAULT 0,
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  form_version INT NOT NULL DEFAULT 0,
  seq_no BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_manifest_row
  ON answer_reconcile_manifest_row (task_id, answer_uuid);
CREATE TABLE IF NOT EXISTS answer_reconcile_result (
  id {id},
  task_id VARCHAR(36) NOT NULL,
  attempt INT NOT NULL DEFAULT 0,
  state VARCHAR(16) NOT NULL DEFAULT '',
  counts {json} NULL,
  errors {json} NULL,
  local_completed SMALLINT NOT NULL DEFAULT 0,
  manifest_complete SMALLINT NOT NULL DEFAULT 0,
  received_at {instant} NOT NULL DEFAULT {now},
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_result_attempt ON answer_reconcile_result (task_id, attempt);
CREATE TABLE IF NOT EXISTS answer_op_log (
  id {id},
  action VARCHAR(32) NOT NULL DEFAULT '',
  answer_uuid VARCHAR(32) NULL,
  revision BIGINT NULL,
  form_uuid VARCHAR(64) NULL,
  sch_id VARCHAR(64) NULL,
  actor VARCHAR(128) NOT NULL DEFAULT '',
  detail VARCHAR(1000) NULL,
  {standard_columns}
) {table_options};
CREATE INDEX IF NOT EXISTS ix_answer_op_log ON answer_op_log (answer_uuid, id);
