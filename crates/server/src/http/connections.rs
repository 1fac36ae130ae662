//! Accepting connections, so many at a time, and ending them in time.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use counterfoil_task::Shutdown;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::task::JoinSet;
use tower::ServiceExt;

use super::Limits;

/// After an accept that failed: as a rule no file descriptor is left, and one has to come free.
const AFTER_TROUBLE: Duration = Duration::from_millis(50);

/// Serves until shutdown; then lets open requests end, for a bounded time.
pub async fn serve(listener: TcpListener, router: Router, limits: Limits, shutdown: Shutdown) {
    let graceful = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(limits.connections));
    let mut open = JoinSet::new();
    let mut stop = shutdown.clone();
    loop {
        let accepted = tokio::select! {
            () = stop.asked() => break,
            accepted = accept(&listener, &places) => accepted,
        };
        while open.try_join_next().is_some() {}
        let Some((stream, peer, place)) = accepted else {
            tokio::time::sleep(AFTER_TROUBLE).await;
            continue;
        };
        // Answers are written whole: waiting for more to send would only delay them.
        let _ = stream.set_nodelay(true);
        let router = router.clone();
        let service = service_fn(move |mut request: Request<Incoming>| {
            request.extensions_mut().insert(ConnectInfo(peer));
            router.clone().oneshot(request.map(Body::new))
        });
        let connection = http1::Builder::new()
            .timer(TokioTimer::new())
            .header_read_timeout(limits.head)
            .serve_connection(TokioIo::new(stream), service);
        let connection = graceful.watch(connection);
        open.spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection ended early");
            }
            drop(place);
        });
    }
    drop(listener);
    if tokio::time::timeout(limits.drain, graceful.shutdown()).await.is_err() {
        tracing::warn!("connections that did not end in time are cut off");
    }
    open.shutdown().await;
}

/// The next connection once there is a place for it; `None` = it could not be accepted.
async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => Some((stream, peer, place)),
        Err(error) => {
            tracing::warn!(%error, "a connection could not be accepted");
            None
        }
    }
}
