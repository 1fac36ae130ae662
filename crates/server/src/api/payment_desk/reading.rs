//! Orders, bills and batches, as they are.

use axum::Json;
use axum::extract::{Path, State};
use counterfoil_payment::order_view::{
    self, BillView, Diff, LineQuery, OrderQuery, OrderView, Timeline, find, order_status_code,
};
use counterfoil_payment::treasury::view::{self, BatchQuery, BatchView};
use counterfoil_payment::visibility_gate;
use counterfoil_protocol::{BillMonth, DataVersion, LineId, OrderId, UserId};
use serde_json::{Value, json};

use super::refusal::{of_payment, of_treasury};
use super::{Caller, Desk, Pairs, limit, parameters};
use crate::api::cursor::{self, cursor_of};
use crate::api::problem::{FieldFault, Problem};

/// Bills shown a kind of change when no number is asked for.
const CHANGED_SHOWN: u32 = 10;

pub(super) async fn orders(
    State(desk): State<Desk>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let status = fields.maybe_text("status").and_then(|name| {
        let code = order_status_code(&name);
        if code.is_none() {
            fields.fault("status", "is no status of an order");
        }
        code
    });
    let query = OrderQuery {
        status,
        creator: fields.maybe_id("creatorUserId").map(UserId),
        before: cursor::asked(&mut fields).map(OrderId),
        limit: limit(&mut fields),
    };
    fields.finish()?;
    let page = order_view::list(&desk.db, &query).await.map_err(of_payment)?;
    let next = page.next_before.map(|order| cursor_of(order.0));
    Ok(Json(json!({ "orders": page.orders, "nextCursor": next })))
}

/// Shown as it is while it is refreshed, too: what is proved by then is told apart in it.
pub(super) async fn order(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
) -> Result<Json<OrderView>, Problem> {
    desk.person(&caller)?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    Ok(Json(order_view::one(&desk.db, order).await.map_err(of_payment)?))
}

pub(super) async fn lines(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
    pairs: Pairs,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let query = LineQuery {
        data_version: fields.maybe_id("dataVersion").map(DataVersion),
        after: cursor::asked(&mut fields).map(LineId),
        limit: limit(&mut fields),
    };
    fields.finish()?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    let page = order_view::lines(&desk.db, order, &query).await.map_err(of_payment)?;
    let next = page.next_after.map(|line| cursor_of(line.0));
    Ok(Json(json!({
        "paymentOrderId": page.payment_order_id, "dataVersion": page.data_version,
        "lines": page.lines, "nextCursor": next,
    })))
}

pub(super) async fn timeline(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
    pairs: Pairs,
) -> Result<Json<Timeline>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let newest = limit(&mut fields);
    fields.finish()?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    Ok(Json(order_view::timeline(&desk.db, order, newest).await.map_err(of_payment)?))
}

pub(super) async fn changes(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
    pairs: Pairs,
) -> Result<Json<Diff>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let (from, to) = (DataVersion(fields.id("from")), DataVersion(fields.id("to")));
    let shown = limit(&mut fields).unwrap_or(CHANGED_SHOWN);
    fields.finish()?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    Ok(Json(order_view::diff(&desk.db, order, from, to, shown).await.map_err(of_payment)?))
}

/// Gated: a bill's records are what a refresh brings into line.
pub(super) async fn bill(
    State(desk): State<Desk>,
    caller: Caller,
    Path((station, month)): Path<(String, String)>,
) -> Result<Json<BillView>, Problem> {
    desk.person(&caller)?;
    let month: BillMonth = month.parse().map_err(|error| {
        Problem::of_fields(vec![FieldFault { field: "month".into(), detail: format!("{error}") }])
    })?;
    let bill = order_view::bill(&desk.db, &station, &month, &desk.tolerance).await;
    let bill = bill.map_err(of_payment)?;
    for order in bill.orders() {
        visibility_gate::check(&desk.db, order).await.map_err(of_payment)?;
    }
    Ok(Json(bill))
}

pub(super) async fn batches(
    State(desk): State<Desk>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let order = fields.maybe_text("order");
    let mut query = BatchQuery {
        order: None,
        status: fields.maybe_text("status"),
        after: cursor::asked(&mut fields),
        limit: limit(&mut fields),
    };
    fields.finish()?;
    if let Some(named) = order {
        query.order = Some(find(&desk.db, &named).await.map_err(of_payment)?.0);
    }
    let page = view::list(&desk.db, &query).await.map_err(of_treasury)?;
    let next = page.next_after.map(cursor_of);
    Ok(Json(json!({ "batches": page.batches, "nextCursor": next })))
}

pub(super) async fn batch(
    State(desk): State<Desk>,
    caller: Caller,
    Path(batch): Path<String>,
) -> Result<Json<BatchView>, Problem> {
    desk.person(&caller)?;
    Ok(Json(view::show(&desk.db, &batch).await.map_err(of_treasury)?))
}
