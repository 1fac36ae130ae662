//! What lies between hall and centre in the demo: it passes every byte on, and counts them.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Bytes passed on at once.
const CHUNK: usize = 16 * 1024;
/// Connections at a time; more wait.
const MAX_CONNECTIONS: usize = 64;

/// A counted line to one address.
#[derive(Debug)]
pub struct Tap {
    /// Where it listens.
    pub address: SocketAddr,
    bytes: Arc<AtomicU64>,
    // Dropping it cuts every connection.
    _lines: JoinSet<()>,
}

impl Tap {
    /// A line to `target`, on a free port.
    pub async fn to(target: SocketAddr) -> io::Result<Tap> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, bytes) = (listener.local_addr()?, Arc::new(AtomicU64::new(0)));
        let mut lines = JoinSet::new();
        lines.spawn(accept(listener, target, bytes.clone()));
        Ok(Tap { address, bytes, _lines: lines })
    }

    /// Bytes so far, both ways.
    pub fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }
}

async fn accept(listener: TcpListener, target: SocketAddr, bytes: Arc<AtomicU64>) {
    let mut lines = JoinSet::new();
    loop {
        if lines.len() >= MAX_CONNECTIONS {
            lines.join_next().await;
        }
        let Ok((caller, _)) = listener.accept().await else { return };
        let bytes = bytes.clone();
        lines.spawn(async move {
            // A line that breaks off is the callers' affair: they see it and try again.
            if let Ok(called) = TcpStream::connect(target).await {
                let (from, to) = (caller.into_split(), called.into_split());
                let there = pass(from.0, to.1, &bytes);
                let back = pass(to.0, from.1, &bytes);
                let _ = tokio::join!(there, back);
            }
        });
    }
}

async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    bytes: &AtomicU64,
) -> io::Result<()> {
    let mut chunk = vec![0; CHUNK];
    loop {
        let count = from.read(&mut chunk).await?;
        if count == 0 {
            return to.shutdown().await;
        }
        bytes.fetch_add(count as u64, Ordering::Relaxed);
        to.write_all(&chunk[..count]).await?;
    }
}
