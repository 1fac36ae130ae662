//! The demo's second half: two sets that can prove they agree.
//!
//! A form centre and a service hall, each a real process on a database of its own, talk signed
//! HTTP on the loopback. Deliveries between them are lost, repeated, held back and corrupted, and
//! somebody edits the hall's rows. One reconciliation finds all of it; a second finds nothing.

mod answers;
mod mischief;
mod sides;
mod tap;

use std::path::Path;
use std::time::Instant as Stopwatch;

use anyhow::{Context, Result};
use counterfoil_db::{Db, Read, sql};
use counterfoil_reconcile::form_centre::create::{self, Wish, WishScope};
use counterfoil_reconcile::form_centre::grant::{self, Rights};
use counterfoil_reconcile::form_centre::{delivery, list};
use serde::Serialize;
use serde_json::Value;

use super::{Progress, Proof};
use mischief::{Carrying, Done};
use sides::{Sides, coordinate};

/// One kind of difference: what was done on purpose, and what came of it.
#[derive(Debug, Clone, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Found {
    /// The finding's name in the counts.
    pub kind: &'static str,
    /// What was done on purpose.
    pub cause: &'static str,
    /// How many of it were made.
    pub made: i64,
    /// How many were found.
    pub found: i64,
    /// What became of them.
    pub outcome: &'static str,
    /// Why.
    pub why: &'static str,
}

/// Bytes between two equal sets, however many rows they have.
const MAX_SECOND_BYTES: u64 = 20 * 1024;

/// What the two sets came to.
#[derive(Debug)]
pub struct Compared {
    /// The table of the first run.
    pub found: Vec<Found>,
    /// What was proved.
    pub proofs: Vec<Proof>,
}

/// One run: how the task ended, what it counted, and what it cost.
struct Run {
    state: String,
    counts: Value,
    /// Bytes between hall and centre, both ways.
    bytes: u64,
    millis: u128,
}

impl Run {
    fn count(&self, kind: &str) -> i64 {
        self.counts.get(kind).and_then(Value::as_i64).unwrap_or(0)
    }
}

/// Tells the story with so many answers in `folder`.
pub async fn run(folder: &Path, count: u32, progress: &Progress) -> Result<Compared> {
    progress.step("two sets: answers written at the centre, delivered to the hall");
    let sides = Sides::make(folder, count).await?;
    let Sides { centre, hall, .. } = &sides;
    grant::scope(centre, sides::HALL, sides::SCHOOL, true).await?;
    grant::set(centre, &coordinate(), Rights::ALL).await?;
    let file = folder.join("sample").join("answers.jsonl");
    answers::write_file(&file, count)?;
    let options = counterfoil_payment::bill_import::ImportOptions::default();
    let imported =
        crate::answer_file::import(centre, &file, options, "demo", || progress.tick()).await?;
    let done = deliver_badly(&sides, count, progress).await?;
    let written = Proof::new(
        "answers written and delivered badly",
        imported.created == u64::from(count) && done.refused == done.corrupted,
        format!(
            "{} answers; {} deliveries lost, {} repeated, {} late, {} corrupted (all refused)",
            imported.created, done.lost, done.repeated, done.late, done.corrupted
        ),
    );
    progress.step("two processes reconcile over signed HTTP");
    let serving = sides.serve().await?;
    let first = reconcile(&sides, progress).await?;
    let found = table(&done, &first);
    let proofs = vec![written, first_proof(&found, &first), settled(&sides, &done).await?];
    progress.step("the same again: nothing to find");
    let second = reconcile(&sides, progress).await?;
    let agree = same_sets(centre, hall).await?;
    serving.stop().await?;
    let proofs = [proofs, vec![second_proof(&first, &second), agree]].concat();
    centre.close().await;
    hall.close().await;
    Ok(Compared { found, proofs })
}

/// Everything that goes wrong between the two, on purpose.
async fn deliver_badly(sides: &Sides, count: u32, progress: &Progress) -> Result<Done> {
    let settings = sides.centre_settings();
    let carrying = Carrying::new(sides, count);
    publish(&sides.centre, &settings, &carrying, progress).await?;
    mischief::change_at_centre(sides, count).await?;
    carrying.begin_updates();
    publish(&sides.centre, &settings, &carrying, progress).await?;
    let mut done = carrying.end().await?;
    mischief::change_at_hall(sides, count, &mut done).await?;
    Ok(done)
}

async fn publish(
    db: &Db,
    settings: &counterfoil_reconcile::form_centre::CentreSettings,
    carrying: &Carrying,
    progress: &Progress,
) -> Result<()> {
    while delivery::publish(db, settings, carrying).await? != (0, 0) {
        progress.tick();
    }
    Ok(())
}

/// One task to its end, as a person would have it made.
async fn reconcile(sides: &Sides, progress: &Progress) -> Result<Run> {
    let at = coordinate();
    let wish = Wish {
        scope: WishScope::Form,
        consumer: at.consumer,
        school: Some(at.school),
        form: Some(at.form),
        answer: None,
    };
    let (before, began) = (sides.tap.bytes(), Stopwatch::now());
    let made = create::create(&sides.centre, &sides.centre_settings(), &wish, "demo").await?;
    let task = made.into_iter().next().context("no task was made")?;
    let task = sides.ended(&task.task_id, progress).await?;
    let (task, _) = list::one(&sides.centre, &task).await?;
    let counts = task.counts.as_deref().and_then(|text| serde_json::from_str(text).ok());
    Ok(Run {
        state: task.state,
        counts: counts.unwrap_or_default(),
        bytes: sides.tap.bytes() - before,
        millis: began.elapsed().as_millis(),
    })
}

fn table(done: &Done, run: &Run) -> Vec<Found> {
    let row = |kind, cause, made, outcome, why| Found {
        kind,
        cause,
        made,
        found: run.count(kind),
        outcome,
        why,
    };
    vec![
        row(
            "missing",
            "delivery lost or corrupted, or the row removed",
            done.missing,
            "repaired",
            "fetched from the centre and inserted",
        ),
        row(
            "stale",
            "newer delivery lost",
            done.stale,
            "repaired",
            "the centre's revision is newer",
        ),
        row(
            "hashConflict",
            "row edited under its revision",
            done.edited,
            "repaired",
            "one revision, two contents: recorded, then the centre's word",
        ),
        row(
            "tombstone",
            "deleted at the centre, delivery lost",
            done.deleted,
            "repaired",
            "the tombstone is a row like any other",
        ),
        row(
            "extra",
            "rows added at the hall",
            done.added + done.undated,
            "retired, or reported",
            "with a proof of absence; one of unknown age is left to a person",
        ),
        row(
            "localAhead",
            "revision raised at the hall",
            done.ahead,
            "reported",
            "what may be newer is never overwritten",
        ),
        row(
            "revisionZero",
            "the centre's own row has no revision",
            done.unrevised,
            "reported",
            "nothing proves what it should be",
        ),
    ]
}

fn first_proof(found: &[Found], run: &Run) -> Proof {
    let repaired: i64 =
        ["missing", "stale", "hashConflict", "tombstone"].iter().map(|kind| run.count(kind)).sum();
    let reported = run.count("localAhead") + run.count("revisionZero");
    let rest = run.count("extra") - run.count("retired");
    let holds = found.iter().all(|row| row.made == row.found)
        && run.count("repaired") == repaired
        && run.count("reported") == reported + rest
        && run.state == "PARTIAL";
    let figures = format!(
        "{} looked at, {} equal, {} repaired, {} retired with proofs, {} only reported; {} ms",
        run.count("scanned"),
        run.count("equal"),
        run.count("repaired"),
        run.count("retired"),
        run.count("reported"),
        run.millis
    );
    Proof::new("every difference found, none invented", holds, figures)
}

/// What was only reported is settled by a person: the reports say what it is.
async fn settled(sides: &Sides, done: &Done) -> Result<Proof> {
    let settled = mischief::settle(sides).await?;
    let carrying = Carrying::honest(sides);
    while delivery::publish(&sides.centre, &sides.centre_settings(), &carrying).await? != (0, 0) {}
    carrying.end().await?;
    let open = done.ahead + done.undated + done.unrevised;
    let figures = format!("{settled} of {open} that were only reported");
    Ok(Proof::new("a person settles the rest", settled == open, figures))
}

fn second_proof(first: &Run, second: &Run) -> Proof {
    let differing = second.count("scanned") - second.count("equal");
    let holds = second.state == "COMPLETED"
        && differing == 0
        && second.count("repaired") == 0
        && second.bytes < MAX_SECOND_BYTES;
    let figures = format!(
        "nothing differs; {} KB between the two and {} ms (the first: {} KB, {} ms)",
        second.bytes.div_ceil(1024),
        second.millis,
        first.bytes.div_ceil(1024),
        first.millis
    );
    Proof::new("a second run finds nothing", holds, figures)
}

/// Both sets, row by row, by the databases' own word.
async fn same_sets(centre: &Db, hall: &Db) -> Result<Proof> {
    let ours =
        sql!("SELECT uuid, revision, is_deleted FROM answer WHERE deleted = 0 ORDER BY uuid");
    let theirs = sql!(
        "SELECT answer_uuid, revision, is_deleted FROM fc_answer_projection WHERE deleted = 0
         ORDER BY answer_uuid"
    );
    let read = |uuid: &'static str| {
        move |row: &counterfoil_db::Row| -> counterfoil_db::Result<(String, i64, i64)> {
            Ok((row.text(uuid)?, row.int("revision")?, row.int("is_deleted")?))
        }
    };
    let ours: Vec<_> =
        centre.rows(ours).await?.iter().map(read("uuid")).collect::<Result<_, _>>()?;
    let theirs: Vec<_> =
        hall.rows(theirs).await?.iter().map(read("answer_uuid")).collect::<Result<_, _>>()?;
    let differing = ours.iter().zip(&theirs).filter(|(one, other)| one != other).count();
    let holds = ours.len() == theirs.len() && differing == 0;
    let figures = format!("{} rows at the centre, {} at the hall", ours.len(), theirs.len());
    Ok(Proof::new("both sets agree", holds, figures))
}
