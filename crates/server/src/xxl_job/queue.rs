//! One queue a job: what becomes of a trigger while others run or wait. Pure; the executor acts.

use std::collections::{HashMap, VecDeque};

use super::protocol::{BlockStrategy, Trigger};

/// Jobs that run or wait at a time.
pub const MAX_JOBS: usize = 256;
/// Triggers of one job that wait.
pub const MAX_WAITING: usize = 1000;

/// What becomes of a trigger.
#[derive(Debug, PartialEq, Eq)]
pub enum Admission {
    /// It runs now: its job was idle.
    Starts,
    /// It waits for its turn.
    Waits,
    /// It waits for the running one to end, which is to be stopped; these no longer wait.
    Covers(Vec<Trigger>),
    /// Its job is busy.
    Busy,
    /// It is here already.
    Known,
    /// Too much waits.
    Full,
}

#[derive(Debug, Default)]
struct Job {
    running: i64,
    waiting: VecDeque<Trigger>,
}

/// The queues. A job that is here is running one of its triggers.
#[derive(Debug, Default)]
pub struct Queues(HashMap<i64, Job>);

impl Queues {
    /// Whether a job runs or waits.
    pub fn is_busy(&self, job: i64) -> bool {
        self.0.contains_key(&job)
    }

    /// Whether a trigger runs or waits.
    pub fn knows(&self, log: i64) -> bool {
        let is_it = |job: &Job| job.running == log || job.waiting.iter().any(|t| t.log_id == log);
        self.0.values().any(is_it)
    }

    /// Takes a trigger in, or not.
    pub fn admit(&mut self, trigger: &Trigger) -> Admission {
        if self.knows(trigger.log_id) {
            return Admission::Known;
        }
        let Some(job) = self.0.get_mut(&trigger.job_id) else {
            if self.0.len() >= MAX_JOBS {
                return Admission::Full;
            }
            let job = Job { running: trigger.log_id, waiting: VecDeque::new() };
            self.0.insert(trigger.job_id, job);
            return Admission::Starts;
        };
        match trigger.strategy() {
            BlockStrategy::DiscardLater => Admission::Busy,
            BlockStrategy::CoverEarly => {
                let covered = job.waiting.drain(..).collect();
                job.waiting.push_back(trigger.clone());
                Admission::Covers(covered)
            }
            BlockStrategy::Serial if job.waiting.len() >= MAX_WAITING => Admission::Full,
            BlockStrategy::Serial => {
                job.waiting.push_back(trigger.clone());
                Admission::Waits
            }
        }
    }

    /// The running trigger of a job has ended: the next one runs, or the job is idle.
    pub fn next(&mut self, job: i64) -> Option<Trigger> {
        let next = self.0.get_mut(&job).and_then(|job| {
            let next = job.waiting.pop_front()?;
            job.running = next.log_id;
            Some(next)
        });
        if next.is_none() {
            self.0.remove(&job);
        }
        next
    }

    /// Takes out everything of a job that waits.
    pub fn empty(&mut self, job: i64) -> Vec<Trigger> {
        self.0.get_mut(&job).map(|job| job.waiting.drain(..).collect()).unwrap_or_default()
    }

    /// The jobs that are here.
    pub fn jobs(&self) -> Vec<i64> {
        self.0.keys().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trigger(job: i64, log: i64, strategy: &str) -> Trigger {
        let executor_block_strategy = Some(strategy.to_owned());
        Trigger { job_id: job, log_id: log, executor_block_strategy, ..Trigger::default() }
    }

    #[test]
    fn a_trigger_of_a_busy_job_waits_is_refused_or_takes_the_others_place() {
        let mut queues = Queues::default();
        let mut admit = |job, log, strategy| queues.admit(&trigger(job, log, strategy));
        assert_eq!(admit(1, 10, "COVER_EARLY"), Admission::Starts);
        assert_eq!(admit(1, 11, "SERIAL_EXECUTION"), Admission::Waits);
        assert_eq!(admit(1, 12, "whatever comes"), Admission::Waits);
        assert_eq!(admit(1, 13, "DISCARD_LATER"), Admission::Busy);
        assert_eq!(admit(2, 20, "DISCARD_LATER"), Admission::Starts, "another job's queue");
        for log in [10, 11, 20] {
            assert_eq!(admit(3, log, "SERIAL_EXECUTION"), Admission::Known, "{log}");
        }
        let Admission::Covers(covered) = admit(1, 14, "COVER_EARLY") else {
            panic!("it takes the others' place");
        };
        assert_eq!(covered.iter().map(|one| one.log_id).collect::<Vec<_>>(), [11, 12]);
        assert_eq!(queues.next(1).map(|next| next.log_id), Some(14));
        assert!(queues.is_busy(1) && queues.knows(14) && !queues.knows(11));
        assert_eq!(queues.next(1), None);
        assert!(!queues.is_busy(1));
    }

    #[test]
    fn what_waits_is_bounded() {
        let mut queues = Queues::default();
        for log in 0..=MAX_WAITING {
            let log = i64::try_from(log).unwrap();
            let admission = queues.admit(&trigger(1, log, "SERIAL_EXECUTION"));
            assert!(matches!(admission, Admission::Starts | Admission::Waits), "{log}");
        }
        assert_eq!(queues.admit(&trigger(1, -1, "SERIAL_EXECUTION")), Admission::Full);
        assert_eq!(queues.empty(1).len(), MAX_WAITING);
        for job in 2..=i64::try_from(MAX_JOBS).unwrap() {
            assert_eq!(queues.admit(&trigger(job, 10_000 + job, "")), Admission::Starts);
        }
        assert_eq!(queues.admit(&trigger(9_999, 1, "")), Admission::Full);
    }
}
