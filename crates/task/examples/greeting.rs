//! A kind of task from end to end: accepted with business data, claimed, done, fenced.
//! Run it: `cargo run -p counterfoil-task --example greeting`

use counterfoil_db::{Db, Settings, migrate};
use counterfoil_task::{
    Engine, EngineSettings, Kicker, Kind, MIGRATIONS, Payload, Run, Seed, Subject, Verdict, Work,
    WorkError, accept_or_reuse,
};
use serde::Deserialize;

const GREETING: Kind = Kind {
    handler: "greetingTask",
    task_type: "GREETING",
    prefix: "GR",
    stage: "greeting",
    default_round: 50,
    max_round: 200,
};

#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Greeting {
    guest_id: i64,
}

impl Payload for Greeting {
    fn business_key(&self) -> String {
        format!("GREETING:{}", self.guest_id)
    }

    fn defect(&self) -> Option<String> {
        (self.guest_id <= 0).then(|| "guestId must be positive".into())
    }
}

struct Greet;

#[async_trait::async_trait]
impl Work for Greet {
    type Payload = Greeting;

    fn kind(&self) -> &'static Kind {
        &GREETING
    }

    async fn run(&self, _greeting: Greeting, run: &Run<'_>) -> Result<Verdict, WorkError> {
        let tx = run.begin().await?; // proves that the attempt is still ours
        // … business writes go here, in the same transaction …
        tx.succeed("greeting.done").await // they and SUCCESS commit together, or neither
    }
}

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    let url = format!("sqlite:{}", folder.path().join("greeting.db").display());
    let db = Db::connect(&url, Settings::default()).await?;
    migrate(&db, MIGRATIONS).await?;

    let mut tx = db.begin().await?;
    let seed = Seed {
        kind: &GREETING,
        business_key: "GREETING:7".into(),
        data: r#"{"guestId":7}"#.into(),
        subject: Subject::none(),
        source: None,
    };
    accept_or_reuse(&mut tx, &seed, &Kicker::none()).await?;
    tx.commit("greeting.accept").await?;

    let engine = Engine::new(db, EngineSettings::default()).with(Greet);
    let summary = engine.round("greetingTask", "").await?;
    assert_eq!(summary.succeeded, 1);
    Ok(())
}
