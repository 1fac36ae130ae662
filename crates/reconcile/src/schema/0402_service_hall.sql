CREATE TABLE IF NOT EXISTS fc_answer_projection (
  id {id},
  answer_uuid VARCHAR(32) NOT NULL,
  sch_id VARCHAR(64) NOT NULL DEFAULT '',
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  revision BIGINT NOT NULL DEFAULT 0,
  content_hash VARCHAR(64) NOT NULL DEFAULT '',
  is_deleted SMALLINT NOT NULL DEFAULT 0,
  form_version INT NOT NULL DEFAULT 0,
  values_json {json} NULL,
  projection_version BIGINT NOT NULL DEFAULT 0,
  last_event_id VARCHAR(64) NULL,
  conflict_detail VARCHAR(1000) NULL,
  biz_ext_json {json} NULL,
  apply_id VARCHAR(64) NULL,
  flow_guid VARCHAR(64) NULL,
  link_state VARCHAR(32) NULL,
  deleted SMALLINT NOT NULL DEFAULT 0 CHECK (deleted IN (0, 1)),
  create_time {instant} NULL DEFAULT {now},
  update_time {instant} NOT NULL DEFAULT {now}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_projection_answer
  ON fc_answer_projection (sch_id, form_uuid, answer_uuid);
CREATE TABLE IF NOT EXISTS fc_inbox (
  id {id},
  event_id VARCHAR(64) NOT NULL,
  answer_uuid VARCHAR(32) NOT NULL DEFAULT '',
  revision BIGINT NOT NULL DEFAULT 0,
  outcome VARCHAR(32) NULL,
  handled_at {instant} NOT NULL DEFAULT {now},
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_fc_inbox ON fc_inbox (event_id);
CREATE TABLE IF NOT EXISTS fc_apply_intent (
  id {id},
  answer_uuid VARCHAR(32) NOT NULL DEFAULT '',
  revision BIGINT NOT NULL DEFAULT 0,
  state VARCHAR(16) NOT NULL DEFAULT 'PENDING',
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_fc_apply_intent ON fc_apply_intent (answer_uuid, revision);
CREATE TABLE IF NOT EXISTS answer_reconcile_work (
  id {id},
  task_id VARCHAR(36) NOT NULL,
  attempt INT NOT NULL DEFAULT 1,
  consumer_app_key VARCHAR(64) NOT NULL DEFAULT '',
  consumer_school_id VARCHAR(64) NOT NULL DEFAULT '',
  form_uuid VARCHAR(64) NOT NULL DEFAULT '',
  scope VARCHAR(16) NOT NULL DEFAULT 'FORM',
  answer_uuid VARCHAR(32) NULL,
  grant_epoch BIGINT NOT NULL DEFAULT 0,
  window_start {instant} NOT NULL DEFAULT {now},
  state VARCHAR(16) NOT NULL DEFAULT 'QUEUED',
  result_state VARCHAR(16) NULL,
  "cursor" VARCHAR(32) NULL,
  manifest_completed SMALLINT NOT NULL DEFAULT 0,
  local_completed SMALLINT NOT NULL DEFAULT 0,
  counts {json} NULL,
  errors {json} NULL,
  extras {json} NULL,
  resumed_count INT NOT NULL DEFAULT 0,
  retry_count INT NOT NULL DEFAULT 0,
  next_attempt_time {instant} NULL,
  work_version BIGINT NOT NULL DEFAULT 0,
  worker_id VARCHAR(128) NULL,
  lease_expire_time {instant} NULL,
  heartbeat_time {instant} NULL,
  last_error VARCHAR(1000) NULL,
  last_error_code VARCHAR(64) NULL,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_reconcile_work_task ON answer_reconcile_work (task_id);
CREATE INDEX IF NOT EXISTS ix_reconcile_work_state
  ON answer_reconcile_work (state, next_attempt_time, id);
