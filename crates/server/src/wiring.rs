//! What the process is made of: migrations, rules, and the engine with all its work.

use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use counterfoil_db::{Db, Migration};
use counterfoil_payment::audit_plan::{AuditPlan, ReviewCentre};
use counterfoil_payment::bill_snapshot::BillSnapshot;
use counterfoil_payment::partner_push::PartnerInbox;
use counterfoil_payment::review_callback::ReviewCallback;
use counterfoil_payment::review_progress::{RecheckSettings, ReviewProgress};
use counterfoil_payment::side_effect::{Rebuild, SideEffect};
use counterfoil_payment::status_refresh::StatusRefresh;
use counterfoil_payment::treasury::push::PushRetry;
use counterfoil_payment::{
    audit_plan, lock_activation, lock_release, partner_push, review_progress, status_refresh,
    submit_build,
};
use counterfoil_remote::{
    EnvironmentAndFiles, HttpDecisionReceiver, HttpPartnerInbox, HttpReviewCentre, SignedClient,
};
use counterfoil_review::decision_notice::DecisionNotice;
use counterfoil_task::{Breach, Engine, EngineSettings, Rule};

use crate::cli::Failure;
use crate::config::{Config, PartnerConfig};
use crate::retention::Retention;
use crate::treasury;

/// All migrations, of all domains.
pub fn migrations() -> Vec<Migration> {
    let domains = [
        counterfoil_task::MIGRATIONS,
        counterfoil_payment::MIGRATIONS,
        counterfoil_review::MIGRATIONS,
        counterfoil_reconcile::MIGRATIONS,
        crate::api::nonce::MIGRATIONS,
        counterfoil_account::MIGRATIONS,
    ];
    domains.concat()
}

/// How a database's tables differ from what this binary knows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Schema {
    /// Migrations that it lacks.
    pub missing: Vec<u32>,
    /// Migrations that only a newer binary knows.
    pub unknown: Vec<u32>,
}

/// Compares a database with this binary.
///
/// # Errors
/// The database's.
pub async fn schema(db: &Db) -> Result<Schema> {
    let applied = counterfoil_db::applied(db).await?;
    let known: Vec<u32> = migrations().into_iter().map(|step| step.number).collect();
    let without = |these: &[u32], others: &[u32]| {
        these.iter().copied().filter(|number| !others.contains(number)).collect()
    };
    Ok(Schema { missing: without(&known, &applied), unknown: without(&applied, &known) })
}

impl Schema {
    /// Refuses what this binary cannot begin to work on. One that runs already goes on while a
    /// newer one migrates: migrations only add.
    ///
    /// # Errors
    /// [`Failure`] with a code.
    pub fn accept(&self) -> Result<()> {
        let Schema { missing, unknown } = self;
        if !unknown.is_empty() {
            let message = format!(
                "the database has the migrations {unknown:?}, which this binary (version {}) does \
                 not know: it is older than the database; start the newer binary",
                env!("CARGO_PKG_VERSION")
            );
            return Err(Failure { code: "database-newer", message }.into());
        }
        if missing.is_empty() {
            return Ok(());
        }
        let message = format!(
            "the database lacks the migrations {missing:?}; run `counterfoil migrate` first"
        );
        Err(Failure { code: "not-migrated", message }.into())
    }
}

/// All rules, of all domains.
pub fn rules() -> Vec<Rule> {
    let domains = [
        counterfoil_task::RULES,
        counterfoil_payment::rules::RULES,
        audit_plan::RULES,
        partner_push::RULES,
        review_progress::RULES,
        status_refresh::RULES,
        counterfoil_payment::treasury::rules::RULES,
        counterfoil_review::rules::RULES,
        counterfoil_reconcile::rules::RULES,
        &[counterfoil_reconcile::rules::HASH_RULE],
    ];
    let mut rules: Vec<Rule> = Vec::new();
    for rule in domains.concat() {
        // A domain that knows more of the engine's tasks than the engine sharpens its rule.
        match rules.iter_mut().find(|earlier| earlier.name == rule.name) {
            Some(earlier) => *earlier = rule,
            None => rules.push(rule),
        }
    }
    rules
}

/// Checks one of [`rules`] on the whole database.
///
/// # Errors
/// The database's.
pub async fn check(db: &Db, rule: &Rule) -> Result<Option<Breach>> {
    use counterfoil_reconcile::rules::{HASH_RULE, check_hashes};
    if rule.name == HASH_RULE.name {
        return Ok(check_hashes(db).await?);
    }
    Ok(counterfoil_task::check(db, rule).await?)
}

/// The partners' inboxes, over HTTP.
///
/// # Errors
/// No client can be built.
pub fn partner_inbox(config: &PartnerConfig) -> Result<Arc<dyn PartnerInbox>> {
    let max_time = Duration::from_millis(config.timeout_ms);
    Ok(Arc::new(HttpPartnerInbox::new(Arc::new(EnvironmentAndFiles), max_time)?))
}

/// The engine with all work; kicks raised in it are dropped until it is given a kicker. Peers
/// that the configuration does not name are at `own_url`.
///
/// # Errors
/// A configuration that no adapter can be made of.
pub fn engine(db: &Db, config: &Config, own_url: &str) -> Result<Engine> {
    let named = |url: &str| if url.is_empty() { own_url.to_owned() } else { url.to_owned() };
    let max_time = Duration::from_millis(config.review.timeout_ms);
    let centre = HttpReviewCentre::new(&named(&config.review.url), max_time)?;
    let centre: Arc<dyn ReviewCentre> = Arc::new(centre);
    let payment_app = config.payment.app_key.as_str();
    let payment_app =
        if payment_app.is_empty() { config.signing.app_key.as_str() } else { payment_app };
    let ring = Arc::new(config.keyring()?);
    let terms = config.signing.terms();
    let payment = SignedClient::new(&named(&config.payment.url), payment_app, ring, terms)?;
    let receiver = Arc::new(HttpDecisionReceiver::new(payment));
    let recheck = RecheckSettings { no_small_bill: config.recheck.no_small_bill };
    let base_data = Arc::new(treasury::creation(config)?);
    let side_effect = SideEffect::new(partner_inbox(&config.partner)?).with_base_data(base_data);
    let engine = Engine::new(db.clone(), EngineSettings::default());
    Ok(crate::reconcile_wiring::add(engine, config)?
        .with(submit_build::SubmitBuild)
        .with(lock_activation::LockActivation)
        .with(AuditPlan::new(centre.clone()))
        .with(lock_release::LockRelease::new(centre))
        .with(side_effect)
        .with(treasury::notify(config)?)
        .with_turns(PushRetry::new(treasury::channels(&config.treasury)?))
        .with_turns(Rebuild::default())
        .with(DecisionNotice::new(receiver))
        .with(ReviewCallback)
        .with_turns(ReviewProgress::new(recheck))
        .with_turns(StatusRefresh { caps: config.refresh.caps() })
        .with(BillSnapshot)
        .with_turns(Retention(config.retention))
        .with_rules(&rules()))
}
