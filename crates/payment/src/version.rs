//! The facts about one submitted version that S03 to S06 share.

use counterfoil_db::{Read, sql};
use counterfoil_protocol::{
    DataVersion, OrderId, SessionId, SubmitAttempt, SubmitRound, UserId, VersionId,
};
use counterfoil_task::{Payload, Subject};
use serde::Deserialize;

use crate::{PaymentError, kinds::business_key};

/// `{"paymentOrderVersionId":…,"taskScene":…}` of the tasks S03 to S05.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct VersionPayload<const SCENE: usize> {
    payment_order_version_id: i64,
    task_scene: String,
}

/// A task scene with its business key.
#[derive(Debug, Clone, Copy)]
pub struct Scene {
    name: &'static str,
    key: fn(VersionId) -> String,
}

const SCENES: [Scene; 3] = [
    Scene { name: "SUBMIT_BUILD", key: business_key::submit_build },
    Scene { name: "LOCK_ACTIVATE", key: business_key::lock_activate },
    Scene { name: "AUDIT_PLAN_CREATE", key: business_key::audit_plan_create },
];

/// S03's payload.
pub type SubmitBuildPayload = VersionPayload<0>;
/// S04's payload.
pub type LockActivatePayload = VersionPayload<1>;
/// S05's payload.
pub type AuditPlanPayload = VersionPayload<2>;

impl<const SCENE: usize> VersionPayload<SCENE> {
    /// `task_data` of such a task.
    pub fn data(version: VersionId) -> String {
        let scene = SCENES[SCENE].name;
        format!(r#"{{"paymentOrderVersionId":{version},"taskScene":"{scene}"}}"#)
    }

    /// The version the task is about.
    pub fn version(&self) -> VersionId {
        VersionId(self.payment_order_version_id)
    }
}

impl<const SCENE: usize> Payload for VersionPayload<SCENE> {
    fn business_key(&self) -> String {
        (SCENES[SCENE].key)(self.version())
    }

    fn defect(&self) -> Option<String> {
        let scene = SCENES[SCENE].name;
        if self.payment_order_version_id <= 0 {
            return Some("paymentOrderVersionId must be positive".into());
        }
        (self.task_scene != scene).then(|| format!("taskScene must be {scene}"))
    }

    fn subject_id(&self) -> i64 {
        self.payment_order_version_id
    }
}

/// How a session submits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// A new order.
    New,
    /// A revision of a published one.
    Revise,
}

impl Mode {
    /// The stored value's mode; a check constraint keeps others out.
    pub fn stored(text: &str) -> Mode {
        if text == "REVISE" { Mode::Revise } else { Mode::New }
    }

    /// The stored value.
    pub fn as_str(self) -> &'static str {
        match self {
            Mode::New => "NEW",
            Mode::Revise => "REVISE",
        }
    }
}

/// Version record, order and session as they stand together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VersionContext {
    /// The version record.
    pub version: VersionId,
    /// Its mode.
    pub mode: Mode,
    /// Its order.
    pub order: OrderId,
    /// Its session.
    pub session: SessionId,
    /// The data version it revises; 0 for NEW.
    pub source_data: DataVersion,
    /// The data version it makes.
    pub target_data: DataVersion,
    /// The round it revises.
    pub source_round: SubmitRound,
    /// The round it makes.
    pub target_round: SubmitRound,
    /// The session's attempt that made it.
    pub attempt: SubmitAttempt,
    /// `version_build_status`.
    pub build_status: String,
    /// The order's publish pointer.
    pub pointer: DataVersion,
    /// The order's round.
    pub order_round: SubmitRound,
    /// The order's status code.
    pub order_status: i64,
    /// The order's number.
    pub order_no: Option<String>,
    /// The order's first creator.
    pub order_creator: UserId,
    /// The session's mode.
    pub session_mode: Mode,
    /// The session's status.
    pub session_status: String,
    /// The order the session says it revises; for NEW the order it made.
    pub session_order: Option<OrderId>,
    /// The session's creator.
    pub session_creator: UserId,
    /// The session's current attempt.
    pub session_attempt: SubmitAttempt,
    /// The session's active submit, a version id.
    pub active_submit: Option<VersionId>,
    /// Whether the session is marked as a publish incident.
    pub incident: bool,
}

/// The mark of a session whose publication needs a person.
pub const PUBLISHED_INCIDENT: &str = "INVALID_REVISE_SESSION_PUBLISHED_INCIDENT";

impl VersionContext {
    /// Reads the three rows. In a transaction, `{for_update}` is not taken: callers lock what they
    /// change by conditional updates.
    pub async fn read(
        from: &impl Read,
        version: VersionId,
    ) -> Result<VersionContext, PaymentError> {
        let query = sql!(
            "SELECT v.id, v.mode, v.payment_order_id, v.session_id, v.source_data_version,
                    v.target_data_version, v.source_submit_round, v.target_submit_round,
                    v.submit_attempt, v.version_build_status,
                    o.current_publish_version, o.submit_round AS order_round,
                    o.status AS order_status, o.order_no, o.create_user_id,
                    s.mode AS session_mode, s.status AS session_status,
                    s.target_payment_order_id, s.creator_user_id,
                    s.submit_attempt AS session_attempt, s.active_submit_id,
                    s.invalidated_flag, s.invalidated_reason
             FROM fi_resident_income_payment_order_version v
             JOIN fi_resident_income_payment_order o ON o.id = v.payment_order_id AND o.deleted = 0
             JOIN selection_session s ON s.id = v.session_id AND s.deleted = 0
             WHERE v.id = :version AND v.deleted = 0",
            version = version.0,
        );
        let row = from.row(query).await?.ok_or(PaymentError::VersionNotFound(version))?;
        let incident = row.int("invalidated_flag")? == 1
            && row.maybe_text("invalidated_reason")?.as_deref() == Some(PUBLISHED_INCIDENT);
        Ok(VersionContext {
            version,
            mode: Mode::stored(&row.text("mode")?),
            order: OrderId(row.int("payment_order_id")?),
            session: SessionId(row.int("session_id")?),
            source_data: DataVersion(row.int("source_data_version")?),
            target_data: DataVersion(row.int("target_data_version")?),
            source_round: SubmitRound(row.int("source_submit_round")?),
            target_round: SubmitRound(row.int("target_submit_round")?),
            attempt: SubmitAttempt(row.int("submit_attempt")?),
            build_status: row.text("version_build_status")?,
            pointer: DataVersion(row.int("current_publish_version")?),
            order_round: SubmitRound(row.int("order_round")?),
            order_status: row.int("order_status")?,
            order_no: row.maybe_text("order_no")?,
            order_creator: UserId(row.int("create_user_id")?),
            session_mode: Mode::stored(&row.text("session_mode")?),
            session_status: row.text("session_status")?,
            session_order: row.maybe_int("target_payment_order_id")?.map(OrderId),
            session_creator: UserId(row.int("creator_user_id")?),
            session_attempt: SubmitAttempt(row.int("session_attempt")?),
            active_submit: row.maybe_int("active_submit_id")?.map(VersionId),
            incident,
        })
    }

    /// What the trace says tasks about this version are about.
    pub fn subject(&self) -> Subject {
        Subject::none()
            .with("payment_order_id", self.order.0)
            .with("payment_order_version_id", self.version.0)
            .with("data_version", self.target_data.0)
            .with("submit_round", self.target_round.0)
    }
}
