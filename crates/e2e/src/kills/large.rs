//! One large order through a real process that nobody kills, from its selection to the money, and
//! how much memory that took.

use std::path::PathBuf;
use std::time::{Duration, Instant};

use counterfoil_payment::session::submit;
use counterfoil_task::Kicker;
use tokio::process::Command;

use super::outside::Outside;
use super::process::{Moment, Process};
use super::{KillPlan, Random, migrate, people};
use crate::{CREATOR, Fixture, TestApp};

/// How often people and bank look whether there is something for them to do. Each look waits until
/// the process has been quiet for some seconds.
const MAX_LOOKS: u32 = 100_000;

/// What became of a large order.
#[derive(Debug, Clone)]
pub struct LargeReport {
    /// Its payable lines, all of them paid.
    pub lines: i64,
    /// From the submission to PAID.
    pub took: Duration,
    /// Commits of the process.
    pub commits: u64,
    /// The process's peak resident memory, in MiB.
    pub peak_mib: u64,
}

/// Takes an order with so many payable lines to PAID; panics when it does not get there, or when a
/// rule is broken then.
pub async fn large_order(app: &TestApp, binary: PathBuf, lines: i64) -> LargeReport {
    let plan = KillPlan { binary, kills: 0, seed: 1 };
    let mut outside = Outside::new();
    migrate(app, &plan).await;
    records(app, lines).await;
    outside.partner(app).await;
    let session = Fixture(app).new_session(&[]).await;
    app.execute(&format!(
        "INSERT INTO selection_session_item
           (session_id, station_id, bill_yearmonth, diff_id, small_bill_id, partner_bill_id,
            pre_rent, pay_amount)
         SELECT {session}, station_id, bill_yearmonth, id, id, id, 10000, 10000
         FROM fi_monthly_income_difference ORDER BY id"
    ))
    .await;
    let began = Instant::now();
    let submitted = submit(&app.db, &Kicker::none(), session, CREATOR).await;
    let order = submitted.expect("a submission").order;
    let mut process = Process::start(app, &plan, &outside).await;
    let mut report = LargeReport { lines, took: Duration::ZERO, commits: 0, peak_mib: 0 };
    let standing =
        format!("SELECT status FROM fi_resident_income_payment_order WHERE id = {order}");
    for _ in 0..MAX_LOOKS {
        report.commits += process.wait(Moment::Quiet).await;
        people::approve(app).await;
        outside.answer_new(app, &mut Random::new(1), true).await;
        let unrefreshed = "SELECT COUNT(*) FROM fi_resident_income_payment_status_refresh_shard
            WHERE task_status <> 'SUCCESS'";
        if app.value(&standing).await == "50" && app.value(unrefreshed).await == "0" {
            report.took = began.elapsed();
            report.peak_mib = process.peak_mib();
            process.terminate().await;
            check(app, &plan).await;
            assert_eq!(outside.paid.len() as i64, lines, "by the bank's own books");
            return report;
        }
    }
    panic!("the order is at {} after {MAX_LOOKS} looks", app.value(&standing).await);
}

/// Bills, accounts and all they refer to, by doubling.
async fn records(app: &TestApp, lines: i64) {
    app.execute("CREATE TABLE soak_number (n BIGINT NOT NULL PRIMARY KEY)").await;
    app.execute("INSERT INTO soak_number (n) VALUES (1)").await;
    let mut filled = 1;
    while filled < lines {
        app.execute(&format!(
            "INSERT INTO soak_number (n)
             SELECT n + {filled} FROM soak_number WHERE n + {filled} <= {lines}"
        ))
        .await;
        filled = (filled * 2).min(lines);
    }
    for text in RECORDS {
        app.execute(text).await;
    }
}

const RECORDS: [&str; 7] = [
    "INSERT INTO fi_monthly_income_difference
       (id, station_id, bill_yearmonth, pre_rent, contract_rent, actual_rent, partner_id,
        project_company_id)
     SELECT n, 'S' || n, '202609', 10000, 10000, 10000, 1, 1 FROM soak_number ORDER BY n",
    "INSERT INTO fi_customer_bill (id, station_id, bill_yearmonth, amount, customer_account_id)
     SELECT n, 'S' || n, '202609', 10000, n FROM soak_number ORDER BY n",
    "INSERT INTO fi_customer_bill_partner (id, station_id, bill_yearmonth, amount, partner_id)
     SELECT n, 'S' || n, '202609', 10000, 1 FROM soak_number ORDER BY n",
    "INSERT INTO fi_customer_account (id, customer_id, holder_name, account_no, bank_name)
     SELECT n, 'C' || n, 'Farmer ' || n, '622200' || n, 'Bank' FROM soak_number ORDER BY n",
    "INSERT INTO sys_partner (id, name, manager_a_user_id, manager_b_user_id)
     VALUES (1, 'Partner', 101, 102)",
    "INSERT INTO sys_project_company (id, name, asset_manager_code, payer_account)
     VALUES (1, 'Company 1', 'CAM', '95550000001')",
    "INSERT INTO sys_dict (dict_type, dict_key) VALUES ('ASSET_MANAGER', 'CAM')",
];

/// Every rule holds.
async fn check(app: &TestApp, plan: &KillPlan) {
    let checked = Command::new(&plan.binary)
        .args(["--database", app.url(), "check"])
        .output()
        .await
        .expect("counterfoil check");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stdout));
}
