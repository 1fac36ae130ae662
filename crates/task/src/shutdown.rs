//! Graceful shutdown: stop claiming, finish or hand back the batch, never burn an attempt.

use tokio::sync::watch;

/// Asks work to stop.
#[derive(Debug)]
pub struct ShutdownHandle(watch::Sender<bool>);

/// Tells whether work should stop. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Shutdown(watch::Receiver<bool>);

impl Shutdown {
    /// A pair.
    pub fn new() -> (ShutdownHandle, Shutdown) {
        let (sender, receiver) = watch::channel(false);
        (ShutdownHandle(sender), Shutdown(receiver))
    }

    /// One that never asks.
    pub fn never() -> Shutdown {
        Shutdown::new().1
    }

    /// Whether to stop at the next batch.
    pub fn is_asked(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until it is asked; for ever if nobody is left who could.
    pub async fn asked(&mut self) {
        if self.0.wait_for(|asked| *asked).await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

impl ShutdownHandle {
    /// Asks everything that holds the other half to stop.
    pub fn ask(&self) {
        self.0.send_replace(true);
    }
}
