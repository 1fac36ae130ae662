//! Work that waits until its test lets it go on.

use std::sync::Arc;

use counterfoil_db::Db;
use counterfoil_task::{
    Engine, EngineSettings, Kicker, Kind, Payload, Run, Seed, Subject, Verdict, Work, WorkError,
    accept_or_reuse,
};
use serde::Deserialize;
use tokio::sync::{Semaphore, mpsc};

pub const KNOCK: Kind = Kind {
    handler: "knockTask",
    task_type: "KNOCK",
    prefix: "KN",
    stage: "knock",
    default_round: 50,
    max_round: 200,
};

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct KnockData {
    id: i64,
}

impl Payload for KnockData {
    fn business_key(&self) -> String {
        format!("KNOCK:{}", self.id)
    }

    fn defect(&self) -> Option<String> {
        None
    }
}

/// Says when it begins, waits to be let go on, and goes on.
pub struct Knock {
    begun: mpsc::UnboundedSender<i64>,
    go_on: Arc<Semaphore>,
}

#[async_trait::async_trait]
impl Work for Knock {
    type Payload = KnockData;

    fn kind(&self) -> &'static Kind {
        &KNOCK
    }

    async fn run(&self, payload: KnockData, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let _ = self.begun.send(payload.id);
        self.go_on.acquire().await.expect("the test").forget();
        run.checkpoint()?;
        if payload.id < 0 {
            return Err(WorkError::failed("knock-refused", "nobody opens"));
        }
        run.begin().await?.succeed("knock.done").await
    }
}

/// An engine that knocks; what begins, and permits to go on.
pub fn engine(db: &Db) -> (Engine, mpsc::UnboundedReceiver<i64>, Arc<Semaphore>) {
    let (sender, begun) = mpsc::unbounded_channel();
    let go_on = Arc::new(Semaphore::new(0));
    let knock = Knock { begun: sender, go_on: go_on.clone() };
    (Engine::new(db.clone(), EngineSettings::default()).with(knock), begun, go_on)
}

/// A task that is due.
pub async fn accept(db: &Db, id: i64) {
    let mut tx = db.begin().await.expect("a transaction");
    let seed = Seed {
        kind: &KNOCK,
        business_key: format!("KNOCK:{id}"),
        data: format!("{{\"id\":{id}}}"),
        subject: Subject::none(),
        source: None,
    };
    accept_or_reuse(&mut tx, &seed, &Kicker::none()).await.expect("a task");
    tx.commit("test.accept").await.expect("a commit");
}
