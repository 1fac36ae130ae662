//! Notices that batches are there, by Kafka.
//!
//! Posting waits until the cluster has the message. Listening commits an offset only after the
//! notice has been handled: a message may be handled twice, and a batch is claimed once.

use std::time::Duration;

use counterfoil_payment::treasury::notice::{Notice, NoticePost};
use rdkafka::config::ClientConfig;
use rdkafka::consumer::{CommitMode, Consumer, StreamConsumer};
use rdkafka::message::Message;
use rdkafka::producer::{FutureProducer, FutureRecord};

use crate::RemoteError;

/// How long posting may take.
const MAX_POST_TIME: Duration = Duration::from_secs(10);

/// Where notices are posted and heard.
#[derive(Debug, Clone)]
pub struct KafkaAddress {
    /// `host:port`, several joined by commas.
    pub brokers: String,
    /// The topic.
    pub topic: String,
    /// The consumers' group.
    pub group: String,
}

fn unusable(_: rdkafka::error::KafkaError) -> RemoteError {
    RemoteError::Address { what: "kafka", why: "no client can be made with these brokers".into() }
}

/// Posts notices.
#[derive(Clone)]
pub struct KafkaPost {
    producer: FutureProducer,
    topic: String,
}

impl std::fmt::Debug for KafkaPost {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaPost").field("topic", &self.topic).finish_non_exhaustive()
    }
}

impl KafkaPost {
    /// Posts to this address. The brokers are reached when there is something to post.
    ///
    /// # Errors
    /// An address that no client can be made of.
    pub fn new(address: &KafkaAddress) -> Result<KafkaPost, RemoteError> {
        let producer = ClientConfig::new()
            .set("bootstrap.servers", &address.brokers)
            .set("message.timeout.ms", MAX_POST_TIME.as_millis().to_string())
            .set("enable.idempotence", "true")
            .create()
            .map_err(unusable)?;
        Ok(KafkaPost { producer, topic: address.topic.clone() })
    }
}

#[async_trait::async_trait]
impl NoticePost for KafkaPost {
    async fn post(&self, notice: &Notice) -> Result<(), String> {
        let (key, text) = (notice.target().order.to_string(), notice.text());
        let record = FutureRecord::to(&self.topic).key(&key).payload(&text);
        match self.producer.send(record, MAX_POST_TIME).await {
            Ok(_) => Ok(()),
            Err((error, _)) => Err(format!("Kafka does not have the notice: {error}")),
        }
    }
}

/// Hears notices.
pub struct KafkaEar {
    consumer: StreamConsumer,
}

impl std::fmt::Debug for KafkaEar {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("KafkaEar").finish_non_exhaustive()
    }
}

/// One message heard: a notice, or another event that is passed over.
#[derive(Debug)]
pub struct Heard {
    /// The notice, if it was one.
    pub notice: Option<Notice>,
    topic: String,
    partition: i32,
    offset: i64,
}

impl KafkaEar {
    /// Listens at this address.
    ///
    /// # Errors
    /// An address that no client can be made of.
    pub fn new(address: &KafkaAddress) -> Result<KafkaEar, RemoteError> {
        let consumer: StreamConsumer = ClientConfig::new()
            .set("bootstrap.servers", &address.brokers)
            .set("group.id", &address.group)
            .set("enable.auto.commit", "false")
            .set("auto.offset.reset", "earliest")
            // A listener that died is replaced soon.
            .set("session.timeout.ms", "6000")
            .set("heartbeat.interval.ms", "1000")
            .create()
            .map_err(unusable)?;
        consumer.subscribe(&[&address.topic]).map_err(unusable)?;
        Ok(KafkaEar { consumer })
    }

    /// Waits for the next message.
    ///
    /// # Errors
    /// What the client reports; listening goes on by calling again.
    pub async fn hear(&self) -> Result<Heard, String> {
        let message = self.consumer.recv().await.map_err(|error| error.to_string())?;
        let notice = message.payload_view::<str>().and_then(Result::ok).and_then(Notice::read);
        let (topic, partition) = (message.topic().to_owned(), message.partition());
        Ok(Heard { notice, topic, partition, offset: message.offset() })
    }

    /// Says that a message has been handled.
    ///
    /// # Errors
    /// What the client reports: the message is heard again.
    pub fn handled(&self, heard: &Heard) -> Result<(), String> {
        let mut next = rdkafka::TopicPartitionList::new();
        let offset = rdkafka::Offset::Offset(heard.offset + 1);
        let added = next.add_partition_offset(&heard.topic, heard.partition, offset);
        added.map_err(|error| error.to_string())?;
        let committed = self.consumer.commit(&next, CommitMode::Sync);
        committed.map_err(|error| error.to_string())
    }
}
