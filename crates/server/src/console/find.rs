//! From any id to its page.

use axum::extract::{Query, State};
use axum::response::{IntoResponse, Redirect};
use counterfoil_payment::order_view;
use counterfoil_payment::treasury::view;
use counterfoil_reconcile::form_centre::list::one;
use maud::html;
use serde::Deserialize;

use super::Console;
use super::door::Visitor;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble};
use super::tasks::maybe_find;

/// What is looked for.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Looked {
    #[serde(default)]
    q: String,
}

/// Characters of what is looked for.
const MAX_LOOKED_FOR: usize = 200;

/// The page of what was typed, if it is the id of something.
async fn path_of(console: &Console, typed: &str) -> Result<Option<String>, Trouble> {
    let db = &console.db;
    if let Ok(order) = order_view::find(db, typed).await {
        return Ok(Some(format!("/console/orders/{order}")));
    }
    if maybe_find(db, typed).await?.is_some() {
        return Ok(Some(format!("/console/tasks/{}", parts::escaped(typed))));
    }
    if let Ok(batch) = view::show(db, typed).await {
        return Ok(Some(format!("/console/batches/{}", batch.batch.id)));
    }
    if one(db, typed).await.is_ok() {
        return Ok(Some(format!("/console/reconciliation/{}", parts::escaped(typed))));
    }
    let mut words = typed.split([' ', '·', ':', ',']).filter(|word| !word.is_empty());
    if let (Some(station), Some(month), None) = (words.next(), words.next(), words.next()) {
        let month = parts::escaped(&month.replace('-', ""));
        return Ok(Some(format!("/console/bills/{}/{month}", parts::escaped(station))));
    }
    Ok(None)
}

pub(super) async fn find(
    State(console): State<Console>,
    visitor: Visitor,
    Query(Looked { q }): Query<Looked>,
) -> Answer {
    let lang = visitor.lang();
    let typed: String = q.trim().chars().take(MAX_LOOKED_FOR).collect();
    if typed.is_empty() || typed.contains('\0') {
        return Ok(Redirect::to("/console").into_response());
    }
    if let Some(path) = path_of(&console, &typed).await? {
        return Ok(Redirect::to(&path).into_response());
    }
    let body = html! {
        h1 { (lang.find()) }
        p class="lede" { span class="mono" { (typed) } }
        (parts::empty(lang.nothing_found()))
        p { a class="button" href={ "/console/bills?station=" (parts::escaped(&typed)) } {
            (lang.look_as_station())
        } }
    };
    Ok(Page::new(Room::Overview, lang.find(), body).shown_to(&visitor))
}
