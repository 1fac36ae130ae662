//! Deliveries of answers to consumers, as subcommands of `counterfoil delivery`.

use anyhow::Result;
use counterfoil_db::Db;
use counterfoil_reconcile::form_centre::delivery;
use serde_json::json;

use super::Output;
use super::output::table;

/// Deliveries of answers that did not arrive, newest first.
pub(super) async fn failed(db: &Db, before: Option<i64>, limit: u32) -> Result<Output> {
    let (found, next) = delivery::failed(db, before, limit).await?;
    let rows: Vec<Vec<String>> = found
        .iter()
        .map(|row| {
            vec![
                row.id.to_string(),
                row.answer_uuid.clone(),
                row.revision.to_string(),
                row.consumer_app_key.clone(),
                row.state.clone(),
                row.attempts.to_string(),
                row.last_error.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = ["ID", "ANSWER", "REVISION", "CONSUMER", "STATE", "ATTEMPTS", "ERROR"];
    Ok(Output::new(json!({ "items": found, "next": next }), table(&header, &rows)))
}

/// Has one answer delivered again; the grant is checked first.
pub(super) async fn replay(db: &Db, uuid: &str, consumer: &str, actor: &str) -> Result<Output> {
    let delivery = delivery::replay(db, uuid, consumer, actor).await?;
    let text = format!("answer {uuid} will be delivered to {consumer} again as {delivery}");
    Ok(Output::new(json!({ "deliveryId": delivery }), text))
}
