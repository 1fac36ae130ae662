//! Notices by Kafka: the client's own mock cluster speaks the real protocol.

use counterfoil_payment::treasury::notice::{Notice, NoticePost};
use counterfoil_remote::{KafkaAddress, KafkaEar, KafkaPost};
use rdkafka::mocking::MockCluster;

const NOTICE: &str = r#"{"event":"RESIDENT_INCOME_PAYMENT_CREATE_PUSH_BATCH_NOTIFY",
    "paymentOrderId":7,"dataVersion":2,"submitRound":3}"#;

fn address(brokers: String, group: &str) -> KafkaAddress {
    KafkaAddress { brokers, topic: "notices".into(), group: group.into() }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_posted_notice_is_heard_and_its_offset_committed() {
    let cluster = MockCluster::new(1).expect("a mock cluster");
    cluster.create_topic("notices", 1, 1).expect("a topic");
    let brokers = cluster.bootstrap_servers();
    let notice = Notice::read(NOTICE).expect("a notice");
    let post = KafkaPost::new(&address(brokers.clone(), "g")).expect("a client");
    post.post(&notice).await.expect("the cluster has it");
    let ear = KafkaEar::new(&address(brokers, "g")).expect("a client");
    let heard = ear.hear().await.expect("a message");
    assert_eq!(heard.notice, Some(notice));
    ear.handled(&heard).expect("a commit");
    let other = Notice::read(&NOTICE.replace(":7", ":8")).expect("a notice");
    post.post(&other).await.expect("the cluster has it");
    let heard = ear.hear().await.expect("a message");
    assert_eq!(heard.notice, Some(other));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cluster_that_is_away_is_an_error_and_not_a_silence() {
    let post = KafkaPost::new(&address("127.0.0.1:9".into(), "g")).expect("a client");
    let notice = Notice::read(NOTICE).expect("a notice");
    let why = post.post(&notice).await.expect_err("nobody is there");
    assert!(why.contains("Kafka"), "{why}");
}
