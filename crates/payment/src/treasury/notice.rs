//! CREATE_PUSH_BATCH_NOTIFY: batches are there to be pushed.
//!
//! The notice is a task accepted in the commit that shows the batches, so that it cannot be lost.
//! Where a queue is configured it is posted there, and whoever listens pushes; otherwise the
//! task pushes by itself. Posting twice is harmless: a batch is claimed once.

use std::sync::Arc;

use counterfoil_protocol::{DataVersion, OrderId, SubmitRound, TaskCode};
use counterfoil_task::{Kind, Payload, Run, Seed, Subject, Verdict, Work, WorkError};
use serde::{Deserialize, Serialize};

use super::TreasuryError;
use super::batch_creation::Target;
use super::port::Channels;
use super::push::{Asked, of_order, push_one};

/// The notice that an order's batches are there.
pub const PUSH_BATCH_NOTIFY: Kind = Kind {
    handler: "residentIncomePaymentPushBatchNotifyTask",
    task_type: "RESIDENT_INCOME_PAYMENT_PUSH_BATCH_NOTIFY",
    prefix: "RIPPN",
    stage: "treasury-notice",
    default_round: 50,
    max_round: 200,
};

/// The event's name in a queue.
pub const EVENT: &str = "RESIDENT_INCOME_PAYMENT_CREATE_PUSH_BATCH_NOTIFY";

/// `task_data`, and what is posted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Notice {
    payment_order_id: OrderId,
    data_version: DataVersion,
    submit_round: SubmitRound,
}

impl Notice {
    /// What it is about.
    pub fn target(&self) -> Target {
        Target {
            order: self.payment_order_id,
            data: self.data_version,
            round: self.submit_round,
            payable_count: None,
        }
    }

    fn of(target: Target) -> Notice {
        Notice {
            payment_order_id: target.order,
            data_version: target.data,
            submit_round: target.round,
        }
    }

    /// As text, for a queue.
    pub fn text(&self) -> String {
        serde_json::json!({
            "event": EVENT,
            "paymentOrderId": self.payment_order_id,
            "dataVersion": self.data_version,
            "submitRound": self.submit_round,
        })
        .to_string()
    }

    /// Reads what was posted; `None` for another event.
    pub fn read(text: &str) -> Option<Notice> {
        let value: serde_json::Value = serde_json::from_str(text).ok()?;
        let is_ours = value.get("event")?.as_str()? == EVENT;
        is_ours.then(|| serde_json::from_value(value).ok()).flatten()
    }
}

impl Payload for Notice {
    fn business_key(&self) -> String {
        let Notice { payment_order_id, data_version, submit_round } = self;
        format!("PUSH_BATCH_NOTIFY:{payment_order_id}:{data_version}:{submit_round}")
    }

    fn defect(&self) -> Option<String> {
        let wrong = self.payment_order_id.0 <= 0;
        wrong.then(|| "paymentOrderId must be positive".into())
    }

    fn subject_id(&self) -> i64 {
        self.payment_order_id.0
    }
}

/// The notice's task.
pub fn seed(target: Target, source: Option<TaskCode>) -> Seed {
    let notice = Notice::of(target);
    let data = serde_json::json!({
        "paymentOrderId": target.order,
        "dataVersion": target.data,
        "submitRound": target.round,
    });
    Seed {
        kind: &PUSH_BATCH_NOTIFY,
        business_key: notice.business_key(),
        data: data.to_string(),
        subject: Subject::none()
            .with("payment_order_id", target.order.0)
            .with("data_version", target.data.0)
            .with("submit_round", target.round.0),
        source,
    }
}

/// A queue that notices are posted to.
#[async_trait::async_trait]
pub trait NoticePost: Send + Sync {
    /// Posts a notice and waits until the queue has it.
    ///
    /// # Errors
    /// What happened; the queue may have it all the same.
    async fn post(&self, notice: &Notice) -> Result<(), String>;
}

/// The work of the notice.
#[derive(Clone)]
pub struct PushBatchNotify {
    channels: Channels,
    post: Option<Arc<dyn NoticePost>>,
}

impl std::fmt::Debug for PushBatchNotify {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let posts = self.post.is_some();
        f.debug_struct("PushBatchNotify").field("posts", &posts).finish_non_exhaustive()
    }
}

impl PushBatchNotify {
    /// Pushes in this process.
    pub fn in_process(channels: Channels) -> PushBatchNotify {
        PushBatchNotify { channels, post: None }
    }

    /// Posts to a queue; whoever listens there pushes.
    pub fn posting(channels: Channels, post: Arc<dyn NoticePost>) -> PushBatchNotify {
        PushBatchNotify { channels, post: Some(post) }
    }
}

#[async_trait::async_trait]
impl Work for PushBatchNotify {
    type Payload = Notice;

    fn kind(&self) -> &'static Kind {
        &PUSH_BATCH_NOTIFY
    }

    async fn run(&self, notice: Notice, run: &Run<'_>) -> Result<Verdict, WorkError> {
        match &self.post {
            Some(queue) => {
                let posted = queue.post(&notice).await;
                posted.map_err(|why| WorkError::failed("notice-not-posted", why))?;
            }
            None => self.push_all(notice.target(), run).await?,
        }
        run.begin().await?.succeed("treasury.notify").await
    }
}

impl PushBatchNotify {
    /// Each batch by itself; what cannot be pushed now is paymentPushBatchPushRetry's.
    async fn push_all(&self, target: Target, run: &Run<'_>) -> Result<(), WorkError> {
        let mut after = 0;
        loop {
            let batches = of_order(run.db(), target, after).await?;
            let Some(last) = batches.last().copied() else {
                return Ok(());
            };
            for batch in batches {
                run.checkpoint()?;
                // Pushing may take minutes a batch; the task shows that it is alive.
                run.begin().await?.commit("treasury.notify.alive").await?;
                match push_one(run.db(), &self.channels, batch, Asked::BySchedule).await {
                    Ok(_) => {}
                    Err(TreasuryError::Payment(error)) => return Err(error.into()),
                    Err(error) => tracing::warn!(batch, %error, "a batch cannot be pushed"),
                }
            }
            after = last;
        }
    }
}
