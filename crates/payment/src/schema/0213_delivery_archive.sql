CREATE TABLE IF NOT EXISTS fi_resident_income_payment_external_log_archive (
  log_id BIGINT NOT NULL PRIMARY KEY,
  request_body {json} NULL,
  response_body {json} NULL,
  archived_time {instant} NOT NULL
) {table_options};
