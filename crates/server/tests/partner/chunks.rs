//! Large orders go out in chunks of a thousand lines.

use counterfoil_db::Side;
use counterfoil_e2e::{Crash, TestApp, on_every_database};
use counterfoil_payment::kinds::SIDE_EFFECT;
use counterfoil_server::api::partner::Trouble;

use crate::house::{House, LONG};

/// 2,500 lines of partner 1 between 30 of partner 2, in the order of their ids.
async fn large(house: &House) {
    house.partner(1, "definite").await;
    house.partner(2, "definite").await;
    house.order(1, 2530, 0).await;
    for from in (0..2530).step_by(500) {
        let rows: Vec<String> = (from..(from + 500).min(2530))
            .map(|n| {
                let partner = if n % 80 == 7 && n < 2400 { 2 } else { 1 };
                format!("({}, 1, 1, 1, 10, 20, 'S{n}', '202609', {partner}, 100)", n + 1000)
            })
            .collect();
        house
            .app
            .execute(&format!(
                "INSERT INTO fi_resident_income_payment_order_bill
                   (id, payment_order_id, data_version, submit_round, line_type, line_status,
                    station_id, bill_yearmonth, partner_id, pay_amount)
                 VALUES {}",
                rows.join(", ")
            ))
            .await;
    }
    house.seed(1).await;
}

/// `partner:chunk/of:lines` of what partners received, and that no line came twice.
async fn received(app: &TestApp) -> Vec<String> {
    let mut seen = std::collections::BTreeSet::new();
    let mut shape = Vec::new();
    for body in app.lines("SELECT body FROM partner_received ORDER BY idempotency_key").await {
        let body: serde_json::Value = serde_json::from_str(&body).expect("JSON");
        let lines = body["lines"].as_array().expect("lines");
        for line in lines {
            assert!(seen.insert(line["lineId"].as_i64()), "{} came twice", line["lineId"]);
        }
        let (partner, no, of) = (&body["partnerId"], &body["chunkNo"], &body["chunkCount"]);
        shape.push(format!("{partner}:{no}/{of}:{}", lines.len()));
    }
    assert_eq!(seen.len(), 2530, "every line came");
    shape
}

const SHAPE: [&str; 4] = ["1:1/3:1000", "1:2/3:1000", "1:3/3:500", "2:1/1:30"];

on_every_database! {
    async fn a_large_order_goes_out_in_chunks_and_every_line_once(app: TestApp) {
        let house = House::build(&app).await;
        large(&house).await;
        assert_eq!(house.round().await.succeeded, 1);
        assert_eq!(received(&app).await, SHAPE);
        assert_eq!(house.chunks(1).await, "SUCCESS|1 SUCCESS|1 SUCCESS|1 SUCCESS|1");
    }

    async fn a_crash_between_two_chunks_goes_on_with_the_next(app: TestApp) {
        let house = House::build(&app).await;
        large(&house).await;
        for (point, passage) in [("partner_push.prepared", 2), ("partner_push.answered", 2)] {
            app.arm(Crash { point, side: Side::After, passage });
            let engine = House::engine(&app, House::inbox(LONG));
            assert!(engine.round(SIDE_EFFECT.handler, "").await.is_err());
            house.later();
        }
        assert_eq!(house.round().await.succeeded, 1);
        assert_eq!(received(&app).await, SHAPE);
        assert_eq!(house.received(1).await, "1 1 1");
    }

    async fn only_the_chunk_in_trouble_is_sent_again(app: TestApp) {
        let house = House::build(&app).await;
        large(&house).await;
        house.partners.set_trouble(Some(Trouble::Refuse), Some(1));
        assert_eq!(house.round().await.failed, 1);
        assert_eq!(house.chunks(1).await, "FAIL|1 SUCCESS|1 SUCCESS|1 SUCCESS|1");
        assert!(house.message(1).await.contains("chunk 1/3 of partner 1"));
        house.later();
        assert_eq!(house.round().await.succeeded, 1);
        assert_eq!(house.chunks(1).await, "SUCCESS|2 SUCCESS|1 SUCCESS|1 SUCCESS|1");
        assert_eq!(received(&app).await, SHAPE);
    }
}
