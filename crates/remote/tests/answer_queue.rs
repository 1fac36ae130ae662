//! Deliveries by a real RabbitMQ.

use counterfoil_reconcile::delivery::{Carried, Carrier};
use counterfoil_reconcile::wire::Envelope;
use counterfoil_remote::{RabbitAddress, RabbitCarrier, RabbitEar, Said};

/// The test's own exchange and queues on the test's broker.
fn address() -> RabbitAddress {
    let default = || "amqp://guest:guest@127.0.0.1:5672/%2f".to_owned();
    let url = std::env::var("COUNTERFOIL_TEST_RABBITMQ").unwrap_or_else(|_| default());
    let exchange = format!("counterfoil-test-{:016x}", rand::random::<u64>());
    RabbitAddress { url, exchange }
}

fn envelope(event: &str, consumer: &str) -> Envelope {
    let text = format!(
        r#"{{"eventId":"{event}","taskId":null,"proofId":null,"sourceAppKey":"centre",
           "consumerAppKey":"{consumer}","consumerSchoolId":"s","schId":"s","formUuid":"f",
           "formVersion":1,"answerUuid":"0123456789abcdef0123456789abcdef","revision":1,
           "contentHash":"h","isDeleted":false,"values":{{"n":0.10}},"grantEpoch":1}}"#
    );
    serde_json::from_str(&text).expect("an envelope")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_no_queue_takes_comes_back_and_the_rest_is_confirmed() {
    let address = address();
    let carrier = RabbitCarrier::new(address.clone());
    let nobody = carrier.carry(&envelope("e1", "hall")).await;
    assert!(
        matches!(&nobody, Carried::Returned { message } if message.contains("NO_ROUTE")),
        "{nobody:?}"
    );
    let mut ear = RabbitEar::new(&address, "hall").await.expect("a queue");
    // In one go: a queue's confirm may be sent together with that of what came back.
    let mixed: Vec<Envelope> = (0..40)
        .map(|number| {
            let consumer = if number % 3 == 0 { "stranger" } else { "hall" };
            envelope(&format!("m{number}"), consumer)
        })
        .collect();
    let carried = carrier.carry_all(&mixed).await;
    for (number, outcome) in carried.iter().enumerate() {
        let is_returned = matches!(outcome, Carried::Returned { .. });
        assert_eq!(is_returned, number.is_multiple_of(3), "{number}: {outcome:?}");
        assert!(is_returned || *outcome == Carried::Confirmed, "{number}: {outcome:?}");
    }
    let mut ids = Vec::new();
    while ids.len() < 26 {
        let heard = ear.hear().await.expect("deliveries");
        ids.extend(heard.iter().map(|heard| heard.envelope.as_ref().unwrap().event_id.clone()));
        let said: Vec<_> = heard.into_iter().map(|heard| (heard, Said::Handled)).collect();
        ear.say(&said).await.expect("said");
    }
    let sent: Vec<String> =
        (0..40).filter(|number| number % 3 != 0).map(|number| format!("m{number}")).collect();
    assert_eq!(ids, sent, "in the order they were published");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_delivery_comes_again_until_it_is_handled_and_a_refused_one_never_again() {
    let address = address();
    let mut ear = RabbitEar::new(&address, "hall").await.expect("a queue");
    let carrier = RabbitCarrier::new(address.clone());
    assert_eq!(carrier.carry(&envelope("e1", "hall")).await, Carried::Confirmed);
    let heard = ear.hear().await.expect("a delivery");
    let again: Vec<_> = heard.into_iter().map(|heard| (heard, Said::Again)).collect();
    ear.say(&again).await.expect("said");
    let heard = ear.hear().await.expect("the same delivery");
    assert_eq!(heard[0].envelope.as_ref().unwrap().event_id, "e1");
    // The process dies before it says anything.
    drop(heard);
    drop(ear);
    let mut ear = RabbitEar::new(&address, "hall").await.expect("the same queue");
    let heard = ear.hear().await.expect("the same delivery");
    assert_eq!(heard[0].envelope.as_ref().unwrap().event_id, "e1");
    let refused: Vec<_> = heard.into_iter().map(|heard| (heard, Said::Refused)).collect();
    ear.say(&refused).await.expect("said");
    assert_eq!(carrier.carry(&envelope("e2", "hall")).await, Carried::Confirmed);
    let heard = ear.hear().await.expect("the next delivery");
    assert_eq!(heard[0].envelope.as_ref().unwrap().event_id, "e2");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_broker_that_is_away_is_unknown_and_not_a_silence() {
    let url = "amqp://guest:guest@127.0.0.1:9/%2f".to_owned();
    let address = RabbitAddress { url, exchange: "x".into() };
    let carrier = RabbitCarrier::new(address.clone());
    for _ in 0..2 {
        let carried = carrier.carry(&envelope("e1", "hall")).await;
        assert!(
            matches!(&carried, Carried::Unknown { message } if message.contains("RabbitMQ")),
            "{carried:?}"
        );
    }
    assert!(RabbitEar::new(&address, "hall").await.is_err());
    assert!(!format!("{address:?}").contains("guest"), "no password is shown");
}
