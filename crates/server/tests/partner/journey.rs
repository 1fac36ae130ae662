//! From a selection to the partner: everything on the way is the program's own work, but the
//! reviewers and their plan.

use counterfoil_e2e::{Bill, on_every_database};
use counterfoil_payment::kinds::REVIEW_PROGRESS;
use counterfoil_payment::review_callback::Conclusion;

use crate::approval::{advance, decide, prepared, under_review};
use crate::house::{House, RENT_ABNORMAL};

on_every_database! {
    async fn an_approved_order_reaches_its_partner(app: TestApp) {
        let house = House::build(&app).await;
        let bills =
            [Bill::payable(1), Bill::payable(2), Bill::unqualified(3, RENT_ABNORMAL, 0)];
        let order = under_review(&app, &bills).await;
        let address = &house.address;
        app.execute(&format!(
            "UPDATE sys_partner SET endpoint = '{address}/partner/1/review-results' WHERE id = 1;\n
             INSERT INTO partner_key (partner_id, key_id, signing_secret_ref, encryption_key_ref)
             VALUES (1, 'k', 'sign:k', 'seal:k')"
        ))
        .await;
        prepared(&app, order).await;
        assert_eq!(house.round().await.selected, 0, "nothing is told before it is effective");
        advance(&app).await;
        assert_eq!(app.round(REVIEW_PROGRESS.handler).await.selected, 0);
        let summary = house.round().await;
        assert_eq!(summary.succeeded, 1, "{summary:?}");
        assert_eq!((house.chunks(order.0).await, house.received(1).await),
            ("SUCCESS|1".to_owned(), "1".to_owned()));
        let body = app.value("SELECT body FROM partner_received").await;
        let counts = ["校核通过", "校核不通过"].map(|said| {
            body.matches(&format!(r#""result":"{said}""#)).count()
        });
        assert_eq!(counts, [2, 1], "{body}");
    }

    async fn a_rejected_order_is_told_to_nobody(app: TestApp) {
        let house = House::build(&app).await;
        let order = under_review(&app, &[Bill::payable(1)]).await;
        decide(&app, order, Conclusion::Reject).await.expect("acceptance");
        app.round(counterfoil_payment::kinds::REVIEW_CALLBACK.handler).await;
        advance(&app).await;
        assert_eq!(house.round().await.selected, 0);
        assert_eq!(house.chunks(order.0).await, "");
    }
}
