//! Where one task stands: what keeps it, until when, and who has it. Pure.

use counterfoil_db::Instant;
use counterfoil_task::{MAX_LOST_ATTEMPTS, STALE_AFTER, TaskStatus};

use super::facts::{BatchFacts, TaskFacts};
use super::shown::at;

/// Where a task stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Standing {
    /// There is no such task.
    Missing,
    /// Due: the next round of its handler takes it.
    Due,
    /// Not due before then.
    BackedOff {
        /// When.
        until: Instant,
    },
    /// Its batch is leased: a round would only put it back.
    LeaseHeld {
        /// Until when.
        until: Instant,
        /// By whom.
        worker: String,
    },
    /// An attempt is at work, and was seen within ten minutes.
    Live {
        /// By whom, if its batch tells.
        worker: Option<String>,
    },
    /// RUNNING, but its process is taken for dead: the next round takes it over.
    Stale {
        /// Not before then, if the row says so.
        until: Option<Instant>,
    },
    /// RUNNING and stale after five lost attempts in a row: left to a person.
    Parked,
    /// Its failures are used up: left to a person.
    Exhausted,
    /// SUCCESS.
    Done,
    /// CANCELLED, for good.
    Cancelled,
}

/// Judges a task by the same conditions as the claim does.
pub fn standing(task: Option<&TaskFacts>, batch: Option<&BatchFacts>, now: Instant) -> Standing {
    let Some(task) = task else {
        return Standing::Missing;
    };
    let later = task.due.filter(|due| *due > now);
    match task.status {
        TaskStatus::Success => Standing::Done,
        TaskStatus::Cancelled => Standing::Cancelled,
        TaskStatus::Running if task.touched > now - STALE_AFTER => Standing::Live {
            worker: lease(batch, now).map(|(_, worker)| worker),
        },
        _ if task.retries >= task.max_retries => Standing::Exhausted,
        TaskStatus::Running if task.lost + 1 >= MAX_LOST_ATTEMPTS => Standing::Parked,
        TaskStatus::Running => {
            let lease = lease(batch, now).map(|(until, _)| until);
            Standing::Stale {
                until: lease.max(later),
            }
        }
        TaskStatus::Pending | TaskStatus::Failed => match (lease(batch, now), later) {
            (Some((until, worker)), _) => Standing::LeaseHeld { until, worker },
            (None, Some(until)) => Standing::BackedOff { until },
            (None, None) => Standing::Due,
        },
    }
}

/// A lease that still runs.
fn lease(batch: Option<&BatchFacts>, now: Instant) -> Option<(Instant, String)> {
    let batch = batch.filter(|batch| batch.status == "RUNNING")?;
    let until = batch.lease_until.filter(|until| *until > now)?;
    Some((until, batch.worker.clone().unwrap_or_default()))
}

impl Standing {
    /// Why it stands there, as the end of a sentence that begins with the task's stage.
    pub(super) fn why(&self, task: Option<&TaskFacts>) -> String {
        let (tried, last) = task.map_or_else(
            || (String::new(), String::new()),
            |task| (tried(task), last_words(task)),
        );
        let (attempt, seen) =
            task.map_or((0, String::new()), |task| (task.attempt, at(task.touched)));
        match self {
            Standing::Missing => "has no task on record, so nothing will run it".into(),
            Standing::Due => {
                format!("{tried}waits for the next round of its handler{last}")
            }
            Standing::BackedOff { until } => {
                format!("{tried}is not due before {}{last}", at(*until))
            }
            Standing::LeaseHeld { until, worker } => {
                format!(
                    "waits for the lease of {worker}, which ends at {}",
                    at(*until)
                )
            }
            Standing::Live { worker } => {
                let by = worker
                    .as_ref()
                    .map_or_else(String::new, |w| format!(" by {w}"));
                format!("is at work{by}: attempt {attempt}, last seen at {seen}")
            }
            Standing::Stale { until } => {
                let from = until.map_or_else(String::new, |until| format!(" from {}", at(until)));
                format!(
                    "lost its process: attempt {attempt} was last seen at {seen}; the next round \
                     takes it over{from}"
                )
            }
            Standing::Parked => format!(
                "lost its process {MAX_LOST_ATTEMPTS} times in a row, last seen at {seen}; the \
                 scan leaves it to a person"
            ),
            Standing::Exhausted => {
                let tried = tried.replace(" and ", ", ");
                format!("{tried}has no tries left and waits for a person{last}")
            }
            Standing::Done => "is done".into(),
            Standing::Cancelled => format!("was cancelled for good{last}"),
        }
    }
}

fn tried(task: &TaskFacts) -> String {
    match task.retries {
        0 => String::new(),
        n => format!("failed {n} of {} times and ", task.max_retries),
    }
}

fn last_words(task: &TaskFacts) -> String {
    match task.message.as_deref().map(str::trim) {
        None | Some("") => String::new(),
        Some(message) => format!(": {message}"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use TaskStatus::{Cancelled, Failed, Pending, Running, Success};
    use chrono::TimeDelta;
    use counterfoil_protocol::TaskCode;

    pub(in crate::order_view) fn now() -> Instant {
        "2026-09-08T02:00:00Z".parse().unwrap()
    }

    pub(in crate::order_view) fn minutes(n: i64) -> Instant {
        now() + TimeDelta::minutes(n)
    }

    pub(in crate::order_view) fn task(status: TaskStatus) -> TaskFacts {
        TaskFacts {
            code: TaskCode::stored("RIPLA:1"),
            status,
            retries: 0,
            max_retries: 3,
            due: None,
            attempt: 1,
            lost: 0,
            message: None,
            touched: minutes(-1),
        }
    }

    pub(in crate::order_view) fn batch(status: &str, lease: Option<i64>) -> BatchFacts {
        BatchFacts {
            status: status.into(),
            cursor: 7,
            processed_count: 2,
            worker: Some("w1".into()),
            lease_until: lease.map(minutes),
        }
    }

    type Case = (
        &'static str,
        TaskStatus,
        fn(&mut TaskFacts),
        Option<i64>,
        fn() -> Standing,
    );

    fn stale(until: Option<i64>) -> Standing {
        Standing::Stale {
            until: until.map(minutes),
        }
    }

    fn held() -> Standing {
        Standing::LeaseHeld {
            until: minutes(4),
            worker: "w1".into(),
        }
    }

    fn live(worker: Option<&str>) -> Standing {
        Standing::Live {
            worker: worker.map(str::to_owned),
        }
    }

    fn lost(task: &mut TaskFacts, before: i64) {
        task.touched = minutes(-10);
        task.lost = before;
    }

    /// Name, status, what differs from a task touched a minute ago, its batch's lease, the answer.
    const TABLE: &[Case] = &[
        ("fresh", Pending, |_| {}, None, || Standing::Due),
        (
            "due by now",
            Pending,
            |t| t.due = Some(now()),
            None,
            || Standing::Due,
        ),
        (
            "later",
            Failed,
            |t| t.due = Some(minutes(10)),
            None,
            || Standing::BackedOff { until: minutes(10) },
        ),
        (
            "leased",
            Pending,
            |t| t.due = Some(minutes(4)),
            Some(4),
            held,
        ),
        ("due but leased", Failed, |_| {}, Some(4), held),
        ("lease over", Failed, |_| {}, Some(0), || Standing::Due),
        (
            "used up",
            Failed,
            |t| t.retries = 3,
            None,
            || Standing::Exhausted,
        ),
        (
            "no try allowed",
            Pending,
            |t| t.max_retries = 0,
            None,
            || Standing::Exhausted,
        ),
        (
            "alive",
            Running,
            |t| t.touched = minutes(-9),
            None,
            || live(None),
        ),
        (
            "alive, last try",
            Running,
            |t| t.retries = 3,
            Some(4),
            || live(Some("w1")),
        ),
        ("stale", Running, |t| lost(t, 0), None, || stale(None)),
        (
            "stale, leased",
            Running,
            |t| lost(t, 0),
            Some(4),
            || stale(Some(4)),
        ),
        (
            "stale, claimed early by hand",
            Running,
            |t| {
                lost(t, 0);
                t.due = Some(minutes(3));
            },
            None,
            || stale(Some(3)),
        ),
        (
            "stale, three lost before",
            Running,
            |t| lost(t, 3),
            None,
            || stale(None),
        ),
        (
            "stale, four lost before",
            Running,
            |t| lost(t, 4),
            None,
            || Standing::Parked,
        ),
        (
            "stale, used up",
            Running,
            |t| {
                lost(t, 0);
                t.retries = 3;
            },
            None,
            || Standing::Exhausted,
        ),
        ("done", Success, |t| t.retries = 3, None, || Standing::Done),
        ("given up", Cancelled, |_| {}, None, || Standing::Cancelled),
    ];

    #[test]
    fn a_task_stands_where_the_claim_would_find_it() {
        for (name, status, change, lease, expected) in TABLE {
            let mut task = task(*status);
            change(&mut task);
            let batch = lease.map(|lease| batch("RUNNING", Some(lease)));
            let found = standing(Some(&task), batch.as_ref(), now());
            assert_eq!(found, expected(), "{name}");
        }
        assert_eq!(standing(None, None, now()), Standing::Missing);
    }
}
