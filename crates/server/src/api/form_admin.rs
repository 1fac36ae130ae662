//! `/api/form/admin/sync/…`: making, reading and cancelling tasks. Signed, by the configured
//! administering programs only.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::{get, post};
use axum::{Json, Router};
use counterfoil_db::Db;
use counterfoil_reconcile::form_centre::create::{self, Wish, WishScope};
use counterfoil_reconcile::form_centre::list::{self, TaskFilter};
use counterfoil_reconcile::form_centre::{CentreSettings, delivery, dispatch};
use serde::Deserialize;
use serde_json::{Value, json};

use super::cursor::{cursor_of, place_of};
use super::form_sync::{json, problem};
use super::problem::{Problem, RequestFault};
use super::signed::{Caller, Gate, admit};

#[derive(Clone)]
struct Admin {
    db: Db,
    settings: CentreSettings,
    apps: Vec<String>,
}

/// The centre's doors for those who run it.
pub fn admin_router(db: Db, settings: CentreSettings, apps: Vec<String>, gate: Gate) -> Router {
    Router::new()
        .route("/api/form/admin/sync/tasks", post(create_tasks).get(list_tasks))
        .route("/api/form/admin/sync/tasks/{task}", get(show_task))
        .route("/api/form/admin/sync/tasks/{task}/results", get(show_results))
        .route("/api/form/admin/sync/tasks/{task}/cancel", post(cancel_task))
        .route("/api/form/admin/sync/answers/{uuid}/replay", post(replay))
        .route("/api/form/admin/sync/deliveries/failed", get(failed))
        .layer(from_fn_with_state(gate, admit))
        .with_state(Admin { db, settings, apps })
}

impl Admin {
    fn lets_in(&self, app: &str) -> Result<(), Problem> {
        if self.apps.iter().any(|known| known == app) {
            return Ok(());
        }
        let detail = "this program does not administer the centre";
        Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail))
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Order {
    scope: String,
    consumer_app_key: String,
    consumer_school_id: Option<String>,
    form_uuid: Option<String>,
    answer_uuid: Option<String>,
}

/// The scope of a wish by its word.
pub(crate) fn scope_of(word: &str) -> Option<WishScope> {
    match word {
        "ALL" => Some(WishScope::All),
        "FORM" => Some(WishScope::Form),
        "ANSWER" => Some(WishScope::Answer),
        _ => None,
    }
}

async fn create_tasks(
    State(admin): State<Admin>,
    Caller(app): Caller,
    body: Bytes,
) -> Result<(StatusCode, Json<Value>), Problem> {
    admin.lets_in(&app)?;
    let order: Order = json(&body)?;
    let scope = scope_of(&order.scope).ok_or_else(|| {
        let detail = "scope must be ALL, FORM or ANSWER";
        Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "INVALID_INPUT", detail)
    })?;
    let wish = Wish {
        scope,
        consumer: order.consumer_app_key,
        school: order.consumer_school_id,
        form: order.form_uuid,
        answer: order.answer_uuid,
    };
    let made = create::create(&admin.db, &admin.settings, &wish, &app).await.map_err(problem)?;
    Ok((StatusCode::CREATED, Json(json!({ "tasks": made }))))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct ListQuery {
    cursor: Option<String>,
    limit: Option<u32>,
    state: Option<String>,
    consumer_app_key: Option<String>,
    form_uuid: Option<String>,
}

type Asked = Result<Query<ListQuery>, QueryRejection>;

fn asked(pairs: Asked) -> Result<(ListQuery, Option<i64>), Problem> {
    let Query(asked) = pairs.map_err(|_| Problem::of_request(RequestFault::Query))?;
    let place = match asked.cursor.as_deref() {
        None => None,
        Some(cursor) => Some(place_of(cursor).ok_or_else(|| {
            let detail = "cursor must be a nextCursor of this list";
            Problem::new(StatusCode::UNPROCESSABLE_ENTITY, "CURSOR_INVALID", detail)
        })?),
    };
    Ok((asked, place))
}

async fn list_tasks(
    State(admin): State<Admin>,
    Caller(app): Caller,
    pairs: Asked,
) -> Result<Json<Value>, Problem> {
    admin.lets_in(&app)?;
    let (asked, before) = asked(pairs)?;
    let filter = TaskFilter {
        state: asked.state,
        consumer: asked.consumer_app_key,
        form: asked.form_uuid,
        before,
    };
    let limit = asked.limit.unwrap_or(50);
    let (tasks, next) = list::tasks(&admin.db, &filter, limit).await.map_err(problem)?;
    let items: Vec<Value> = tasks.iter().map(list::shown).collect();
    Ok(Json(json!({ "items": items, "nextCursor": next.map(cursor_of) })))
}

async fn show_task(
    State(admin): State<Admin>,
    Caller(app): Caller,
    Path(task): Path<String>,
) -> Result<Json<Value>, Problem> {
    admin.lets_in(&app)?;
    let (task, _) = list::one(&admin.db, &task).await.map_err(problem)?;
    Ok(Json(list::shown(&task)))
}

async fn show_results(
    State(admin): State<Admin>,
    Caller(app): Caller,
    Path(task): Path<String>,
) -> Result<Json<Value>, Problem> {
    admin.lets_in(&app)?;
    let (_, results) = list::one(&admin.db, &task).await.map_err(problem)?;
    Ok(Json(json!({ "items": results })))
}

#[derive(Deserialize, Default)]
#[serde(deny_unknown_fields, rename_all = "camelCase", default)]
struct Reason {
    reason: String,
}

async fn cancel_task(
    State(admin): State<Admin>,
    Caller(app): Caller,
    Path(task): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    admin.lets_in(&app)?;
    let Reason { reason } = if body.is_empty() { Reason::default() } else { json(&body)? };
    let done = dispatch::cancel(&admin.db, &task, &app, &reason).await.map_err(problem)?;
    let (task, _) = list::one(&admin.db, &task).await.map_err(problem)?;
    Ok(Json(json!({ "taskId": task.task_id, "state": task.state, "cancelledNow": done })))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Replay {
    consumer_app_key: String,
}

async fn replay(
    State(admin): State<Admin>,
    Caller(app): Caller,
    Path(uuid): Path<String>,
    body: Bytes,
) -> Result<Json<Value>, Problem> {
    admin.lets_in(&app)?;
    let Replay { consumer_app_key } = json(&body)?;
    let replayed = delivery::replay(&admin.db, &uuid, &consumer_app_key, &app).await;
    let delivery_id = replayed.map_err(problem)?;
    Ok(Json(json!({ "deliveryId": delivery_id })))
}

async fn failed(
    State(admin): State<Admin>,
    Caller(app): Caller,
    pairs: Asked,
) -> Result<Json<Value>, Problem> {
    admin.lets_in(&app)?;
    let (asked, before) = asked(pairs)?;
    let found = delivery::failed(&admin.db, before, asked.limit.unwrap_or(50)).await;
    let (items, next) = found.map_err(problem)?;
    Ok(Json(json!({ "items": items, "nextCursor": next.map(cursor_of) })))
}
