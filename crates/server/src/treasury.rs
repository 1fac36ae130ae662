//! What the treasury is made of in this process: channels, guard and notices as configured.

use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use counterfoil_db::Db;
use counterfoil_payment::treasury::batch_creation::BatchCreation;
use counterfoil_payment::treasury::guard::{CreationGuard, DatabaseOnly};
use counterfoil_payment::treasury::notice::PushBatchNotify;
use counterfoil_payment::treasury::port::Channels;
use counterfoil_payment::treasury::push::push_order;
use counterfoil_remote::iso20022::{Characters, OutboxChannel, PAIN001};
use counterfoil_remote::{
    HTTP_TREASURY, Heard, HttpTreasury, KafkaAddress, KafkaEar, KafkaPost, RedisGuard,
};
use counterfoil_task::Shutdown;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::treasury_config::TreasuryConfig;

/// How long to wait before listening again when the queue is in trouble.
const AFTER_TROUBLE: Duration = Duration::from_secs(5);

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

fn guard(config: &Config) -> Result<Arc<dyn CreationGuard>> {
    match config.treasury.redis_url.as_str() {
        "" => Ok(Arc::new(DatabaseOnly)),
        url => Ok(Arc::new(RedisGuard::new(url)?)),
    }
}

/// The work of the notice that batches are there.
///
/// # Errors
/// As [`channels`].
pub fn notify(config: &Config) -> Result<PushBatchNotify> {
    let channels = channels(&config.treasury)?;
    match kafka(&config.treasury) {
        Some(address) => {
            Ok(PushBatchNotify::posting(channels, Arc::new(KafkaPost::new(&address)?)))
        }
        None => Ok(PushBatchNotify::in_process(channels)),
    }
}

fn kafka(config: &TreasuryConfig) -> Option<KafkaAddress> {
    (!config.kafka_brokers.is_empty()).then(|| KafkaAddress {
        brokers: config.kafka_brokers.clone(),
        topic: config.kafka_topic.clone(),
        group: config.kafka_group.clone(),
    })
}

/// Hears notices and pushes, until the process is asked to stop. Nothing where no Kafka is
/// configured.
///
/// # Errors
/// As [`channels`], or brokers that no client can be made of.
pub fn listen(
    parts: &mut JoinSet<()>,
    db: &Db,
    config: &Config,
    shutdown: &Shutdown,
) -> Result<()> {
    let Some(address) = kafka(&config.treasury) else {
        return Ok(());
    };
    let (ear, channels) = (KafkaEar::new(&address)?, channels(&config.treasury)?);
    let (db, mut stop) = (db.clone(), shutdown.clone());
    parts.spawn(async move {
        loop {
            let heard = tokio::select! {
                () = stop.asked() => return,
                heard = ear.hear() => heard,
            };
            match heard {
                Ok(heard) => handle(&db, &channels, &ear, &heard).await,
                Err(error) => {
                    tracing::warn!(error, "notices cannot be heard");
                    tokio::time::sleep(AFTER_TROUBLE).await;
                }
            }
        }
    });
    Ok(())
}

/// A notice that cannot be handled is not committed; and paymentPushBatchPushRetry finds its
/// batches without it.
async fn handle(db: &Db, channels: &Channels, ear: &KafkaEar, heard: &Heard) {
    if let Some(notice) = heard.notice
        && let Err(error) = push_order(db, channels, notice.target()).await
    {
        tracing::warn!(%error, "a notice was not handled");
        return;
    }
    if let Err(error) = ear.handled(heard) {
        tracing::warn!(error, "a notice will be heard again");
    }
}
