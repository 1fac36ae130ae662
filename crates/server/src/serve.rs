//! `counterfoil serve`: roles in one process, until it is asked to stop.

use std::collections::BTreeSet;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context, Result};
use axum::Router;
use counterfoil_db::Db;
use counterfoil_remote::EnvironmentAndFiles;
use counterfoil_task::{Engine, Kicker, Shutdown, ShutdownHandle};
use tokio::net::TcpListener;
use tokio::task::JoinSet;

use crate::api::partner::PartnerSimulator;
use crate::api::payment_desk::Desk;
use crate::api::signed::Gate;
use crate::cli::Failure;
use crate::config::Config;
use crate::console::{Inside, console_router};
use crate::http::{self, Health};
use crate::{api, description, reconcile_wiring, scheduler, wiring, xxl_job};

/// How long work may take to reach its next batch after a stop was asked. Then the process ends
/// all the same: what was committed stands, what was not is done again.
const MAX_DRAIN: Duration = Duration::from_secs(30);

/// What a process does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum)]
pub enum Role {
    /// The HTTP API
    Api,
    /// Works off kicks
    Worker,
    /// Runs rounds on their cron expressions
    Scheduler,
    /// The review centre
    Review,
    /// A simulated partner that takes review results
    Partner,
    /// The form centre of answer reconciliation
    Centre,
    /// The service hall of answer reconciliation
    Hall,
}

/// The default four.
pub const DEFAULT_ROLES: [Role; 4] = [Role::Api, Role::Worker, Role::Scheduler, Role::Review];

/// A running service.
#[derive(Debug)]
pub struct Service {
    /// Where it listens.
    pub address: SocketAddr,
    handle: ShutdownHandle,
    parts: JoinSet<()>,
}

impl Service {
    /// Starts the roles on an open, migrated database.
    pub async fn start(db: &Db, config: &Config, roles: &BTreeSet<Role>) -> Result<Service> {
        check_migrated(db).await?;
        let listener = TcpListener::bind(&config.server.listen)
            .await
            .with_context(|| format!("cannot listen on {}", config.server.listen))?;
        let address = listener.local_addr()?;
        let mut config = config.clone();
        config.signing.complete(&mut config.apps);
        let (handle, shutdown) = Shutdown::new();
        let mut parts = JoinSet::new();
        let engine = wiring::engine(db, &config, &format!("http://{address}"))?;
        let stages: Vec<&str> = engine.kinds().map(|kind| kind.stage).collect();
        let kicker = config.kick.kicker(&stages)?;
        let engine = engine.with_kicker(kicker.clone()).with_shutdown(shutdown.clone());
        let engine = Arc::new(engine);
        let router = router(roles, &config, &kicker, &engine).await?;
        let router = router.merge(partner_router(db, roles, address));
        let router = router.merge(console(&engine, roles, &config)?);
        let router = match config.xxl_job.is_configured() {
            true => {
                let executor = xxl_job::executor(&config.xxl_job, engine.clone(), address).await?;
                parts.spawn(executor.clone().serve(shutdown.clone()));
                router.merge(xxl_job::router(executor))
            }
            false => router,
        };
        let health = Health::of(&engine, shutdown.clone());
        let limits = config.server.limits();
        let router = router.merge(http::operations(health)).merge(description::router());
        let router = http::dressed(router, limits);
        parts.spawn(http::serve(listener, router, limits, shutdown.clone()));
        if roles.contains(&Role::Worker) {
            crate::treasury::listen(&mut parts, db, &config, &shutdown)?;
        }
        start_work(&mut parts, engine, &config, roles, &shutdown)?;
        Ok(Service { address, handle, parts })
    }

    /// Stops claiming, lets work reach its next batch, and ends.
    pub async fn stop(mut self) {
        self.handle.ask();
        let drained = async { while self.parts.join_next().await.is_some() {} };
        if tokio::time::timeout(MAX_DRAIN, drained).await.is_err() {
            tracing::warn!("work did not reach its next batch in time; it will be taken over");
        }
    }
}

/// Review centre and payment of this very process on a loopback port, for commands that run one
/// round where none are configured. They still reach each other through the socket.
#[derive(Debug)]
pub struct OwnPeers {
    /// Where it listens.
    pub url: String,
    // Dropping it ends the server with the command.
    _server: JoinSet<()>,
}

impl OwnPeers {
    /// Starts them on a free port. The configuration's signing must be complete.
    pub async fn start(db: &Db, config: &Config) -> Result<OwnPeers> {
        counterfoil_review::configuration::install_default(db).await?;
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let router = api::review::review_router(db.clone(), Kicker::none());
        let router = router.merge(payment_router(db, config, &Kicker::none())?);
        let mut server = JoinSet::new();
        server.spawn(async move {
            if let Err(error) = axum::serve(listener, router).await {
                tracing::error!(%error, "the command's own peers ended");
            }
        });
        Ok(OwnPeers { url, _server: server })
    }
}

fn start_work(
    parts: &mut JoinSet<()>,
    engine: Arc<Engine>,
    config: &Config,
    roles: &BTreeSet<Role>,
    shutdown: &Shutdown,
) -> Result<()> {
    if roles.contains(&Role::Worker) {
        parts.spawn(engine.clone().serve_kicks(shutdown.clone()));
        let db = engine.db().clone();
        parts.spawn(counterfoil_task::listen(engine.clone(), db, shutdown.clone()));
    }
    for job in
        reconcile_wiring::jobs(config, roles.contains(&Role::Centre), roles.contains(&Role::Hall))?
    {
        parts.spawn(job.run(engine.clone(), shutdown.clone()));
    }
    let sides = (roles.contains(&Role::Centre), roles.contains(&Role::Hall));
    crate::answer_delivery::start(parts, engine.db(), config, sides, shutdown);
    if roles.contains(&Role::Scheduler) {
        let jobs = scheduler::jobs(&engine, &config.scheduler)?;
        let rules = scheduler::rules_cron(&config.scheduler)?;
        parts.spawn(scheduler::check_rules(engine.db().clone(), rules, shutdown.clone()));
        parts.spawn(scheduler::run(engine, jobs, shutdown.clone()));
    }
    Ok(())
}

async fn check_migrated(db: &Db) -> Result<()> {
    wiring::schema(db).await?.accept()
}

/// Simulated partners, where this process plays them.
fn partner_router(db: &Db, roles: &BTreeSet<Role>, listens_on: SocketAddr) -> Router {
    if !roles.contains(&Role::Partner) {
        return Router::new();
    }
    PartnerSimulator::new(db.clone(), Arc::new(EnvironmentAndFiles)).router(listens_on)
}

fn payment_router(db: &Db, config: &Config, kicker: &Kicker) -> Result<Router> {
    let callback_app = match config.payment.callback_app.as_str() {
        "" => config.signing.app_key.clone(),
        app => app.to_owned(),
    };
    let gate = Gate::new(db, config)?;
    Ok(api::payment::payment_router(db.clone(), kicker.clone(), gate, callback_app))
}

fn desk_router(config: &Config, kicker: &Kicker, engine: &Arc<Engine>) -> Result<Router> {
    let db = engine.db();
    let desk = Desk {
        db: db.clone(),
        kicker: kicker.clone(),
        engine: Arc::clone(engine),
        channels: Arc::new(crate::treasury::channels(&config.treasury)?),
        inbox: wiring::partner_inbox(&config.partner)?,
        tolerance: config.qualification.tolerance(),
        people: Arc::new(config.payment.api_apps.clone()),
    };
    Ok(api::payment_desk::desk_router(desk, Gate::new(db, config)?))
}

/// Whether this process serves the console.
pub fn serves_console(config: &Config, roles: &BTreeSet<Role>) -> bool {
    config.console.enabled && roles.contains(&Role::Api)
}

/// The pages for people, where this process serves them.
fn console(engine: &Arc<Engine>, roles: &BTreeSet<Role>, config: &Config) -> Result<Router> {
    if !serves_console(config, roles) {
        return Ok(Router::new());
    }
    Ok(console_router(Inside {
        db: engine.db().clone(),
        engine: engine.clone(),
        rules: wiring::rules(),
        tolerance: config.qualification.tolerance(),
        inbox: wiring::partner_inbox(&config.partner)?,
        channels: crate::treasury::channels(&config.treasury)?,
        centre: config.fc.answer.reconcile.settings(&config.signing.app_key),
        secure: config.console.is_secure(),
        behind_proxy: config.console.behind_proxy,
    }))
}

/// No default password: a console that nobody could sign in to is not served.
async fn check_somebody(db: &Db, config: &Config, roles: &BTreeSet<Role>) -> Result<()> {
    if !serves_console(config, roles) || counterfoil_account::people::is_anybody(db).await? {
        return Ok(());
    }
    let message = "nobody could sign in to the console: add somebody with `counterfoil account \
        add LOGIN --role admin`, or turn it off with console.enabled = false";
    Err(Failure { code: "no-account", message: message.to_owned() }.into())
}

async fn router(
    roles: &BTreeSet<Role>,
    config: &Config,
    kicker: &Kicker,
    engine: &Arc<Engine>,
) -> Result<Router> {
    let db = engine.db();
    let mut router = Router::new();
    if roles.contains(&Role::Review) {
        counterfoil_review::configuration::install_default(db).await?;
        router = router.merge(api::review::review_router(db.clone(), kicker.clone()));
    }
    if roles.contains(&Role::Api) {
        router = router.merge(payment_router(db, config, kicker)?);
        router = router.merge(desk_router(config, kicker, engine)?);
    }
    let (centre, hall) = (roles.contains(&Role::Centre), roles.contains(&Role::Hall));
    Ok(router.merge(reconcile_wiring::router(db, config, centre, hall)?))
}

/// Runs the roles until SIGTERM or SIGINT. `told` hears where it listens, once it does.
pub async fn run(
    db: &Db,
    config: &Config,
    roles: &BTreeSet<Role>,
    told: impl FnOnce(SocketAddr),
) -> Result<()> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    check_migrated(db).await?;
    check_somebody(db, config, roles).await?;
    let service = Service::start(db, config, roles).await?;
    told(service.address);
    tracing::warn!(address = %service.address, ?roles, database = db.shown_url(), "serving");
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
    tracing::warn!("stopping: no new claims, work is handed back at its next batch");
    service.stop().await;
    db.close().await;
    Ok(())
}
