//! `counterfoil migrate`.

use anyhow::Result;
use serde_json::json;

use super::{Output, Session};
use crate::wiring;

pub(super) async fn run(session: &Session) -> Result<Output> {
    let db = session.open().await?;
    let schema = wiring::schema(&db).await?;
    if !schema.unknown.is_empty() {
        schema.accept()?;
    }
    let applied = counterfoil_db::migrate(&db, &wiring::migrations()).await?;
    let text = match applied.len() {
        0 => "the database is up to date".to_owned(),
        n => format!("{n} migrations applied: {applied:?}"),
    };
    Ok(Output::new(json!({ "applied": applied }), text))
}
