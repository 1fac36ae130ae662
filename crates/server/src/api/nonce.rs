//! Nonces of signed requests: each accepted once, across processes.

use std::sync::atomic::{AtomicU64, Ordering};

use chrono::{DateTime, Utc};
use counterfoil_db::{Db, Error, Migration, Query, Read, sql, transact};
use counterfoil_protocol::signing::NonceStore;

/// The table of nonces.
pub const MIGRATIONS: &[Migration] =
    &[Migration { number: 403, name: "signing", ddl: include_str!("../schema/0403_signing.sql") }];

/// How many requests pass between two clearings of nonces that are past their time.
const CLEAR_EVERY: u64 = 256;
/// Nonces cleared at once: more than come in between two clearings, so that the table shrinks.
const CLEAR_AT_MOST: i64 = 1000;

/// `signing_nonce` of a database.
#[derive(Debug, Clone)]
pub struct NonceTable {
    db: Db,
}

impl NonceTable {
    /// The table of this database.
    pub fn new(db: Db) -> NonceTable {
        NonceTable { db }
    }
}

#[async_trait::async_trait]
impl NonceStore for NonceTable {
    type Error = Error;

    async fn remember(
        &self,
        app: &str,
        nonce: &str,
        keep_until: DateTime<Utc>,
    ) -> Result<bool, Error> {
        static REMEMBERED: AtomicU64 = AtomicU64::new(1);
        let is_new = transact!(remember(&self.db, app, nonce, keep_until))?;
        if REMEMBERED.fetch_add(1, Ordering::Relaxed).is_multiple_of(CLEAR_EVERY) {
            transact!(clear(&self.db))?;
        }
        Ok(is_new)
    }
}

async fn remember(
    db: &Db,
    app: &str,
    nonce: &str,
    keep_until: DateTime<Utc>,
) -> Result<bool, Error> {
    let mut tx = db.begin().await?;
    let insert = sql!(
        "{insert_ignore} INTO signing_nonce (app_key, nonce, keep_until)
         VALUES (:app, :nonce, :keep_until) {or_ignore}",
        app = app,
        nonce = nonce,
        keep_until = keep_until,
    );
    let is_new = tx.execute(insert).await? == 1;
    tx.commit("signed.nonce").await?;
    Ok(is_new)
}

/// Forgets nonces whose time is over: a request that carries one is refused by its expiry.
async fn clear(db: &Db) -> Result<(), Error> {
    let mut tx = db.begin().await?;
    let now = tx.now();
    let over = sql!(
        "SELECT id FROM signing_nonce WHERE keep_until < :now ORDER BY keep_until LIMIT :most",
        now = now,
        most = CLEAR_AT_MOST,
    );
    let ids =
        tx.rows(over).await?.iter().map(|row| row.int("id")).collect::<Result<Vec<_>, _>>()?;
    tx.execute(Query::new("DELETE FROM signing_nonce WHERE id IN :ids").bind_list("ids", ids))
        .await?;
    tx.commit("signed.clear_nonces").await
}
