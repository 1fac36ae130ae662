//! The keys of partners: added before they are needed, retired when both houses have the next one.
//!
//! The database holds where the secrets are kept, never the secrets. Of the keys that count at a
//! moment the one that the partner's record names seals, all sign, and any opens an answer.

use counterfoil_db::{Db, Instant, Read, Tx, sql, transact};
use counterfoil_protocol::seal::suite;
use counterfoil_protocol::{PartnerId, UserId};
use serde::Serialize;

use crate::PaymentError;

/// Keys of one partner that are listed; an old partner has a few.
pub const MAX_LISTED: i64 = 200;
/// Characters of a key's name and of a reference.
const MAX_KEY_ID: usize = 64;
const MAX_REFERENCE: usize = 255;
/// Where secrets can be kept.
const PLACES: [&str; 2] = ["env:", "file:"];

/// A key as it is added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewKey {
    /// Whose.
    pub partner: PartnerId,
    /// Its name, which both houses know.
    pub key_id: String,
    /// `jose` or `gm`.
    pub suite: String,
    /// Where the signing secret is kept.
    pub signing: String,
    /// Where the encryption key is kept.
    pub encryption: String,
    /// From when it counts; none = at once.
    pub valid_from: Option<Instant>,
}

/// A key on record.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct KeyOnRecord {
    /// Whose.
    pub partner_id: PartnerId,
    /// Its name.
    pub key_id: String,
    /// Its suite.
    pub suite: String,
    /// Where the signing secret is kept.
    pub signing_secret_ref: String,
    /// Where the encryption key is kept.
    pub encryption_key_ref: String,
    /// From when it counts; none = ever.
    pub valid_from: Option<Instant>,
    /// Until when; none = it still does.
    pub retired_time: Option<Instant>,
}

impl NewKey {
    fn check(&self) -> Result<(), PaymentError> {
        let is_name = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
        let length = self.key_id.chars().count();
        if !(1..=MAX_KEY_ID).contains(&length) || !self.key_id.chars().all(is_name) {
            let why = "must be 1 to 64 letters, digits, dots, dashes or underscores";
            return Err(PaymentError::invalid("key", why));
        }
        if suite(&self.suite).is_none() {
            return Err(PaymentError::invalid("suite", "must be jose or gm"));
        }
        for (field, reference) in [("signing", &self.signing), ("encryption", &self.encryption)] {
            let is_place = PLACES.iter().any(|place| reference.starts_with(place));
            if !is_place || reference.chars().count() > MAX_REFERENCE {
                // Not repeated: it may be the secret itself.
                let why = "must be env:NAME or file:PATH, where the secret is kept";
                return Err(PaymentError::invalid(field, why));
            }
        }
        Ok(())
    }
}

/// Adds a key. The same name again is refused: a key is replaced by another name.
pub async fn add(db: &Db, key: &NewKey, user: UserId) -> Result<(), PaymentError> {
    key.check()?;
    transact!(try_add(db, key, user))
}

async fn try_add(db: &Db, key: &NewKey, user: UserId) -> Result<(), PaymentError> {
    let mut tx = db.begin().await?;
    let partner = sql!(
        "SELECT COUNT(*) AS found FROM sys_partner WHERE id = :partner AND deleted = 0",
        partner = key.partner.0,
    );
    if tx.count(partner).await? == 0 {
        let why = format!("there is no partner {}", key.partner);
        return Err(PaymentError::invalid("partner", why));
    }
    let now = tx.now();
    let insert = sql!(
        "{insert_ignore} INTO partner_key
           (partner_id, key_id, suite, signing_secret_ref, encryption_key_ref, valid_from,
            added_by, create_time, update_time)
         VALUES (:partner, :key, :suite, :signing, :encryption, :valid_from, :user, :now, :now)
         {or_ignore}",
        partner = key.partner.0,
        key = &key.key_id,
        suite = &key.suite,
        signing = &key.signing,
        encryption = &key.encryption,
        valid_from = key.valid_from,
        user = user.0,
        now = now,
    );
    if tx.execute(insert).await? == 0 {
        let why = format!("partner {} has a key {} already", key.partner, key.key_id);
        return Err(PaymentError::invalid("key", why));
    }
    Ok(tx.commit("partner_key.added").await?)
}

/// Retires a key from `at` on, or from now. Answers when it ends to count; one that is retired
/// already keeps the earlier time.
pub async fn retire(
    db: &Db,
    partner: PartnerId,
    key_id: &str,
    at: Option<Instant>,
    user: UserId,
) -> Result<Instant, PaymentError> {
    transact!(try_retire(db, partner, key_id, at, user))
}

async fn try_retire(
    db: &Db,
    partner: PartnerId,
    key_id: &str,
    at: Option<Instant>,
    user: UserId,
) -> Result<Instant, PaymentError> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let at = at.unwrap_or(now);
    let update = sql!(
        "UPDATE partner_key SET retired_time = :at, retired_by = :user, update_time = :now
         WHERE partner_id = :partner AND key_id = :key AND deleted = 0
           AND (retired_time IS NULL OR retired_time > :at)",
        at = at,
        user = user.0,
        now = now,
        partner = partner.0,
        key = key_id,
    );
    if tx.execute(update).await? == 1 {
        tx.commit("partner_key.retired").await?;
        return Ok(at);
    }
    retired(&tx, partner, key_id).await?.ok_or_else(|| {
        PaymentError::invalid("key", format!("partner {partner} has no key {key_id}"))
    })
}

async fn retired(
    tx: &Tx,
    partner: PartnerId,
    key_id: &str,
) -> Result<Option<Instant>, PaymentError> {
    let query = sql!(
        "SELECT retired_time FROM partner_key
         WHERE partner_id = :partner AND key_id = :key AND deleted = 0",
        partner = partner.0,
        key = key_id,
    );
    Ok(match tx.row(query).await? {
        Some(row) => row.maybe_instant("retired_time")?,
        None => None,
    })
}

/// The keys of a partner, retired ones too, by name.
pub async fn list(from: &impl Read, partner: PartnerId) -> Result<Vec<KeyOnRecord>, PaymentError> {
    let query = sql!(
        "SELECT key_id, suite, signing_secret_ref, encryption_key_ref, valid_from, retired_time
         FROM partner_key WHERE partner_id = :partner AND deleted = 0
         ORDER BY key_id LIMIT :limit",
        partner = partner.0,
        limit = MAX_LISTED,
    );
    let mut keys = Vec::new();
    for row in from.rows(query).await? {
        keys.push(KeyOnRecord {
            partner_id: partner,
            key_id: row.text("key_id")?,
            suite: row.text("suite")?,
            signing_secret_ref: row.text("signing_secret_ref")?,
            encryption_key_ref: row.text("encryption_key_ref")?,
            valid_from: row.maybe_instant("valid_from")?,
            retired_time: row.maybe_instant("retired_time")?,
        });
    }
    Ok(keys)
}
