//! Adding bills to a session, a month at once or one by one.

use std::collections::{BTreeMap, BTreeSet, HashSet};

use counterfoil_db::{Bind, Db, Text, Tx, Value, transact};
use counterfoil_protocol::{BillMonth, Fen};

use super::candidate::{self, Candidate};
use super::edit::{EditFacts, Editor, begin_edit};
use super::qualify::{Blocker, Qualification, Tolerance, qualify};
use crate::PaymentError;
use crate::row_batch::insert_rows;

/// Bills a transaction adds.
pub const ADD_BATCH: usize = 1_000;
/// Bills that can be named one by one.
pub const MAX_LISTED_BILLS: usize = 10_000;
/// Bills that could not be selected, shown at most; all are counted.
pub const MAX_UNSELECTABLE: usize = 200;

/// One bill.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BillKey {
    /// Its station.
    pub station: String,
    /// Its month.
    pub month: BillMonth,
}

/// Which bills.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Selection {
    /// All of a month that can be selected.
    Month {
        /// The month.
        month: BillMonth,
        /// Only those of one project company.
        company: Option<i64>,
        /// Only those of one partner.
        partner: Option<i64>,
    },
    /// These, at most [`MAX_LISTED_BILLS`].
    Bills(Vec<BillKey>),
}

/// A bill that could not be selected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unselectable {
    /// The bill.
    pub bill: BillKey,
    /// Why not.
    pub why: Blocker,
}

/// What adding did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Added {
    /// Bills added to be paid.
    pub payable: u64,
    /// Bills added that are not paid, each with its reason.
    pub unqualified: u64,
    /// Bills that were in the session already; they stay as they are.
    pub already: u64,
    /// How many could not be selected.
    pub unselectable_count: u64,
    /// The first of those.
    pub unselectable: Vec<Unselectable>,
}

impl Added {
    fn refuse(&mut self, bill: BillKey, why: Blocker) {
        self.unselectable_count += 1;
        if self.unselectable.len() < MAX_UNSELECTABLE {
            self.unselectable.push(Unselectable { bill, why });
        }
    }

    fn merge(&mut self, batch: Added) {
        self.payable += batch.payable;
        self.unqualified += batch.unqualified;
        self.already += batch.already;
        self.unselectable_count += batch.unselectable_count;
        self.unselectable.extend(batch.unselectable);
        self.unselectable.truncate(MAX_UNSELECTABLE);
    }
}

/// Adds bills and judges each. A line that is not paid has a pay_amount of 0, so that sums never
/// meet NULL.
///
/// It commits a thousand bills at a time: broken off, what was added stays, and doing it again
/// adds the rest.
///
/// # Errors
/// Whoever is not the session's creator, or comes when it cannot be edited, is refused.
pub async fn add_bills(
    db: &Db,
    editor: Editor,
    selection: &Selection,
    tolerance: &Tolerance,
) -> Result<Added, PaymentError> {
    let mut added = Added::default();
    match selection {
        Selection::Month { month, company, partner } => {
            let mut cursor = Some(0);
            while let Some(from) = cursor {
                let filter = (*company, *partner);
                let (batch, last) =
                    transact!(add_of_month(db, editor, month, filter, from, tolerance))?;
                added.merge(batch);
                cursor = last;
            }
        }
        Selection::Bills(bills) => {
            for (month, stations) in by_month(bills)? {
                for stations in stations.chunks(ADD_BATCH) {
                    added.merge(transact!(add_listed(db, editor, &month, stations, tolerance))?);
                }
            }
        }
    }
    Ok(added)
}

/// Listed bills by their months, each once.
pub(super) fn by_month(
    bills: &[BillKey],
) -> Result<BTreeMap<BillMonth, Vec<String>>, PaymentError> {
    if bills.len() > MAX_LISTED_BILLS {
        let why = format!("{} are named, at most {MAX_LISTED_BILLS} can be", bills.len());
        return Err(PaymentError::invalid("bills", why));
    }
    let mut months = BTreeMap::<BillMonth, Vec<String>>::new();
    for bill in bills.iter().collect::<BTreeSet<_>>() {
        months.entry(bill.month.clone()).or_default().push(bill.station.clone());
    }
    Ok(months)
}

/// One batch of a month; the ledger row to go on behind, none at the end.
async fn add_of_month(
    db: &Db,
    editor: Editor,
    month: &BillMonth,
    filter: (Option<i64>, Option<i64>),
    cursor: i64,
    tolerance: &Tolerance,
) -> Result<(Added, Option<i64>), PaymentError> {
    let (mut tx, session) = begin_edit(db, editor).await?;
    let limit = i64::try_from(ADD_BATCH).unwrap_or(i64::MAX);
    let candidates = candidate::of_month(&tx, &session, month, filter, cursor, limit).await?;
    let last = match candidates.len() < ADD_BATCH {
        true => None,
        false => candidates.last().map(|candidate| candidate.diff),
    };
    let added = insert(&mut tx, &session, candidates, tolerance).await?;
    tx.commit("session.add").await?;
    Ok((added, last))
}

async fn add_listed(
    db: &Db,
    editor: Editor,
    month: &BillMonth,
    stations: &[String],
    tolerance: &Tolerance,
) -> Result<Added, PaymentError> {
    let (mut tx, session) = begin_edit(db, editor).await?;
    let candidates = candidate::of_stations(&tx, &session, month, stations).await?;
    let known: HashSet<String> =
        candidates.iter().map(|candidate| candidate.key.station.clone()).collect();
    let mut added = insert(&mut tx, &session, candidates, tolerance).await?;
    for station in stations.iter().filter(|station| !known.contains(*station)) {
        let bill = BillKey { station: station.clone(), month: month.clone() };
        added.refuse(bill, Blocker::NoBill);
    }
    tx.commit("session.add").await?;
    Ok(added)
}

/// Inserts the candidates that can be selected. Nobody else inserts meanwhile: the session's row
/// is ours until the commit.
async fn insert(
    tx: &mut Tx,
    session: &EditFacts,
    candidates: Vec<Candidate>,
    tolerance: &Tolerance,
) -> Result<Added, PaymentError> {
    let now = tx.now();
    let mut added = Added::default();
    let mut taken = HashSet::new();
    let mut rows: Vec<Vec<Value>> = Vec::new();
    for candidate in candidates {
        // Historical data may hold a bill twice in the ledger; the first row stands for it.
        if candidate.item.is_some() || !taken.insert(candidate.key.clone()) {
            added.already += 1;
            continue;
        }
        if let Some(why) = candidate.blocker {
            added.refuse(candidate.key, why);
            continue;
        }
        let line = Line::of(qualify(&candidate.rents, tolerance));
        match line.reason {
            None => added.payable += 1,
            Some(_) => added.unqualified += 1,
        }
        rows.push(vec![
            session.id.0.bind(),
            candidate.key.station.bind(),
            candidate.key.month.as_str().bind(),
            candidate.diff.bind(),
            candidate.small.bind(),
            candidate.partner.bind(),
            line.line_type.bind(),
            line.reason.bind(),
            candidate.source_line.bind(),
            candidate.rents.pre_rent.map(|fen| fen.0).bind(),
            line.pay_amount.0.bind(),
            now.bind(),
            now.bind(),
        ]);
    }
    insert_rows(tx, INSERT_ITEMS, rows).await?;
    Ok(added)
}

const INSERT_ITEMS: Text = Text::Same(
    "INSERT INTO selection_session_item
       (session_id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id,
        line_type, unqualified_reason, source_order_bill_id, pre_rent, pay_amount, create_time,
        update_time)
     VALUES :rows",
);

/// `line_type` of lines that are paid.
pub(super) const PAYABLE: i64 = 10;
/// `line_type` of lines that are not.
pub(super) const UNQUALIFIED: i64 = 20;

/// A qualification as its columns.
pub(super) struct Line {
    pub line_type: i64,
    pub reason: Option<&'static str>,
    pub pay_amount: Fen,
}

impl Line {
    pub(super) fn of(qualification: Qualification) -> Line {
        match qualification {
            Qualification::Payable(amount) => {
                Line { line_type: PAYABLE, reason: None, pay_amount: amount }
            }
            Qualification::Unqualified(reason) => {
                Line { line_type: UNQUALIFIED, reason: Some(reason), pay_amount: Fen::ZERO }
            }
        }
    }
}
