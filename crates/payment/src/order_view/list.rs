//! Orders, newest first.

use counterfoil_db::{Query, Read};
use counterfoil_protocol::{OrderId, UserId};
use serde::Serialize;

use super::facts::{OrderRow, order_columns};
use super::page;
use crate::PaymentError;

/// Which orders.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OrderQuery {
    /// Only at this status code.
    pub status: Option<i64>,
    /// Only of this creator.
    pub creator: Option<UserId>,
    /// Only before this id: the last one of the page before.
    pub before: Option<OrderId>,
    /// Rows at most.
    pub limit: Option<u32>,
}

/// A page of orders.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrdersPage {
    /// The orders, newest first.
    pub orders: Vec<OrderRow>,
    /// Where the next page begins; `None` = this was the last.
    pub next_before: Option<OrderId>,
}

/// One text a filter, so that each walks an index in the order of the page.
macro_rules! orders {
    ($filter:literal) => {
        concat!(
            "SELECT ",
            order_columns!(),
            " FROM fi_resident_income_payment_order
              WHERE deleted = 0 AND id < :before ",
            $filter,
            " ORDER BY id DESC LIMIT :limit"
        )
    };
}

/// One page of the orders that match.
pub async fn list(from: &impl Read, query: &OrderQuery) -> Result<OrdersPage, PaymentError> {
    let text = match (query.status, query.creator) {
        (None, None) => orders!(""),
        (Some(_), None) => orders!("AND status = :status"),
        (None, Some(_)) => orders!("AND create_user_id = :creator"),
        (Some(_), Some(_)) => orders!("AND status = :status AND create_user_id = :creator"),
    };
    let limit = page(query.limit);
    let select = Query::new(text)
        .bind("before", query.before.map_or(i64::MAX, |order| order.0))
        .bind("status", query.status)
        .bind("creator", query.creator.map(|user| user.0))
        .bind("limit", limit + 1);
    let rows = from.rows(select).await?;
    let mut orders = Vec::with_capacity(rows.len());
    for row in &rows {
        orders.push(OrderRow::read(row)?);
    }
    let has_more = orders.len() > limit as usize;
    orders.truncate(limit as usize);
    let next_before = orders.last().filter(|_| has_more).map(|order| order.id);
    Ok(OrdersPage { orders, next_before })
}
