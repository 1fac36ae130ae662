//! The facts one order is judged by: plain data, as read.

use counterfoil_db::{Instant, Result, Row};
use counterfoil_protocol::{
    DataVersion, OrderId, PlanId, SessionId, SubmitAttempt, SubmitRound, TaskCode, UserId,
    VersionId,
};
use counterfoil_task::TaskStatus;
use serde::Serialize;

use super::aftermath::Aftermath;
use super::names::order_status;
use super::shown::Money;

/// A payment order as its row stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct OrderRow {
    /// Its id.
    #[serde(rename = "paymentOrderId")]
    pub id: OrderId,
    /// Its number.
    pub order_no: Option<String>,
    /// Its status code.
    pub status: i64,
    /// The status in a word.
    pub status_name: &'static str,
    /// `business_status`.
    pub business_status: Option<String>,
    /// The data version it points to; 0 = never published.
    pub published_data_version: DataVersion,
    /// Its business round.
    pub submit_round: SubmitRound,
    /// `build_status`.
    pub build_status: Option<String>,
    /// `audit_plan_status`.
    pub audit_plan_status: Option<String>,
    /// Its plan in the review centre.
    pub review_plan_id: Option<PlanId>,
    /// TREASURY or OFFLINE, once decided.
    pub payment_type: Option<String>,
    /// `push_status`.
    pub push_status: Option<String>,
    /// When the review ended.
    pub review_finish_time: Option<Instant>,
    /// What its payable lines sum to.
    pub total_amount: Money,
    /// Its payable lines.
    pub payable_count: i64,
    /// Its unqualified lines.
    pub unqualified_count: i64,
    /// Who created it.
    pub create_user_id: UserId,
    /// When.
    pub create_time: Instant,
    /// When it was last changed.
    pub update_time: Instant,
}

/// The columns that [`OrderRow::read`] reads.
macro_rules! order_columns {
    () => {
        "id, order_no, status, business_status, current_publish_version, submit_round,
         build_status, audit_plan_status, review_plan_id, payment_type, push_status,
         review_finish_time, total_amount, payable_count, unqualified_count, create_user_id,
         create_time, update_time"
    };
}
pub(super) use order_columns;

impl OrderRow {
    pub(super) fn read(row: &Row) -> Result<OrderRow> {
        let status = row.int("status")?;
        Ok(OrderRow {
            id: OrderId(row.int("id")?),
            order_no: row.maybe_text("order_no")?,
            status,
            status_name: order_status(status),
            business_status: row.maybe_text("business_status")?,
            published_data_version: DataVersion(row.int("current_publish_version")?),
            submit_round: SubmitRound(row.int("submit_round")?),
            build_status: row.maybe_text("build_status")?,
            audit_plan_status: row.maybe_text("audit_plan_status")?,
            review_plan_id: row.maybe_int("review_plan_id")?.map(PlanId),
            payment_type: row.maybe_text("payment_type")?,
            push_status: row.maybe_text("push_status")?,
            review_finish_time: row.maybe_instant("review_finish_time")?,
            total_amount: row.int("total_amount")?.into(),
            payable_count: row.int("payable_count")?,
            unqualified_count: row.int("unqualified_count")?,
            create_user_id: UserId(row.int("create_user_id")?),
            create_time: row.instant("create_time")?,
            update_time: row.instant("update_time")?,
        })
    }

    /// How sentences call it: by its number, or by its id while it has none.
    pub fn called(&self) -> String {
        match &self.order_no {
            Some(number) => number.clone(),
            None => self.id.to_string(),
        }
    }
}

/// A version record as its row stands.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionRow {
    /// Its id.
    #[serde(rename = "paymentOrderVersionId")]
    pub id: VersionId,
    /// NEW or REVISE.
    pub mode: String,
    /// The session that submitted it.
    pub session_id: SessionId,
    /// The session's attempt that made it.
    pub submit_attempt: SubmitAttempt,
    /// The data version it revises; 0 for NEW.
    pub source_data_version: DataVersion,
    /// The data version it makes.
    #[serde(rename = "dataVersion")]
    pub target_data: DataVersion,
    /// The round it makes.
    #[serde(rename = "submitRound")]
    pub target_round: SubmitRound,
    /// `version_build_status`.
    pub build_status: String,
    /// `audit_plan_status`.
    pub audit_plan_status: Option<String>,
    /// When it was published.
    pub publish_time: Option<Instant>,
    /// Why it failed, as a code.
    pub error_code: Option<String>,
    /// Why it failed, in words.
    pub error_message: Option<String>,
    /// When it was submitted.
    pub create_time: Instant,
    /// When it was last changed.
    pub update_time: Instant,
}

/// The session that submitted the version in view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct SessionFacts {
    /// Its id.
    #[serde(rename = "sessionId")]
    pub id: SessionId,
    /// Its status.
    pub status: String,
    /// Its attempt.
    pub submit_attempt: SubmitAttempt,
    /// The version it is submitting.
    pub active_submit_id: Option<VersionId>,
    /// Where a failed submission failed.
    pub failure_phase: Option<String>,
    /// Whether it is marked invalid.
    pub invalidated: bool,
    /// Why.
    pub invalidated_reason: Option<String>,
}

/// A submit batch of the version in view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchFacts {
    /// INIT, RUNNING, FAILED or DONE.
    pub status: String,
    /// The last item or lock that is committed.
    pub cursor: i64,
    /// How many are.
    pub processed_count: i64,
    /// Who leased it last.
    pub worker: Option<String>,
    /// When the lease ends.
    pub lease_until: Option<Instant>,
}

/// A task as its row stands.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TaskFacts {
    /// Its code.
    pub code: TaskCode,
    /// Its status.
    pub status: TaskStatus,
    /// Counted failures.
    pub retries: i64,
    /// Failures at most.
    pub max_retries: i64,
    /// When it is due; `None` = at once.
    pub due: Option<Instant>,
    /// Claims so far.
    pub attempt: i64,
    /// Lost attempts in a row, without the present one.
    pub lost: i64,
    /// Its last trouble or note.
    pub message: Option<String>,
    /// When its row was last touched.
    pub touched: Instant,
}

/// The tasks of the version in view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Tasks {
    /// S03.
    pub build: Option<TaskFacts>,
    /// S04.
    pub activation: Option<TaskFacts>,
    /// S05.
    pub audit_plan: Option<TaskFacts>,
    /// S06 of the version or of the cancelled order, the newest.
    pub release: Option<TaskFacts>,
}

/// The latest approval instance of the version in view.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Approval {
    /// The plan.
    pub review_plan_id: PlanId,
    /// The attempt.
    pub approval_attempt: i64,
    /// IN_REVIEW, APPROVED or REJECTED.
    pub status: String,
    /// When it was decided.
    pub finish_time: Option<Instant>,
}

/// Bill locks of the order by state.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LockCounts {
    /// Reserved by a submission.
    pub reserved: i64,
    /// Held by the published version.
    pub active: i64,
    /// Given back.
    pub released: i64,
}

/// A bill that somebody else held when the version was built.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BillConflict {
    /// The station.
    pub station_id: String,
    /// The month.
    pub bill_yearmonth: String,
    /// The order that held it.
    pub holder_order_id: OrderId,
    /// That order's number.
    pub holder_order_no: Option<String>,
    /// The lock by which it held it.
    pub holder_lock_id: i64,
    /// What state that lock was in.
    pub holder_lock_status: String,
}

/// The conflicts of the version in view.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Conflicts {
    /// How many bills.
    pub total: i64,
    /// The first of them.
    pub first: Vec<BillConflict>,
}

/// A revision newer than the published version that failed: the published one stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FailedRevision {
    /// The data version it would have made.
    pub data_version: DataVersion,
    /// Why it failed.
    pub why: String,
}

/// Everything one order is judged by.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderFacts {
    /// When it was looked at.
    pub now: Instant,
    /// The order.
    pub order: OrderRow,
    /// The version in view: the newest, unless that one failed behind a published one.
    pub version: Option<VersionRow>,
    /// The session of the version in view.
    pub session: Option<SessionFacts>,
    /// S03's batch.
    pub build_batch: Option<BatchFacts>,
    /// S04's batch.
    pub lock_batch: Option<BatchFacts>,
    /// The tasks of the version in view.
    pub tasks: Tasks,
    /// The approval of the version in view.
    pub approval: Option<Approval>,
    /// The order's locks.
    pub locks: LockCounts,
    /// The conflicts of the version in view.
    pub conflicts: Conflicts,
    /// What followed the decision.
    pub aftermath: Aftermath,
    /// A later revision that failed.
    pub failed_revision: Option<FailedRevision>,
}

impl OrderFacts {
    /// P: the order points to the version in view.
    pub fn is_pointed_to(&self) -> bool {
        self.version
            .as_ref()
            .is_some_and(|version| version.target_data == self.order.published_data_version)
    }

    /// V: the version in view says PUBLISHED.
    pub fn says_published(&self) -> bool {
        self.version.as_ref().is_some_and(|version| version.build_status == "PUBLISHED")
    }

    /// Whether the session is marked as a publish incident.
    pub fn is_marked_incident(&self) -> bool {
        self.session.as_ref().is_some_and(|session| {
            session.invalidated
                && session.invalidated_reason.as_deref() == Some(crate::PUBLISHED_INCIDENT)
        })
    }

    /// Whether the session of the version in view is at this status.
    pub fn session_is(&self, status: &str) -> bool {
        self.session.as_ref().is_some_and(|session| session.status == status)
    }
}
