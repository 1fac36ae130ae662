//! Delivering answers: over RabbitMQ when it is configured, in process otherwise.

use std::time::Duration;

use chrono::TimeDelta;
use counterfoil_db::Db;
use counterfoil_reconcile::Refusal;
use counterfoil_reconcile::delivery::{Carried, Carrier};
use counterfoil_reconcile::form_centre::delivery;
use counterfoil_reconcile::service_hall::HallSettings;
use counterfoil_reconcile::service_hall::inbox::{self, Taken};
use counterfoil_reconcile::wire::Envelope;
use counterfoil_remote::{HeardDelivery, RabbitAddress, RabbitCarrier, RabbitEar, Said};
use counterfoil_task::Shutdown;
use tokio::task::JoinSet;

use crate::config::Config;
use crate::scheduler;

/// How long to wait before listening again when the queue is in trouble.
const AFTER_TROUBLE: TimeDelta = TimeDelta::seconds(5);
/// How long a stopping process waits for the broker to take its last word.
const MAX_LAST_WORD: Duration = Duration::from_secs(5);

/// Starts what the roles deliver and hear. Between two processes without a queue nothing carries
/// deliveries: what is missing there, reconciliation finds.
pub fn start(
    parts: &mut JoinSet<()>,
    db: &Db,
    config: &Config,
    (is_centre, is_hall): (bool, bool),
    shutdown: &Shutdown,
) {
    let own = config.signing.app_key.as_str();
    let settings = config.svchall.answer_reconcile.settings(own);
    let queue = queue(config);
    if is_centre {
        let carrier: Option<Box<dyn Carrier>> = match &queue {
            Some(address) => Some(Box::new(RabbitCarrier::new(address.clone()))),
            None if is_hall => {
                Some(Box::new(InProcess { db: db.clone(), settings: settings.clone() }))
            }
            None => None,
        };
        if let Some(carrier) = carrier {
            parts.spawn(publish(db.clone(), config.clone(), carrier, shutdown.clone()));
        }
    }
    if let (true, Some(address)) = (is_hall, queue) {
        parts.spawn(listen(db.clone(), settings, address, shutdown.clone()));
    }
}

fn queue(config: &Config) -> Option<RabbitAddress> {
    let delivery = &config.answer_delivery;
    (!delivery.amqp_url.is_empty()).then(|| RabbitAddress {
        url: delivery.amqp_url.clone(),
        exchange: delivery.exchange.clone(),
    })
}

/// Carries deliveries to the hall of this very process.
struct InProcess {
    db: Db,
    settings: HallSettings,
}

#[async_trait::async_trait]
impl Carrier for InProcess {
    async fn carry(&self, envelope: &Envelope) -> Carried {
        carried(inbox::take(&self.db, &self.settings, envelope).await)
    }

    async fn carry_all(&self, envelopes: &[Envelope]) -> Vec<Carried> {
        let taken = inbox::take_all(&self.db, &self.settings, envelopes).await;
        taken.into_iter().map(carried).collect()
    }
}

/// What a hall's word means for the delivery.
pub(crate) fn carried(taken: Result<Taken, Refusal>) -> Carried {
    match taken {
        Ok(_) => Carried::Confirmed,
        Err(error) if error.refused().is_some() => Carried::Returned { message: error.to_string() },
        Err(error) => Carried::Unknown { message: error.to_string() },
    }
}

/// Publishes what is due until shutdown.
async fn publish(db: Db, config: Config, carrier: Box<dyn Carrier>, mut shutdown: Shutdown) {
    let centre = &config.fc.answer.reconcile;
    let settings = centre.settings(&config.signing.app_key);
    let pause = i64::try_from(centre.scan_interval_ms).unwrap_or(i64::MAX);
    while !shutdown.is_asked() {
        match delivery::publish(&db, &settings, carrier.as_ref()).await {
            // There may be more; what nobody knows of is not due again at once.
            Ok((confirmed, _)) if confirmed > 0 => continue,
            Ok(_) => {}
            Err(error) => tracing::warn!(%error, "deliveries were not published"),
        }
        scheduler::pause(TimeDelta::milliseconds(pause), &mut shutdown).await;
    }
}

/// Takes deliveries in until shutdown.
async fn listen(db: Db, settings: HallSettings, address: RabbitAddress, mut shutdown: Shutdown) {
    while !shutdown.is_asked() {
        let trouble = match RabbitEar::new(&address, &settings.app_key).await {
            Ok(ear) => hear(&db, &settings, ear, &mut shutdown).await,
            Err(error) => Some(error),
        };
        if let Some(error) = trouble {
            tracing::warn!(error, "deliveries cannot be heard");
            scheduler::pause(AFTER_TROUBLE, &mut shutdown).await;
        }
    }
}

/// Hears until the line is gone; `None` = the process was asked to stop.
async fn hear(
    db: &Db,
    settings: &HallSettings,
    mut ear: RabbitEar,
    shutdown: &mut Shutdown,
) -> Option<String> {
    loop {
        let heard = tokio::select! {
            () = shutdown.asked() => return None,
            heard = ear.hear() => heard,
        };
        let heard = match heard {
            Ok(heard) => heard,
            Err(error) => return Some(error),
        };
        let said = take(db, settings, heard).await;
        let failed = said.iter().any(|(_, said)| *said == Said::Again);
        match tokio::time::timeout(MAX_LAST_WORD, ear.say(&said)).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Some(error),
            Err(_) => return Some("RabbitMQ does not take our word".into()),
        }
        if failed {
            // The database is in trouble: the same deliveries would come back at once.
            scheduler::pause(AFTER_TROUBLE, shutdown).await;
        }
    }
}

async fn take(
    db: &Db,
    settings: &HallSettings,
    heard: Vec<HeardDelivery>,
) -> Vec<(HeardDelivery, Said)> {
    let envelopes: Vec<Envelope> =
        heard.iter().filter_map(|heard| heard.envelope.clone()).collect();
    let mut taken = inbox::take_all(db, settings, &envelopes).await.into_iter();
    let mut said = Vec::with_capacity(heard.len());
    for heard in heard {
        let word = match heard.envelope.as_ref().and_then(|_| taken.next()) {
            Some(Ok(_)) => Said::Handled,
            Some(Err(error)) if error.refused().is_none() => Said::Again,
            // Never an answer's values: its uuid is enough.
            _ => {
                let answer = heard.envelope.as_ref().map(|envelope| envelope.answer_uuid.as_str());
                tracing::warn!(answer, "a delivery was refused");
                Said::Refused
            }
        };
        said.push((heard, word));
    }
    said
}
