//! Ten real processes a database are killed at seeded moments, from the submission to the last
//! payment; nothing is lost, and no bill is held or paid twice.
//! The soak command runs any number: `cargo run -p counterfoil-e2e --bin soak -- --kills 100`.

use counterfoil_e2e::{KillPlan, kill_loop, on_every_database};

on_every_database! {
    async fn ten_killed_processes_lose_nothing_and_do_nothing_twice(app: TestApp) {
        let plan = KillPlan {
            binary: env!("CARGO_BIN_EXE_counterfoil").into(),
            kills: 10,
            seed: 20_260_908,
        };
        let report = kill_loop(&app, &plan).await;
        assert_eq!(report.killed + report.terminated, 10);
        assert!(report.published >= 5, "{report:?}");
        assert!(report.paid_lines > 0 && report.told > 0, "{report:?}");
        assert_eq!(report.blocked, Vec::<String>::new(), "{report:?}");
    }
}
