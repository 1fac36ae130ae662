//! One creator of an order's batches at a time, by a lock in Redis.
//!
//! `SET key token NX PX lease`, given back by comparing the token, so that a lock that has expired
//! and belongs to another is left alone. Redis away = everybody may: the database decides anyway.

use std::time::Duration;

use counterfoil_payment::treasury::guard::{CreationGuard, GUARD_LEASE, GUARD_WAIT, Guarded};
use counterfoil_protocol::OrderId;
use redis::aio::MultiplexedConnection;
use redis::{Client, RedisResult, Script};

use crate::RemoteError;

/// How long Redis may take to answer one call.
const MAX_REDIS_TIME: Duration = Duration::from_secs(2);
/// Between two tries to get the lock.
const PAUSE: Duration = Duration::from_millis(100);

/// Locks in Redis.
#[derive(Debug, Clone)]
pub struct RedisGuard {
    client: Client,
}

impl RedisGuard {
    /// Locks in the Redis at `url` (`redis://…`). It is reached when it is needed.
    ///
    /// # Errors
    /// When `url` is no address of a Redis.
    pub fn new(url: &str) -> Result<RedisGuard, RemoteError> {
        let client = Client::open(url);
        // The error names the address, which may hold a password.
        let wrong = |_| RemoteError::Address { what: "redis", why: "it is no redis:// URL".into() };
        Ok(RedisGuard { client: client.map_err(wrong)? })
    }

    async fn connect(&self) -> Option<MultiplexedConnection> {
        let connecting = self.client.get_multiplexed_async_connection();
        match tokio::time::timeout(MAX_REDIS_TIME, connecting).await {
            Ok(Ok(connection)) => Some(connection),
            Ok(Err(error)) => {
                tracing::warn!(kind = ?error.kind(), "Redis is away; the database decides alone");
                None
            }
            Err(_) => {
                tracing::warn!("Redis does not answer; the database decides alone");
                None
            }
        }
    }
}

/// The lock's name.
fn key(order: OrderId) -> String {
    format!("counterfoil:push-batch-creation:{order}")
}

async fn try_lock(
    connection: &mut MultiplexedConnection,
    key: &str,
    token: &str,
) -> RedisResult<bool> {
    let lease = u64::try_from(GUARD_LEASE.as_millis()).unwrap_or(u64::MAX);
    let mut set = redis::cmd("SET");
    set.arg(key).arg(token).arg("NX").arg("PX").arg(lease);
    let answer: Option<String> = set.query_async(connection).await?;
    Ok(answer.is_some())
}

async fn give_back(mut connection: MultiplexedConnection, key: String, token: String) {
    let script = Script::new(
        "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end
         return 0",
    );
    let mut call = script.prepare_invoke();
    call.key(key).arg(token);
    let given: Result<RedisResult<i64>, _> =
        tokio::time::timeout(MAX_REDIS_TIME, call.invoke_async(&mut connection)).await;
    if !matches!(given, Ok(Ok(_))) {
        tracing::warn!("a lock in Redis was not given back; it expires by itself");
    }
}

#[async_trait::async_trait]
impl CreationGuard for RedisGuard {
    async fn enter(&self, order: OrderId) -> Option<Guarded> {
        let Some(mut connection) = self.connect().await else {
            return Some(Guarded::free());
        };
        let (key, token) = (key(order), format!("{:032x}", rand::random::<u128>()));
        let began = tokio::time::Instant::now();
        loop {
            let locking = try_lock(&mut connection, &key, &token);
            match tokio::time::timeout(MAX_REDIS_TIME, locking).await {
                Ok(Ok(true)) => break,
                Ok(Ok(false)) if began.elapsed() >= GUARD_WAIT => return None,
                Ok(Ok(false)) => tokio::time::sleep(PAUSE).await,
                Ok(Err(_)) | Err(_) => {
                    tracing::warn!("Redis failed; the database decides alone");
                    return Some(Guarded::free());
                }
            }
        }
        let runtime = tokio::runtime::Handle::current();
        Some(Guarded::held(move || {
            runtime.spawn(give_back(connection, key, token));
        }))
    }
}
