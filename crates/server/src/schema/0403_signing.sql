CREATE TABLE IF NOT EXISTS signing_nonce (
  id {id},
  app_key VARCHAR(64) NOT NULL,
  nonce VARCHAR(128) NOT NULL,
  keep_until {instant} NOT NULL,
  {standard_columns},
  CONSTRAINT uk_signing_nonce UNIQUE (app_key, nonce)
) {table_options};

CREATE INDEX IF NOT EXISTS ix_signing_nonce_keep_until ON signing_nonce (keep_until);
