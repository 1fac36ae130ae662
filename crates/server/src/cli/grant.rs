//! `counterfoil grant`: which consumer may see which answers.

use anyhow::Result;
use counterfoil_db::{Db, Read, sql};
use counterfoil_reconcile::form_centre::grant::{self, Rights};
use counterfoil_reconcile::wire::Coordinate;
use serde_json::{Value, json};

use super::output::{Failure, table};
use super::{Output, Session};

/// Grants shown at most.
const MAX_SHOWN: u32 = 500;

/// What to do with grants. Every change raises the grant's epoch: tasks made before are cancelled.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Grants a consumer a form's answers of one school, and the school itself if need be
    Set {
        #[command(flatten)]
        place: Place,
        /// The grant does not count for now
        #[arg(long)]
        disabled: bool,
        /// Changes are not delivered
        #[arg(long)]
        no_subscribe: bool,
        /// Answers may not be read
        #[arg(long)]
        no_read: bool,
    },
    /// Takes a grant away; its row stays, with the next epoch
    Revoke {
        #[command(flatten)]
        place: Place,
        /// Takes the school away too, and so every grant in it
        #[arg(long)]
        whole_school: bool,
    },
    /// Lists grants, and whether each counts
    List {
        /// Only of this consumer
        #[arg(long)]
        consumer: Option<String>,
    },
}

/// What is granted to whom.
#[derive(Debug, clap::Args)]
pub(super) struct Place {
    /// The consumer's app key
    #[arg(long)]
    consumer: String,
    /// The school
    #[arg(long)]
    school: String,
    /// The form
    #[arg(long)]
    form: String,
}

impl Place {
    fn coordinate(self) -> Result<Coordinate> {
        let Place { consumer, school, form } = self;
        if [&consumer, &school, &form].iter().any(|text| !(1..=64).contains(&text.len())) {
            let message = "--consumer, --school and --form have 1 to 64 bytes each".to_owned();
            return Err(Failure { code: "invalid-input", message }.into());
        }
        Ok(Coordinate { consumer, school, form, answer: None })
    }
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    let actor = session.actor();
    match command {
        Command::Set { place, disabled, no_subscribe, no_read } => {
            let at = place.coordinate()?;
            let rights = Rights { enabled: !disabled, subscribe: !no_subscribe, read: !no_read };
            // The school first: a grant outside the scope never counts.
            grant::scope(&db, &at.consumer, &at.school, true).await?;
            grant::change(&db, &at, rights, &actor).await?;
            said(&db, &at).await
        }
        Command::Revoke { place, whole_school } => {
            let at = place.coordinate()?;
            grant::change(&db, &at, Rights::NONE, &actor).await?;
            if whole_school {
                grant::scope(&db, &at.consumer, &at.school, false).await?;
            }
            said(&db, &at).await
        }
        Command::List { consumer } => list(&db, consumer.as_deref()).await,
    }
}

/// The grant as it is now, read back.
async fn said(db: &Db, at: &Coordinate) -> Result<Output> {
    let grant = grant::find(db, at).await?;
    let effective = grant::effective(db, at).await;
    let epoch = grant.as_ref().map_or(0, |grant| grant.grant_epoch);
    let word = match &effective {
        Ok(_) => "counts".to_owned(),
        Err(refusal) if refusal.refused().is_some() => format!("does not count ({refusal})"),
        Err(refusal) => anyhow::bail!("{refusal}"),
    };
    let Coordinate { consumer, school, form, .. } = at;
    let text =
        format!("the grant of {consumer} on form {form} of school {school} {word}, epoch {epoch}");
    let json = json!({
        "consumerAppKey": consumer, "consumerSchoolId": school, "formUuid": form, "grant": grant,
        "isEffective": effective.is_ok(),
    });
    Ok(Output::new(json, text))
}

async fn list(db: &Db, consumer: Option<&str>) -> Result<Output> {
    let query = sql!(
        "SELECT g.app_key, g.sch_id, g.form_uuid, g.enabled, g.subscribe_allowed, g.read_allowed,
           g.epoch, COALESCE(s.deleted, 1) AS is_outside
         FROM form_consumer_grant g
         LEFT JOIN app_school_scope s ON s.app_key = g.app_key AND s.sch_id = g.sch_id
         WHERE g.deleted = 0 AND (:consumer = '' OR g.app_key = :consumer)
         ORDER BY g.app_key, g.sch_id, g.form_uuid LIMIT :most",
        consumer = consumer.unwrap_or_default(),
        most = MAX_SHOWN,
    );
    let (mut rows, mut items): (Vec<Vec<String>>, Vec<Value>) = (Vec::new(), Vec::new());
    for row in db.rows(query).await? {
        let is = |name: &str| row.int(name).map(|value| value == 1);
        let (enabled, subscribe, read) =
            (is("enabled")?, is("subscribe_allowed")?, is("read_allowed")?);
        let is_effective = enabled && subscribe && read && !is("is_outside")?;
        let (app, school, form) =
            (row.text("app_key")?, row.text("sch_id")?, row.text("form_uuid")?);
        let epoch = row.int("epoch")?;
        items.push(json!({
            "consumerAppKey": app, "consumerSchoolId": school, "formUuid": form, "epoch": epoch,
            "enabled": enabled, "subscribe": subscribe, "read": read,
            "isInScope": !is("is_outside")?, "isEffective": is_effective,
        }));
        let counts = if is_effective { "yes" } else { "no" };
        rows.push(vec![app, school, form, epoch.to_string(), counts.to_owned()]);
    }
    let text = table(&["CONSUMER", "SCHOOL", "FORM", "EPOCH", "COUNTS"], &rows);
    Ok(Output::new(json!({ "items": items }), text))
}
