//! `[fc.answer.reconcile]` and `[svchall.answer-reconcile]`: the two sides of reconciliation.

use std::collections::BTreeMap;

use anyhow::Result;
use chrono::TimeDelta;
use counterfoil_reconcile::form_centre::CentreSettings;
use counterfoil_reconcile::service_hall::{HallSettings, Narrowing};
use serde::{Deserialize, Serialize};

/// `[fc]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FcConfig {
    /// `[fc.answer]`.
    pub answer: FcAnswerConfig,
}

/// `[fc.answer]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct FcAnswerConfig {
    /// `[fc.answer.reconcile]`.
    pub reconcile: CentreConfig,
}

/// `[answer-delivery]`: what carries answers from the centre to its halls.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct AnswerDeliveryConfig {
    /// `amqp://user:password@host:port/vhost` of a RabbitMQ; empty = in process, where centre and
    /// hall are one.
    pub amqp_url: String,
    /// The exchange that deliveries are published to.
    pub exchange: String,
}

impl Default for AnswerDeliveryConfig {
    fn default() -> AnswerDeliveryConfig {
        AnswerDeliveryConfig { amqp_url: String::new(), exchange: "counterfoil.answers".into() }
    }
}

impl AnswerDeliveryConfig {
    /// What is wrong with it.
    ///
    /// # Errors
    /// An address or an exchange that cannot be used.
    pub fn check(&self) -> Result<()> {
        let is_amqp = ["amqp://", "amqps://"].iter().any(|start| self.amqp_url.starts_with(start));
        // The address holds a password: it is not repeated.
        anyhow::ensure!(
            self.amqp_url.is_empty() || is_amqp,
            "answer-delivery.amqp-url must begin with amqp:// or amqps://"
        );
        anyhow::ensure!(
            (1..=100).contains(&self.exchange.len()),
            "answer-delivery.exchange must have 1 to 100 bytes"
        );
        Ok(())
    }
}

/// `[svchall]`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SvchallConfig {
    /// `[svchall.answer-reconcile]`.
    pub answer_reconcile: HallConfig,
}

/// The form centre.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[allow(missing_docs)]
pub struct CentreConfig {
    pub schedule_enabled: bool,
    /// When the day's tasks are made, in `schedule-zone`.
    pub schedule_cron: String,
    /// Asia/Shanghai or UTC.
    pub schedule_zone: String,
    pub dispatch_enabled: bool,
    pub page_size: u32,
    pub max_rows: i64,
    pub max_pages: i64,
    pub max_tasks_per_run: u32,
    pub lease_seconds: u32,
    pub max_dispatch_attempts: u32,
    pub backoff_base_seconds: u32,
    pub backoff_cap_seconds: u32,
    /// Consumer app key → its hall's base address. An address comes from nowhere else.
    pub targets: BTreeMap<String, String>,
    pub dispatch_path: String,
    /// Empty = signing.app-key.
    pub source_app_key: String,
    pub scan_interval_ms: u64,
    pub scan_initial_delay_ms: u64,
    pub max_error_items: usize,
    pub max_error_chars: usize,
    /// The programs that may call the admin interface.
    pub admin_apps: Vec<String>,
}

impl Default for CentreConfig {
    fn default() -> CentreConfig {
        CentreConfig {
            schedule_enabled: false,
            schedule_cron: "0 0 2 * * ?".into(),
            schedule_zone: "Asia/Shanghai".into(),
            dispatch_enabled: false,
            page_size: 200,
            max_rows: 20_000,
            max_pages: 200,
            max_tasks_per_run: 20,
            lease_seconds: 900,
            max_dispatch_attempts: 4,
            backoff_base_seconds: 60,
            backoff_cap_seconds: 3600,
            targets: BTreeMap::new(),
            dispatch_path: "/oapi/form-sync/reconcile".into(),
            source_app_key: String::new(),
            scan_interval_ms: 15_000,
            scan_initial_delay_ms: 45_000,
            max_error_items: 50,
            max_error_chars: 8000,
            admin_apps: Vec::new(),
        }
    }
}

/// The service hall.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
#[allow(missing_docs)]
pub struct HallConfig {
    pub enabled: bool,
    /// The centre's base address.
    pub centre_url: String,
    /// Our own app key; empty = signing.app-key.
    pub app_key: String,
    /// The centre's app key; empty = every order is refused.
    pub source_app_key: String,
    pub lease_seconds: u32,
    pub max_repair_retries: u32,
    pub max_pending_extras: usize,
    pub max_error_items: usize,
    pub max_work_per_scan: u32,
    pub progress_report_rounds: u32,
    pub retry_limit: u32,
    pub backoff_base_seconds: u32,
    pub backoff_cap_seconds: u32,
    pub scan_interval_ms: u64,
    pub scan_initial_delay_ms: u64,
    /// Whether ranges are compared by digests before rows are.
    pub range_digests: bool,
}

impl Default for HallConfig {
    fn default() -> HallConfig {
        HallConfig {
            enabled: false,
            centre_url: String::new(),
            app_key: String::new(),
            source_app_key: String::new(),
            lease_seconds: 900,
            max_repair_retries: 3,
            max_pending_extras: 500,
            max_error_items: 50,
            max_work_per_scan: 1,
            progress_report_rounds: 10,
            retry_limit: 6,
            backoff_base_seconds: 60,
            backoff_cap_seconds: 1800,
            scan_interval_ms: 30_000,
            scan_initial_delay_ms: 20_000,
            range_digests: true,
        }
    }
}

fn seconds(count: u32) -> TimeDelta {
    TimeDelta::seconds(count.into())
}

fn or<'a>(text: &'a str, otherwise: &'a str) -> &'a str {
    if text.is_empty() { otherwise } else { text }
}

impl CentreConfig {
    /// As the domain takes it; `own` is the app key that this process signs with.
    pub fn settings(&self, own: &str) -> CentreSettings {
        CentreSettings {
            source_app_key: or(&self.source_app_key, own).to_owned(),
            schedule_enabled: self.schedule_enabled,
            dispatch_enabled: self.dispatch_enabled,
            page_size: self.page_size,
            max_rows: self.max_rows,
            max_pages: self.max_pages,
            max_tasks_per_run: self.max_tasks_per_run,
            lease: seconds(self.lease_seconds),
            max_dispatch_attempts: self.max_dispatch_attempts.into(),
            backoff_base: seconds(self.backoff_base_seconds),
            backoff_cap: seconds(self.backoff_cap_seconds),
            max_error_items: self.max_error_items,
            max_error_chars: self.max_error_chars,
        }
    }

    /// What is wrong with the limits.
    ///
    /// # Errors
    /// A limit out of its range.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(
            (1..=500).contains(&self.page_size)
                && self.lease_seconds > 0
                && self.max_dispatch_attempts > 0
                && self.scan_interval_ms > 0,
            "fc.answer.reconcile: page-size must be from 1 to 500; lease-seconds, \
             max-dispatch-attempts and scan-interval-ms at least 1"
        );
        anyhow::ensure!(
            ["Asia/Shanghai", "UTC"].contains(&self.schedule_zone.as_str()),
            "fc.answer.reconcile.schedule-zone must be Asia/Shanghai or UTC"
        );
        Ok(())
    }
}

impl HallConfig {
    /// As the domain takes it; `own` is the app key that this process signs with.
    pub fn settings(&self, own: &str) -> HallSettings {
        HallSettings {
            enabled: self.enabled,
            app_key: or(&self.app_key, own).to_owned(),
            source_app_key: self.source_app_key.clone(),
            lease: seconds(self.lease_seconds),
            max_repair_retries: self.max_repair_retries,
            max_pending_extras: self.max_pending_extras,
            max_error_items: self.max_error_items,
            max_work_per_scan: self.max_work_per_scan,
            progress_report_rounds: self.progress_report_rounds,
            retry_limit: self.retry_limit.into(),
            backoff_base: seconds(self.backoff_base_seconds),
            backoff_cap: seconds(self.backoff_cap_seconds),
            narrowing: Narrowing { enabled: self.range_digests, ..Narrowing::default() },
            ..HallSettings::default()
        }
    }

    /// What is wrong with the limits.
    ///
    /// # Errors
    /// A limit out of its range.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(
            self.lease_seconds > 0 && self.scan_interval_ms > 0 && self.max_work_per_scan > 0,
            "svchall.answer-reconcile: lease-seconds, scan-interval-ms and max-work-per-scan must \
             be at least 1"
        );
        Ok(())
    }
}
