//! Whatever the rule, the batches come to the lines: random orders, on every database.

use counterfoil_e2e::{Random, on_every_database};

use super::create::wipe;
use super::hand::{Hand, Line};

const ORDERS: u64 = 12;

on_every_database! {
    async fn random_orders_come_to_their_lines_under_every_rule(app: TestApp) {
        for seed in 0..ORDERS {
            let mut random = Random::new(0x7EA5 + seed);
            let lines = random_lines(&mut random);
            let rules = ["NONE", "BY_STATION", "MAX_LINES:3", "MAX_AMOUNT:1000"];
            let rule = rules[usize::try_from(seed).unwrap() % rules.len()];
            let hand = Hand::order(&app, rule, &lines).await;
            hand.create().await.unwrap();
            let query = "SELECT b.project_company_id, b.split_key, b.detail_count, b.total_amount,
                COUNT(d.id) AS details, CAST(SUM(d.amount) AS {bigint}) AS amount,
                COUNT(DISTINCT l.project_company_id) AS companies,
                MIN(l.project_company_id) AS company, COUNT(DISTINCT l.station_id) AS stations
                FROM fi_resident_income_payment_push_batch b
                JOIN fi_resident_income_payment_push_batch_detail d ON d.push_batch_id = b.id
                JOIN fi_resident_income_payment_order_bill l ON l.id = d.order_bill_id
                GROUP BY b.id, b.project_company_id, b.split_key, b.detail_count, b.total_amount
                ORDER BY b.id";
            let (mut count, mut sum) = (0, 0);
            for batch in app.lines(query).await {
                let cells: Vec<&str> = batch.split('|').collect();
                let n = |at: usize| cells[at].parse::<i64>().expect("a number");
                assert_eq!((n(2), n(3)), (n(4), n(5)), "seed {seed} {rule}: {batch}");
                assert_eq!((n(6), n(7)), (1, n(0)), "one company a batch: {batch}");
                let by_rule = cells[1].contains(":P7");
                match rule {
                    "BY_STATION" if by_rule => assert_eq!(n(8), 1, "{batch}"),
                    "MAX_LINES:3" if by_rule => assert!(n(4) <= 3, "{batch}"),
                    "MAX_AMOUNT:1000" if by_rule => {
                        assert!(n(5) <= 1000 || n(4) == 1, "seed {seed}: {batch}");
                    }
                    _ => assert_eq!(cells[1], "1:ALL", "{batch}"),
                }
                count += n(4);
                sum += n(5);
            }
            let expected: i64 = lines.iter().map(|line| line.amount).sum();
            assert_eq!((count, sum), (i64::try_from(lines.len()).unwrap(), expected), "{seed}");
            hand.rules_hold_but(&[]).await;
            wipe(&app).await;
        }
    }
}

fn random_lines(random: &mut Random) -> Vec<Line> {
    let mut below = |limit: u64| i64::try_from(random.below(limit)).expect("a small number");
    let count = 1 + below(60);
    (0..count)
        .map(|_| Line {
            company: 1 + below(2),
            partner: 7 + below(2),
            station: 1 + below(9),
            amount: 1 + below(1500),
        })
        .collect()
}
