//! LISTEN on PostgreSQL, so that a kick reaches other processes too.

use std::time::Duration;

use sea_orm::sqlx::postgres::PgListener;
use sea_orm::sqlx::{Error, Executor};
use tokio::time::{sleep, timeout};

use crate::{Db, Dialect, Read};

/// The pause after the first failure to connect; it doubles with each.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
/// The longest pause between two tries to connect. There is no last try.
const MAX_PAUSE: Duration = Duration::from_secs(30);
/// After so long without a word the connection is asked for a sign of life: a network that went
/// away says nothing either.
const MAX_SILENCE: Duration = Duration::from_secs(60);
/// How long the sign of life may take.
const MAX_ANSWER: Duration = Duration::from_secs(10);

/// Notifications of one channel, for as long as they are wanted. What is said while the connection
/// is lost is not heard, and nobody's loss: the scan finds the tasks.
#[derive(Debug)]
pub struct Notifications {
    url: String,
    channel: &'static str,
    listener: Option<PgListener>,
    failures: u32,
}

impl Db {
    /// Listens on a channel; `None` where the database has no notifications.
    pub fn listen(&self, channel: &'static str) -> Option<Notifications> {
        let url = self.url().to_owned();
        (self.dialect() == Dialect::Postgres).then_some(Notifications {
            url,
            channel,
            listener: None,
            failures: 0,
        })
    }
}

impl Notifications {
    /// The next payload. Connects, and connects again whenever the connection is lost, for as long
    /// as it is waited for.
    pub async fn next(&mut self) -> String {
        loop {
            match self.hear().await {
                Ok(Some(payload)) => return payload,
                Ok(None) => {}
                Err(error) => {
                    self.listener = None;
                    let pause = pause_after(self.failures);
                    self.failures = self.failures.saturating_add(1);
                    tracing::warn!(%error, ?pause, "kicks of other processes are not heard");
                    sleep(pause).await;
                }
            }
        }
    }

    /// `None` after a silence that the connection has survived.
    async fn hear(&mut self) -> Result<Option<String>, Error> {
        let listener = match &mut self.listener {
            Some(listener) => listener,
            none => {
                let mut listener = PgListener::connect(&self.url).await?;
                // It is made anew here, at our own pace.
                listener.eager_reconnect(false);
                listener.listen(self.channel).await?;
                self.failures = 0;
                none.insert(listener)
            }
        };
        match timeout(MAX_SILENCE, listener.try_recv()).await {
            Ok(Ok(Some(heard))) => Ok(Some(heard.payload().to_owned())),
            Ok(Ok(None)) => Err(lost("the connection is lost")),
            Ok(Err(error)) => Err(error),
            Err(_) => match timeout(MAX_ANSWER, listener.execute("SELECT 1")).await {
                Ok(answered) => answered.map(|_| None),
                Err(_) => Err(lost("the connection gives no sign of life")),
            },
        }
    }
}

fn lost(what: &str) -> Error {
    std::io::Error::other(what.to_owned()).into()
}

fn pause_after(failures: u32) -> Duration {
    (FIRST_PAUSE * 2_u32.pow(failures.min(16))).min(MAX_PAUSE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_double_up_to_half_a_minute() {
        let millis: Vec<u128> = (0..11).map(|n| pause_after(n).as_millis()).collect();
        let expected = [100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000];
        assert_eq!(millis, expected);
        assert_eq!(pause_after(u32::MAX), MAX_PAUSE);
    }
}
