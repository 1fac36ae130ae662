//! The scopes (station and month) of a range of formal lines, and the hash that tells whether they
//! are still those that were planned.

use counterfoil_db::{Read, Result, Row, sql};
use counterfoil_protocol::{DataVersion, OrderId, SubmitRound};
use sha2::{Digest, Sha256};

/// The lines of one version of one order.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinesOf {
    /// The order.
    pub order: OrderId,
    /// `data_version`.
    pub data: DataVersion,
    /// `submit_round`.
    pub round: SubmitRound,
}

/// A bill, and the records that something says of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Scope {
    /// The row that names it: a line, or a lock.
    pub(crate) id: i64,
    pub(crate) station: String,
    pub(crate) month: String,
    /// Its ledger row. A NULL id is no row.
    pub(crate) diff: Option<i64>,
    /// Its small bill.
    pub(crate) small: Option<i64>,
    /// Its partner bill.
    pub(crate) partner: Option<i64>,
}

impl Scope {
    /// From a row with these columns of a line or a lock.
    pub(crate) fn of(row: &Row) -> Result<Scope> {
        Ok(Scope {
            id: row.int("id")?,
            station: row.text("station_id")?,
            month: row.text("bill_yearmonth")?,
            diff: row.maybe_int("diff_id")?,
            small: row.maybe_int("small_bill_id")?,
            partner: row.maybe_int("partner_bill_id")?,
        })
    }
}

/// The scopes of at most `size` lines with `after < id <= last`, by id.
///
/// The two line types are read apart and merged: the index is in the order of the ids only within
/// one type.
pub(super) async fn scopes_between(
    from: &impl Read,
    lines: &LinesOf,
    after: i64,
    last: i64,
    size: u32,
) -> Result<Vec<Scope>> {
    let query = sql!(
        "SELECT id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id FROM (
           SELECT * FROM (
             SELECT id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id
             FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND line_type = 10 AND deleted = 0 AND id > :after AND id <= :last
             ORDER BY id LIMIT :size) AS payable
           UNION ALL
           SELECT * FROM (
             SELECT id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id
             FROM fi_resident_income_payment_order_bill
             WHERE payment_order_id = :order AND data_version = :data AND submit_round = :round
               AND line_type = 20 AND deleted = 0 AND id > :after AND id <= :last
             ORDER BY id LIMIT :size) AS unqualified) AS both_types
         ORDER BY id LIMIT :size",
        order = lines.order.0,
        data = lines.data.0,
        round = lines.round.0,
        after = after,
        last = last,
        size = size,
    );
    from.rows(query).await?.iter().map(Scope::of).collect()
}

/// SHA-256 over `station:month` and a line break for each line, in the order of the line ids.
#[derive(Debug, Default)]
pub(super) struct ScopeHash {
    digest: Sha256,
    count: u32,
}

impl ScopeHash {
    pub(super) fn add(&mut self, scope: &Scope) {
        for part in [scope.station.as_str(), ":", scope.month.as_str(), "\n"] {
            self.digest.update(part.as_bytes());
        }
        self.count += 1;
    }

    /// How many scopes went in, and their hash.
    pub(super) fn end(self) -> (u32, [u8; 32]) {
        (self.count, self.digest.finalize().into())
    }
}

/// As `scope_hash` holds it: 64 hexadecimal digits in lower case.
pub(super) fn hex(hash: &[u8; 32]) -> String {
    hash.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(id: i64, station: &str, month: &str) -> Scope {
        let (station, month) = (station.to_owned(), month.to_owned());
        Scope { id, station, month, diff: None, small: None, partner: None }
    }

    fn hash(scopes: &[Scope]) -> String {
        let mut hash = ScopeHash::default();
        scopes.iter().for_each(|scope| hash.add(scope));
        hex(&hash.end().1)
    }

    #[test]
    fn the_hash_is_sha_256_of_the_scopes_in_their_order() {
        // printf 'S1:202609\nS2:202608\n' | sha256sum
        let two = [scope(1, "S1", "202609"), scope(2, "S2", "202608")];
        let known = "5bb5a95ff2c9025d1a1153b02064f6b43ef837fd1109d796a4faa5678fa5807b";
        assert_eq!(hash(&two), known);
        let [first, second] = two;
        assert_ne!(hash(&[second, first]), known);
    }

    #[test]
    fn a_hash_depends_on_the_scopes_and_on_nothing_else() {
        let line = scope(1, "S1", "202609");
        let records = Scope { id: 9, diff: Some(3), ..line.clone() };
        assert_eq!(hash(std::slice::from_ref(&line)), hash(&[records]));
        assert_ne!(hash(&[line]), hash(&[scope(1, "S1", "202610")]));
        assert_ne!(hash(&[scope(1, "S", "1202609")]), hash(&[scope(1, "S1", "202609")]));
    }
}
