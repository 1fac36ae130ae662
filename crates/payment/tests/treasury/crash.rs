//! A process may die at any commit from creation to the result: whoever comes next goes on, the end
//! is the same, and nothing is paid twice.

use counterfoil_e2e::{Crash, TestApp, on_every_database};
use counterfoil_payment::treasury::batch_creation::Target;
use counterfoil_payment::treasury::notice::PUSH_BATCH_NOTIFY;
use counterfoil_payment::treasury::port::{ReportEntry, Reported, ResultReport};
use counterfoil_payment::treasury::push::{PUSH_RETRY, PushRetry};
use counterfoil_task::{
    Engine, EngineSettings, Kicker, Kind, Payload, Run, Seed, Subject, Verdict, Work, WorkError,
    accept_or_reuse,
};

use super::create::wipe;
use super::hand::{Hand, Line, Scripted, TARGET, channels, creation, engine, line};

/// What S09 is for PAYMENT_RESULT_BASE_DATA_BUILD.
const BUILD: Kind = Kind {
    handler: "treasuryTestBuild",
    task_type: "TREASURY_TEST_BUILD",
    prefix: "TTB",
    stage: "treasury-test",
    default_round: 50,
    max_round: 200,
};

#[derive(Debug, serde::Deserialize)]
struct Order {
    order: i64,
}

impl Payload for Order {
    fn business_key(&self) -> String {
        format!("TREASURY_TEST:{}", self.order)
    }

    fn defect(&self) -> Option<String> {
        None
    }
}

struct Build;

#[async_trait::async_trait]
impl Work for Build {
    type Payload = Order;

    fn kind(&self) -> &'static Kind {
        &BUILD
    }

    async fn run(&self, _order: Order, run: &Run<'_>) -> Result<Verdict, WorkError> {
        creation().build(run, Target { payable_count: Some(5), ..TARGET }).await
    }
}

fn engine_with_build(app: &TestApp, channel: &Scripted) -> Engine {
    engine(app, channel).with(Build)
}

async fn accept(app: &TestApp) {
    let seed = Seed {
        kind: &BUILD,
        business_key: "TREASURY_TEST:1".into(),
        data: r#"{"order":1}"#.into(),
        subject: Subject::none(),
        source: None,
    };
    let mut tx = app.db.begin().await.expect("a transaction");
    accept_or_reuse(&mut tx, &seed, &Kicker::none()).await.expect("acceptance");
    tx.commit("test").await.expect("a commit");
}

/// Rounds until nothing is left; each time the dead process's rows become stale.
async fn work_off(app: &TestApp, channel: &Scripted) -> bool {
    let mut crashed = false;
    for _ in 0..3 {
        for handler in [BUILD.handler, PUSH_BATCH_NOTIFY.handler, PUSH_RETRY.handler] {
            crashed |= engine_with_build(app, channel).round(handler, "").await.is_err();
        }
        app.pass_minutes(61);
    }
    crashed
}

/// Every line of every push is reported as paid, a report a push.
async fn paid(app: &TestApp) {
    let hand = Hand(app);
    let messages = "SELECT message_id FROM fi_resident_income_payment_push ORDER BY push_batch_id";
    for (number, message_id) in app.lines(messages).await.into_iter().enumerate() {
        let query = format!(
            "SELECT i.end_to_end_id FROM fi_resident_income_payment_push_item i
             JOIN fi_resident_income_payment_push p ON p.id = i.push_id
             WHERE p.message_id = '{message_id}' ORDER BY i.id"
        );
        let paid = |end_to_end_id| ReportEntry {
            end_to_end_id,
            status: Reported::Paid,
            amount: None,
            reason_code: None,
            reason: None,
        };
        let entries = app.lines(&query).await.into_iter().map(paid).collect();
        let report_id = format!("R{number}");
        let report = ResultReport { report_id, message_id, group: None, entries };
        if hand.import(&report).await.is_err() {
            // The process died; the person imports the same file again.
            hand.import(&report).await.expect("the same report again");
        }
    }
}

async fn end_state(app: &TestApp) -> Vec<String> {
    let mut state = Hand(app).standing().await;
    for query in [
        "SELECT batch_no, split_key, detail_count, total_amount, push_count, deleted
         FROM fi_resident_income_payment_push_batch ORDER BY batch_no",
        "SELECT b.batch_no, p.push_no, p.push_state, p.detail_count, p.total_amount
         FROM fi_resident_income_payment_push p
         JOIN fi_resident_income_payment_push_batch b ON b.id = p.push_batch_id ORDER BY p.id",
        "SELECT build_status, line_count, batch_count, total_amount
         FROM fi_resident_income_payment_push_build",
        "SELECT report_id, entry_count, changed_count, refused_count
         FROM fi_resident_income_payment_push_result ORDER BY report_id",
        "SELECT start_order_bill_id, end_order_bill_id, scope_count
         FROM fi_resident_income_payment_status_refresh_shard ORDER BY id",
        "SELECT operation_type FROM fi_resident_income_payment_order_log ORDER BY id",
        "SELECT task_type, task_status FROM fi_async_task ORDER BY id",
    ] {
        state.extend(app.lines(query).await);
        state.push("--".into());
    }
    state
}

async fn prepare(app: &TestApp) {
    let lines: Vec<Line> = (1..=5).map(|n| line(n, n * 100)).collect();
    Hand::order(app, "MAX_LINES:2", &lines).await;
    accept(app).await;
}

async fn journey(app: &TestApp, channel: &Scripted, crash: Option<Crash>) -> Vec<String> {
    prepare(app).await;
    if let Some(crash) = crash {
        app.arm(crash);
    }
    work_off(app, channel).await;
    work_off(app, channel).await;
    paid(app).await;
    if let Some(crash) = crash {
        assert!(!app.faults().is_armed(), "{crash:?} did not strike");
    }
    end_state(app).await
}

async fn every_crash_ends_alike(app: &TestApp) {
    let channel = Scripted::idempotent();
    let crashes = app.crashes_of(journey(app, &channel, None)).await;
    let expected = end_state(app).await;
    Hand(app).rules_hold_but(&[]).await;
    // The first passage of each: the later ones are the same for another batch.
    let ours = crashes.into_iter().filter(|crash| crash.passage == 1);
    let ours = ours.filter(|crash| crash.point.starts_with("treasury."));
    let ours: Vec<Crash> = ours.collect();
    for point in [
        "treasury.create.open",
        "treasury.create.chunk",
        "treasury.create.finish",
        "treasury.push.claim",
        "treasury.push.settle",
        "treasury.notify.alive",
        "treasury.notify",
        "treasury.result.apply",
    ] {
        assert!(ours.iter().any(|crash| crash.point == point), "{point} was not passed");
    }
    for crash in ours {
        wipe(app).await;
        let channel = Scripted::idempotent();
        let state = journey(app, &channel, Some(crash)).await;
        assert_eq!(state, expected, "{crash:?}");
        let mut bodies: Vec<_> =
            channel.sent().into_iter().map(|sent| (sent.message_id, sent.sha256)).collect();
        bodies.sort();
        bodies.dedup();
        assert_eq!(bodies.len(), 3, "{crash:?}: one message a batch, always the same bytes");
        Hand(app).rules_hold_but(&[]).await;
    }
}

on_every_database! {
    async fn a_crash_at_any_commit_of_a_payment_ends_like_no_crash(app: TestApp) {
        every_crash_ends_alike(&app).await;
    }

    async fn a_pusher_that_died_leaves_a_push_that_is_never_sent_blindly(app: TestApp) {
        let hand = Hand::order(&app, "NONE", &[line(1, 100)]).await;
        hand.create().await.unwrap();
        let channel = Scripted::default();
        for (point, side, sent) in [
            ("treasury.push.claim", counterfoil_db::Side::After, 0),
            ("treasury.push.settle", counterfoil_db::Side::Before, 1),
        ] {
            app.arm(Crash { point, side, passage: 1 });
            let engine = Engine::new(app.db.clone(), EngineSettings::default())
                .with_turns(PushRetry::new(channels(&channel)));
            engine.round(PUSH_RETRY.handler, "").await.expect_err("it died");
            assert_eq!(channel.sent().len(), sent);
            for _ in 0..3 {
                app.pass_minutes(61);
                hand.push_round(&channel).await;
            }
            assert_eq!(hand.standing().await[0], "PUSHING", "{point}");
            assert_eq!(channel.sent().len(), sent, "only asked, never sent again");
            app.execute("DELETE FROM fi_resident_income_payment_push;
                \nDELETE FROM fi_resident_income_payment_push_item;
                \nUPDATE fi_resident_income_payment_push_batch
                SET status = 'WAIT_PUSH', push_id = NULL").await;
        }
    }

    async fn a_build_of_an_order_cancelled_meanwhile_is_given_up_and_never_shown(app: TestApp) {
        let lines: Vec<Line> = (1..=1500).map(|n| line(n, n)).collect();
        let hand = Hand::order(&app, "NONE", &lines).await;
        app.arm(Crash {
            point: "treasury.create.chunk",
            side: counterfoil_db::Side::After,
            passage: 1,
        });
        hand.create().await.expect_err("it died");
        assert_eq!(hand.batches().await, Vec::<String>::new(), "half a build is not shown");
        app.execute("UPDATE fi_resident_income_payment_order SET status = 90").await;
        let created = hand.create().await.unwrap();
        assert!(matches!(
            created,
            counterfoil_payment::treasury::batch_creation::Created::NotApplicable(_)
        ));
        assert_eq!(hand.batches().await, Vec::<String>::new());
        let build = "SELECT build_status FROM fi_resident_income_payment_push_build";
        assert_eq!(app.value(build).await, "ABANDONED");
        hand.rules_hold_but(&[]).await;
    }
}
