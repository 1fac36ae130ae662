//! The order's log of what the reviewers' decision did to it.

use counterfoil_db::{Instant, Tx, sql};
use counterfoil_protocol::{DataVersion, OrderId, PlanId};

/// One row of the order's log.
#[derive(Debug)]
pub(crate) struct LogEntry<'a> {
    pub(crate) order: OrderId,
    pub(crate) operation: &'static str,
    pub(crate) from: i64,
    pub(crate) to: i64,
    pub(crate) time: Instant,
    pub(crate) remark: Option<&'a str>,
    pub(crate) plan: PlanId,
    pub(crate) data: DataVersion,
    /// PAYABLE and UNQUALIFIED lines, where they were counted.
    pub(crate) counts: Option<(i64, i64)>,
}

pub(crate) async fn write(tx: &mut Tx, entry: &LogEntry<'_>) -> counterfoil_db::Result<()> {
    let now = tx.now();
    let insert = sql!(
        "INSERT INTO fi_resident_income_payment_order_log
           (payment_order_id, operation_type, from_status, to_status, operation_time,
            operation_remark, review_plan_id, data_version, payable_count, unqualified_count,
            create_time, update_time)
         VALUES (:order, :operation, :from_status, :to_status, :time, :remark, :plan, :data,
            :payable, :unqualified, :now, :now)",
        order = entry.order.0,
        operation = entry.operation,
        from_status = entry.from,
        to_status = entry.to,
        time = entry.time,
        remark = entry.remark,
        plan = entry.plan.0,
        data = entry.data.0,
        payable = entry.counts.map(|(payable, _)| payable),
        unqualified = entry.counts.map(|(_, unqualified)| unqualified),
        now = now,
    );
    tx.execute(insert).await?;
    Ok(())
}
