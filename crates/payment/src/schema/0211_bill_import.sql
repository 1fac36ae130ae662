CREATE TABLE IF NOT EXISTS bill_import_turn (
  id {id},
  turn_name VARCHAR(32) NOT NULL,
  taken_count BIGINT NOT NULL DEFAULT 0,
  {standard_columns}
) {table_options};
CREATE UNIQUE INDEX IF NOT EXISTS uk_bill_import_turn ON bill_import_turn (turn_name);
CREATE INDEX IF NOT EXISTS ix_customer_account_customer
  ON fi_customer_account (customer_id, account_no, id);
