//! Who may see which answers. A change raises the epoch; a grant's row is never deleted.

use counterfoil_db::{Db, Read, Result, Tx, sql, transact};

use crate::refusal::{Code, Refusal};
use crate::wire::{Coordinate, GrantState};

/// What is to be granted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rights {
    /// Whether the grant counts at all.
    pub enabled: bool,
    /// Whether changes are delivered.
    pub subscribe: bool,
    /// Whether answers may be read.
    pub read: bool,
}

impl Rights {
    /// Everything.
    pub const ALL: Rights = Rights { enabled: true, subscribe: true, read: true };
    /// Nothing.
    pub const NONE: Rights = Rights { enabled: false, subscribe: false, read: false };
}

/// Sets a grant; answers its epoch, which rises if anything changed.
pub async fn set(db: &Db, at: &Coordinate, rights: Rights) -> Result<i64> {
    transact!(try_set(db, at, rights, None))
}

/// The same by a person or program, who stays in the log.
pub async fn change(db: &Db, at: &Coordinate, rights: Rights, actor: &str) -> Result<i64> {
    transact!(try_set(db, at, rights, Some(actor)))
}

async fn try_set(db: &Db, at: &Coordinate, rights: Rights, actor: Option<&str>) -> Result<i64> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO form_consumer_grant (app_key, form_uuid, sch_id, epoch, create_time)
         VALUES (:app, :form, :school, 0, :now) {or_ignore}",
        app = at.consumer.as_str(),
        form = at.form.as_str(),
        school = at.school.as_str(),
        now = now,
    );
    tx.execute(insert).await?;
    let update = sql!(
        "UPDATE form_consumer_grant
         SET enabled = :enabled, subscribe_allowed = :subscribe, read_allowed = :read,
             epoch = epoch + 1, update_time = :now
         WHERE app_key = :app AND form_uuid = :form AND sch_id = :school
           AND (enabled <> :enabled OR subscribe_allowed <> :subscribe OR read_allowed <> :read
                OR epoch = 0)",
        enabled = rights.enabled,
        subscribe = rights.subscribe,
        read = rights.read,
        now = now,
        app = at.consumer.as_str(),
        form = at.form.as_str(),
        school = at.school.as_str(),
    );
    let is_changed = tx.execute(update).await? == 1;
    if let Some(actor) = actor.filter(|_| is_changed) {
        log(&mut tx, at, rights, actor).await?;
    }
    let epoch = find(&tx, at).await?.map_or(0, |grant| grant.grant_epoch);
    tx.commit("grant.set").await?;
    Ok(epoch)
}

async fn log(tx: &mut Tx, at: &Coordinate, rights: Rights, actor: &str) -> Result<()> {
    let Rights { enabled, subscribe, read } = rights;
    let detail = format!("{}: enabled {enabled}, subscribe {subscribe}, read {read}", at.consumer);
    let log = sql!(
        "INSERT INTO answer_op_log (action, form_uuid, sch_id, actor, detail, create_time)
         VALUES ('GRANT', :form, :school, :actor, :detail, :now)",
        form = at.form.as_str(),
        school = at.school.as_str(),
        actor = actor,
        detail = detail,
        now = tx.now(),
    );
    tx.execute(log).await?;
    Ok(())
}

/// Adds a school to those that an application may serve, or takes it away; the epochs of its
/// grants there rise.
pub async fn scope(db: &Db, app: &str, school: &str, may_serve: bool) -> Result<()> {
    transact!(try_scope(db, app, school, may_serve))
}

async fn try_scope(db: &Db, app: &str, school: &str, may_serve: bool) -> Result<()> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO app_school_scope (app_key, sch_id, deleted, create_time)
         VALUES (:app, :school, :deleted, :now) {or_ignore}",
        app = app,
        school = school,
        deleted = !may_serve,
        now = now,
    );
    let is_new = tx.execute(insert).await? == 1;
    let update = sql!(
        "UPDATE app_school_scope SET deleted = :deleted, update_time = :now
         WHERE app_key = :app AND sch_id = :school AND deleted <> :deleted",
        deleted = !may_serve,
        now = now,
        app = app,
        school = school,
    );
    let is_changed = tx.execute(update).await? == 1;
    if (is_new && may_serve) || is_changed {
        let raise = sql!(
            "UPDATE form_consumer_grant SET epoch = epoch + 1, update_time = :now
             WHERE app_key = :app AND sch_id = :school",
            now = now,
            app = app,
            school = school,
        );
        tx.execute(raise).await?;
    }
    tx.commit("grant.scope").await
}

/// The grant as it is now.
pub async fn find(db: &impl Read, at: &Coordinate) -> Result<Option<GrantState>> {
    let query = sql!(
        "SELECT epoch, enabled, subscribe_allowed, read_allowed FROM form_consumer_grant
         WHERE app_key = :app AND form_uuid = :form AND sch_id = :school AND deleted = 0",
        app = at.consumer.as_str(),
        form = at.form.as_str(),
        school = at.school.as_str(),
    );
    let Some(row) = db.row(query).await? else { return Ok(None) };
    Ok(Some(GrantState {
        grant_epoch: row.int("epoch")?,
        enabled: row.int("enabled")? == 1,
        subscribe: row.int("subscribe_allowed")? == 1,
        read: row.int("read_allowed")? == 1,
    }))
}

/// Proves that the consumer may have these answers now; answers the grant.
///
/// # Errors
/// SCOPE_MISMATCH or GRANT_REVOKED.
pub async fn effective(db: &impl Read, at: &Coordinate) -> Result<GrantState, Refusal> {
    let served = sql!(
        "SELECT COUNT(*) AS n FROM app_school_scope
         WHERE app_key = :app AND sch_id = :school AND deleted = 0",
        app = at.consumer.as_str(),
        school = at.school.as_str(),
    );
    if db.count(served).await? == 0 {
        let message = format!("{} may not serve school {}", at.consumer, at.school);
        return Err(Refusal::of(Code::ScopeMismatch, message));
    }
    let grant = find(db, at).await?;
    grant.filter(|grant| grant.enabled && grant.subscribe && grant.read).ok_or_else(|| {
        let what = format!("form {} of school {}", at.form, at.school);
        Refusal::of(Code::GrantRevoked, format!("{} has no effective grant on {what}", at.consumer))
    })
}

/// The consumers that changes of a form and school are delivered to.
pub async fn subscribers(tx: &Tx, form: &str, school: &str) -> Result<Vec<String>> {
    let query = sql!(
        "SELECT g.app_key FROM form_consumer_grant g
         JOIN app_school_scope s ON s.app_key = g.app_key AND s.sch_id = g.sch_id AND s.deleted = 0
         WHERE g.form_uuid = :form AND g.sch_id = :school AND g.deleted = 0
           AND g.enabled = 1 AND g.subscribe_allowed = 1 AND g.read_allowed = 1
         ORDER BY g.app_key LIMIT :most",
        form = form,
        school = school,
        most = MAX_SUBSCRIBERS,
    );
    tx.rows(query).await?.iter().map(|row| row.text("app_key")).collect()
}

/// Consumers of one form and school.
const MAX_SUBSCRIBERS: i64 = 1000;
