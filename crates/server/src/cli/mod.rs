//! Commands. One file a group; each answers an [`Output`] and never prints by itself.

mod account;
mod answer;
mod answer_delivery;
mod bench;
mod bill;
mod cancel;
mod canon;
mod check;
mod delivery;
mod demo;
mod doctor;
mod export;
mod grant;
mod import;
mod job;
mod migrate;
mod order;
mod order_text;
mod output;
mod partner;
mod push_batch;
mod reconcile;
mod reconcile_watch;
mod record_payment;
mod review;
mod serve;
mod session;
mod session_text;
mod task;
mod watch;

use std::path::PathBuf;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::{CommandFactory, Parser, Subcommand};
use counterfoil_db::{Clock, Db, Instant, Pulse};
use counterfoil_task::Engine;

use crate::config::{self, Config};
use crate::serve::OwnPeers;
use crate::wiring;
pub use output::{Failure, Output};

/// A durable task engine and resident income payment: no success may claim more than it proves.
#[derive(Debug, Parser)]
#[command(name = "counterfoil", version, max_term_width = 100)]
pub struct Cli {
    #[command(flatten)]
    globals: Globals,
    #[command(subcommand)]
    command: Command,
}

/// What every command takes.
#[derive(Debug, Clone, clap::Args)]
pub struct Globals {
    /// Configuration file [default: counterfoil.toml, if there is one]
    #[arg(long, global = true, env = "COUNTERFOIL_CONFIG")]
    config: Option<PathBuf>,
    /// Database URL: sqlite:FILE, postgres://… or mysql://…
    #[arg(long, global = true)]
    database: Option<String>,
    /// Freezes the clock for this command; `serve` starts at it and runs on (RFC 3339)
    #[arg(long, global = true, value_parser = config::instant)]
    now: Option<Instant>,
    /// Machine output: one JSON object on one line on stdout, everything else on stderr
    #[arg(long, global = true)]
    json: bool,
    /// Say nothing but the result
    #[arg(short, long, global = true)]
    quiet: bool,
    /// The acting person, on commands that act
    #[arg(long, global = true, value_name = "ID")]
    user: Option<i64>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Brings the database's tables up to date
    Migrate,
    /// Runs the main job on an embedded database and proves its end
    Demo(demo::Args),
    /// Looks at configuration, connections, clock and migrations
    Doctor,
    /// Imports bills, accounts, partners, project companies or answers from a file
    #[command(subcommand)]
    Import(import::Command),
    /// Writes an order's lines, payments or proof pack, or tasks, into a file
    #[command(subcommand)]
    Export(export::Command),
    /// Reviews: what waits, approve, reject
    #[command(subcommand)]
    Review(review::Command),
    /// Checks the invariant rules; exits 1 if one is broken
    Check(check::Args),
    /// Handlers: list them, or run one round of one
    #[command(subcommand)]
    Job(job::Command),
    /// Tasks: list, show, rerun, cancel, trace
    #[command(subcommand)]
    Task(task::Command),
    /// Selection sessions
    #[command(subcommand)]
    Session(session::Command),
    /// Payment orders: list, show, lines, timeline, diff, cancel, record-payment, repair-publish
    #[command(subcommand)]
    Order(order::Command),
    /// One bill: every version, lock and record of it; can it be paid again, and why not
    Bill(bill::Args),
    /// Who may sign in to the console: add, list, disable, enable, password, role
    #[command(subcommand)]
    Account(account::Command),
    /// The canonical text and content hash of one answer
    Canon(canon::Args),
    /// Answers of the form centre: put, delete, get one
    #[command(subcommand)]
    Answer(answer::Command),
    /// Which consumer may see which answers: set, revoke, list
    #[command(subcommand)]
    Grant(grant::Command),
    /// Notices to partners: list, show, redeliver one; answers: failed, replay
    #[command(subcommand)]
    Delivery(delivery::Command),
    /// Partners' keys: list, add, retire
    #[command(subcommand)]
    Partner(partner::Command),
    /// Answer reconciliation: create, list, show, cancel, run
    #[command(subcommand)]
    Reconcile(reconcile::Command),
    /// Push batches: list, show, push one, import results, put payees right
    #[command(subcommand)]
    PushBatch(push_batch::Command),
    /// Runs roles in this process until it is asked to stop
    Serve(serve::Args),
    /// Measures this build beside the database's own floor
    #[command(subcommand)]
    Bench(bench::Command),
    /// Shell completions on stdout
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
}

/// What a command works with.
#[derive(Debug)]
pub struct Session {
    /// The command's configuration.
    pub config: Config,
    /// What every command takes.
    pub globals: Globals,
    /// Counts the command's commits.
    pub pulse: Pulse,
}

impl Session {
    /// Opens the configured database.
    pub async fn open(&self) -> Result<Db> {
        let clock = self.globals.now.map_or(Clock::Database, Clock::Frozen);
        self.open_with(clock).await
    }

    /// Opens the configured database, and refuses one whose tables are not up to date.
    pub async fn open_migrated(&self) -> Result<Db> {
        let db = self.open().await?;
        wiring::schema(&db).await?.accept()?;
        Ok(db)
    }

    /// Opens the configured database under another clock.
    pub async fn open_with(&self, clock: Clock) -> Result<Db> {
        let mut settings = self.config.database_settings(clock)?;
        settings.pulse = self.pulse.clone();
        let url = &self.config.database;
        Db::connect(url, settings).await.with_context(|| {
            let scheme = url.split(':').next().unwrap_or_default();
            format!("cannot open the {scheme} database")
        })
    }

    /// The engine for one command: where no review centre or no payment is configured it gets
    /// peers of its own.
    pub async fn engine(&self, db: &Db) -> Result<CommandEngine> {
        let mut config = self.config.clone();
        config.signing.complete(&mut config.apps);
        let needed = config.review.url.is_empty() || config.payment.url.is_empty();
        let own = match needed {
            true => Some(OwnPeers::start(db, &config).await?),
            false => None,
        };
        let url = own.as_ref().map(|own| own.url.as_str()).unwrap_or_default();
        let engine = wiring::engine(db, &config, url)?;
        Ok(CommandEngine { engine, _own: own })
    }

    /// Who acts, for logs: the person, or the command line itself.
    pub fn actor(&self) -> String {
        self.globals.user.map_or_else(|| "cli".to_owned(), |user| user.to_string())
    }

    /// The acting person.
    pub fn user(&self) -> Result<i64> {
        let user = self.globals.user.context("--user ID is needed: who is acting?")?;
        anyhow::ensure!(user > 0, "--user must be positive");
        Ok(user)
    }
}

/// An engine with what it needs for one command.
#[derive(Debug)]
pub struct CommandEngine {
    engine: Engine,
    _own: Option<OwnPeers>,
}

impl std::ops::Deref for CommandEngine {
    type Target = Engine;

    fn deref(&self) -> &Engine {
        &self.engine
    }
}

/// Runs the process's command line.
pub fn main() -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(error) => return output::misspelt(&error),
    };
    if let Command::Completions { shell } = cli.command {
        let mut script = Vec::new();
        clap_complete::generate(shell, &mut Cli::command(), "counterfoil", &mut script);
        return output::raw(&script);
    }
    install_crypto();
    logging(&cli.globals);
    let runtime = match tokio::runtime::Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => return output::refuse(cli.globals.json, &anyhow::Error::new(error)),
    };
    let json = cli.globals.json;
    match runtime.block_on(run(cli)) {
        Ok(output) => output.print(json),
        Err(error) => output::refuse(json, &error),
    }
}

/// One crypto library for everything that speaks TLS. Already installed = done.
fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

fn logging(globals: &Globals) {
    let default = if globals.quiet { "error" } else { "warn" };
    let filter = tracing_subscriber::EnvFilter::try_from_env("COUNTERFOIL_LOG")
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(default));
    let logs = tracing_subscriber::fmt().with_writer(std::io::stderr).with_env_filter(filter);
    if globals.json { logs.json().init() } else { logs.with_target(false).init() }
}

async fn run(cli: Cli) -> Result<Output> {
    let mut config = Config::load(cli.globals.config.as_deref())?;
    if let Some(database) = &cli.globals.database {
        config.database.clone_from(database);
    }
    let session = Session { config, globals: cli.globals, pulse: Pulse::default() };
    match cli.command {
        Command::Migrate => migrate::run(&session).await,
        Command::Demo(args) => demo::run(&session, args).await,
        Command::Doctor => doctor::run(&session).await,
        Command::Import(command) => import::run(&session, command).await,
        Command::Export(command) => export::run(&session, command).await,
        Command::Review(command) => review::run(&session, command).await,
        Command::Check(args) => check::run(&session, &args).await,
        Command::Job(command) => job::run(&session, command).await,
        Command::Task(command) => task::run(&session, command).await,
        Command::Session(command) => session::run(&session, command).await,
        Command::Order(command) => order::run(&session, command).await,
        Command::Bill(args) => bill::run(&session, &args).await,
        Command::Account(command) => account::run(&session, command).await,
        Command::Canon(args) => canon::run(&args),
        Command::Answer(command) => answer::run(&session, command).await,
        Command::Grant(command) => grant::run(&session, command).await,
        Command::Delivery(command) => delivery::run(&session, command).await,
        Command::Partner(command) => partner::run(&session, command).await,
        Command::Reconcile(command) => reconcile::run(&session, command).await,
        Command::PushBatch(command) => push_batch::run(&session, command).await,
        Command::Serve(args) => serve::run(session, args).await,
        Command::Bench(command) => bench::run(&session, command).await,
        Command::Completions { .. } => unreachable!("answered before the configuration is read"),
    }
}
