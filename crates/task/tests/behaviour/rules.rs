//! Every rule of the engine can break, and holds after the normal journey.

use counterfoil_e2e::on_every_database;
use counterfoil_task::{RULES, check};

use super::errand::{Desk, ERRAND, code, engine, fail, observed};

on_every_database! {
    async fn every_rule_breaks_on_its_own_row_and_names_it(app: TestApp) {
        let desk = Desk::open(&app).await;
        let hour = chrono::TimeDelta::hours(-1) - chrono::TimeDelta::microseconds(1);
        let states = [
            ("running-task-is-alive", "task_status, update_time", format!("1, {}", desk.at(hour))),
            ("ended-task-has-no-due-time", "task_status, next_execute_time",
                format!("2, {}", desk.minutes(0))),
            ("ended-task-has-no-due-time", "task_status, next_execute_time",
                format!("4, {}", desk.minutes(0))),
        ];
        for rule in RULES {
            assert!(states.iter().any(|(name, ..)| *name == rule.name), "{}", rule.name);
            for (name, columns, values) in &states {
                desk.raw("DELETE FROM fi_async_task").await;
                desk.by_hand(1, columns, values).await;
                let breach = check(&app.db, rule).await.expect("a check");
                assert_eq!(breach.is_some(), *name == rule.name, "{}: {name}", rule.name);
                if let Some(breach) = breach {
                    assert_eq!(breach.rows.len(), 1);
                    let row = &breach.rows[0];
                    assert!(row.contains(&format!("task_code={}", code(1))), "{row}");
                }
            }
        }
    }

    async fn every_rule_holds_after_success_failure_and_the_last_failure(app: TestApp) {
        let desk = Desk::open(&app).await;
        desk.accept(1).await;
        observed(&app).0.round(ERRAND.handler, "").await.expect("a round");
        desk.accept(2).await;
        for _ in 0..4 {
            let failing = engine(&app, |_, _| fail("no"));
            failing.round(ERRAND.handler, "").await.expect("a round");
            app.pass_minutes(60);
        }
        for rule in RULES {
            assert_eq!(check(&app.db, rule).await.expect("a check"), None, "{}", rule.name);
        }
    }
}
