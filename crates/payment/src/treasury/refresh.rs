//! Status refresh shards of payments: S12 brings ledgers and bills into line with paid lines.

use counterfoil_db::Tx;
use counterfoil_protocol::{DataVersion, LineId, OrderId, SubmitRound};

use super::TreasuryError;
use crate::status_refresh::{LinesOf, Source, insert_shards, plan_shards_between};

/// How far the ids of one range of touched lines may lie apart.
const SPAN: i64 = 1000;

/// The lines of one order's version.
#[derive(Debug, Clone, Copy)]
pub(super) struct OrderLines {
    pub(super) order: i64,
    pub(super) data: i64,
    pub(super) round: i64,
}

/// Plans shards of source PAYMENT_RESULT over ranges that hold the touched lines. A range may hold
/// lines that were not touched: refreshing them changes nothing.
pub(super) async fn plan(
    tx: &mut Tx,
    lines: OrderLines,
    source: i64,
    touched: &[i64],
) -> Result<(), TreasuryError> {
    let of = LinesOf {
        order: OrderId(lines.order),
        data: DataVersion(lines.data),
        round: SubmitRound(lines.round),
    };
    for (first, last) in ranges(touched) {
        let shards = plan_shards_between(&*tx, &of, LineId(first), LineId(last)).await?;
        insert_shards(tx, Source::PaymentResult, source, &of, &shards).await?;
    }
    Ok(())
}

fn ranges(touched: &[i64]) -> Vec<(i64, i64)> {
    let mut touched = touched.to_vec();
    touched.sort_unstable();
    let mut ranges: Vec<(i64, i64)> = Vec::new();
    for id in touched {
        match ranges.last_mut() {
            Some((first, last)) if id - *first < SPAN => *last = id,
            _ => ranges.push((id, id)),
        }
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_holds_what_lies_near_and_no_more() {
        assert_eq!(ranges(&[]), []);
        assert_eq!(ranges(&[7, 5, 6, 1004, 1005, 9000]), [(5, 1004), (1005, 1005), (9000, 9000)]);
    }
}
