//! What one version of an order changed against another, bill by bill, set-based.
//!
//! The kinds exclude each other, so that the bills of both versions add up: those of the first are
//! all kinds but `added`, those of the second all but `removed`.

use counterfoil_db::{Read, Result, Row, sql};
use counterfoil_protocol::{DataVersion, OrderId};
use serde::Serialize;

use super::MAX_CHANGED;
use super::lines::check_version;
use super::names::line_type;
use super::shown::{Money, masked};
use crate::PaymentError;

/// What happened to a bill between two versions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DiffKind {
    /// In both, with the same type, amount and payee.
    Kept,
    /// In the first only.
    Removed,
    /// In the second only.
    Added,
    /// No longer to be paid.
    PayableToUnqualified,
    /// To be paid after all.
    UnqualifiedToPayable,
    /// Another amount to the same payee.
    AmountChanged,
    /// The same amount to another payee.
    PayeeChanged,
    /// Another amount to another payee.
    AmountAndPayeeChanged,
}

impl DiffKind {
    /// All of them, in the order they are shown.
    pub const ALL: [DiffKind; 8] = [
        DiffKind::Kept,
        DiffKind::Removed,
        DiffKind::Added,
        DiffKind::PayableToUnqualified,
        DiffKind::UnqualifiedToPayable,
        DiffKind::AmountChanged,
        DiffKind::PayeeChanged,
        DiffKind::AmountAndPayeeChanged,
    ];

    /// The name of its count.
    pub fn name(self) -> &'static str {
        match self {
            DiffKind::Kept => "kept",
            DiffKind::Removed => "removed",
            DiffKind::Added => "added",
            DiffKind::PayableToUnqualified => "payable to unqualified",
            DiffKind::UnqualifiedToPayable => "unqualified to payable",
            DiffKind::AmountChanged => "amount changed",
            DiffKind::PayeeChanged => "payee changed",
            DiffKind::AmountAndPayeeChanged => "amount and payee changed",
        }
    }

    /// What the classifying statement calls it.
    fn stored(self) -> i64 {
        DiffKind::ALL.iter().position(|kind| *kind == self).unwrap_or(0) as i64
    }

    fn of(stored: i64) -> Option<DiffKind> {
        DiffKind::ALL.into_iter().find(|kind| kind.stored() == stored)
    }
}

/// One bill that changed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChangedLine {
    /// The station.
    pub station_id: String,
    /// The month.
    pub bill_yearmonth: String,
    /// Its type before.
    pub line_type_before: Option<&'static str>,
    /// Its type now.
    pub line_type_after: Option<&'static str>,
    /// Its amount before.
    pub amount_before: Option<Money>,
    /// Its amount now.
    pub amount_after: Option<Money>,
    /// The payee before: name, masked account, bank.
    pub payee_before: Option<String>,
    /// The payee now.
    pub payee_after: Option<String>,
    /// Which parts of the payee differ: `name`, `account`, `bank`.
    pub payee_parts: Vec<&'static str>,
    /// Why it is unqualified now.
    pub unqualified_reason: Option<String>,
}

/// One kind of change with what it sums to and its first bills.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KindOfChange {
    /// The kind.
    pub kind: DiffKind,
    /// How many bills.
    pub bills: i64,
    /// What they summed to in the first version.
    pub amount_before: Money,
    /// What they sum to in the second.
    pub amount_after: Money,
    /// The first of them, by station and month; none of the kept ones.
    pub first: Vec<ChangedLine>,
}

/// The difference of two versions.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Diff {
    /// The order.
    pub payment_order_id: OrderId,
    /// The first version.
    pub from_data_version: DataVersion,
    /// The second.
    pub to_data_version: DataVersion,
    /// Every kind, also those without a bill.
    pub kinds: Vec<KindOfChange>,
}

impl Diff {
    /// One kind's counts, sums and first bills.
    pub fn kind(&self, kind: DiffKind) -> Option<&KindOfChange> {
        self.kinds.iter().find(|found| found.kind == kind)
    }
}

/// Compares two versions of one order; `first` bills are shown a kind, [`MAX_CHANGED`] at most.
///
/// # Errors
/// Refuses data versions that the order does not have.
pub async fn diff(
    from: &impl Read,
    order: OrderId,
    before: DataVersion,
    after: DataVersion,
    first: u32,
) -> Result<Diff, PaymentError> {
    check_version(from, order, before, "v1").await?;
    check_version(from, order, after, "v2").await?;
    let counted = counts(from, order, before, after).await?;
    let mut kinds = Vec::new();
    for kind in DiffKind::ALL {
        let found = counted.iter().find(|(found, ..)| *found == kind);
        let (bills, sum_before, sum_after) =
            found.map_or((0, 0, 0), |(_, bills, before, after)| (*bills, *before, *after));
        let rows = match (kind, bills) {
            (DiffKind::Kept, _) | (_, 0) => Vec::new(),
            _ => first_of(from, order, before, after, kind, first.min(MAX_CHANGED)).await?,
        };
        kinds.push(KindOfChange {
            kind,
            bills,
            amount_before: sum_before.into(),
            amount_after: sum_after.into(),
            first: rows,
        });
    }
    Ok(Diff { payment_order_id: order, from_data_version: before, to_data_version: after, kinds })
}

/// Every bill of either version with its kind: first those of `:before`, whatever became of them,
/// then those that `:after` added.
macro_rules! classified {
    () => {
        "(SELECT CASE
             WHEN b.id IS NULL THEN 1
             WHEN a.line_type = 10 AND b.line_type = 20 THEN 3
             WHEN a.line_type = 20 AND b.line_type = 10 THEN 4
             WHEN COALESCE(a.pay_amount, 0) = COALESCE(b.pay_amount, 0)
              AND COALESCE(a.payee_name, '') = COALESCE(b.payee_name, '')
              AND COALESCE(a.payee_account, '') = COALESCE(b.payee_account, '')
              AND COALESCE(a.payee_bank, '') = COALESCE(b.payee_bank, '') THEN 0
             WHEN COALESCE(a.pay_amount, 0) = COALESCE(b.pay_amount, 0) THEN 6
             WHEN COALESCE(a.payee_name, '') = COALESCE(b.payee_name, '')
              AND COALESCE(a.payee_account, '') = COALESCE(b.payee_account, '')
              AND COALESCE(a.payee_bank, '') = COALESCE(b.payee_bank, '') THEN 5
             ELSE 7 END AS kind,
           a.station_id AS station_id, a.bill_yearmonth AS bill_yearmonth,
           a.line_type AS type_before, b.line_type AS type_after,
           a.pay_amount AS amount_before, b.pay_amount AS amount_after,
           a.payee_name AS name_before, b.payee_name AS name_after,
           a.payee_account AS account_before, b.payee_account AS account_after,
           a.payee_bank AS bank_before, b.payee_bank AS bank_after,
           b.unqualified_reason AS reason
         FROM fi_resident_income_payment_order_bill a
         LEFT JOIN fi_resident_income_payment_order_bill b
           ON b.payment_order_id = :order AND b.data_version = :after AND b.deleted = 0
          AND b.station_id = a.station_id AND b.bill_yearmonth = a.bill_yearmonth
         WHERE a.payment_order_id = :order AND a.data_version = :before AND a.deleted = 0
         UNION ALL
         SELECT 2, b.station_id, b.bill_yearmonth, NULL, b.line_type, NULL, b.pay_amount,
           NULL, b.payee_name, NULL, b.payee_account, NULL, b.payee_bank, b.unqualified_reason
         FROM fi_resident_income_payment_order_bill b
         WHERE b.payment_order_id = :order AND b.data_version = :after AND b.deleted = 0
           AND NOT EXISTS (SELECT 1 FROM fi_resident_income_payment_order_bill a
             WHERE a.payment_order_id = :order AND a.data_version = :before AND a.deleted = 0
               AND a.station_id = b.station_id AND a.bill_yearmonth = b.bill_yearmonth)) AS d"
    };
}

async fn counts(
    from: &impl Read,
    order: OrderId,
    before: DataVersion,
    after: DataVersion,
) -> Result<Vec<(DiffKind, i64, i64, i64)>> {
    let query = sql!(
        concat!(
            "SELECT d.kind AS kind, COUNT(*) AS bills,
               CAST(COALESCE(SUM(d.amount_before), 0) AS {bigint}) AS sum_before,
               CAST(COALESCE(SUM(d.amount_after), 0) AS {bigint}) AS sum_after
             FROM ",
            classified!(),
            " GROUP BY d.kind ORDER BY d.kind"
        ),
        order = order.0,
        before = before.0,
        after = after.0,
    );
    let mut counts = Vec::new();
    for row in from.rows(query).await? {
        if let Some(kind) = DiffKind::of(row.int("kind")?) {
            let sums = (row.int("sum_before")?, row.int("sum_after")?);
            counts.push((kind, row.int("bills")?, sums.0, sums.1));
        }
    }
    Ok(counts)
}

async fn first_of(
    from: &impl Read,
    order: OrderId,
    before: DataVersion,
    after: DataVersion,
    kind: DiffKind,
    limit: u32,
) -> Result<Vec<ChangedLine>> {
    let query = sql!(
        concat!(
            "SELECT d.station_id, d.bill_yearmonth, d.type_before, d.type_after, d.amount_before,
               d.amount_after, d.name_before, d.name_after, d.account_before, d.account_after,
               d.bank_before, d.bank_after, d.reason
             FROM ",
            classified!(),
            " WHERE d.kind = :kind ORDER BY d.station_id, d.bill_yearmonth LIMIT :limit"
        ),
        order = order.0,
        before = before.0,
        after = after.0,
        kind = kind.stored(),
        limit = limit,
    );
    from.rows(query).await?.iter().map(changed).collect()
}

fn changed(row: &Row) -> Result<ChangedLine> {
    let (name, account, bank) = (
        (row.maybe_text("name_before")?, row.maybe_text("name_after")?),
        (row.maybe_text("account_before")?, row.maybe_text("account_after")?),
        (row.maybe_text("bank_before")?, row.maybe_text("bank_after")?),
    );
    let types = (row.maybe_int("type_before")?, row.maybe_int("type_after")?);
    let mut payee_parts = Vec::new();
    if types.0.is_some() && types.1.is_some() {
        let parts = [("name", &name), ("account", &account), ("bank", &bank)];
        // As the statement compares: nothing is the same as an empty text.
        let text = |part: &Option<String>| part.clone().unwrap_or_default();
        let differing =
            parts.into_iter().filter(|(_, (before, after))| text(before) != text(after));
        payee_parts.extend(differing.map(|(part, _)| part));
    }
    Ok(ChangedLine {
        station_id: row.text("station_id")?,
        bill_yearmonth: row.text("bill_yearmonth")?,
        line_type_before: types.0.map(line_type),
        line_type_after: types.1.map(line_type),
        amount_before: row.maybe_int("amount_before")?.map(Money::from),
        amount_after: row.maybe_int("amount_after")?.map(Money::from),
        payee_before: payee(name.0, account.0, bank.0),
        payee_after: payee(name.1, account.1, bank.1),
        payee_parts,
        unqualified_reason: row.maybe_text("reason")?,
    })
}

fn payee(name: Option<String>, account: Option<String>, bank: Option<String>) -> Option<String> {
    let account = account.map(|account| masked(&account));
    let parts: Vec<String> = [name, account, bank].into_iter().flatten().collect();
    (!parts.is_empty()).then(|| parts.join(" "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_statement_and_the_kinds_count_alike() {
        let numbered = DiffKind::ALL.map(|kind| (kind, kind.stored()));
        let expected = [
            (DiffKind::Kept, 0),
            (DiffKind::Removed, 1),
            (DiffKind::Added, 2),
            (DiffKind::PayableToUnqualified, 3),
            (DiffKind::UnqualifiedToPayable, 4),
            (DiffKind::AmountChanged, 5),
            (DiffKind::PayeeChanged, 6),
            (DiffKind::AmountAndPayeeChanged, 7),
        ];
        assert_eq!(numbered, expected);
    }
}
