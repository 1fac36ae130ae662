//! Deliveries of answers by RabbitMQ.
//!
//! The centre publishes to one exchange, under the consumer's app key, and believes only the
//! broker's confirm: mandatory, so that what no queue takes comes back. The hall binds a durable
//! queue of its own and acknowledges a delivery only after its inbox has committed it: one may come
//! twice, and counts once.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use counterfoil_reconcile::delivery::{Carried, Carrier};
use counterfoil_reconcile::wire::Envelope;
use futures_util::{FutureExt, StreamExt};
use lapin::message::Delivery;
use lapin::options::{
    BasicAckOptions, BasicConsumeOptions, BasicNackOptions, BasicPublishOptions, BasicQosOptions,
    ConfirmSelectOptions, ExchangeDeclareOptions, QueueBindOptions, QueueDeclareOptions,
};
use lapin::types::FieldTable;
use lapin::{
    BasicProperties, Channel, Confirmation, Connection, ConnectionProperties, Consumer,
    ExchangeKind, PublisherConfirm,
};
use tokio::sync::Mutex;

/// How long connecting, and setting a channel up, may take.
const MAX_CONNECT_TIME: Duration = Duration::from_secs(10);
/// How long the broker may take to confirm what was published together.
const MAX_CONFIRM_TIME: Duration = Duration::from_secs(30);
/// Deliveries that a hall holds unacknowledged.
const PREFETCH: u16 = 500;
/// Bytes of one delivery at most; a longer one is no answer.
const MAX_DELIVERY_BYTES: usize = 8 * 1024 * 1024;
/// AMQP's word for a message that is written to disk.
const PERSISTENT: u8 = 2;

/// Where deliveries are published and heard.
#[derive(Clone)]
pub struct RabbitAddress {
    /// `amqp://user:password@host:port/vhost`.
    pub url: String,
    /// The exchange; a hall's queue is called after it.
    pub exchange: String,
}

impl std::fmt::Debug for RabbitAddress {
    // The URL holds a password.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RabbitAddress").field("exchange", &self.exchange).finish_non_exhaustive()
    }
}

/// A connection with its one channel.
struct Line {
    channel: Channel,
    // Dropping it ends the channel.
    _connection: Connection,
}

impl RabbitAddress {
    /// Connects, and declares the exchange: whoever comes first makes it.
    async fn connect(&self) -> Result<Line, String> {
        let connecting = async {
            let name = ConnectionProperties::default().with_connection_name("counterfoil".into());
            let connection = Connection::connect(&self.url, name).await?;
            let channel = connection.create_channel().await?;
            let durable = ExchangeDeclareOptions { durable: true, ..Default::default() };
            let (exchange, kind) = (self.exchange.as_str(), ExchangeKind::Direct);
            channel.exchange_declare(exchange.into(), kind, durable, FieldTable::default()).await?;
            Ok::<_, lapin::Error>(Line { channel, _connection: connection })
        };
        match tokio::time::timeout(MAX_CONNECT_TIME, connecting).await {
            Ok(Ok(line)) => Ok(line),
            // The driver's error may name the address, but never the password.
            Ok(Err(error)) => Err(format!("RabbitMQ cannot be used: {error}")),
            Err(_) => Err("RabbitMQ does not answer".into()),
        }
    }
}

/// Publishes deliveries.
pub struct RabbitCarrier {
    address: RabbitAddress,
    line: Mutex<Option<Line>>,
}

impl std::fmt::Debug for RabbitCarrier {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RabbitCarrier").field("address", &self.address).finish_non_exhaustive()
    }
}

impl RabbitCarrier {
    /// Publishes to this address. The broker is reached when there is something to publish.
    pub fn new(address: RabbitAddress) -> RabbitCarrier {
        RabbitCarrier { address, line: Mutex::new(None) }
    }

    async fn open(&self) -> Result<Line, String> {
        let line = self.address.connect().await?;
        let confirms = line.channel.confirm_select(ConfirmSelectOptions::default());
        match tokio::time::timeout(MAX_CONNECT_TIME, confirms).await {
            Ok(Ok(())) => Ok(line),
            Ok(Err(error)) => Err(format!("RabbitMQ confirms nothing: {error}")),
            Err(_) => Err("RabbitMQ does not answer".into()),
        }
    }

    async fn publish(&self, line: &Line, envelope: &Envelope) -> Result<PublisherConfirm, String> {
        let body = serde_json::to_vec(envelope).map_err(|error| error.to_string())?;
        let properties = BasicProperties::default()
            .with_content_type("application/json".into())
            .with_delivery_mode(PERSISTENT)
            .with_message_id(envelope.event_id.as_str().into());
        let mandatory = BasicPublishOptions { mandatory: true, ..Default::default() };
        let (exchange, key) = (self.address.exchange.as_str(), envelope.consumer_app_key.as_str());
        let sent =
            line.channel.basic_publish(exchange.into(), key.into(), mandatory, &body, properties);
        sent.await.map_err(|error| error.to_string())
    }

    /// Publishes all and waits for every confirm. What came back is known by its own id: the
    /// broker may confirm several at once, in another order than it returned them.
    async fn exchange(&self, line: &Line, envelopes: &[Envelope]) -> Vec<Carried> {
        let mut confirms = Vec::with_capacity(envelopes.len());
        for envelope in envelopes {
            confirms.push(self.publish(line, envelope).await);
        }
        let mut words: Vec<Result<bool, String>> = Vec::with_capacity(envelopes.len());
        let mut returned: BTreeMap<String, String> = BTreeMap::new();
        for confirm in confirms {
            words.push(match confirm {
                Err(error) => Err(error),
                Ok(confirm) => match confirm.await {
                    Ok(Confirmation::NotRequested) => Err("the broker was not asked".into()),
                    Ok(confirmation) => {
                        let is_ack = confirmation.is_ack();
                        if let Some(message) = confirmation.take_message() {
                            let id = message.delivery.properties.message_id().clone();
                            let id = id.map(|id| id.to_string()).unwrap_or_default();
                            returned.insert(id, message.reply_text.to_string());
                        }
                        Ok(is_ack)
                    }
                    Err(error) => Err(error.to_string()),
                },
            });
        }
        let outcome = |(envelope, word): (&Envelope, Result<bool, String>)| {
            if let Some(why) = returned.get(&envelope.event_id) {
                return Carried::Returned { message: format!("no queue took it: {why}") };
            }
            match word {
                Ok(true) => Carried::Confirmed,
                Ok(false) => Carried::Unknown { message: "the broker refused it".into() },
                Err(message) => Carried::Unknown { message },
            }
        };
        envelopes.iter().zip(words).map(outcome).collect()
    }
}

#[async_trait::async_trait]
impl Carrier for RabbitCarrier {
    async fn carry(&self, envelope: &Envelope) -> Carried {
        let mut carried = self.carry_all(std::slice::from_ref(envelope)).await;
        carried.pop().unwrap_or(Carried::Unknown { message: "nothing was carried".into() })
    }

    async fn carry_all(&self, envelopes: &[Envelope]) -> Vec<Carried> {
        let unknown =
            |message: &str| vec![Carried::Unknown { message: message.into() }; envelopes.len()];
        let mut line = self.line.lock().await;
        let usable = line.take().filter(|line| line.channel.status().connected());
        let open = match usable {
            Some(line) => line,
            None => match self.open().await {
                Ok(line) => line,
                Err(message) => return unknown(&message),
            },
        };
        let exchanged = tokio::time::timeout(MAX_CONFIRM_TIME, self.exchange(&open, envelopes));
        let Ok(carried) = exchanged.await else {
            return unknown("the broker did not confirm in time");
        };
        // A line on which something is not known is not used again.
        if !carried.iter().any(|carried| matches!(carried, Carried::Unknown { .. })) {
            *line = Some(open);
        }
        carried
    }
}

/// Hears deliveries for one hall.
pub struct RabbitEar {
    consumer: Consumer,
    _line: Line,
}

impl std::fmt::Debug for RabbitEar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RabbitEar").finish_non_exhaustive()
    }
}

/// One delivery heard.
#[derive(Debug)]
pub struct HeardDelivery {
    /// The snapshot; `None` where it is none that can be read.
    pub envelope: Option<Envelope>,
    delivery: Delivery,
}

/// What is said of a delivery that was heard.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Said {
    /// It is in the inbox: the broker may forget it.
    Handled,
    /// It is not ours, or is damaged: it never will be taken. Reconciliation finds what is missing.
    Refused,
    /// Not now: it comes again.
    Again,
}

impl RabbitEar {
    /// Binds the queue of `app`, and listens.
    ///
    /// # Errors
    /// What the broker says.
    pub async fn new(address: &RabbitAddress, app: &str) -> Result<RabbitEar, String> {
        let line = address.connect().await?;
        let queue = format!("{}.{app}", address.exchange);
        let listening = async {
            let (channel, none) = (&line.channel, FieldTable::default);
            let durable = QueueDeclareOptions { durable: true, ..Default::default() };
            channel.queue_declare(queue.as_str().into(), durable, none()).await?;
            let (exchange, bind) = (address.exchange.as_str(), QueueBindOptions::default());
            channel
                .queue_bind(queue.as_str().into(), exchange.into(), app.into(), bind, none())
                .await?;
            channel.basic_qos(PREFETCH, BasicQosOptions::default()).await?;
            let (tag, options) = ("".into(), BasicConsumeOptions::default());
            channel.basic_consume(queue.as_str().into(), tag, options, none()).await
        };
        let consumer = match tokio::time::timeout(MAX_CONNECT_TIME, listening).await {
            Ok(Ok(consumer)) => consumer,
            Ok(Err(error)) => return Err(format!("RabbitMQ cannot be listened to: {error}")),
            Err(_) => return Err("RabbitMQ does not answer".into()),
        };
        Ok(RabbitEar { consumer, _line: line })
    }

    /// Waits for a delivery; answers it with those that are there already.
    ///
    /// # Errors
    /// The line is gone: make a new ear.
    pub async fn hear(&mut self) -> Result<Vec<HeardDelivery>, String> {
        let gone = || "RabbitMQ ended the line".to_owned();
        let first = self.consumer.next().await.ok_or_else(gone)?;
        let mut heard = vec![read(first.map_err(|error| error.to_string())?)];
        while heard.len() < usize::from(PREFETCH) {
            match self.consumer.next().now_or_never() {
                Some(Some(Ok(delivery))) => heard.push(read(delivery)),
                // Whatever else it is, it is there the next time.
                _ => break,
            }
        }
        Ok(heard)
    }

    /// Says what became of deliveries.
    ///
    /// # Errors
    /// The line is gone: what was not said comes again.
    pub async fn say(&self, heard: &[(HeardDelivery, Said)]) -> Result<(), String> {
        let mut said = BTreeSet::new();
        for (HeardDelivery { delivery, .. }, word) in heard {
            if !said.insert(delivery.delivery_tag) {
                continue;
            }
            let done = match word {
                Said::Handled => delivery.acker.ack(BasicAckOptions::default()).await,
                Said::Refused | Said::Again => {
                    let requeue = *word == Said::Again;
                    let options = BasicNackOptions { requeue, ..Default::default() };
                    delivery.acker.nack(options).await
                }
            };
            done.map_err(|error| error.to_string())?;
        }
        Ok(())
    }
}

fn read(delivery: Delivery) -> HeardDelivery {
    let is_short = delivery.data.len() <= MAX_DELIVERY_BYTES;
    let envelope = is_short.then(|| serde_json::from_slice(&delivery.data).ok()).flatten();
    HeardDelivery { envelope, delivery }
}
