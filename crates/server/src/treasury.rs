//! What the treasury is made of in this process: channels, guard and notices as configured.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use counterfoil_payment::treasury::batch_creation::BatchCreation;
use counterfoil_payment::treasury::guard::{CreationGuard, DatabaseOnly};
use counterfoil_payment::treasury::notice::PushBatchNotify;
use counterfoil_payment::treasury::port::Channels;
use counterfoil_remote::iso20022::{Characters, OutboxChannel, PAIN001};
use counterfoil_remote::{HTTP_TREASURY, HttpTreasury};

use crate::config::Config;
use crate::treasury_config::TreasuryConfig;

/// The ways to push that are configured: files always, HTTP where it has an address.
///
/// # Errors
/// An address or a set of characters that cannot be used.
pub fn channels(config: &TreasuryConfig) -> Result<Channels> {
    let characters = Characters::of(&config.characters);
    let characters = characters.context("treasury.characters is none of printable, sepa")?;
    let outbox = OutboxChannel::new(&config.outbox, characters);
    let channels = Channels::default().with(PAIN001, Arc::new(outbox));
    if config.url.is_empty() {
        return Ok(channels);
    }
    let max_time = Duration::from_millis(config.timeout_ms);
    let treasury = HttpTreasury::new(&config.url, config.idempotent, max_time)?;
    Ok(channels.with(HTTP_TREASURY, Arc::new(treasury)))
}

/// Who creates batches, for the configured strategy.
///
/// # Errors
/// As [`channels`], or a strategy that has no channel.
pub fn creation(config: &Config) -> Result<BatchCreation> {
    let strategy = config.treasury.strategy.as_str();
    let known = channels(&config.treasury)?.get(strategy).is_some();
    anyhow::ensure!(known, "treasury.strategy is {strategy}, and no such channel is configured");
    Ok(BatchCreation::new(strategy, guard(config)?))
}

fn guard(_config: &Config) -> Result<Arc<dyn CreationGuard>> {
    Ok(Arc::new(DatabaseOnly))
}

/// The work of the notice that batches are there.
///
/// # Errors
/// As [`channels`].
pub fn notify(config: &Config) -> Result<PushBatchNotify> {
    Ok(PushBatchNotify::in_process(channels(&config.treasury)?))
}
