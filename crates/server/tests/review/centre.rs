//! Review centres behind real sockets: the real one, and ones in trouble.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use axum::Router;
use axum::extract::Request;
use axum::http::StatusCode;
use axum::middleware::{Next, from_fn};
use axum::response::IntoResponse;
use axum::routing::any;
use counterfoil_db::Db;
use counterfoil_server::api::review::review_router;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// Serves a router on a port of its own; answers its address.
pub async fn serve(router: Router) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    address
}

/// The real review centre.
pub async fn working(db: &Db) -> String {
    serve(review_router(db.clone(), counterfoil_task::Kicker::none())).await
}

/// The real review centre, which counts the requests it gets.
pub async fn counting(db: &Db) -> (String, Arc<AtomicU32>) {
    let asked = Arc::new(AtomicU32::new(0));
    let count = Arc::clone(&asked);
    let counter = from_fn(move |request: Request, next: Next| {
        count.fetch_add(1, Ordering::SeqCst);
        next.run(request)
    });
    (serve(review_router(db.clone(), counterfoil_task::Kicker::none()).layer(counter)).await, asked)
}

/// The real review centre, which does its work and never says so, only to the test.
pub async fn mute(db: &Db) -> (String, Arc<Notify>) {
    let done = Arc::new(Notify::new());
    let tell = Arc::clone(&done);
    let silence = from_fn(move |request: Request, next: Next| {
        let tell = Arc::clone(&tell);
        // On its own, so that it goes on when the client has given up.
        tokio::spawn(async move {
            let _unsaid = next.run(request).await;
            tell.notify_one();
        });
        std::future::pending::<StatusCode>()
    });
    let address =
        serve(review_router(db.clone(), counterfoil_task::Kicker::none()).layer(silence)).await;
    (address, done)
}

/// The real review centre; `meanwhile` happens between its work and its answer to an opening.
pub async fn meanwhile(db: &Db, statements: &'static [&'static str]) -> String {
    let hands = db.clone();
    let interloper = from_fn(move |request: Request, next: Next| {
        let hands = hands.clone();
        async move {
            let opens = request.uri().path().ends_with("/initInfo");
            let response = next.run(request).await;
            if opens {
                for statement in statements {
                    crate::house::by_hand(&hands, statement).await;
                }
            }
            response
        }
    });
    serve(review_router(db.clone(), counterfoil_task::Kicker::none()).layer(interloper)).await
}

/// Nobody listens there.
pub async fn down() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    format!("http://{}", listener.local_addr().unwrap())
}

/// Takes the request and never answers.
pub async fn slow() -> String {
    let handler = || async { std::future::pending::<StatusCode>().await };
    serve(Router::new().fallback(any(handler))).await
}

/// Always answers this.
pub async fn answering(status: StatusCode, body: String) -> String {
    let handler = move || {
        let body = body.clone();
        async move { (status, body).into_response() }
    };
    serve(Router::new().fallback(any(handler))).await
}

/// Takes the connection and hangs up before it has answered.
pub async fn hanging_up() -> String {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move {
        while let Ok((connection, _)) = listener.accept().await {
            // Read something first, so that the request has certainly been sent.
            let _ = connection.readable().await;
            drop(connection);
        }
    });
    address
}
