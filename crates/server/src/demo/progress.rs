//! Progress for a person who watches; nothing in a pipe.

use std::io::IsTerminal;
use std::time::Duration;

use counterfoil_db::{Db, Read, sql};
use counterfoil_protocol::VersionId;
use indicatif::{ProgressBar, ProgressStyle};

/// How often a running batch is looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// A bar on stderr, hidden unless stderr is a terminal.
#[derive(Debug)]
pub struct Progress(ProgressBar);

impl Progress {
    /// Visible when a person watches and did not ask for silence.
    pub fn new(quiet: bool) -> Progress {
        if quiet || !std::io::stderr().is_terminal() {
            return Progress(ProgressBar::hidden());
        }
        let bar = ProgressBar::new(0);
        let style = ProgressStyle::with_template("{msg:60} {wide_bar} {pos}/{len} {elapsed}");
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        Progress(bar)
    }

    /// Begins a step.
    pub fn step(&self, name: &str) {
        self.0.set_message(name.to_owned());
        self.0.set_length(0);
        self.0.set_position(0);
    }

    /// Shows that something went on.
    pub fn tick(&self) {
        self.0.tick();
    }

    /// Takes the bar away.
    pub fn done(&self) {
        self.0.finish_and_clear();
    }

    /// Runs `work` and meanwhile shows how far a version's batch has come.
    pub async fn watch<F: Future>(
        &self,
        db: &Db,
        version: VersionId,
        phase: &'static str,
        total: u64,
        work: F,
    ) -> F::Output {
        self.0.set_length(total);
        tokio::pin!(work);
        loop {
            tokio::select! {
                output = &mut work => {
                    self.0.set_position(total);
                    return output;
                }
                () = tokio::time::sleep(LOOK_EVERY) => {
                    let done = processed(db, version, phase).await;
                    self.0.set_position(done);
                }
            }
        }
    }
}

/// What a bar shows is a hint: an unreadable count shows nothing.
async fn processed(db: &Db, version: VersionId, phase: &'static str) -> u64 {
    let query = sql!(
        "SELECT processed_count FROM selection_submit_batch
         WHERE payment_order_version_id = :version AND batch_phase = :phase",
        version = version.0,
        phase = phase,
    );
    db.count(query).await.ok().and_then(|n| u64::try_from(n).ok()).unwrap_or(0)
}
