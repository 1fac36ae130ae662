//! A real `counterfoil serve` process that says at which commits it is.

use std::collections::BTreeSet;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::{AsyncBufReadExt, BufReader, Lines};
use tokio::process::{Child, ChildStderr, Command};

use super::KillPlan;
use super::outside::Outside;
use crate::TestApp;

/// Real time for a process to report its next commit, or for work to become quiet.
const MAX_SILENCE: Duration = Duration::from_secs(3);
/// Lines of its log that are shown when it ends by itself.
const MAX_LAST_LINES: usize = 20;

/// When to end a process.
#[derive(Debug, Clone)]
pub(super) enum Moment {
    /// When nothing is left to do.
    Quiet,
    /// At so many commits.
    Commits(u64),
    /// When it has passed so many commit points at which no kill has landed yet: so that few kills
    /// reach the whole chain.
    NewPoints {
        /// How many still.
        left: usize,
        /// Those that count no more.
        known: BTreeSet<String>,
    },
}

impl Moment {
    fn has_come(&self, commits: u64) -> bool {
        match self {
            Moment::Quiet => false,
            Moment::Commits(wanted) => commits >= *wanted,
            Moment::NewPoints { left, .. } => *left == 0,
        }
    }

    fn pass(&mut self, point: &str) {
        if let Moment::NewPoints { left, known } = self
            && known.insert(point.to_owned())
        {
            *left = left.saturating_sub(1);
        }
    }
}

/// One process.
pub(super) struct Process {
    child: Child,
    log: Lines<BufReader<ChildStderr>>,
    last_lines: Vec<String>,
    /// The last commit point that it reported.
    pub(super) last_commit: Option<String>,
}

impl Process {
    /// All roles and a simulated partner, with the treasury's files in the outside's outbox.
    pub(super) async fn start(app: &TestApp, plan: &KillPlan, outside: &Outside) -> Process {
        let mut child = Command::new(&plan.binary)
            .args(["--database", app.url(), "--now", &app.now().to_rfc3339(), "serve"])
            .args(["--listen", outside.address(), "--cron", "* * * * * *"])
            .args(["--role", "api,worker,scheduler,review,partner"])
            .envs(outside.environment())
            .env("COUNTERFOIL_CONSOLE__ENABLED", "false")
            .env("COUNTERFOIL_LOG", "warn,counterfoil_db::transaction=trace")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .expect("counterfoil serve");
        let stderr = child.stderr.take().expect("a pipe");
        let log = BufReader::new(stderr).lines();
        Process { child, log, last_lines: Vec::new(), last_commit: None }
    }

    /// Waits until its moment has come, or until it reports nothing more for a while. Answers the
    /// number of commits that it reported.
    pub(super) async fn wait(&mut self, mut moment: Moment) -> u64 {
        let mut commits = 0;
        while !moment.has_come(commits) {
            let line = match tokio::time::timeout(MAX_SILENCE, self.log.next_line()).await {
                Err(_) => return commits,
                Ok(line) => line.expect("its log"),
            };
            let Some(line) = line else {
                panic!("the process ended by itself: {:#?}", self.last_lines);
            };
            if let Some(point) = committed(&line) {
                commits += 1;
                moment.pass(&point);
                self.last_commit = Some(point);
            }
            if self.last_lines.len() == MAX_LAST_LINES {
                self.last_lines.remove(0);
            }
            self.last_lines.push(line);
        }
        commits
    }

    /// Its peak resident memory, from the kernel's own account; 0 where there is none.
    pub(super) fn peak_mib(&self) -> u64 {
        let id = self.child.id().expect("a living process");
        let status = std::fs::read_to_string(format!("/proc/{id}/status")).unwrap_or_default();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
        let kib = peak.and_then(|rest| rest.trim().trim_end_matches(" kB").trim().parse().ok());
        kib.unwrap_or(0_u64) / 1024
    }

    pub(super) async fn kill(mut self) {
        self.child.kill().await.expect("SIGKILL");
    }

    pub(super) async fn terminate(mut self) {
        let id = self.child.id().expect("a living process").to_string();
        let sent = Command::new("kill").args(["-TERM", &id]).status().await.expect("kill");
        assert!(sent.success());
        // Its log must be read on, or it would block on a full pipe.
        while let Ok(Some(_)) = self.log.next_line().await {}
        let status = self.child.wait().await.expect("its end");
        assert!(status.success(), "SIGTERM must end it cleanly: {status}");
    }
}

/// The commit point that a line of the log reports: `point="room.point" … committed`.
fn committed(line: &str) -> Option<String> {
    let (_, after) = line.split_once("committed")?;
    let (_, point) = after.split_once('"').or_else(|| line.split_once("point=\""))?;
    point.split('"').next().map(str::to_owned)
}
