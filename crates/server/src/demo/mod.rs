//! `counterfoil demo`: the main job on an embedded database, and the proof of its end.
//!
//! A synthetic month is imported, selected, published, locked and put to review as V1; then it is
//! revised to V2, whose activation is killed in the middle and goes on in another process. V2 is
//! approved, applied and refreshed; partners are told, a bank refuses some payments, which are
//! fixed and pushed again alone, until the order is PAID. A second order is rejected, revised and
//! paid offline, a third has nothing to pay. What was proved goes into a proof pack. Then a form
//! centre and a service hall whose sets were made to differ find every difference.

mod approve;
mod others;
mod outside;
mod progress;
mod prove;
mod steps;
mod two_sets;

use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use chrono::TimeDelta;
use counterfoil_db::{Clock, Db, Settings, migrate};
use counterfoil_payment::session::Submission;
use counterfoil_protocol::{OrderId, UserId};

use crate::config::Config;
use crate::files::written::Format;
use crate::{proof_file, sample, wiring};

pub use progress::Progress;
pub use prove::Proof;
pub use two_sets::Found;

/// Answers for each station of the sample month.
const ANSWERS_A_LINE: u32 = 8;

/// Who prepares the order in the demo.
pub const PREPARER: UserId = UserId(7);

/// What the demo did and proved.
#[derive(Debug)]
pub struct Done {
    /// The seed of the sample month.
    pub seed: u64,
    /// The database.
    pub database: PathBuf,
    /// The order.
    pub order: OrderId,
    /// Its number.
    pub order_no: String,
    /// What was proved, in the order of the story.
    pub proofs: Vec<Proof>,
    /// What the first reconciliation found, by kind.
    pub found: Vec<Found>,
}

/// Runs the demo with `lines` stations in `folder`.
pub async fn run(config: &Config, folder: &Path, lines: u32, progress: &Progress) -> Result<Done> {
    let database = folder.join("demo.db");
    let db = open(&database, Clock::Database).await?;
    let mut proofs = Vec::new();
    progress.step("import");
    let month = sample::generate(sample::DEFAULT_SEED, lines);
    month.write_to(&folder.join("sample")).context("the sample files cannot be written")?;
    proofs.extend(steps::import(&db, &folder.join("sample")).await?);
    progress.step("V1: select, submit, build, publish, lock, audit plan");
    let v1 = steps::first_version(&db, config, progress).await?;
    proofs.extend(prove::first_version(&db, &v1).await?);
    progress.step("V2: revise, publish, and kill the activation in the middle");
    let plan = steps::revise(&db, v1.order).await?;
    let v2 = steps::publish_revision(&db, config, &plan, progress).await?;
    proofs.push(kill_and_go_on(&db, &database, &v2, progress).await?);
    // The process that went on lived eleven minutes later; from here on so does this one.
    let db = open(&database, Clock::Shifted(STALE)).await?;
    steps::audit_plan(&db, config).await?;
    progress.step("V2 is proved, approved, applied, refreshed");
    proofs.extend(prove::second_version(&db, &plan, &v2).await?);
    approve::approve(&db, v2.order).await?;
    let outbox = folder.join("outbox");
    std::fs::create_dir_all(&outbox)?;
    let mut config = config.clone();
    config.treasury.outbox = outbox.display().to_string();
    let (engine, _peers) = steps::engine(&db, &config).await?;
    approve::apply(&engine, progress).await?;
    proofs.extend(approve::prove(&db, v2.order).await?);
    progress.step("partners are told, the treasury pays, the bank refuses some");
    let _partners = outside::partners(&db, folder).await?;
    outside::side_effects(&engine, progress).await?;
    proofs.push(outside::prove_told(&db, v2.order).await?);
    proofs.extend(outside::pay(&db, &engine, &outbox, v2.order, progress).await?);
    progress.step("two more orders: rejected and revised, and nothing to pay");
    let (_, others) = others::rejected_and_revised(&db, &engine, progress).await?;
    proofs.extend(others);
    proofs.push(others::nothing_to_pay(&db, &engine, progress).await?);
    outside::side_effects(&engine, progress).await?;
    progress.step("proof");
    proofs.push(proof_pack(&config, &db, folder, v2.order).await?);
    proofs.push(prove::rules(&db).await?);
    let compared = two_sets::run(folder, lines * ANSWERS_A_LINE, progress).await?;
    proofs.extend(compared.proofs);
    let found = compared.found;
    let order_no = prove::order_number(&db, v1.order).await?;
    progress.done();
    let order = v1.order;
    Ok(Done { seed: sample::DEFAULT_SEED, database, order, order_no, proofs, found })
}

/// The pack in both forms, from the rows as they stand.
async fn proof_pack(config: &Config, db: &Db, folder: &Path, order: OrderId) -> Result<Proof> {
    let mut agrees = true;
    let mut shown = Vec::new();
    for (name, format) in [("proof.json", Format::Json), ("proof.xlsx", Format::Xlsx)] {
        let written = proof_file::write(config, db, order, &folder.join(name), format).await?;
        agrees &= written.all_agree;
        shown = written.figures.stages;
    }
    let stages = shown.iter().map(|figure| format!("{} {}", figure.stage, figure.count));
    let stages = stages.collect::<Vec<_>>().join(" = ");
    Ok(Proof::new("proof pack written", agrees, format!("{stages}, in sums too; signed")))
}

/// Time enough for a killed process's task to be stale and its lease to have expired.
const STALE: TimeDelta = TimeDelta::minutes(11);

async fn open(database: &Path, clock: Clock) -> Result<Db> {
    let url = format!("sqlite:{}", database.display());
    let settings = Settings { clock, ..Settings::default() };
    let db = Db::connect(&url, settings).await?;
    migrate(&db, &wiring::migrations()).await?;
    Ok(db)
}

/// A real process runs S04 and dies at its second projection batch; a second one, eleven minutes
/// later on its own clock, takes the stale task over and goes on from what was committed.
async fn kill_and_go_on(
    db: &Db,
    database: &Path,
    v2: &Submission,
    progress: &Progress,
) -> Result<Proof> {
    let now = db.now().await?;
    let killed = steps::activate_in_process(database, now, true).await?;
    let between = prove::interrupted(db, v2).await?;
    let later = now + STALE;
    let went_on = steps::activate_in_process(database, later, false).await?;
    progress.tick();
    Ok(Proof::new(
        "killed and gone on",
        !killed && went_on && between.is_interrupted(),
        between.describe(),
    ))
}
