//! The service as an executor of an XXL-Job admin: every handler can be triggered by its name,
//! with `executorParams` as its parameter. Source: xxl-job.md.
//!
//! A trigger is one round. It is kept on disk before it is answered, and its result before the
//! trigger is forgotten; what happens to the tasks themselves is the engine's business, which
//! needs none of this.

mod doors;
mod executor;
mod protocol;
mod queue;
mod round;
mod store;
mod waits;

use std::net::SocketAddr;
use std::sync::Arc;

use anyhow::Result;
use counterfoil_task::Engine;

pub use doors::{MAX_BODY_BYTES, router};
pub use executor::{Executor, Parts};
pub use protocol::Trigger;
pub use store::Store;
pub use waits::{RealTime, Wait, Waits};

use crate::xxl_config::XxlConfig;

/// The executor as configured, for a process that listens on `listens_on`.
///
/// # Errors
/// A configuration that no executor can be made of.
pub async fn executor(
    config: &XxlConfig,
    engine: Arc<Engine>,
    listens_on: SocketAddr,
) -> Result<Executor> {
    let token = config.token()?;
    Executor::new(Parts {
        engine,
        store: Store::open(&config.data_dir)?,
        admins: config.admins(&token)?,
        address: config.registered_address(listens_on)?,
        token,
        log_days: config.log_retention_days,
        waits: Arc::new(RealTime),
    })
    .await
}
