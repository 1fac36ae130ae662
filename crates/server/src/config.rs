//! Configuration: `counterfoil.toml`, overridden by `COUNTERFOIL_*`, overridden by flags.
//!
//! A nested key is spelled with two underscores in the environment:
//! `COUNTERFOIL_REVIEW__URL=http://127.0.0.1:8080`.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result};
use counterfoil_db::{Clock, FaultPlan, Faults, Instant, Settings};
use counterfoil_payment::kinds::SIDE_EFFECT_REBUILD;
use counterfoil_payment::review_progress::RecheckSettings;
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::status_refresh::RefreshCaps;
use counterfoil_protocol::Fen;
use counterfoil_task::{KickSettings, Kicker};
use figment::Figment;
use figment::providers::{Env, Format, Serialized, Toml};
use serde::{Deserialize, Serialize};

use crate::console_config::ConsoleConfig;
use crate::http::Limits;
use crate::reconcile_config::{AnswerDeliveryConfig, FcConfig, SvchallConfig};
use crate::retention::{RETENTION, RetentionConfig};
use crate::signing_config::{AppConfig, SigningConfig};
use crate::treasury_config::TreasuryConfig;
use crate::xxl_config::XxlConfig;

/// Variables under our prefix that are no configuration.
const OTHER_VARIABLES: [&str; 7] =
    ["TEST_POSTGRES", "TEST_MARIADB", "TEST_REDIS", "TEST_RABBITMQ", "FAULT", "CONFIG", "LOG"];

/// Connections of one process to its database at most.
const MAX_CONNECTIONS: u32 = 1000;
/// Connections of one process to its callers at most.
const MAX_OPEN: usize = 100_000;
/// The longest that a caller may be waited for.
const MAX_SECONDS: u64 = 600;
/// The longest that a peer may be waited for: below a lease's ten minutes.
const MAX_TIMEOUT_MS: u64 = 300_000;

/// Everything that can be configured; all keys optional.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct Config {
    /// `sqlite:FILE`, `postgres://…` or `mysql://…`.
    pub database: String,
    /// Connections to the database at most.
    pub max_connections: u32,
    /// The HTTP server.
    pub server: ServerConfig,
    /// The operator console.
    pub console: ConsoleConfig,
    /// The review centre that payment calls.
    pub review: ReviewConfig,
    /// Payment, as the review centre calls it.
    pub payment: PaymentConfig,
    /// The pre-payment recheck.
    pub recheck: RecheckConfig,
    /// The status refresh.
    pub refresh: RefreshConfig,
    /// The built-in cron.
    pub scheduler: SchedulerConfig,
    /// When a rent counts as abnormal.
    pub qualification: QualificationConfig,
    /// Hints after a commit that a task is ready.
    pub kick: KickConfig,
    /// The partners that are told what the review said.
    pub partner: PartnerConfig,
    /// How orders are paid.
    pub treasury: TreasuryConfig,
    /// Who this process is to other programs.
    pub signing: SigningConfig,
    /// The programs that are trusted, by app key.
    pub apps: BTreeMap<String, AppConfig>,
    /// The form centre.
    pub fc: FcConfig,
    /// The service hall.
    pub svchall: SvchallConfig,
    /// Being an executor of an XXL-Job admin.
    pub xxl_job: XxlConfig,
    /// How long what is kept.
    pub retention: RetentionConfig,
    /// What carries answers from the centre to its halls.
    pub answer_delivery: AnswerDeliveryConfig,
}

/// Hints after a commit that a task is ready. Off or lost, the scan finds the task.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct KickConfig {
    /// Whether there are any.
    pub enabled: bool,
    /// Workers that always wait.
    pub core_workers: usize,
    /// Workers at most, while hints wait.
    pub max_workers: usize,
    /// Hints that wait at most.
    pub queue: usize,
    /// By stage, as `job list` names them.
    pub stages: BTreeMap<String, StageKickConfig>,
}

/// One stage's hints.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct StageKickConfig {
    /// Whether there are any.
    pub enabled: bool,
    /// The share of tasks that get one, 0 to 100.
    pub gray_percent: u32,
}

impl Default for StageKickConfig {
    fn default() -> StageKickConfig {
        StageKickConfig { enabled: true, gray_percent: 100 }
    }
}

impl Default for KickConfig {
    fn default() -> KickConfig {
        let KickSettings { core_workers, max_workers, queue, .. } = KickSettings::default();
        KickConfig { enabled: true, core_workers, max_workers, queue, stages: BTreeMap::new() }
    }
}

impl KickConfig {
    /// A pool as configured.
    ///
    /// # Errors
    /// A stage that no kind of work has, or limits that leave no worker.
    pub fn kicker(&self, stages: &[&str]) -> Result<Kicker> {
        if !self.enabled {
            return Ok(Kicker::none());
        }
        anyhow::ensure!(self.core_workers > 0, "kick.core-workers must be at least 1");
        anyhow::ensure!(
            self.max_workers >= self.core_workers,
            "kick.max-workers must not be below kick.core-workers"
        );
        let mut settings = KickSettings {
            core_workers: self.core_workers,
            max_workers: self.max_workers,
            queue: self.queue,
            ..KickSettings::default()
        };
        for (stage, config) in &self.stages {
            let known = stages.contains(&stage.as_str());
            anyhow::ensure!(known, "kick.stages names the unknown stage {stage}");
            if !config.enabled {
                settings.disabled_stages.insert(stage.clone());
            }
            settings.gray_percent.insert(stage.clone(), config.gray_percent.min(100));
        }
        Ok(Kicker::pool(settings))
    }
}

/// When a rent counts as abnormal: further from the contract than either limit allows.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct QualificationConfig {
    /// In fen.
    pub rent_tolerance_fen: i64,
    /// In hundredths of the contract rent.
    pub rent_tolerance_percent: u32,
}

impl Default for QualificationConfig {
    fn default() -> QualificationConfig {
        let Tolerance { least, percent } = Tolerance::default();
        QualificationConfig { rent_tolerance_fen: least.0, rent_tolerance_percent: percent }
    }
}

impl QualificationConfig {
    /// As the domain takes it.
    pub fn tolerance(&self) -> Tolerance {
        Tolerance { least: Fen(self.rent_tolerance_fen), percent: self.rent_tolerance_percent }
    }
}

/// The built-in cron.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SchedulerConfig {
    /// For handlers that have none of their own; seconds first, or five fields.
    pub default_cron: String,
    /// Handler name → cron expression.
    pub jobs: BTreeMap<String, String>,
    /// When the whole set of rules is checked.
    pub rules_cron: String,
}

/// The HTTP server.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ServerConfig {
    /// Where it listens.
    pub listen: String,
    /// Connections at a time; further ones wait.
    pub max_connections: usize,
    /// Seconds until a request's head is there.
    pub head_seconds: u64,
    /// Seconds between two parts of a body.
    pub body_seconds: u64,
    /// Seconds until a request is answered.
    pub request_seconds: u64,
    /// Seconds for open requests to end once the process is to stop.
    pub drain_seconds: u64,
}

impl ServerConfig {
    /// As the server takes them.
    pub fn limits(&self) -> Limits {
        Limits {
            connections: self.max_connections,
            head: Duration::from_secs(self.head_seconds),
            body: Duration::from_secs(self.body_seconds),
            request: Duration::from_secs(self.request_seconds),
            drain: Duration::from_secs(self.drain_seconds),
        }
    }

    fn check(&self) -> Result<()> {
        anyhow::ensure!(
            (1..=MAX_OPEN).contains(&self.max_connections),
            "server.max-connections must be from 1 to {MAX_OPEN}"
        );
        for (key, seconds) in [
            ("head", self.head_seconds),
            ("body", self.body_seconds),
            ("request", self.request_seconds),
            ("drain", self.drain_seconds),
        ] {
            anyhow::ensure!(
                (1..=MAX_SECONDS).contains(&seconds),
                "server.{key}-seconds must be from 1 to {MAX_SECONDS}"
            );
        }
        Ok(())
    }
}

/// The review centre.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ReviewConfig {
    /// Its base URL; empty = the review centre of this very process.
    pub url: String,
    /// How long a call may take, in milliseconds.
    pub timeout_ms: u64,
}

/// The partners that are told what the review said.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PartnerConfig {
    /// How long a delivery may take, in milliseconds.
    pub timeout_ms: u64,
}

impl Default for PartnerConfig {
    fn default() -> PartnerConfig {
        PartnerConfig { timeout_ms: 30_000 }
    }
}

/// Payment, as the review centre calls it with its final decisions.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct PaymentConfig {
    /// Its base URL; empty = the payment of this very process.
    pub url: String,
    /// Its app key, which signs its answers; empty = our own.
    pub app_key: String,
    /// The app that may say what the reviewers decided; empty = our own.
    pub callback_app: String,
    /// The programs that may use the interface, and the id of the person whom each acts as.
    pub api_apps: BTreeMap<String, i64>,
}

/// The pre-payment recheck.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RecheckConfig {
    /// Whether lines without a pushed small bill have partner organisation and intended amount
    /// checked, too.
    pub no_small_bill: bool,
}

/// The status refresh: shards that run at once, over all processes.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct RefreshConfig {
    /// Of one source at most.
    pub max_running_per_source: u32,
    /// In all at most.
    pub max_running: u32,
}

impl Default for RefreshConfig {
    fn default() -> RefreshConfig {
        let RefreshCaps { per_source, in_all } = RefreshCaps::default();
        RefreshConfig { max_running_per_source: per_source, max_running: in_all }
    }
}

impl RefreshConfig {
    /// As the domain takes it.
    pub fn caps(&self) -> RefreshCaps {
        RefreshCaps { per_source: self.max_running_per_source, in_all: self.max_running }
    }
}

impl Default for RecheckConfig {
    fn default() -> RecheckConfig {
        RecheckConfig { no_small_bill: RecheckSettings::default().no_small_bill }
    }
}

impl Default for Config {
    fn default() -> Config {
        Config {
            database: "sqlite:counterfoil.db".into(),
            max_connections: 16,
            server: ServerConfig::default(),
            console: ConsoleConfig::default(),
            review: ReviewConfig::default(),
            payment: PaymentConfig::default(),
            recheck: RecheckConfig::default(),
            refresh: RefreshConfig::default(),
            scheduler: SchedulerConfig::default(),
            qualification: QualificationConfig::default(),
            kick: KickConfig::default(),
            partner: PartnerConfig::default(),
            treasury: TreasuryConfig::default(),
            signing: SigningConfig::default(),
            apps: BTreeMap::new(),
            fc: FcConfig::default(),
            svchall: SvchallConfig::default(),
            xxl_job: XxlConfig::default(),
            retention: RetentionConfig::default(),
            answer_delivery: AnswerDeliveryConfig::default(),
        }
    }
}

impl Default for ServerConfig {
    fn default() -> ServerConfig {
        ServerConfig {
            listen: "127.0.0.1:8080".into(),
            // Below the 1024 files that a process may open where nobody raised it.
            max_connections: 900,
            head_seconds: 10,
            body_seconds: 15,
            request_seconds: 120,
            drain_seconds: 10,
        }
    }
}

impl Default for SchedulerConfig {
    fn default() -> SchedulerConfig {
        SchedulerConfig {
            default_cron: "*/10 * * * * *".into(),
            // It looks at every approval there ever was; what it repairs is rare.
            jobs: BTreeMap::from([
                (SIDE_EFFECT_REBUILD.handler.into(), "0 */5 * * * *".into()),
                (RETENTION.handler.into(), "0 40 * * * *".into()),
            ]),
            rules_cron: "0 */10 * * * *".into(),
        }
    }
}

impl Default for ReviewConfig {
    fn default() -> ReviewConfig {
        ReviewConfig { url: String::new(), timeout_ms: 10_000 }
    }
}

impl Config {
    /// Reads the file (the default one may be missing, a named one may not) and the environment.
    pub fn load(file: Option<&Path>) -> Result<Config> {
        let defaults = Figment::from(Serialized::defaults(Config::default()));
        let with_file = match file {
            Some(path) => {
                anyhow::ensure!(path.exists(), "there is no configuration {}", path.display());
                defaults.merge(Toml::file_exact(path))
            }
            None => defaults.merge(Toml::file("counterfoil.toml")),
        };
        // Keys are kebab-case in the file; the environment cannot spell a dash.
        let environment = Env::prefixed("COUNTERFOIL_")
            .ignore(&OTHER_VARIABLES)
            .map(|key| key.as_str().to_lowercase().replace("__", ".").replace('_', "-").into());
        let merged = with_file.merge(environment);
        let config: Config = merged.extract().context("the configuration was refused")?;
        config.check()?;
        Ok(config)
    }

    fn check(&self) -> Result<()> {
        anyhow::ensure!(
            (1..=MAX_CONNECTIONS).contains(&self.max_connections),
            "max-connections must be from 1 to {MAX_CONNECTIONS}"
        );
        anyhow::ensure!(
            self.refresh.max_running_per_source > 0 && self.refresh.max_running > 0,
            "refresh.max-running and refresh.max-running-per-source must be at least 1"
        );
        anyhow::ensure!(
            (1..=MAX_TIMEOUT_MS).contains(&self.review.timeout_ms),
            "review.timeout-ms must be from 1 to {MAX_TIMEOUT_MS}"
        );
        anyhow::ensure!(
            (1..=MAX_TIMEOUT_MS).contains(&self.partner.timeout_ms),
            "partner.timeout-ms must be from 1 to {MAX_TIMEOUT_MS}"
        );
        anyhow::ensure!(
            (1..=MAX_TIMEOUT_MS).contains(&self.treasury.timeout_ms),
            "treasury.timeout-ms must be from 1 to {MAX_TIMEOUT_MS}"
        );
        for (app, person) in &self.payment.api_apps {
            anyhow::ensure!(*person > 0, "payment.api-apps.{app} must be a person's id");
        }
        self.server.check()?;
        self.console.check()?;
        self.signing.check()?;
        self.fc.answer.reconcile.check()?;
        self.svchall.answer_reconcile.check()?;
        self.xxl_job.check()?;
        self.retention.check()?;
        self.answer_delivery.check()?;
        Ok(())
    }

    /// How to open the database, with the fault hook of `COUNTERFOIL_FAULT` armed.
    pub fn database_settings(&self, clock: Clock) -> Result<Settings> {
        let faults = Faults::default();
        if let Ok(text) = std::env::var("COUNTERFOIL_FAULT") {
            let plan = FaultPlan::parse(&text).with_context(|| {
                format!("COUNTERFOIL_FAULT={text}: write point:before|after:passage")
            })?;
            faults.arm(plan);
        }
        Ok(Settings { max_connections: self.max_connections, clock, faults, ..Settings::default() })
    }
}

/// Reads `--now`.
pub fn instant(text: &str) -> Result<Instant, String> {
    chrono::DateTime::parse_from_rfc3339(text)
        .map(|instant| instant.with_timezone(&chrono::Utc))
        .map_err(|error| format!("write an RFC 3339 instant like 2026-09-08T02:00:00Z: {error}"))
}
