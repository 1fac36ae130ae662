//! What the process is made of: migrations, rules, and the engine with all its work.

use anyhow::Result;
use counterfoil_db::{Db, Migration};
use counterfoil_payment::{lock_activation, lock_release, submit_build};
use counterfoil_task::{Engine, EngineSettings, Rule};

use crate::config::Config;

/// All migrations, of all domains.
pub fn migrations() -> Vec<Migration> {
    [
        counterfoil_task::MIGRATIONS,
        counterfoil_payment::MIGRATIONS,
    ]
    .concat()
}

/// All rules, of all domains.
pub fn rules() -> Vec<Rule> {
    [counterfoil_task::RULES, counterfoil_payment::rules::RULES].concat()
}

/// The engine with all work; kicks raised in it are dropped until it is given a kicker.
///
/// # Errors
/// A configuration that no adapter can be made of.
pub fn engine(db: &Db, _config: &Config) -> Result<Engine> {
    Ok(Engine::new(db.clone(), EngineSettings::default())
        .with(submit_build::SubmitBuild)
        .with(lock_activation::LockActivation)
        .with(lock_release::LockRelease)
        .with_rules(&rules()))
}
