//! One creator at a time by a real Redis, and everybody when it is away.

use counterfoil_payment::treasury::guard::CreationGuard;
use counterfoil_protocol::OrderId;
use counterfoil_remote::RedisGuard;

fn url() -> String {
    let default = || "redis://127.0.0.1:6379".to_owned();
    std::env::var("COUNTERFOIL_TEST_REDIS").unwrap_or_else(|_| default())
}

/// An order that no other test locks.
fn order() -> OrderId {
    OrderId(i64::from(rand::random::<u32>()) + 1)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_second_creator_waits_until_the_first_is_done() {
    let guard = RedisGuard::new(&url()).expect("a client");
    let (one, other) = (order(), order());
    let first = guard.enter(one).await.expect("free");
    assert!(guard.enter(other).await.is_some(), "another order is another lock");
    let waiting = tokio::spawn({
        let guard = guard.clone();
        async move { guard.enter(one).await.is_some() }
    });
    assert!(guard.enter(one).await.is_none(), "five seconds are over");
    drop(first);
    // The one that waited as long is refused as well, or has just got it.
    let _ = waiting.await.expect("no panic");
    assert!(guard.enter(one).await.is_some(), "given back");
}

#[tokio::test]
async fn redis_away_lets_everybody_in() {
    let guard = RedisGuard::new("redis://127.0.0.1:9").expect("a client");
    assert!(guard.enter(OrderId(1)).await.is_some());
    assert!(guard.enter(OrderId(1)).await.is_some());
    assert!(RedisGuard::new("http://nowhere").is_err());
}
