//! `/oapi/form/answers`: writing answers, and pulling what changed lately. Signed.

use axum::body::Bytes;
use axum::extract::rejection::QueryRejection;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::middleware::from_fn_with_state;
use axum::routing::post;
use axum::{Json, Router};
use counterfoil_db::Db;
use counterfoil_reconcile::form_centre::answer::{AnswerWrite, Pulled, Written, pull, write};
use counterfoil_reconcile::wire::Coordinate;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use super::form_sync::{json, problem};
use super::problem::{Problem, RequestFault};
use super::signed::{Caller, Gate, admit};

#[derive(Clone)]
struct Answers {
    db: Db,
    writers: Vec<String>,
}

/// The doors of answers. Only `writers` write; consumers pull what they have a grant on.
pub fn answers_router(db: Db, writers: Vec<String>, gate: Gate) -> Router {
    Router::new()
        .route("/oapi/form/answers", post(put).get(read))
        .layer(from_fn_with_state(gate, admit))
        .with_state(Answers { db, writers })
}

/// An answer as it is sent: the body of a write, and a line of a file of answers.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
pub(crate) struct Put {
    answer_uuid: Option<String>,
    form_uuid: String,
    sch_id: String,
    form_version: Option<i64>,
    #[serde(default)]
    is_deleted: bool,
    /// As written: parsed by the canonicaliser, which sees what a parsed value has lost.
    values: Option<Box<RawValue>>,
    expected_revision: Option<i64>,
}

impl Put {
    /// As the domain takes it.
    pub(crate) fn into_write(self) -> AnswerWrite {
        let values = self.values.as_deref().map(|values| values.get().to_owned());
        AnswerWrite {
            uuid: self.answer_uuid,
            form: self.form_uuid,
            school: self.sch_id,
            version: self.form_version,
            values: (!self.is_deleted).then(|| values.unwrap_or_else(|| "null".into())),
            expected: self.expected_revision,
        }
    }
}

async fn put(
    State(Answers { db, writers }): State<Answers>,
    Caller(app): Caller,
    body: Bytes,
) -> Result<Json<Written>, Problem> {
    if !writers.contains(&app) {
        let detail = "this program does not write answers";
        return Err(Problem::new(StatusCode::FORBIDDEN, "forbidden", detail));
    }
    let put: Put = json(&body)?;
    let answer = put.into_write();
    write(&db, &answer, &app).await.map(Json).map_err(problem)
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct PullQuery {
    form_uuid: String,
    sch_id: String,
    cursor: Option<i64>,
    size: Option<u32>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Page {
    items: Vec<Pulled>,
    next_cursor: Option<i64>,
}

async fn read(
    State(Answers { db, .. }): State<Answers>,
    Caller(app): Caller,
    pairs: Result<Query<PullQuery>, QueryRejection>,
) -> Result<Json<Page>, Problem> {
    let Query(asked) = pairs.map_err(|_| Problem::of_request(RequestFault::Query))?;
    let at =
        Coordinate { consumer: app, school: asked.sch_id, form: asked.form_uuid, answer: None };
    let after = asked.cursor.unwrap_or(0);
    let items = pull(&db, &at, after, asked.size.unwrap_or(200)).await.map_err(problem)?;
    let next_cursor = items.last().map(|item| item.seq_no);
    Ok(Json(Page { items, next_cursor }))
}
