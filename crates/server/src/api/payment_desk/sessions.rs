//! Selection sessions, from the first bill to the submission.

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use counterfoil_payment::order_view::find;
use counterfoil_payment::session::add::{BillKey, Selection, add_bills};
use counterfoil_payment::session::creation_key::CreationKey;
use counterfoil_payment::session::edit::{Editor, mark_payable, mark_unqualified, remove_bills};
use counterfoil_payment::session::open::{open_new, open_once, open_revise};
use counterfoil_payment::session::show::show;
use counterfoil_payment::session::submit;
use counterfoil_protocol::{BillMonth, SessionId};
use serde_json::{Value, json};

use super::refusal::of_payment;
use super::{Caller, Desk};
use crate::api::fields::Fields;
use crate::api::problem::{FieldFault, Problem};
use crate::told;

const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// Opens a session: 201, or 200 with the session that this `Idempotency-Key` opened before.
pub(super) async fn create(
    State(desk): State<Desk>,
    caller: Caller,
    headers: HeaderMap,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let user = desk.person(&caller)?;
    let mut fields = Fields::of_json(&body)?;
    let revises = fields.maybe_text("revise");
    fields.finish()?;
    let order = match &revises {
        Some(named) => Some(find(&desk.db, named).await.map_err(of_payment)?),
        None => None,
    };
    let mode = if order.is_some() { "REVISE" } else { "NEW" };
    let answer = |session: SessionId| Json(json!({ "sessionId": session, "mode": mode }));
    let Some(key) = headers.get(IDEMPOTENCY_KEY) else {
        let session = match order {
            None => open_new(&desk.db, user).await,
            Some(order) => open_revise(&desk.db, user, order).await,
        };
        return Ok((StatusCode::CREATED, answer(session.map_err(of_payment)?)));
    };
    let meant = json!({ "user": user, "order": order }).to_string();
    let key = String::from_utf8_lossy(key.as_bytes());
    let key = CreationKey::new(&caller.0, &key, &meant).map_err(of_payment)?;
    let opened = open_once(&desk.db, user, order, &key).await.map_err(of_payment)?;
    let status = if opened.is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, answer(opened.session)))
}

pub(super) async fn read(
    State(desk): State<Desk>,
    caller: Caller,
    Path(session): Path<String>,
) -> Result<Json<Value>, Problem> {
    desk.person(&caller)?;
    let view = show(&desk.db, numbered(&session)?).await.map_err(of_payment)?;
    Ok(Json(told::session(&view)))
}

pub(super) async fn add(
    State(desk): State<Desk>,
    caller: Caller,
    Path(session): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let editor = Editor { session: numbered(&session)?, user: desk.person(&caller)? };
    let selection = selection(&body)?;
    let added = add_bills(&desk.db, editor, &selection, &desk.tolerance).await;
    Ok(Json(told::added(editor.session, &added.map_err(of_payment)?)))
}

pub(super) async fn remove(
    State(desk): State<Desk>,
    caller: Caller,
    Path(session): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let editor = Editor { session: numbered(&session)?, user: desk.person(&caller)? };
    let removed = remove_bills(&desk.db, editor, &selection(&body)?).await.map_err(of_payment)?;
    Ok(Json(json!({ "sessionId": editor.session, "removed": removed })))
}

/// `payable` false marks bills by hand as not to be paid; true takes such marks back.
pub(super) async fn mark(
    State(desk): State<Desk>,
    caller: Caller,
    Path(session): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    let editor = Editor { session: numbered(&session)?, user: desk.person(&caller)? };
    let mut fields = Fields::of_json(&body)?;
    let payable = fields.flag("payable");
    let bills = listed(&mut fields);
    fields.finish()?;
    let bills = bills.unwrap_or_default();
    let marked = match payable {
        true => mark_payable(&desk.db, editor, &bills, &desk.tolerance).await,
        false => mark_unqualified(&desk.db, editor, &bills).await,
    };
    Ok(Json(told::marked(editor.session, &marked.map_err(of_payment)?)))
}

/// 202: accepted, and nothing is built yet.
pub(super) async fn submit_it(
    State(desk): State<Desk>,
    caller: Caller,
    Path(session): Path<String>,
) -> Result<(StatusCode, Json<Value>), Problem> {
    let user = desk.person(&caller)?;
    let session = numbered(&session)?;
    let done = submit(&desk.db, &desk.kicker, session, user).await.map_err(of_payment)?;
    Ok((StatusCode::ACCEPTED, Json(told::submitted(session, &done))))
}

fn numbered(text: &str) -> Result<SessionId, Problem> {
    text.parse().map_err(|_| {
        let detail = "must be the number of a session".to_owned();
        Problem::of_fields(vec![FieldFault { field: "session".into(), detail }])
    })
}

/// All bills of a month, or those that are listed.
fn selection(body: &[u8]) -> Result<Selection, Problem> {
    let mut fields = Fields::of_json(body)?;
    let bills = listed(&mut fields);
    let month = fields.maybe_text("billYearmonth");
    let month = month.as_deref().and_then(|text| month_of(&mut fields, text));
    let company = fields.maybe_id("projectCompanyId");
    let partner = fields.maybe_id("partnerId");
    match (month, bills) {
        (Some(month), None) => {
            fields.finish()?;
            Ok(Selection::Month { month, company, partner })
        }
        (None, Some(bills)) if company.is_none() && partner.is_none() => {
            fields.finish()?;
            Ok(Selection::Bills(bills))
        }
        _ => {
            fields.fault("bills", "give either bills, or billYearmonth and what narrows it");
            fields.finish()?;
            unreachable!("a fault was noted")
        }
    }
}

fn listed(fields: &mut Fields) -> Option<Vec<BillKey>> {
    let list = fields.maybe_objects("bills")?;
    let mut bills = Vec::with_capacity(list.len());
    for (at, mut one) in list.into_iter().enumerate() {
        let station = one.text("stationId");
        let month = one.text("billYearmonth");
        let month = month_of(&mut one, &month);
        if let (Ok(()), Some(month)) = (one.finish(), month) {
            bills.push(BillKey { station, month });
        } else {
            fields.fault(&format!("bills[{at}]"), "must be a stationId and a billYearmonth");
        }
    }
    Some(bills)
}

fn month_of(fields: &mut Fields, text: &str) -> Option<BillMonth> {
    let month = text.parse();
    if let Err(error) = &month {
        fields.fault("billYearmonth", &format!("{text} {error}"));
    }
    month.ok()
}
