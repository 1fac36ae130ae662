//! The statements that write bills, a chunk of rows each. The updates carry the guard that the
//! bill is held by nobody, and count: an order that takes a bill meanwhile must win.
//! `:rows` are the rows as VALUES, `:json` the same rows as a JSON array of arrays.

use counterfoil_db::Text;

pub(super) const INSERT_ACCOUNTS: Text = Text::Same(
    "INSERT INTO fi_customer_account
       (customer_id, account_no, holder_name, bank_name, create_time, update_time)
     VALUES :rows",
);

pub(super) const UPDATE_ACCOUNTS: Text = Text::Forked {
    standard: "WITH fresh (id, holder_name, bank_name) AS (VALUES :rows)
     UPDATE fi_customer_account AS a
     SET holder_name = fresh.holder_name, bank_name = fresh.bank_name, update_time = :now
     FROM fresh WHERE a.id = fresh.id AND a.deleted = 0",
    mariadb: "UPDATE fi_customer_account a
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', holder_name VARCHAR(128) PATH '$[1]',
         bank_name VARCHAR(128) PATH '$[2]')) fresh
       ON a.id = fresh.id
     SET a.holder_name = fresh.holder_name, a.bank_name = fresh.bank_name, a.update_time = :now
     WHERE a.deleted = 0",
};

pub(super) const INSERT_LEDGER: Text = Text::Same(
    "INSERT INTO fi_monthly_income_difference
       (station_id, bill_yearmonth, payment_status, contract_rent, actual_rent, pre_rent,
        project_company_id, partner_id, create_time, update_time)
     VALUES :rows",
);

pub(super) const UPDATE_LEDGER: Text = Text::Forked {
    standard: "WITH fresh (id, payment_status, contract_rent, actual_rent, pre_rent,
                 project_company_id, partner_id) AS (VALUES :rows)
     UPDATE fi_monthly_income_difference AS d
     SET payment_status = CASE WHEN d.payment_status IN (10, 20) THEN fresh.payment_status
                               ELSE d.payment_status END,
         contract_rent = fresh.contract_rent, actual_rent = fresh.actual_rent,
         pre_rent = fresh.pre_rent, project_company_id = fresh.project_company_id,
         partner_id = fresh.partner_id, financial_version = d.financial_version + 1,
         update_time = :now
     FROM fresh
     WHERE d.id = fresh.id AND d.deleted = 0 AND d.locked_payment_order_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                       WHERE l.station_id = d.station_id
                         AND l.bill_yearmonth = d.bill_yearmonth
                         AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
    mariadb: "UPDATE fi_monthly_income_difference d
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', payment_status SMALLINT PATH '$[1]',
         contract_rent BIGINT PATH '$[2]', actual_rent BIGINT PATH '$[3]',
         pre_rent BIGINT PATH '$[4]', project_company_id BIGINT PATH '$[5]',
         partner_id BIGINT PATH '$[6]')) fresh
       ON d.id = fresh.id
     SET d.payment_status = CASE WHEN d.payment_status IN (10, 20) THEN fresh.payment_status
                                 ELSE d.payment_status END,
         d.contract_rent = fresh.contract_rent, d.actual_rent = fresh.actual_rent,
         d.pre_rent = fresh.pre_rent, d.project_company_id = fresh.project_company_id,
         d.partner_id = fresh.partner_id, d.financial_version = d.financial_version + 1,
         d.update_time = :now
     WHERE d.deleted = 0 AND d.locked_payment_order_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                       WHERE l.station_id = d.station_id
                         AND l.bill_yearmonth = d.bill_yearmonth
                         AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
};

pub(super) const INSERT_SMALL: Text = Text::Same(
    "INSERT INTO fi_customer_bill
       (station_id, bill_yearmonth, payment_status, amount, customer_account_id, pushed_flag,
        create_time, update_time)
     VALUES :rows",
);

pub(super) const UPDATE_SMALL: Text = Text::Forked {
    standard: "WITH fresh (id, payment_status, amount, customer_account_id, pushed_flag)
                 AS (VALUES :rows)
     UPDATE fi_customer_bill AS s
     SET payment_status = CASE WHEN s.payment_status IN (10, 20) THEN fresh.payment_status
                               ELSE s.payment_status END,
         amount = fresh.amount,
         customer_account_id = COALESCE(fresh.customer_account_id, s.customer_account_id),
         pushed_flag = fresh.pushed_flag, update_time = :now
     FROM fresh
     WHERE s.id = fresh.id AND s.deleted = 0 AND s.locked_payment_order_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                       WHERE l.station_id = s.station_id
                         AND l.bill_yearmonth = s.bill_yearmonth
                         AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
    mariadb: "UPDATE fi_customer_bill s
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', payment_status SMALLINT PATH '$[1]',
         amount BIGINT PATH '$[2]', customer_account_id BIGINT PATH '$[3]',
         pushed_flag SMALLINT PATH '$[4]')) fresh
       ON s.id = fresh.id
     SET s.payment_status = CASE WHEN s.payment_status IN (10, 20) THEN fresh.payment_status
                                 ELSE s.payment_status END,
         s.amount = fresh.amount,
         s.customer_account_id = COALESCE(fresh.customer_account_id, s.customer_account_id),
         s.pushed_flag = fresh.pushed_flag, s.update_time = :now
     WHERE s.deleted = 0 AND s.locked_payment_order_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                       WHERE l.station_id = s.station_id
                         AND l.bill_yearmonth = s.bill_yearmonth
                         AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
};

pub(super) const INSERT_PARTNER: Text = Text::Same(
    "INSERT INTO fi_customer_bill_partner
       (station_id, bill_yearmonth, payment_status, amount, partner_id, partner_account_id,
        create_time, update_time)
     VALUES :rows",
);

pub(super) const UPDATE_PARTNER: Text = Text::Forked {
    standard: "WITH fresh (id, payment_status, amount, partner_id, partner_account_id)
                 AS (VALUES :rows)
     UPDATE fi_customer_bill_partner AS p
     SET payment_status = CASE WHEN p.payment_status IN (10, 20) THEN fresh.payment_status
                               ELSE p.payment_status END,
         amount = fresh.amount, partner_id = fresh.partner_id,
         partner_account_id = fresh.partner_account_id, update_time = :now
     FROM fresh
     WHERE p.id = fresh.id AND p.deleted = 0 AND p.locked_payment_order_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                       WHERE l.station_id = p.station_id
                         AND l.bill_yearmonth = p.bill_yearmonth
                         AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
    mariadb: "UPDATE fi_customer_bill_partner p
     JOIN JSON_TABLE(:json, '$[*]' COLUMNS (
         id BIGINT PATH '$[0]', payment_status SMALLINT PATH '$[1]',
         amount BIGINT PATH '$[2]', partner_id BIGINT PATH '$[3]',
         partner_account_id BIGINT PATH '$[4]')) fresh
       ON p.id = fresh.id
     SET p.payment_status = CASE WHEN p.payment_status IN (10, 20) THEN fresh.payment_status
                                 ELSE p.payment_status END,
         p.amount = fresh.amount, p.partner_id = fresh.partner_id,
         p.partner_account_id = fresh.partner_account_id, p.update_time = :now
     WHERE p.deleted = 0 AND p.locked_payment_order_id IS NULL
       AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock l
                       WHERE l.station_id = p.station_id
                         AND l.bill_yearmonth = p.bill_yearmonth
                         AND l.lock_status IN ('RESERVED', 'ACTIVE') AND l.deleted = 0)",
};
