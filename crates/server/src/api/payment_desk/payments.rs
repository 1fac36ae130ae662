//! Pushing batches, taking in what the bank says, and telling partners again.

use std::sync::Arc;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use counterfoil_payment::partner_push::{
    DeliverySearch, DeliveryStatus, deliveries, delivery, redeliver,
};
use counterfoil_payment::treasury::TreasuryError;
use counterfoil_payment::treasury::data_fix::{Fixed, PayeeFix, fix};
use counterfoil_payment::treasury::push::{Asked, Pushed, push_one};
use counterfoil_payment::treasury::result::{self, Applied};
use counterfoil_payment::treasury::view;
use counterfoil_protocol::{DeliveryId, OrderId};
use counterfoil_remote::iso20022::read_report;
use serde_json::{Value, json};

use super::refusal::{of_payment, of_treasury};
use super::{Caller, Desk, Pairs, limit, parameters};
use crate::api::cursor::{self, cursor_of};
use crate::api::fields::Fields;
use crate::api::problem::{FieldFault, Problem};

/// Rows of a page of deliveries when no number is asked for, and at most.
const LISTED: u32 = 50;
const MAX_LISTED: u32 = 200;

/// What came of it is in `outcome`: UNKNOWN is no failure and no success.
pub(super) async fn push(
    State(desk): State<Desk>,
    caller: Caller,
    Path(named): Path<String>,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let batch = view::show(&desk.db, &named).await.map_err(of_treasury)?.batch;
    let (db, channels) = (desk.db.clone(), Arc::clone(&desk.channels));
    // A caller that hangs up does not end a push halfway: its outcome would be unknown then.
    let pushing =
        tokio::spawn(async move { push_one(&db, &channels, batch.id, Asked::ByPerson).await });
    let pushed = pushing.await.map_err(|error| super::refusal::failed(&error, "database-error"))?;
    let pushed = pushed.map_err(of_treasury)?;
    let now = view::show(&desk.db, &named).await.map_err(of_treasury)?.batch;
    let outcome = match pushed {
        Pushed::Accepted => "ACCEPTED",
        Pushed::Refused => "REFUSED",
        Pushed::Unknown => "UNKNOWN",
        Pushed::NeedsData => "NEEDS_DATA",
        Pushed::Lost => {
            let why = "only a batch that waits or failed, of an order at 40, can be pushed";
            return Err(of_treasury(TreasuryError::BatchState {
                batch: batch.id,
                status: now.status,
                why: why.to_owned(),
            }));
        }
    };
    Ok(Json(json!({ "pushBatchId": batch.id, "outcome": outcome, "status": now.status })))
}

/// A status report of the bank (pain.002.001.12), as the request's body.
pub(super) async fn report(
    State(desk): State<Desk>,
    caller: Caller,
    body: Bytes,
) -> Result<Json<Applied>, Problem> {
    let user = desk.person(&caller)?;
    let report = read_report(&body);
    let report =
        report.map_err(|error| of_treasury(TreasuryError::ReportUnreadable(error.to_string())))?;
    Ok(Json(result::import(&desk.db, &report, &body, user).await.map_err(of_treasury)?))
}

/// Puts a payee right, or confirms it; what is absent stays as it is.
pub(super) async fn put_right(
    State(desk): State<Desk>,
    caller: Caller,
    Path(detail): Path<String>,
    body: Bytes,
) -> Result<Json<Fixed>, Problem> {
    let user = desk.person(&caller)?;
    let detail = numbered("detail", &detail)?;
    let mut fields = Fields::of_json(&body)?;
    let payee = PayeeFix {
        name: fields.maybe_text("payeeName"),
        account: fields.maybe_text("payeeAccount"),
        bank: fields.maybe_text("payeeBank"),
    };
    let reason = fields.text("reason");
    if reason.trim().is_empty() {
        fields.fault("reason", "must say why");
    }
    fields.finish()?;
    let fixed = fix(&desk.db, detail, &payee, &reason, user).await;
    Ok(Json(fixed.map_err(of_treasury)?))
}

pub(super) async fn told(
    State(desk): State<Desk>,
    caller: Caller,
    pairs: Pairs,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let mut fields = parameters(pairs)?;
    let status = fields.maybe_text("status").and_then(|name| {
        let status = DeliveryStatus::of(&name);
        if status.is_none() {
            fields.fault("status", "must be WAIT_PROCESS, SUCCESS, FAIL, UNKNOWN or SKIPPED");
        }
        status
    });
    let limit = limit_of(&mut fields);
    let search = DeliverySearch {
        order: fields.maybe_id("paymentOrderId").map(OrderId),
        status,
        before: cursor::asked(&mut fields).map(DeliveryId),
        limit,
    };
    fields.finish()?;
    let found = deliveries(&desk.db, &search).await.map_err(of_payment)?;
    let is_full = u32::try_from(found.len()).is_ok_and(|rows| rows == limit);
    let next = found.last().filter(|_| is_full).map(|row| cursor_of(row.id.0));
    Ok(Json(json!({ "deliveries": found, "nextCursor": next })))
}

fn limit_of(fields: &mut Fields) -> u32 {
    limit(fields).unwrap_or(LISTED).clamp(1, MAX_LISTED)
}

pub(super) async fn told_one(
    State(desk): State<Desk>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let id = DeliveryId(numbered("delivery", &id)?);
    Ok(Json(json!(delivery(&desk.db, id).await.map_err(of_payment)?)))
}

/// Sends one again under its key, whatever the partner's policy says.
pub(super) async fn tell_again(
    State(desk): State<Desk>,
    caller: Caller,
    Path(id): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let user = desk.person(&caller)?;
    let id = DeliveryId(numbered("delivery", &id)?);
    let reason = super::acting::reason(&body)?;
    let done = redeliver(&desk.db, &*desk.inbox, id, user, &reason).await.map_err(of_payment)?;
    Ok(Json(json!(done)))
}

fn numbered(what: &str, text: &str) -> Result<i64, Problem> {
    let number = text.parse().ok().filter(|number| *number > 0);
    number.ok_or_else(|| {
        let detail = "must be a positive whole number".to_owned();
        Problem::of_fields(vec![FieldFault { field: what.to_owned(), detail }])
    })
}
