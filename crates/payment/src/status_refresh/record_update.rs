//! The statements that write rows of the three business tables, a sub-batch in one statement.
//!
//! PostgreSQL and MariaDB get the rows as one JSON parameter. Measured on PostgreSQL: as VALUES,
//! two and a half thousand parameters a statement were more work than the update itself.

use counterfoil_db::{Dialect, Query, Read, Result, Tx, Value};

use super::record::Table;
use crate::row_batch::json;

/// One update, as each database wants it.
struct Update {
    sqlite: &'static str,
    postgres: &'static str,
    mariadb: &'static str,
}

/// Writes rows, each as [`Table`]'s columns in the order of [`fresh`], if there are any. Answers
/// how many were written.
pub(super) async fn update(tx: &mut Tx, table: Table, rows: Vec<Vec<Value>>) -> Result<u64> {
    if rows.is_empty() {
        return Ok(0);
    }
    let update = match table {
        Table::Ledger => LEDGER,
        Table::Small => SMALL,
        Table::Partner => PARTNER,
    };
    let query = match tx.dialect() {
        Dialect::Sqlite => Query::new(update.sqlite).bind_rows("rows", rows),
        Dialect::Postgres => Query::new(update.postgres).bind("json", json(&rows)),
        Dialect::MariaDb => Query::new(update.mariadb).bind("json", json(&rows)),
    };
    tx.execute(query.bind("now", tx.now())).await
}

macro_rules! from_values {
    () => {
        "WITH fresh (id, payment_status, moves, paid, cumulative, order_id, line_id, query_status,
           flag, reason, last_unqualified) AS (VALUES :rows) "
    };
}

macro_rules! from_json {
    () => {
        "WITH fresh AS (
           SELECT CAST(j ->> 0 AS BIGINT) AS id, CAST(j ->> 1 AS SMALLINT) AS payment_status,
             CAST(j ->> 2 AS SMALLINT) AS moves, CAST(j ->> 3 AS BIGINT) AS paid,
             CAST(j ->> 4 AS BIGINT) AS cumulative, CAST(j ->> 5 AS BIGINT) AS order_id,
             CAST(j ->> 6 AS BIGINT) AS line_id, CAST(j ->> 7 AS SMALLINT) AS query_status,
             CAST(j ->> 8 AS SMALLINT) AS flag, j ->> 9 AS reason,
             CAST(j ->> 10 AS BIGINT) AS last_unqualified
           FROM json_array_elements(CAST(:json AS json)) AS j) "
    };
}

macro_rules! json_table {
    () => {
        "JSON_TABLE(:json, '$[*]' COLUMNS (
           id BIGINT PATH '$[0]', payment_status SMALLINT PATH '$[1]',
           moves SMALLINT PATH '$[2]', paid BIGINT PATH '$[3]', cumulative BIGINT PATH '$[4]',
           order_id BIGINT PATH '$[5]', line_id BIGINT PATH '$[6]',
           query_status SMALLINT PATH '$[7]', flag SMALLINT PATH '$[8]',
           reason VARCHAR(255) PATH '$[9]', last_unqualified BIGINT PATH '$[10]')) fresh
         ON r.id = fresh.id"
    };
}

macro_rules! ledger {
    () => {
        "UPDATE fi_monthly_income_difference AS r
             SET payment_status = fresh.payment_status,
                 payment_status_update_time = CASE WHEN fresh.moves = 1 THEN :now
                                                   ELSE r.payment_status_update_time END,
                 paid_amount = fresh.paid, cumulative_paid_amount = fresh.cumulative,
                 locked_payment_order_id = fresh.order_id, locked_order_bill_id = fresh.line_id,
                 partner_query_status = fresh.query_status, unqualified_flag = fresh.flag,
                 unqualified_reason = fresh.reason,
                 financial_version = r.financial_version + 1,
                 update_time = :now
             FROM fresh WHERE r.id = fresh.id"
    };
}

macro_rules! small {
    () => {
        "UPDATE fi_customer_bill AS r
             SET payment_status = fresh.payment_status,
                 payment_status_update_time = CASE WHEN fresh.moves = 1 THEN :now
                                                   ELSE r.payment_status_update_time END,
                 paid_amount = fresh.paid, cumulative_paid_amount = fresh.cumulative,
                 locked_payment_order_id = fresh.order_id, locked_order_bill_id = fresh.line_id,
                 update_time = :now
             FROM fresh WHERE r.id = fresh.id"
    };
}

macro_rules! partner {
    () => {
        "UPDATE fi_customer_bill_partner AS r
             SET payment_status = fresh.payment_status,
                 payment_status_update_time = CASE WHEN fresh.moves = 1 THEN :now
                                                   ELSE r.payment_status_update_time END,
                 paid_amount = fresh.paid, cumulative_paid_amount = fresh.cumulative,
                 locked_payment_order_id = fresh.order_id, locked_order_bill_id = fresh.line_id,
                 partner_query_status = fresh.query_status, unqualified_flag = fresh.flag,
                 unqualified_reason = fresh.reason,
                 last_unqualified_order_bill_id = fresh.last_unqualified,
                 update_time = :now
             FROM fresh WHERE r.id = fresh.id"
    };
}

/// `financial_version` rises with every change, as S04 and the import raise it: who has read the
/// ledger row at a version sees that it says something else now.
const LEDGER: Update = Update {
    sqlite: concat!(from_values!(), ledger!()),
    postgres: concat!(from_json!(), ledger!()),
    mariadb: concat!(
        "UPDATE fi_monthly_income_difference r JOIN ",
        json_table!(),
        "
             SET r.payment_status = fresh.payment_status,
                 r.payment_status_update_time = CASE WHEN fresh.moves = 1 THEN :now
                                                     ELSE r.payment_status_update_time END,
                 r.paid_amount = fresh.paid, r.cumulative_paid_amount = fresh.cumulative,
                 r.locked_payment_order_id = fresh.order_id,
                 r.locked_order_bill_id = fresh.line_id,
                 r.partner_query_status = fresh.query_status, r.unqualified_flag = fresh.flag,
                 r.unqualified_reason = fresh.reason,
                 r.financial_version = r.financial_version + 1,
                 r.update_time = :now"
    ),
};

const SMALL: Update = Update {
    sqlite: concat!(from_values!(), small!()),
    postgres: concat!(from_json!(), small!()),
    mariadb: concat!(
        "UPDATE fi_customer_bill r JOIN ",
        json_table!(),
        "
             SET r.payment_status = fresh.payment_status,
                 r.payment_status_update_time = CASE WHEN fresh.moves = 1 THEN :now
                                                     ELSE r.payment_status_update_time END,
                 r.paid_amount = fresh.paid, r.cumulative_paid_amount = fresh.cumulative,
                 r.locked_payment_order_id = fresh.order_id,
                 r.locked_order_bill_id = fresh.line_id,
                 r.update_time = :now"
    ),
};

const PARTNER: Update = Update {
    sqlite: concat!(from_values!(), partner!()),
    postgres: concat!(from_json!(), partner!()),
    mariadb: concat!(
        "UPDATE fi_customer_bill_partner r JOIN ",
        json_table!(),
        "
             SET r.payment_status = fresh.payment_status,
                 r.payment_status_update_time = CASE WHEN fresh.moves = 1 THEN :now
                                                     ELSE r.payment_status_update_time END,
                 r.paid_amount = fresh.paid, r.cumulative_paid_amount = fresh.cumulative,
                 r.locked_payment_order_id = fresh.order_id,
                 r.locked_order_bill_id = fresh.line_id,
                 r.partner_query_status = fresh.query_status, r.unqualified_flag = fresh.flag,
                 r.unqualified_reason = fresh.reason,
                 r.last_unqualified_order_bill_id = fresh.last_unqualified,
                 r.update_time = :now"
    ),
};
