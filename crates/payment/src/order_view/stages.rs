//! The state of every stage an order goes through, in order. Pure.

use counterfoil_db::Instant;
use serde::Serialize;

use super::after_review;
use super::facts::{BatchFacts, OrderFacts, TaskFacts, VersionRow};
use super::shown::{at, count};
use super::standing::{Standing, standing};

/// How a stage looks. The same words everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum StageState {
    /// Done, with evidence.
    Done,
    /// Somebody is at work on it now.
    Running,
    /// It goes on by itself once what it waits for has come.
    Waiting,
    /// It does not go on by itself.
    Trouble,
    /// The facts contradict each other, or nothing is on record.
    Unknown,
    /// Its turn has not come.
    NotYet,
}

/// One stage.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Stage {
    /// A stable key.
    pub stage: &'static str,
    /// Its name for people.
    pub name: &'static str,
    /// How it looks.
    pub state: StageState,
    /// Why it looks so, in a sentence.
    pub why: String,
    /// What it waits for.
    pub blocker: Option<String>,
    /// The worker that has it.
    pub owner: Option<String>,
    /// When that worker's lease ends.
    pub lease_until: Option<Instant>,
    /// When it is tried again at the earliest.
    pub next_try: Option<Instant>,
    /// Counted failures.
    pub retry_count: Option<i64>,
    /// Failures at most.
    pub max_retry_count: Option<i64>,
    /// Its task.
    pub task_code: Option<String>,
    /// Its batch's status.
    pub batch_status: Option<String>,
    /// The last item or lock committed.
    pub cursor: Option<i64>,
    /// How many are.
    pub processed_count: Option<i64>,
}

impl Stage {
    pub(super) fn new(
        stage: &'static str,
        name: &'static str,
        state: StageState,
        why: String,
    ) -> Stage {
        Stage {
            stage,
            name,
            state,
            why,
            blocker: None,
            owner: None,
            lease_until: None,
            next_try: None,
            retry_count: None,
            max_retry_count: None,
            task_code: None,
            batch_status: None,
            cursor: None,
            processed_count: None,
        }
    }

    pub(super) fn blocked_by(mut self, blocker: impl Into<String>) -> Stage {
        self.blocker = Some(blocker.into());
        self
    }

    /// What the task and its batch tell of themselves, whatever the state.
    pub(super) fn with_work(
        mut self,
        task: Option<&TaskFacts>,
        batch: Option<&BatchFacts>,
    ) -> Stage {
        if let Some(task) = task {
            self.retry_count = Some(task.retries);
            self.max_retry_count = Some(task.max_retries);
            self.task_code = Some(task.code.to_string());
            if !task.status.is_final() {
                self.next_try = task.due;
            }
        }
        if let Some(batch) = batch {
            self.batch_status = Some(batch.status.clone());
            self.cursor = Some(batch.cursor);
            self.processed_count = Some(batch.processed_count);
            self.lease_until = batch.lease_until;
            if batch.status == "RUNNING" {
                self.owner.clone_from(&batch.worker);
            }
        }
        self
    }
}

/// What a stage waits for that nobody will run.
const NO_TASK: &str = "there is no task";

/// A stage that stands where its task stands.
pub(super) fn of_task(
    stage: &'static str,
    name: &'static str,
    task: Option<&TaskFacts>,
    batch: Option<&BatchFacts>,
    now: Instant,
) -> Stage {
    let standing = standing(task, batch, now);
    let why = format!("{name} {}", standing.why(task));
    let (state, blocker) = match &standing {
        Standing::Missing => (StageState::Trouble, Some(NO_TASK)),
        Standing::Due => (StageState::Waiting, Some("the next round")),
        Standing::BackedOff { .. } => (StageState::Waiting, Some("its next try")),
        Standing::LeaseHeld { .. } => (StageState::Waiting, Some("another worker's lease")),
        Standing::Live { .. } => (StageState::Running, None),
        Standing::Stale { .. } => (StageState::Waiting, Some("a round that takes it over")),
        Standing::Parked | Standing::Exhausted => (StageState::Trouble, Some("a person")),
        Standing::Cancelled => (StageState::Trouble, Some("its task was cancelled")),
        Standing::Done => (StageState::Done, None),
    };
    let mut made = Stage::new(stage, name, state, why).with_work(task, batch);
    made.blocker = blocker.map(str::to_owned);
    if let Standing::Stale { until: Some(until) } = standing {
        made.next_try = Some(until);
    }
    made
}

pub(super) const S03: &str = "S03 build";
pub(super) const S04: &str = "S04 lock activation";
pub(super) const S05: &str = "S05 audit plan";
pub(super) const S06: &str = "S06 lock release";

/// Every stage, first to last. S06 stands where it came in, if it did.
pub fn stages(facts: &OrderFacts) -> Vec<Stage> {
    let mut all = vec![
        submitted(facts),
        build(facts),
        published(facts),
        activation(facts),
        audit_plan(facts),
        review(facts),
    ];
    all.extend(after_review::after_review(facts));
    match facts.order.status {
        90 => all.iter_mut().for_each(give_up),
        30 | 40 | 50 | 55 => all.iter_mut().for_each(pass_over),
        _ => {}
    }
    if let Some(task) = &facts.tasks.release {
        all.push(of_task("lock_release", S06, Some(task), None, facts.now));
    }
    all
}

/// A cancelled order's open stages will never come, and none of them is in trouble for that.
fn give_up(stage: &mut Stage) {
    if stage.state != StageState::Done {
        let why = "the order was cancelled before this was done".to_owned();
        *stage = Stage::new(stage.stage, stage.name, StageState::NotYet, why);
    }
}

/// A reviewed order has passed its earlier stages, also when it was imported without their tasks.
fn pass_over(stage: &mut Stage) {
    if stage.state == StageState::Trouble && stage.blocker.as_deref() == Some(NO_TASK) {
        let why = "the order has passed it; no task is on record".to_owned();
        *stage = Stage::new(stage.stage, stage.name, StageState::Unknown, why);
    }
}

pub(super) fn not_yet(stage: &'static str, name: &'static str, after: &str) -> Stage {
    Stage::new(stage, name, StageState::NotYet, format!("comes after {after}"))
}

pub(super) fn submitted(facts: &OrderFacts) -> Stage {
    let (key, name) = ("submitted", "submission");
    let Some(version) = &facts.version else {
        let why = "nothing was submitted".into();
        return Stage::new(key, name, StageState::NotYet, why);
    };
    let why = format!(
        "data version {} was submitted at {} by session {}, attempt {}",
        version.target_data,
        at(version.create_time),
        version.session_id,
        version.submit_attempt
    );
    Stage::new(key, name, StageState::Done, why)
}

pub(super) fn build(facts: &OrderFacts) -> Stage {
    let key = "build";
    let Some(version) = &facts.version else {
        return not_yet(key, S03, "submission");
    };
    let (task, batch) = (facts.tasks.build.as_ref(), facts.build_batch.as_ref());
    if facts.is_pointed_to() || facts.says_published() {
        let lines = batch.map_or(0, |batch| batch.processed_count);
        let why = format!("{S03} is done: {} built", count(lines, "item"));
        return Stage::new(key, S03, StageState::Done, why).with_work(task, batch);
    }
    if version.build_status == "BUILD_FAILED" {
        let why = format!("the submission failed: {}", failure(version));
        let blocked = match facts.conflicts.total {
            0 => "the failed submission".to_owned(),
            n => format!("{} held by other orders", count(n, "bill")),
        };
        return Stage::new(key, S03, StageState::Trouble, why)
            .with_work(task, batch)
            .blocked_by(blocked);
    }
    let stage = of_task(key, S03, task, batch, facts.now);
    if stage.state != StageState::Done {
        return stage;
    }
    let why = format!("{S03} is SUCCESS, but the version says {}", version.build_status);
    Stage::new(key, S03, StageState::Unknown, why).with_work(task, batch)
}

/// Why a version failed, in words.
pub(super) fn failure(version: &VersionRow) -> String {
    let message = version.error_message.clone().or(version.error_code.clone());
    message.unwrap_or_else(|| "no reason is on record".into())
}

pub(super) fn published(facts: &OrderFacts) -> Stage {
    let (key, name) = ("published", "publication");
    let Some(version) = &facts.version else {
        return not_yet(key, name, S03);
    };
    let data = version.target_data;
    let when = version.publish_time.map_or_else(String::new, |time| format!(" at {}", at(time)));
    let (state, why) = match (facts.is_pointed_to(), facts.says_published()) {
        (true, true) => (StageState::Done, format!("data version {data} was published{when}")),
        (true, false) => (
            StageState::Trouble,
            format!(
                "publish incident: the order points to data version {data}, whose record says {}",
                version.build_status
            ),
        ),
        (false, true) if facts.order.published_data_version > data => (
            StageState::Done,
            format!(
                "data version {data} was published{when}; the order moved on to {}",
                facts.order.published_data_version
            ),
        ),
        (false, true) => (
            StageState::Trouble,
            format!(
                "publish incident: data version {data} says PUBLISHED, but the order points to {}",
                facts.order.published_data_version
            ),
        ),
        (false, false) => return not_yet(key, name, S03),
    };
    let stage = Stage::new(key, name, state, why);
    if state == StageState::Trouble {
        return stage.blocked_by("the publish record");
    }
    stage
}

pub(super) fn activation(facts: &OrderFacts) -> Stage {
    let key = "lock_activation";
    if !facts.is_pointed_to() && !facts.says_published() {
        return not_yet(key, S04, "publication");
    }
    let (task, batch) = (facts.tasks.activation.as_ref(), facts.lock_batch.as_ref());
    let standing = standing(task, batch, facts.now);
    let completed = facts.session_is("COMPLETED");
    let is_done = batch.is_some_and(|batch| batch.status == "DONE");
    match (standing, completed) {
        (Standing::Done, true) | (Standing::Missing, true) if is_done => {
            let why = format!(
                "{S04} is done: {} ACTIVE, the session is COMPLETED",
                count(facts.locks.active, "lock")
            );
            Stage::new(key, S04, StageState::Done, why).with_work(task, batch)
        }
        (Standing::Done, _) | (Standing::Missing, true) => {
            let session = facts.session.as_ref();
            let why = format!(
                "{S04} {}, but the session is {} and the batch {}",
                if task.is_some() { "is SUCCESS" } else { "has no task" },
                session.map_or("missing", |session| session.status.as_str()),
                batch.map_or("missing", |batch| batch.status.as_str()),
            );
            Stage::new(key, S04, StageState::Unknown, why).with_work(task, batch)
        }
        _ => of_task(key, S04, task, batch, facts.now),
    }
}

pub(super) fn audit_plan(facts: &OrderFacts) -> Stage {
    let key = "audit_plan";
    if !facts.session_is("COMPLETED") {
        return not_yet(key, S05, S04);
    }
    let task = facts.tasks.audit_plan.as_ref();
    let created = facts.version.as_ref().and_then(|version| version.audit_plan_status.as_deref())
        == Some("CREATED");
    if created {
        let plan = facts.order.review_plan_id.map_or_else(String::new, |plan| format!(" {plan}"));
        let why = format!("{S05}{plan} is CREATED");
        return Stage::new(key, S05, StageState::Done, why).with_work(task, None);
    }
    let stage = of_task(key, S05, task, None, facts.now);
    match stage.state {
        StageState::Done => {
            let why = format!("{S05} is SUCCESS, but the version has no created plan");
            Stage::new(key, S05, StageState::Unknown, why).with_work(task, None)
        }
        StageState::Waiting | StageState::Trouble if !facts.says_published() => {
            stage.blocked_by("the publish record")
        }
        _ => stage,
    }
}

pub(super) fn review(facts: &OrderFacts) -> Stage {
    let (key, name) = ("review", "review");
    let when = facts.order.review_finish_time;
    let when = when.map_or_else(String::new, |time| format!(" at {}", at(time)));
    let done = |why: String| Stage::new(key, name, StageState::Done, why);
    match facts.order.status {
        40 | 50 | 55 => return done(format!("approved{when}")),
        30 if facts.is_pointed_to() => return done(format!("rejected{when}")),
        _ => {}
    }
    if audit_plan(facts).state != StageState::Done {
        return not_yet(key, name, S05);
    }
    let Some(approval) = &facts.approval else {
        let why = "the audit plan is CREATED, but it has no approval instance".into();
        return Stage::new(key, name, StageState::Unknown, why);
    };
    let plan = approval.review_plan_id;
    if facts.aftermath.callback.is_some() {
        return done(format!("plan {plan} is decided; the decision is on record here"));
    }
    if approval.status == "IN_REVIEW" {
        let why = format!("plan {plan} waits for its reviewers");
        return Stage::new(key, name, StageState::Waiting, why)
            .blocked_by(format!("the reviewers of plan {plan}"));
    }
    done(format!("plan {plan} is {}; the order does not say so yet", approval.status))
}

#[cfg(test)]
mod tests;
