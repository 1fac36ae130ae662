//! The wire of `bench reconcile`: the centre's own doors behind a relay that counts every byte, and
//! a client that notes what each call was for.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use counterfoil_db::{Db, Instant as Moment};
use counterfoil_protocol::signing::SigningKey;
use counterfoil_reconcile::service_hall::centre::{Answer, Centre};
use counterfoil_reconcile::wire::{
    Ack, AskedRange, Authority, Digests, GrantState, KeySpan, ManifestPage, Question, RangeRows,
    Report,
};
use counterfoil_remote::{HttpFormCentre, SignedClient};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::fill::{CENTRE, HALL};
use crate::config::Config;
use crate::reconcile_wiring;
use crate::signing_config::{AppConfig, AppKeyConfig};

/// Base64 of 32 bytes: the two sides' keys. They end with the run.
const CENTRE_KEY: &str = "AQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQEBAQE=";
const HALL_KEY: &str = "AgICAgICAgICAgICAgICAgICAgICAgICAgICAgICAgI=";
/// Bytes that the relay passes on at once.
const CHUNK: usize = 64 * 1024;

/// What a part of the work cost.
#[derive(Debug, Clone, Copy, Default)]
pub struct Share {
    /// Time from its calls to the next other one.
    pub took: Duration,
    /// Bytes on the wire, in both directions, headers included.
    pub bytes: u64,
    /// Calls.
    pub calls: u64,
}

fn config(own: &str, own_key: &str, peer: &str, peer_key: &str) -> Result<Config> {
    let mut config = Config::default();
    own.clone_into(&mut config.signing.app_key);
    own_key.clone_into(&mut config.signing.private_key);
    let key = SigningKey::read("ed25519", peer_key).ok().and_then(|key| key.public());
    let key = AppKeyConfig { alg: "ed25519".into(), key: key.context("a key is none")? };
    config.apps.insert(peer.into(), AppConfig { keys: vec![key] });
    Ok(config)
}

/// The centre behind its relay. What it spawned ends with it.
pub(super) struct Line {
    client: SignedClient,
    bytes: Arc<AtomicU64>,
    _serving: JoinSet<()>,
}

impl Line {
    pub(super) async fn open(centre: &Db) -> Result<Line> {
        let router = reconcile_wiring::router(
            centre,
            &config(CENTRE, CENTRE_KEY, HALL, HALL_KEY)?,
            true,
            false,
        )?;
        let doors = TcpListener::bind("127.0.0.1:0").await?;
        let relay = TcpListener::bind("127.0.0.1:0").await?;
        let (behind, before) = (doors.local_addr()?, relay.local_addr()?);
        let bytes = Arc::new(AtomicU64::new(0));
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            if let Err(error) = axum::serve(doors, router).await {
                tracing::error!(%error, "the centre's doors are closed");
            }
        });
        let counted = bytes.clone();
        serving.spawn(async move {
            let mut pairs = JoinSet::new();
            while let Ok((caller, _)) = relay.accept().await {
                let Ok(called) = TcpStream::connect(behind).await else { continue };
                let _ = (caller.set_nodelay(true), called.set_nodelay(true));
                let (from_caller, to_caller) = caller.into_split();
                let (from_called, to_called) = called.into_split();
                pairs.spawn(pass_on(from_caller, to_called, counted.clone()));
                pairs.spawn(pass_on(from_called, to_caller, counted.clone()));
            }
        });
        let hall = config(HALL, HALL_KEY, CENTRE, CENTRE_KEY)?;
        let ring = Arc::new(hall.keyring()?);
        let url = format!("http://{before}");
        let client = SignedClient::new(&url, CENTRE, ring, hall.signing.terms())?;
        Ok(Line { client, bytes, _serving: serving })
    }

    /// A client with accounts of its own.
    pub(super) fn watched(&self) -> Watched {
        let bytes_before = self.bytes.load(Ordering::SeqCst);
        let account = Account {
            shares: [Share::default(); 2],
            is_repair: false,
            since: Instant::now(),
            bytes_before,
        };
        Watched {
            centre: HttpFormCentre::new(self.client.clone()),
            bytes: self.bytes.clone(),
            account: Arc::new(Mutex::new(account)),
        }
    }
}

async fn pass_on(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    counted: Arc<AtomicU64>,
) {
    let mut room = vec![0; CHUNK];
    while let Ok(count @ 1..) = from.read(&mut room).await {
        counted.fetch_add(count as u64, Ordering::SeqCst);
        if to.write_all(&room[..count]).await.is_err() {
            break;
        }
    }
    // The other side learns of the end; that it may have closed already changes nothing.
    let _ = to.shutdown().await;
}

#[derive(Debug)]
struct Account {
    shares: [Share; 2],
    is_repair: bool,
    since: Instant,
    bytes_before: u64,
}

/// The centre over HTTP, with two accounts: comparing, and repairing.
#[derive(Clone)]
pub(super) struct Watched {
    centre: HttpFormCentre,
    bytes: Arc<AtomicU64>,
    account: Arc<Mutex<Account>>,
}

impl Watched {
    /// What follows is on that account; what came before is on the one before.
    fn enter(&self, is_repair: Option<bool>) {
        let bytes = self.bytes.load(Ordering::SeqCst);
        let mut account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let (took, sent) = (account.since.elapsed(), bytes - account.bytes_before);
        let at = usize::from(account.is_repair);
        account.shares[at].took += took;
        account.shares[at].bytes += sent;
        account.since = Instant::now();
        account.bytes_before = bytes;
        if let Some(is_repair) = is_repair {
            account.is_repair = is_repair;
            account.shares[usize::from(is_repair)].calls += 1;
        }
    }

    /// Comparing, and repairing.
    pub(super) fn shares(&self) -> (Share, Share) {
        self.enter(None);
        let account = self.account.lock().unwrap_or_else(PoisonError::into_inner);
        let [compare, repair] = account.shares;
        (compare, repair)
    }
}

#[async_trait::async_trait]
impl Centre for Watched {
    async fn manifest(
        &self,
        task: &str,
        cursor: Option<&str>,
        size: u32,
        now: Moment,
    ) -> Answer<ManifestPage> {
        self.enter(Some(false));
        self.centre.manifest(task, cursor, size, now).await
    }

    async fn digests(&self, task: &str, ranges: &[AskedRange], now: Moment) -> Answer<Digests> {
        self.enter(Some(false));
        self.centre.digests(task, ranges, now).await
    }

    async fn rows(&self, task: &str, ranges: &[KeySpan], now: Moment) -> Answer<RangeRows> {
        self.enter(Some(false));
        self.centre.rows(task, ranges, now).await
    }

    async fn grant(&self, task: &str, now: Moment) -> Answer<GrantState> {
        self.enter(Some(true));
        self.centre.grant(task, now).await
    }

    async fn answers(
        &self,
        task: &str,
        questions: &[Question],
        now: Moment,
    ) -> Answer<Vec<Authority>> {
        self.enter(Some(true));
        self.centre.answers(task, questions, now).await
    }

    async fn report(&self, report: &Report, now: Moment) -> Answer<Ack> {
        self.enter(Some(false));
        self.centre.report(report, now).await
    }
}
