//! The HTTP treasury over a real socket: what it is sent, and what its silence means.

use std::time::Duration;

use counterfoil_payment::treasury::port::{Message, PaymentChannel, PushAnswer, Reported};
use counterfoil_remote::HttpTreasury;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;

fn message() -> Message {
    Message { message_id: "CF7-1".into(), body: r#"{"a":1}"#.into(), sha256: String::new() }
}

fn channel(address: &str) -> HttpTreasury {
    // Another test of this process may have installed it already.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let url = format!("http://{address}/pushes");
    HttpTreasury::new(&url, false, Duration::from_secs(2)).expect("a client")
}

/// Answers one request with these bytes, and tells what was asked. No bytes = the connection is
/// closed once the request is there.
async fn once(answer: &'static str) -> (String, tokio::task::JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let heard = tokio::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut heard = Vec::new();
        let mut buffer = [0; 4096];
        loop {
            let read = stream.read(&mut buffer).await.expect("bytes");
            heard.extend_from_slice(&buffer[..read]);
            let text = String::from_utf8_lossy(&heard).into_owned();
            let is_whole = text.ends_with(&message().body) || text.starts_with("GET");
            if read == 0 || is_whole {
                stream.write_all(answer.as_bytes()).await.expect("an answer");
                return text;
            }
        }
    });
    (address, heard)
}

#[tokio::test]
async fn a_push_carries_its_id_as_idempotency_key_and_its_exact_bytes() {
    let body = r#"{"reference":"T-9","lines":[
        {"endToEndId":"CFD1-1","status":"PAID","amount":5},
        {"endToEndId":"CFD2-1","status":"REJECTED","reasonCode":"AC01","reason":"none"}]}"#;
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let (address, heard) = once(Box::leak(answer.into_boxed_str())).await;
    let answer = channel(&address).send(&message()).await;
    let PushAnswer::Accepted { reference, entries } = answer else { panic!("{answer:?}") };
    assert_eq!(reference.as_deref(), Some("T-9"));
    let statuses: Vec<_> = entries.iter().map(|entry| entry.status).collect();
    assert_eq!(statuses, [Reported::Paid, Reported::Rejected]);
    let heard = heard.await.expect("a request");
    assert!(heard.starts_with("POST /pushes HTTP/1.1\r\n"), "{heard}");
    assert!(heard.to_lowercase().contains("idempotency-key: cf7-1"), "{heard}");
    assert!(heard.ends_with(&message().body), "{heard}");
}

#[tokio::test]
async fn nobody_there_is_a_certain_refusal_and_a_broken_connection_is_no_verdict() {
    let answer = channel("127.0.0.1:9").send(&message()).await;
    assert!(matches!(answer, PushAnswer::Refused { .. }), "{answer:?}");
    let (address, _) = once("").await;
    let answer = channel(&address).send(&message()).await;
    assert!(matches!(answer, PushAnswer::Unknown { .. }), "{answer:?}");
}

#[tokio::test]
async fn a_status_query_never_refuses() {
    let answer = "HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n";
    let (address, heard) = once(answer).await;
    let answer = channel(&address).inquire(&message()).await;
    assert!(matches!(answer, PushAnswer::Unknown { .. }), "{answer:?}");
    assert!(heard.await.expect("a request").starts_with("GET /pushes/CF7-1 HTTP/1.1"));
    let answer = channel("127.0.0.1:9").inquire(&message()).await;
    assert!(matches!(answer, PushAnswer::Unknown { .. }), "{answer:?}");
}

#[tokio::test]
async fn an_answer_of_another_form_is_no_verdict() {
    for answer in [
        "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}",
        "HTTP/1.1 502 Bad Gateway\r\ncontent-length: 0\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 100\r\n\r\n{\"refer",
    ] {
        let (address, _) = once(answer).await;
        let said = channel(&address).send(&message()).await;
        assert!(matches!(said, PushAnswer::Unknown { .. }), "{answer}: {said:?}");
    }
}
