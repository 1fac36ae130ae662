//! Which order a task is about, from what its row carries.

use std::collections::BTreeMap;

use counterfoil_db::{Db, Query, Read};
use serde_json::Value;

use super::shell::Trouble;

/// Where an order is found by an id that tasks carry: field, statement.
const LOOKED_UP: [(&str, &str); 2] = [
    (
        "paymentOrderVersionId",
        "SELECT id, payment_order_id FROM fi_resident_income_payment_order_version
         WHERE id IN :ids",
    ),
    (
        "progressId",
        "SELECT id, payment_order_id FROM fi_resident_income_payment_review_callback_progress
         WHERE id IN :ids",
    ),
];

/// The orders of tasks, by their `task_data`, in their order. The caller bounds their number.
pub(super) async fn orders_of(
    db: &Db,
    data: &[Option<String>],
) -> Result<Vec<Option<i64>>, Trouble> {
    let read = |text: &Option<String>| {
        let value: Option<Value> = serde_json::from_str(text.as_deref()?).ok();
        value
    };
    let data: Vec<Option<Value>> = data.iter().map(read).collect();
    let field = |value: &Option<Value>, name: &str| value.as_ref()?.get(name)?.as_i64();
    let mut orders: Vec<Option<i64>> =
        data.iter().map(|value| field(value, "paymentOrderId")).collect();
    for (name, text) in LOOKED_UP {
        let ids: Vec<i64> = data.iter().filter_map(|value| field(value, name)).collect();
        if ids.is_empty() {
            continue;
        }
        let mut found = BTreeMap::new();
        for row in db.rows(Query::new(text).bind_list("ids", ids)).await? {
            found.insert(row.int("id")?, row.int("payment_order_id")?);
        }
        for (order, value) in orders.iter_mut().zip(&data) {
            let known = field(value, name).and_then(|id| found.get(&id).copied());
            *order = order.or(known);
        }
    }
    Ok(orders)
}
