//! The kinds of payment tasks: the names are a contract.

use counterfoil_protocol::{ProgressId, VersionId};
use counterfoil_task::Kind;

/// S03: builds the formal lines and reserves the locks of a submitted version.
pub const SUBMIT_BUILD: Kind = Kind {
    handler: "residentIncomePaymentSelectionSubmitBuildAsyncTask",
    task_type: "RESIDENT_INCOME_PAYMENT_SUBMIT_BUILD",
    prefix: "RIPSB",
    stage: "submit-build",
    default_round: 50,
    max_round: 200,
};

/// S04: brings locks and business tables into line with a published version.
pub const LOCK_ACTIVATE: Kind = Kind {
    handler: "residentIncomePaymentSelectionLockActivateAsyncTask",
    task_type: "RESIDENT_INCOME_PAYMENT_LOCK_ACTIVATE",
    prefix: "RIPLA",
    stage: "lock-activation",
    default_round: 50,
    max_round: 200,
};

/// S05: has the review centre create the audit plan.
pub const AUDIT_PLAN_CREATE: Kind = Kind {
    handler: "residentIncomePaymentSelectionAuditPlanCreateAsyncTask",
    task_type: "RESIDENT_INCOME_PAYMENT_AUDIT_PLAN_CREATE",
    prefix: "RIPAP",
    stage: "audit-plan",
    default_round: 50,
    max_round: 200,
};

/// S06: releases the locks of a failed submission or a cancelled order.
pub const LOCK_RELEASE: Kind = Kind {
    handler: "residentIncomePaymentSelectionLockReleaseAsyncTask",
    task_type: "RESIDENT_INCOME_PAYMENT_LOCK_RELEASE",
    prefix: "RIPLR",
    stage: "lock-release",
    default_round: 50,
    max_round: 200,
};

/// S07: applies a reviewers' decision.
pub const REVIEW_CALLBACK: Kind = Kind {
    handler: "residentIncomePaymentReviewCallbackRetryTask",
    task_type: "RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY",
    prefix: "RIPRC",
    stage: "review-callback",
    default_round: 100,
    max_round: 500,
};

/// S08: moves an approval through its phases. Its units are progress rows; selectors name S07
/// tasks.
pub const REVIEW_PROGRESS: Kind = Kind {
    handler: "residentIncomePaymentReviewCallbackProgressTask",
    task_type: "RESIDENT_INCOME_PAYMENT_REVIEW_CALLBACK_RETRY",
    prefix: "progress",
    stage: "review-progress",
    default_round: 50,
    max_round: 200,
};

/// S09: what follows an approval outside the main business, such as telling the partners.
pub const SIDE_EFFECT: Kind = Kind {
    handler: "residentIncomePaymentReviewCallbackSideEffectTask",
    task_type: "RESIDENT_INCOME_PAYMENT_REVIEW_SIDE_EFFECT",
    prefix: "RIPSE",
    stage: "side-effect",
    default_round: 50,
    max_round: 200,
};

/// S12: brings the three business tables into line with the facts, shard by shard. Its rows are
/// shards, not tasks; task type and prefix only name them.
pub const STATUS_REFRESH: Kind = Kind {
    handler: "residentIncomePaymentStatusRefreshShardTask",
    task_type: "RESIDENT_INCOME_PAYMENT_STATUS_REFRESH_SHARD",
    prefix: "RIPRS",
    stage: "status-refresh",
    default_round: 100,
    max_round: 500,
};

/// S13: makes bill-dimension snapshots of the payable lines of a refreshed shard.
pub const BILL_SNAPSHOT: Kind = Kind {
    handler: "residentIncomePaymentBillDimensionSnapshotAsyncTask",
    task_type: "RESIDENT_INCOME_PAYMENT_BILL_SNAPSHOT",
    prefix: "RIPBS",
    stage: "bill-snapshot",
    default_round: 50,
    max_round: 200,
};

/// S09's repair: adds the side-effect tasks that a finalized review callback lacks.
pub const SIDE_EFFECT_REBUILD: Kind = Kind {
    handler: "residentIncomePaymentReviewCallbackSideEffectRebuildTask",
    task_type: "RESIDENT_INCOME_PAYMENT_REVIEW_SIDE_EFFECT_REBUILD",
    prefix: "RIPSER",
    stage: "side-effect-rebuild",
    default_round: 50,
    max_round: 200,
};

/// The business keys of tasks.
pub mod business_key {
    use super::{ProgressId, VersionId};

    /// S03's.
    pub fn submit_build(version: VersionId) -> String {
        format!("SUBMIT_BUILD:{version}")
    }

    /// S04's.
    pub fn lock_activate(version: VersionId) -> String {
        format!("LOCK_ACTIVATE:{version}")
    }

    /// S05's.
    pub fn audit_plan_create(version: VersionId) -> String {
        format!("AUDIT_PLAN_CREATE:{version}")
    }

    /// S06's; one a reason.
    pub fn lock_release(version: VersionId, reason: &str) -> String {
        format!("LOCK_RELEASE:{version}:{reason}")
    }

    /// S09's; one a kind of side effect.
    pub fn side_effect(progress: ProgressId, effect: &str) -> String {
        format!("SIDE_EFFECT:{progress}:{effect}")
    }

    /// S13's; one a shard.
    pub fn bill_snapshot(progress: i64, shard: i64) -> String {
        format!("BILL_SNAPSHOT:{progress}:{shard}")
    }
}
