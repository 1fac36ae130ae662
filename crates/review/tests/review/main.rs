//! The review centre on SQLite, PostgreSQL and MariaDB.

mod configuration;
mod database;
mod decision;
mod inbox;
mod opening;
mod rules_hold;
mod withdrawal;

use counterfoil_db::{Db, Query, Read, Settings, migrate};
use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound, UserId};
use counterfoil_review::configuration::{RESIDENT_INCOME_PAYMENT_REVIEW, install_default};
use counterfoil_review::plan_opening::{How, PlanOpening, open};
use counterfoil_review::{MIGRATIONS, rules};
use database::TestDb;

const SUBMITTER: UserId = UserId(7);
const A: UserId = UserId(11);
const A_TOO: UserId = UserId(12);
const B: UserId = UserId(21);
const B_TOO: UserId = UserId(22);

/// A database with the review centre's tables, the tasks that its decisions become, and its
/// configuration.
async fn review_centre(test: &TestDb) -> Db {
    let db = test.open(Settings::default()).await;
    migrate(&db, &[counterfoil_task::MIGRATIONS, MIGRATIONS].concat()).await.unwrap();
    assert!(install_default(&db).await.unwrap());
    db
}

fn opening(round: i64) -> PlanOpening {
    PlanOpening {
        from_id: OrderId(100),
        from_num: "PO20260901000001".into(),
        type_name: RESIDENT_INCOME_PAYMENT_REVIEW.into(),
        epctenantid: "T1".into(),
        organisation: "ORG1".into(),
        submitter: SUBMITTER,
        round: SubmitRound(round),
        data_version: DataVersion(round),
        managers_a: vec![A, A_TOO],
        managers_b: vec![B, B_TOO],
    }
}

async fn opened(db: &Db, opening: &PlanOpening) -> PlanId {
    let opened = open(db, opening).await.unwrap();
    assert_eq!(opened.how, How::Created);
    opened.plan
}

/// What a statement made by hand changes.
async fn by_hand(db: &Db, statement: &str) -> counterfoil_db::Result<u64> {
    let mut tx = db.begin().await?;
    let changed = tx.execute(Query::built(statement.to_owned())).await?;
    tx.commit("test.by_hand").await?;
    Ok(changed)
}

/// One column of all rows of a query, as text, joined by a space.
async fn column(db: &Db, query: &str) -> String {
    let rows = db.rows(Query::built(query.to_owned())).await.unwrap();
    let shown = rows.iter().map(|row| {
        let name = &row.columns()[0];
        row.shown(name).unwrap_or_else(|| "NULL".into())
    });
    shown.collect::<Vec<_>>().join(" ")
}

/// No rule of the review centre is broken.
async fn assert_rules_hold(db: &Db) {
    for rule in rules::RULES {
        assert_eq!(counterfoil_task::check(db, rule).await.unwrap(), None, "{}", rule.name);
    }
}
