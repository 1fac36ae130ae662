//! Finding an order by what a person typed.

use counterfoil_db::{Read, sql};
use counterfoil_protocol::OrderId;

use crate::PaymentError;

/// The live order with this id or this number. An id wins over a number that looks like it.
///
/// # Errors
/// [`PaymentError::NoSuchOrder`] when there is neither.
pub async fn find(from: &impl Read, order: &str) -> Result<OrderId, PaymentError> {
    let order = order.trim();
    let query = sql!(
        "SELECT id FROM fi_resident_income_payment_order
         WHERE deleted = 0 AND (id = :id OR order_no = :number)
         ORDER BY CASE WHEN id = :id THEN 0 ELSE 1 END LIMIT 1",
        id = order.parse::<i64>().ok(),
        number = order,
    );
    match from.row(query).await? {
        Some(row) => Ok(OrderId(row.int("id")?)),
        None => Err(PaymentError::NoSuchOrder(order.to_owned())),
    }
}
