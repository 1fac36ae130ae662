//! The pre-payment recheck: every reason why a line must not be paid, found set-based.
//!
//! One list of conditions serves twice: before any lock it lists the violations by line, and under
//! the order's lock it is counted again, so that what was read still holds. A time stamp would not
//! prove that: a slow transaction stamps its rows with the time it began.

use counterfoil_db::{Db, Query, Read, Row};
use counterfoil_protocol::{LineId, OrderId};
use counterfoil_task::WorkError;

use crate::review_progress::facts::Progressed;

/// What parks a progress row; a contract.
pub const RECHECK_VIOLATED: &str = "RECHECK_VIOLATED";

/// How strict the recheck is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RecheckSettings {
    /// Whether lines without a pushed small bill also have partner organisation and intended
    /// amount checked.
    pub no_small_bill: bool,
}

impl Default for RecheckSettings {
    fn default() -> RecheckSettings {
        RecheckSettings { no_small_bill: true }
    }
}

/// One reason why one line must not be paid.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The line.
    pub line: LineId,
    /// Its station.
    pub station: String,
    /// Its month, as stored: possibly none.
    pub month: String,
    /// The stable code.
    pub code: &'static str,
    /// What is wrong, for people.
    pub message: String,
}

/// The order as a whole has no payment type; its line is 0.
pub(super) const PAYMENT_TYPE: &str = "recheck-payment-type";

fn known(stored: &str) -> Option<&'static str> {
    let mut codes = CONDITIONS.iter().map(|condition| condition.code).chain([PAYMENT_TYPE]);
    codes.find(|code| *code == stored)
}

struct Condition {
    code: &'static str,
    message: &'static str,
    /// True for a line that violates it.
    violated: &'static str,
    /// Looked at only with `no_small_bill`.
    is_strict: bool,
    /// Looked at again under the lock.
    is_proved: bool,
    /// Can be violated only by a line that is paid by its partner bill.
    is_partners: bool,
}

const fn condition(code: &'static str, message: &'static str, violated: &'static str) -> Condition {
    let (is_strict, is_proved, is_partners) = (false, true, false);
    Condition { code, message, violated, is_strict, is_proved, is_partners }
}

/// Of lines without a pushed small bill.
const fn partners(code: &'static str, message: &'static str, violated: &'static str) -> Condition {
    Condition { is_partners: true, ..condition(code, message, violated) }
}

/// Listed before the lock only: a row is looked up for every line, which would keep the order
/// locked for seconds. Locks are counted under the lock instead, and no import makes a second
/// ledger row of a bill.
const fn listed(code: &'static str, message: &'static str, violated: &'static str) -> Condition {
    Condition { is_proved: false, ..condition(code, message, violated) }
}

/// `b` is the small bill if it is pushed, `p` the partner bill; `a` and `q` their accounts.
const CONDITIONS: [Condition; 13] = [
    condition("recheck-amount", "its amount is not positive", "COALESCE(l.pay_amount, 0) <= 0"),
    condition(
        "recheck-month",
        "its month is none",
        // Equality only: comparing texts by their order is a call of the collation for each line.
        "NOT (SUBSTR(l.bill_yearmonth, 1, 2) = '20'
              AND SUBSTR(l.bill_yearmonth, 3, 1) IN ('0','1','2','3','4','5','6','7','8','9')
              AND SUBSTR(l.bill_yearmonth, 4, 1) IN ('0','1','2','3','4','5','6','7','8','9')
              AND SUBSTR(l.bill_yearmonth, 5, 2) IN
                ('01','02','03','04','05','06','07','08','09','10','11','12'))",
    ),
    condition("recheck-intended-rent", "its intended rent is missing", "l.pre_rent IS NULL"),
    listed(
        "recheck-station-unknown",
        "its station has no ledger row of the month, or more than one",
        "(SELECT COUNT(*) FROM fi_monthly_income_difference d
           WHERE d.station_id = l.station_id AND d.bill_yearmonth = l.bill_yearmonth
             AND d.deleted = 0) <> 1",
    ),
    listed(
        "recheck-lock",
        "its ACTIVE lock is missing",
        "NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_bill_lock k
           WHERE k.order_bill_id = l.id AND k.lock_status = 'ACTIVE'
             AND k.payment_order_id + 0 = l.payment_order_id
             AND k.data_version = l.data_version)",
    ),
    condition(
        "recheck-account",
        "its small bill's account is missing, closed or incomplete",
        "b.id IS NOT NULL AND (a.id IS NULL OR a.status <> 1 OR a.holder_name = ''
           OR a.account_no = '')",
    ),
    condition(
        "recheck-account-payee",
        "its small bill's account is not the payee that was approved",
        "b.id IS NOT NULL AND a.id IS NOT NULL AND l.payee_account IS NOT NULL
         AND (a.account_no <> l.payee_account
              OR a.holder_name <> COALESCE(l.payee_name, a.holder_name)
              OR a.bank_name <> COALESCE(l.payee_bank, a.bank_name))",
    ),
    partners(
        "recheck-partner-bill",
        "its small bill is not pushed, and it has no partner bill",
        "b.id IS NULL AND p.id IS NULL",
    ),
    partners(
        "recheck-partner-bill-month",
        "its partner bill is of another month",
        "b.id IS NULL AND p.id IS NOT NULL AND p.bill_yearmonth <> l.bill_yearmonth",
    ),
    partners(
        "recheck-partner-account",
        "its partner bill's account is missing, closed, incomplete or another partner's",
        "b.id IS NULL AND p.id IS NOT NULL
         AND (q.id IS NULL OR q.status <> 1 OR q.holder_name = '' OR q.account_no = ''
              OR (q.partner_id IS NOT NULL AND q.partner_id <> p.partner_id))",
    ),
    partners(
        "recheck-partner-payee",
        "its partner bill's account is not the payee that was approved",
        "b.id IS NULL AND q.id IS NOT NULL
         AND (q.account_no <> COALESCE(l.payee_account, '')
              OR q.holder_name <> COALESCE(l.payee_name, '')
              OR q.bank_name <> COALESCE(l.payee_bank, ''))",
    ),
    strict(partners(
        "recheck-partner-organisation",
        "its partner is unknown, or another than its partner bill's",
        "b.id IS NULL AND p.id IS NOT NULL
         AND (o.id IS NULL OR COALESCE(l.partner_id, p.partner_id) <> p.partner_id)",
    )),
    strict(partners(
        "recheck-intended-amount",
        "its intended rent is not the amount it is paid",
        "b.id IS NULL AND p.id IS NOT NULL
         AND COALESCE(l.pre_rent, -1) <> COALESCE(l.pay_amount, 0)",
    )),
];

macro_rules! small_bills {
    () => {
        "FROM fi_resident_income_payment_order_bill l
         LEFT JOIN fi_customer_bill b
           ON b.id = l.small_bill_id AND b.deleted = 0 AND b.pushed_flag = 1
         LEFT JOIN fi_customer_account a ON a.id = b.customer_account_id AND a.deleted = 0 "
    };
}

macro_rules! of_version {
    () => {
        "WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id > :after"
    };
}

const SMALL_BILLS: &str = concat!(small_bills!(), of_version!());

const FACTS: &str = concat!(
    small_bills!(),
    "LEFT JOIN fi_customer_bill_partner p ON p.id = l.partner_bill_id AND p.deleted = 0
     LEFT JOIN fi_customer_account_partner q ON q.id = p.partner_account_id AND q.deleted = 0
     LEFT JOIN sys_partner o ON o.id = p.partner_id AND o.deleted = 0 ",
    of_version!()
);

const fn strict(condition: Condition) -> Condition {
    Condition { is_strict: true, ..condition }
}

fn conditions(settings: RecheckSettings) -> impl Iterator<Item = &'static Condition> {
    CONDITIONS.iter().filter(move |condition| !condition.is_strict || settings.no_small_bill)
}

/// Lines of one page of violations.
const PAGE: i64 = 500;

/// The next page of violated lines after `after`, each with all it violates. Fewer than a page of
/// lines = there are no more. The second part of the answer is the last line of the page.
pub(super) async fn page(
    from: &impl Read,
    facts: &Progressed,
    settings: RecheckSettings,
    after: i64,
) -> Result<(Vec<Violation>, Option<i64>), WorkError> {
    let flags = conditions(settings).enumerate().map(|(at, condition)| {
        format!("CASE WHEN {} THEN 1 ELSE 0 END AS v{at}", condition.violated)
    });
    let any = conditions(settings).map(|condition| format!("({})", condition.violated));
    let text = format!(
        "SELECT l.id, l.station_id, l.bill_yearmonth, {} {FACTS}
           AND ({}) ORDER BY l.id LIMIT :limit",
        flags.collect::<Vec<_>>().join(", "),
        any.collect::<Vec<_>>().join(" OR "),
    );
    let query = bound(Query::built(text), facts).bind("after", after).bind("limit", PAGE);
    let rows = from.rows(query).await?;
    let mut found = Vec::new();
    for row in &rows {
        for (at, condition) in conditions(settings).enumerate() {
            if row.int(&format!("v{at}"))? == 1 {
                found.push(violation(row, condition)?);
            }
        }
    }
    let is_full = rows.len() as i64 == PAGE;
    let last = rows.last().filter(|_| is_full).map(|row| row.int("id")).transpose()?;
    Ok((found, last))
}

fn violation(row: &Row, condition: &Condition) -> Result<Violation, WorkError> {
    Ok(Violation {
        line: LineId(row.int("id")?),
        station: row.text("station_id")?,
        month: row.text("bill_yearmonth")?,
        code: condition.code,
        message: condition.message.into(),
    })
}

/// By what an order's lines are paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ways {
    /// All of them by their pushed small bills.
    SmallBills,
    /// Some by their partner bills.
    PartnerBillsToo,
}

/// Found out before the lock: what is paid by small bills needs half the tables for its proof.
pub(super) async fn ways(db: &Db, facts: &Progressed) -> Result<Ways, WorkError> {
    let text = format!("SELECT COUNT(*) {SMALL_BILLS} AND b.id IS NULL");
    let by_partner_bills = db.count(bound(Query::built(text), facts).bind("after", 0)).await?;
    Ok(if by_partner_bills == 0 { Ways::SmallBills } else { Ways::PartnerBillsToo })
}

/// What the one set-based query under the lock finds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Proof {
    /// PAYABLE lines.
    pub(super) lines: i64,
    /// Those of them that violate something now.
    pub(super) violated: i64,
}

/// What the recheck read of lines, bills, accounts and partners, looked at again in one query.
pub(super) async fn prove(
    tx: &impl Read,
    facts: &Progressed,
    settings: RecheckSettings,
    ways: Ways,
) -> Result<Proof, WorkError> {
    // A line that is paid by its partner bill after all has changed: it counts as violated.
    let (from_tables, moved) = match ways {
        Ways::SmallBills => (SMALL_BILLS, "(b.id IS NULL)"),
        Ways::PartnerBillsToo => (FACTS, "(1 = 0)"),
    };
    let mut any = vec![moved.to_owned()];
    let proved = conditions(settings).filter(|condition| {
        condition.is_proved && (ways == Ways::PartnerBillsToo || !condition.is_partners)
    });
    any.extend(proved.map(|condition| format!("({})", condition.violated)));
    let text = format!(
        "SELECT COUNT(*) AS all_lines, COUNT(CASE WHEN {} THEN 1 END) AS violated {from_tables}",
        any.join(" OR "),
    );
    let query = bound(Query::built(text), facts).bind("after", 0);
    let Some(row) = tx.row(query).await? else {
        return Ok(Proof { lines: 0, violated: 0 });
    };
    Ok(Proof { lines: row.int("all_lines")?, violated: row.int("violated")? })
}

fn bound(query: Query, facts: &Progressed) -> Query {
    query.bind("order", facts.order.0).bind("data", facts.data.0).bind("round", facts.round.0)
}

/// The violations on record of an order's parked approval, at most `limit`, by line.
///
/// # Errors
/// The database's.
pub async fn violations(
    db: &Db,
    order: OrderId,
    limit: u32,
) -> Result<Vec<Violation>, crate::PaymentError> {
    let query = counterfoil_db::sql!(
        "SELECT v.order_bill_id AS id, v.station_id, v.bill_yearmonth, v.violation_code,
                v.detail
         FROM payment_recheck_violation v
         JOIN fi_resident_income_payment_review_callback_progress p ON p.id = v.progress_id
         WHERE v.payment_order_id = :order AND v.deleted = 0
           AND p.main_task_status = 'RUNNING' AND p.phase = 'FINALIZE'
         ORDER BY v.order_bill_id, v.id LIMIT :limit",
        order = order.0,
        limit = limit,
    );
    let mut found = Vec::new();
    for row in db.rows(query).await? {
        let stored = row.text("violation_code")?;
        if let Some(code) = known(&stored) {
            found.push(Violation {
                line: LineId(row.int("id")?),
                station: row.text("station_id")?,
                month: row.text("bill_yearmonth")?,
                code,
                message: row.text("detail")?,
            });
        }
    }
    Ok(found)
}
