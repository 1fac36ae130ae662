//! Keys under which a session is opened once (`Idempotency-Key`), kept with it and for ever.
//!
//! Source: surface.md "HTTP".

use counterfoil_db::{Db, Read, Tx, sql};
use counterfoil_protocol::SessionId;
use sha2::{Digest, Sha256};

use crate::PaymentError;

/// The longest key.
pub const MAX_CREATION_KEY: usize = 191;

/// Whose request it is and which.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CreationKey {
    /// Who asks, and the key as given: two callers' keys never meet.
    key: String,
    /// SHA-256 of what is asked for, in hexadecimal.
    body_sha256: String,
}

/// A session that was opened for a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keyed {
    /// The session.
    pub session: SessionId,
    /// Whether this very call opened it.
    pub is_new: bool,
}

impl CreationKey {
    /// `caller` is who asks, `meant` what is asked for.
    ///
    /// # Errors
    /// A key that is empty, too long, or not of visible ASCII.
    pub fn new(caller: &str, key: &str, meant: &str) -> Result<CreationKey, PaymentError> {
        let field = "Idempotency-Key";
        let whole = format!("{caller}:{key}");
        if key.is_empty() || whole.len() > MAX_CREATION_KEY {
            let most = MAX_CREATION_KEY.saturating_sub(caller.len() + 1);
            let why = format!("must have 1 to {most} characters");
            return Err(PaymentError::invalid(field, why));
        }
        if !key.chars().all(|letter| letter.is_ascii_graphic()) {
            return Err(PaymentError::invalid(field, "must be visible ASCII"));
        }
        let digest = Sha256::digest(meant);
        let body_sha256 = digest.iter().map(|byte| format!("{byte:02x}")).collect();
        Ok(CreationKey { key: whole, body_sha256 })
    }

    /// The session that this key has opened.
    pub(super) async fn known(&self, db: &Db) -> Result<Option<SessionId>, PaymentError> {
        opened(db, self).await
    }
}

async fn opened(from: &impl Read, key: &CreationKey) -> Result<Option<SessionId>, PaymentError> {
    let query = sql!(
        "SELECT session_id, body_sha256 FROM selection_session_creation_key
         WHERE creation_key = :key",
        key = key.key.as_str(),
    );
    let Some(row) = from.row(query).await? else {
        return Ok(None);
    };
    if row.text("body_sha256")? != key.body_sha256 {
        return Err(PaymentError::KeyReused);
    }
    Ok(Some(SessionId(row.int("session_id")?)))
}

/// Keeps the key with its session, in the session's own transaction. `Some` = another request
/// under the key came first: what this transaction did must not be committed.
pub(super) async fn keep(
    tx: &mut Tx,
    key: Option<&CreationKey>,
    session: SessionId,
) -> Result<Option<SessionId>, PaymentError> {
    let Some(key) = key else {
        return Ok(None);
    };
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO selection_session_creation_key
           (creation_key, body_sha256, session_id, create_time)
         VALUES (:key, :body_sha256, :session, :now) {or_ignore}",
        key = key.key.as_str(),
        body_sha256 = key.body_sha256.as_str(),
        session = session.0,
        now = now,
    );
    if tx.execute(insert).await? == 1 {
        return Ok(None);
    }
    opened(tx, key).await
}
