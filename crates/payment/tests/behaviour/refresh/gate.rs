//! The visibility gate: nothing shows the refreshed state before it is there.

use counterfoil_e2e::{TestApp, on_every_database};
use counterfoil_payment::visibility_gate;
use counterfoil_protocol::OrderId;

async fn gate(app: &TestApp, order: i64) -> Result<(), &'static str> {
    let passes = visibility_gate::check(&app.db, OrderId(order)).await;
    passes.map_err(|refused| refused.code())
}

async fn progress(app: &TestApp, order: i64, plan: i64, main: &str, ready: i64) {
    app.execute(&format!(
        "INSERT INTO fi_resident_income_payment_review_callback_progress
           (payment_order_id, data_version, review_plan_id, main_task_status, refresh_ready)
         VALUES ({order}, 1, {plan}, '{main}', {ready})"
    ))
    .await;
}

on_every_database! {
    async fn the_newest_finalized_progress_decides(app: TestApp) {
        const PENDING: Result<(), &str> = Err("review-callback-refresh-pending");
        assert_eq!(gate(&app, 1).await, Ok(()), "no review was approved");
        progress(&app, 1, 1, "RUNNING", 0).await;
        assert_eq!(gate(&app, 1).await, Ok(()), "nothing is effective yet");
        progress(&app, 1, 2, "SUCCESS", 0).await;
        assert_eq!(gate(&app, 1).await, PENDING);
        progress(&app, 1, 3, "SUPERSEDED", 0).await;
        assert_eq!(gate(&app, 1).await, PENDING);
        assert_eq!(gate(&app, 2).await, Ok(()), "another order");
        app.execute("UPDATE fi_resident_income_payment_review_callback_progress
            SET refresh_ready = 1 WHERE review_plan_id = 2").await;
        assert_eq!(gate(&app, 1).await, Ok(()));
        progress(&app, 1, 4, "SUCCESS", 0).await;
        assert_eq!(gate(&app, 1).await, PENDING, "a newer one");
    }
}
