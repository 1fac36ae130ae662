//! LISTEN on PostgreSQL, so that a kick reaches other processes too.

use sea_orm::sqlx::postgres::PgListener;

use crate::{Db, Dialect, Error, Read, Result};

/// Notifications of one channel. Lost ones are nobody's loss: the scan finds the tasks.
#[derive(Debug)]
pub struct Notifications(PgListener);

impl Db {
    /// Listens on a channel; `None` where the database has no notifications.
    pub async fn listen(&self, channel: &'static str) -> Result<Option<Notifications>> {
        if self.dialect() != Dialect::Postgres {
            return Ok(None);
        }
        let mut listener = PgListener::connect(self.url()).await.map_err(lost)?;
        listener.listen(channel).await.map_err(lost)?;
        Ok(Some(Notifications(listener)))
    }
}

impl Notifications {
    /// The next payload. Reconnects by itself; an error means that it could not.
    pub async fn next(&mut self) -> Result<String> {
        Ok(self.0.recv().await.map_err(lost)?.payload().to_owned())
    }
}

fn lost(error: sea_orm::sqlx::Error) -> Error {
    Error::Lost(sea_orm::DbErr::Conn(sea_orm::RuntimeErr::SqlxError(error.into())))
}
