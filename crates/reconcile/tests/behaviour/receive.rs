//! What the hall makes of orders.

use counterfoil_e2e::on_every_database;
use counterfoil_reconcile::refusal::Code;
use counterfoil_reconcile::service_hall::receive::{Received, receive};
use counterfoil_reconcile::wire::Dispatch;

use super::pair::{CENTRE, FORM, HALL, Pair, SCHOOL};

fn order(pair: &Pair, attempt: i64) -> Dispatch {
    Dispatch {
        task_id: "t-1".into(),
        attempt,
        source_app_key: CENTRE.into(),
        consumer_app_key: HALL.into(),
        consumer_school_id: SCHOOL.into(),
        form_uuid: FORM.into(),
        scope: "FORM".into(),
        answer_uuid: None,
        grant_epoch: 1,
        window_start: pair.app.now(),
        sent_at: pair.app.now(),
    }
}

async fn give(pair: &Pair, order: &Dispatch) -> Result<Received, Option<Code>> {
    let given = receive(&pair.hall, &pair.hall_settings, CENTRE, order).await;
    given.map_err(|refusal| refusal.refused())
}

async fn row(pair: &Pair) -> String {
    pair.app
        .value("SELECT state, attempt, work_version, retry_count FROM answer_reconcile_work")
        .await
}

on_every_database! {
    async fn an_order_is_stored_once_and_by_its_own_centre_only(app: TestApp) {
        let mut pair = Pair::new(app).await;
        let right = order(&pair, 1);
        let mismatch = Err(Some(Code::IdentityMismatch));
        let other = |change: &dyn Fn(&mut Dispatch)| {
            let mut order = right.clone();
            change(&mut order);
            order
        };
        for wrong in [
            other(&|order| order.source_app_key = "x".into()),
            other(&|order| order.consumer_app_key = "x".into()),
        ] {
            assert_eq!(give(&pair, &wrong).await, mismatch);
        }
        let signer = receive(&pair.hall, &pair.hall_settings, "stranger", &right).await;
        assert_eq!(signer.unwrap_err().refused(), Some(Code::IdentityMismatch));
        let none = pair.hall_settings.source_app_key.split_off(0);
        assert_eq!(give(&pair, &right).await, mismatch, "no centre is configured");
        pair.hall_settings.source_app_key = none;
        assert_eq!(pair.app.lines("SELECT id FROM answer_reconcile_work").await, [""; 0]);
        assert_eq!(give(&pair, &right).await, Ok(Received::Queued));
        assert_eq!(give(&pair, &right).await, Ok(Received::Known));
        assert_eq!(give(&pair, &other(&|order| order.form_uuid = "f".into())).await, mismatch);
        assert_eq!(row(&pair).await, "QUEUED|1|0|0");
    }

    async fn a_greater_attempt_takes_up_what_has_ended_and_leaves_live_work_alone(app: TestApp) {
        let pair = Pair::new(app).await;
        give(&pair, &order(&pair, 2)).await.unwrap();
        pair.app
            .execute("UPDATE answer_reconcile_work SET state = 'DONE', result_state = 'PARTIAL'")
            .await;
        for older in [1, 2] {
            assert_eq!(give(&pair, &order(&pair, older)).await, Ok(Received::Known));
        }
        assert_eq!(row(&pair).await, "DONE|2|0|0");
        assert_eq!(give(&pair, &order(&pair, 3)).await, Ok(Received::Queued));
        assert_eq!(row(&pair).await, "QUEUED|3|1|0");
        pair.app
            .execute("UPDATE answer_reconcile_work SET state = 'STALLED', retry_count = 7")
            .await;
        assert_eq!(give(&pair, &order(&pair, 4)).await, Ok(Received::Queued));
        assert_eq!(row(&pair).await, "QUEUED|4|2|0");
        let until = "2099-01-01 00:00:00";
        let until = match pair.app.url().split(':').next() {
            Some("sqlite") => "2099-01-01T00:00:00+00:00",
            _ => until,
        };
        let live = format!(
            "UPDATE answer_reconcile_work SET state = 'RUNNING', lease_expire_time = '{until}'"
        );
        pair.app.execute(&live).await;
        assert_eq!(give(&pair, &order(&pair, 5)).await, Ok(Received::Known));
        assert_eq!(row(&pair).await, "RUNNING|4|2|0");
    }

    async fn nothing_runs_while_the_hall_is_not_enabled(app: TestApp) {
        let mut pair = Pair::new(app).await;
        pair.hall_settings.enabled = false;
        give(&pair, &order(&pair, 1)).await.unwrap();
        assert_eq!(pair.work().await.selected, 0);
        assert_eq!(row(&pair).await, "QUEUED|1|0|0");
    }

    async fn of_many_copies_of_one_order_one_is_stored(app: TestApp) {
        let pair = Pair::new(app).await;
        let mut copies = tokio::task::JoinSet::new();
        for _ in 0..10 {
            let pair = pair.clone();
            copies.spawn(async move { give(&pair, &order(&pair, 1)).await.unwrap() });
        }
        let queued = copies.join_all().await.into_iter().filter(|r| *r == Received::Queued).count();
        assert_eq!(queued, 1);
        assert_eq!(row(&pair).await, "QUEUED|1|0|0");
    }
}
