//! Making tasks: by a person for all forms, one form or one answer, or on schedule.
//!
//! A task that is refused is still a row, FAILED with its code, and never dispatched.

use chrono::{FixedOffset, TimeDelta};
use counterfoil_db::{Db, Instant, Read, Tx, sql, transact};
use serde::Serialize;
use sha2::{Digest, Sha256};

use super::{CentreSettings, grant};
use crate::key::{is_answer_uuid, new_uuid};
use crate::refusal::{Code, Refusal};
use crate::wire::Coordinate;

/// What a person wants reconciled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wish {
    /// ALL, FORM or ANSWER.
    pub scope: WishScope,
    /// The consumer.
    pub consumer: String,
    /// The school, where it is not to be every one.
    pub school: Option<String>,
    /// The form, likewise.
    pub form: Option<String>,
    /// The answer, with [`WishScope::Answer`].
    pub answer: Option<String>,
}

/// How much is to be reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WishScope {
    /// Everything that the consumer has a grant on, split by form and school.
    All,
    /// One form.
    Form,
    /// One answer.
    Answer,
}

/// A task that was made, or refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Made {
    /// Its id.
    pub task_id: String,
    /// QUEUED, or FAILED when it was refused.
    pub state: &'static str,
    /// Why it was refused.
    pub reason_code: Option<&'static str>,
    /// The same for people.
    pub reason: Option<String>,
}

/// Makes the tasks of a wish.
///
/// # Errors
/// A wish that names no coordinate: then there is no row either.
pub async fn create(
    db: &Db,
    settings: &CentreSettings,
    wish: &Wish,
    actor: &str,
) -> Result<Vec<Made>, Refusal> {
    let mut made = Vec::new();
    for coordinate in coordinates(db, settings, wish).await? {
        let task = || NewTask { coordinate: &coordinate, trigger: "MANUAL", key: None, actor };
        made.extend(transact!(insert(db, settings, task()))?);
    }
    Ok(made)
}

async fn coordinates(
    db: &Db,
    settings: &CentreSettings,
    wish: &Wish,
) -> Result<Vec<Coordinate>, Refusal> {
    let missing = |what: &str| Refusal::of(Code::InvalidInput, format!("{what} is needed"));
    if wish.consumer.is_empty() {
        return Err(missing("consumerAppKey"));
    }
    let coordinate = |school: Option<&str>, form: Option<&str>, answer| Coordinate {
        consumer: wish.consumer.clone(),
        school: school.unwrap_or_default().to_owned(),
        form: form.unwrap_or_default().to_owned(),
        answer,
    };
    let (school, form) = (wish.school.as_deref(), wish.form.as_deref());
    if wish.scope == WishScope::Answer {
        let uuid = wish.answer.as_deref().ok_or_else(|| missing("answerUuid"))?;
        if !is_answer_uuid(uuid) {
            let message = "answerUuid must be 32 lower-case hexadecimal digits";
            return Err(Refusal::of(Code::InvalidInput, message));
        }
        let own = place_of(db, uuid).await?;
        let (own_school, own_form) = match &own {
            Some((school, form)) => (Some(school.as_str()), Some(form.as_str())),
            None => (school, form),
        };
        if own_school.is_none() || own_form.is_none() {
            let message = "there is no such answer; name its school and form to ask all the same";
            return Err(Refusal::of(Code::AnswerNotFound, message));
        }
        // Another school or form than the answer's own: refused as that coordinate is.
        let (school, form) = (school.or(own_school), form.or(own_form));
        return Ok(vec![coordinate(school, form, Some(uuid.to_owned()))]);
    }
    if wish.scope == WishScope::Form && form.is_none() {
        return Err(missing("formUuid"));
    }
    if let (Some(_), Some(_)) = (school, form) {
        return Ok(vec![coordinate(school, form, None)]);
    }
    let filter = Filter { consumer: Some(&wish.consumer), school, form, key_prefix: None };
    let most = settings.max_tasks_per_run;
    let found = least_recent(db, &filter, most).await?;
    if found.is_empty() {
        return Ok(vec![coordinate(school, form, None)]);
    }
    Ok(found.into_iter().map(|(_, coordinate)| coordinate).collect())
}

async fn place_of(db: &Db, uuid: &str) -> Result<Option<(String, String)>, Refusal> {
    let query = sql!(
        "SELECT sch_id, form_uuid FROM answer WHERE uuid = :uuid AND deleted = 0",
        uuid = uuid
    );
    let Some(row) = db.row(query).await? else { return Ok(None) };
    Ok(Some((row.text("sch_id")?, row.text("form_uuid")?)))
}

/// Which effective grants.
pub(super) struct Filter<'a> {
    pub(super) consumer: Option<&'a str>,
    pub(super) school: Option<&'a str>,
    pub(super) form: Option<&'a str>,
    /// Leaves out coordinates that have a task under this beginning of a schedule key.
    pub(super) key_prefix: Option<&'a str>,
}

/// The coordinates of effective grants with their rows' ids, least recently reconciled first.
pub(super) async fn least_recent(
    db: &Db,
    filter: &Filter<'_>,
    most: u32,
) -> Result<Vec<(i64, Coordinate)>, Refusal> {
    let query = sql!(
        "SELECT g.id, g.app_key, g.sch_id, g.form_uuid,
           COALESCE((SELECT MAX(t.id) FROM answer_reconcile_task t
                     WHERE t.consumer_app_key = g.app_key AND t.consumer_school_id = g.sch_id
                       AND t.form_uuid = g.form_uuid), 0) AS last_task
         FROM form_consumer_grant g
         JOIN app_school_scope s ON s.app_key = g.app_key AND s.sch_id = g.sch_id AND s.deleted = 0
         WHERE g.deleted = 0 AND g.enabled = 1 AND g.subscribe_allowed = 1 AND g.read_allowed = 1
           AND (:consumer = '' OR g.app_key = :consumer)
           AND (:school = '' OR g.sch_id = :school) AND (:form = '' OR g.form_uuid = :form)
           AND (:prefix = '' OR NOT EXISTS (
             SELECT 1 FROM answer_reconcile_task t
             WHERE t.consumer_app_key = g.app_key AND t.consumer_school_id = g.sch_id
               AND t.form_uuid = g.form_uuid AND t.schedule_key LIKE :like))
         ORDER BY last_task, g.id LIMIT :most",
        consumer = filter.consumer.unwrap_or_default(),
        school = filter.school.unwrap_or_default(),
        form = filter.form.unwrap_or_default(),
        prefix = filter.key_prefix.unwrap_or_default(),
        like = format!("{}%", filter.key_prefix.unwrap_or_default()),
        most = most,
    );
    let rows = db.rows(query).await?;
    let read = |row: &counterfoil_db::Row| {
        let coordinate = Coordinate {
            consumer: row.text("app_key")?,
            school: row.text("sch_id")?,
            form: row.text("form_uuid")?,
            answer: None,
        };
        Ok((row.int("id")?, coordinate))
    };
    rows.iter().map(read).collect()
}

/// The business day in Asia/Shanghai, which has no summer time.
pub(super) fn business_day(now: Instant) -> String {
    const SHANGHAI: i32 = 8 * 3600;
    let zone = FixedOffset::east_opt(SHANGHAI);
    let there = zone.map_or_else(
        || (now + TimeDelta::seconds(SHANGHAI.into())).naive_utc(),
        |zone| now.with_timezone(&zone).naive_local(),
    );
    there.format("%Y%m%d").to_string()
}

/// Business day and coordinate; one that is too long for the column is digested.
pub(super) fn schedule_key(day: &str, at: &Coordinate) -> String {
    const LONGEST: usize = 191;
    let key = format!("{day}:{}:{}:{}", at.consumer, at.school, at.form);
    if key.len() <= LONGEST {
        return key;
    }
    let digest = Sha256::digest(&key);
    let hex: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{day}:{hex}")
}

pub(super) struct NewTask<'a> {
    pub(super) coordinate: &'a Coordinate,
    pub(super) trigger: &'static str,
    pub(super) key: Option<String>,
    pub(super) actor: &'a str,
}

/// Inserts a task, or the refusal to make it. `None` = its schedule key was there already.
pub(super) async fn insert(
    db: &Db,
    settings: &CentreSettings,
    new: NewTask<'_>,
) -> Result<Option<Made>, Refusal> {
    let mut tx = db.begin().await?;
    let at = new.coordinate;
    let judged = judge(&tx, settings, at).await;
    let (epoch, refusal) = match judged {
        Ok(epoch) => (epoch, None),
        Err(Refusal::Coded { code, message }) => {
            let grant = grant::find(&tx, at).await?;
            (grant.map_or(0, |grant| grant.grant_epoch), Some((code.as_str(), message)))
        }
        Err(error) => return Err(error),
    };
    let task_id = new_uuid();
    let is_new = insert_row(&mut tx, &new, &task_id, epoch, refusal.as_ref()).await?;
    if !is_new {
        tx.rollback().await?;
        return Ok(None);
    }
    let log = sql!(
        "INSERT INTO answer_op_log (action, answer_uuid, form_uuid, sch_id, actor, detail,
           create_time)
         VALUES ('RECONCILE_CREATE', :answer, :form, :school, :actor, :detail, :now)",
        answer = at.answer.as_deref(),
        form = at.form.as_str(),
        school = at.school.as_str(),
        actor = new.actor,
        detail = task_id.as_str(),
        now = tx.now(),
    );
    tx.execute(log).await?;
    tx.commit("centre.create").await?;
    let state = if refusal.is_some() { "FAILED" } else { "QUEUED" };
    let (reason_code, reason) = refusal.unzip();
    Ok(Some(Made { task_id, state, reason_code, reason }))
}

async fn insert_row(
    tx: &mut Tx,
    new: &NewTask<'_>,
    task_id: &str,
    epoch: i64,
    refusal: Option<&(&'static str, String)>,
) -> Result<bool, Refusal> {
    let at = new.coordinate;
    let now = tx.now();
    let is_refused = refusal.is_some();
    let insert = sql!(
        "{insert_ignore} INTO answer_reconcile_task (task_id, schedule_key, trigger_type, scope,
           answer_uuid, consumer_app_key, consumer_school_id, form_uuid, grant_epoch, window_start,
           state, reason_code, reason, manifest_state, finished_at, create_time, update_time)
         VALUES (:task_id, :key, :trigger, :scope, :answer, :consumer, :school, :form, :epoch, :now,
           :state, :code, :reason, :manifest, :finished, :now, :now) {or_ignore}",
        task_id = task_id,
        key = new.key.clone(),
        trigger = new.trigger,
        scope = at.scope(),
        answer = at.answer.as_deref(),
        consumer = at.consumer.as_str(),
        school = at.school.as_str(),
        form = at.form.as_str(),
        epoch = epoch,
        now = now,
        state = if is_refused { "FAILED" } else { "QUEUED" },
        code = refusal.map(|(code, _)| *code),
        reason = refusal.map(|(_, reason)| reason.as_str()),
        manifest = if is_refused { "FAILED" } else { "PENDING" },
        finished = is_refused.then_some(now),
    );
    Ok(tx.execute(insert).await? == 1)
}

/// Whether there may be such a task now; answers the grant's epoch.
async fn judge(tx: &Tx, settings: &CentreSettings, at: &Coordinate) -> Result<i64, Refusal> {
    if let Some(uuid) = &at.answer {
        let elsewhere = sql!(
            "SELECT COUNT(*) AS n FROM answer
             WHERE uuid = :uuid AND deleted = 0 AND (sch_id <> :school OR form_uuid <> :form)",
            uuid = uuid.as_str(),
            school = at.school.as_str(),
            form = at.form.as_str(),
        );
        if tx.count(elsewhere).await? > 0 {
            let message = "the answer is of another school or form";
            return Err(Refusal::of(Code::ScopeMismatch, message));
        }
    }
    let grant = grant::effective(tx, at).await?;
    let rows = count_rows(tx, at).await?;
    within_limits(settings, rows)?;
    Ok(grant.grant_epoch)
}

/// The answers that a manifest of the coordinate would hold now.
pub(super) async fn count_rows(tx: &Tx, at: &Coordinate) -> Result<i64, Refusal> {
    let count = sql!(
        "SELECT COUNT(*) AS n FROM answer
         WHERE form_uuid = :form AND sch_id = :school AND deleted = 0
           AND (:only = '' OR uuid = :only)",
        form = at.form.as_str(),
        school = at.school.as_str(),
        only = at.answer.as_deref().unwrap_or_default(),
    );
    Ok(tx.count(count).await?)
}

/// RESOURCE_LIMIT with the figures when there are too many rows or pages.
pub(super) fn within_limits(settings: &CentreSettings, rows: i64) -> Result<i64, Refusal> {
    let size = i64::from(settings.page_size.max(1));
    let pages = (rows + size - 1) / size;
    if rows > settings.max_rows {
        let message = format!("{rows} rows, at most {} are allowed", settings.max_rows);
        return Err(Refusal::of(Code::ResourceLimit, message));
    }
    if pages > settings.max_pages {
        let message = format!(
            "{pages} pages of {size} for {rows} rows, at most {} are allowed",
            settings.max_pages
        );
        return Err(Refusal::of(Code::ResourceLimit, message));
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_business_day_is_shanghais() {
        let day = |text: &str| business_day(text.parse().unwrap());
        assert_eq!(day("2026-09-08T15:59:59Z"), "20260908");
        assert_eq!(day("2026-09-08T16:00:00Z"), "20260909");
    }

    #[test]
    fn limits_name_their_figures() {
        let settings =
            CentreSettings { max_rows: 10, max_pages: 2, page_size: 3, ..Default::default() };
        assert_eq!(within_limits(&settings, 6).unwrap(), 2);
        assert_eq!(within_limits(&settings, 0).unwrap(), 0);
        let said = |rows| within_limits(&settings, rows).unwrap_err().to_string();
        assert!(said(7).contains("3 pages of 3 for 7 rows"), "{}", said(7));
        assert!(said(11).contains("11 rows, at most 10"));
    }
}
