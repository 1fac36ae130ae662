//! What is done to an order, by the person that the program acts as.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use counterfoil_payment::order_cancel::cancel;
use counterfoil_payment::order_view::find;
use counterfoil_payment::publish_repair::{Repaired, repair_publish};
use counterfoil_payment::treasury::record_payment::{Recorded, record_payment};
use counterfoil_payment::visibility_gate;
use serde_json::Value;

use super::refusal::{of_payment, of_treasury};
use super::{Caller, Desk};
use crate::api::fields::Fields;
use crate::api::problem::Problem;
use crate::told;

pub(super) async fn cancel_order(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let user = desk.person(&caller)?;
    let reason = reason(&body)?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    let done = cancel(&desk.db, &desk.kicker, order, user, &reason).await.map_err(of_payment)?;
    Ok(Json(told::cancelled(&done)))
}

pub(super) async fn repair(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
    body: Bytes,
) -> Result<Json<Repaired>, Problem> {
    let user = desk.person(&caller)?;
    let reason = reason(&body)?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    Ok(Json(repair_publish(&desk.db, order, user, &reason).await.map_err(of_payment)?))
}

/// Gated: it says what became of bills whose refresh must be over.
pub(super) async fn record(
    State(desk): State<Desk>,
    caller: Caller,
    Path(order): Path<String>,
    body: Bytes,
) -> Result<Json<Recorded>, Problem> {
    let user = desk.person(&caller)?;
    let mut fields = Fields::of_json(&body)?;
    let evidence = fields.text("evidence");
    let paid_at = fields.maybe_instant("paidAt");
    fields.finish()?;
    let order = find(&desk.db, &order).await.map_err(of_payment)?;
    visibility_gate::check(&desk.db, order).await.map_err(of_payment)?;
    let done = record_payment(&desk.db, order, &evidence, paid_at, user).await;
    Ok(Json(done.map_err(of_treasury)?))
}

pub(super) fn reason(body: &[u8]) -> Result<String, Problem> {
    let mut fields = Fields::of_json(body)?;
    let reason = fields.text("reason");
    if reason.trim().is_empty() {
        fields.fault("reason", "must say why");
    }
    fields.finish()?;
    Ok(reason)
}
