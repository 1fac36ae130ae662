//! A published version waiting for its audit plan, and the engine that runs S05 on it.

use std::sync::Arc;
use std::time::Duration;

use chrono::{DateTime, TimeDelta};
use counterfoil_db::{Clock, Db, Instant, Query, Read, Settings, migrate};
use counterfoil_payment::AuditPlanPayload;
use counterfoil_payment::audit_plan::{AuditPlan, RULES, ReviewCentre};
use counterfoil_payment::kinds::{AUDIT_PLAN_CREATE, business_key};
use counterfoil_protocol::VersionId;
use counterfoil_remote::HttpReviewCentre;
use counterfoil_review::configuration::install_default;
use counterfoil_task::{
    Engine, EngineSettings, Kicker, RoundError, Seed, Subject, Summary, accept_or_reuse,
};

use crate::database::TestDb;

/// Longer than any answer takes, and not waited for by any test that gets one.
pub const LONG: Duration = Duration::from_secs(30);

/// The moment the tests begin at.
pub fn start() -> Instant {
    DateTime::from_timestamp(1_788_000_000, 0).unwrap()
}

/// An order with V1 published, its locks in line, S05 accepted, in a house with all tables.
pub struct House {
    pub test: TestDb,
    /// The database as the test looks at it and as the review centre uses it.
    pub db: Db,
}

impl House {
    pub async fn build(test: TestDb) -> House {
        let db = test.open(frozen(0)).await;
        let mut migrations = counterfoil_task::MIGRATIONS.to_vec();
        migrations.extend_from_slice(counterfoil_payment::MIGRATIONS);
        migrations.extend_from_slice(counterfoil_review::MIGRATIONS);
        migrate(&db, &migrations).await.unwrap();
        assert!(install_default(&db).await.unwrap());
        let house = House { test, db };
        for statement in FIXTURE {
            house.by_hand(statement).await;
        }
        house.publish(1).await;
        house
    }

    /// Publishes the version with this number as S03 and S04 leave it, S05 accepted.
    pub async fn publish(&self, number: i64) {
        let statements = [
            format!(
                "INSERT INTO selection_session (id, mode, status, creator_user_id,
                   target_payment_order_id, submit_attempt)
                 VALUES ({number}, 'NEW', 'COMPLETED', 7, 2, 1)"
            ),
            format!(
                "INSERT INTO fi_resident_income_payment_order_version (id, payment_order_id,
                   session_id, mode, source_data_version, target_data_version, source_submit_round,
                   target_submit_round, submit_attempt, version_build_status)
                 VALUES ({number}, 2, {number}, 'NEW', {number} - 1, {number}, {number} - 1,
                   {number}, 1, 'PUBLISHED')"
            ),
            format!(
                "INSERT INTO fi_resident_income_payment_order_bill (payment_order_id, data_version,
                   submit_round, station_id, bill_yearmonth, partner_id, project_company_id)
                 VALUES (2, {number}, {number}, 'S1', '202609', 51, 61),
                        (2, {number}, {number}, 'S2', '202609', 52, 61)"
            ),
            format!(
                "UPDATE fi_resident_income_payment_order
                 SET current_publish_version = {number}, submit_round = {number},
                     business_status = 'PENDING_AUDIT_PLAN' WHERE id = 2"
            ),
        ];
        for statement in &statements {
            self.by_hand(statement).await;
        }
        let mut tx = self.db.begin().await.unwrap();
        let seed = Seed {
            kind: &AUDIT_PLAN_CREATE,
            business_key: business_key::audit_plan_create(VersionId(number)),
            data: AuditPlanPayload::data(VersionId(number)),
            subject: Subject::none(),
            source: None,
        };
        accept_or_reuse(&mut tx, &seed, &Kicker::none()).await.unwrap();
        tx.commit("test.publish").await.unwrap();
    }

    /// A process of its own, `minutes` after the start.
    pub async fn process(&self, minutes: i64) -> Db {
        self.test.open(frozen(minutes)).await
    }

    /// One round of S05 in a process of its own, `minutes` after the start.
    pub async fn round(&self, minutes: i64, centre: &str) -> Summary {
        let db = self.process(minutes).await;
        let summary = round(&db, http(centre, LONG)).await.unwrap();
        db.close().await;
        summary
    }

    pub async fn by_hand(&self, statement: &str) {
        by_hand(&self.db, statement).await;
    }

    /// One column of all rows of a query, as text, joined by a space.
    pub async fn column(&self, query: &str) -> String {
        let rows = self.db.rows(Query::built(query.to_owned())).await.unwrap();
        let shown = rows.iter().map(|row| {
            let name = &row.columns()[0];
            row.shown(name).unwrap_or_else(|| "NULL".into())
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    /// `audit_plan_status` of the order and of V1.
    pub async fn audit_plan_status(&self) -> String {
        self.column(
            "SELECT COALESCE(audit_plan_status, '-') AS s FROM fi_resident_income_payment_order
             WHERE id = 2 UNION ALL
             SELECT COALESCE(audit_plan_status, '-') AS s
             FROM fi_resident_income_payment_order_version WHERE id = 1",
        )
        .await
    }

    /// Status, failures and message of V1's task.
    pub async fn task(&self) -> String {
        self.column(
            "SELECT CONCAT(task_status, '|', retry_count, '|', COALESCE(error_message, '-')) AS line
             FROM fi_async_task WHERE business_key = 'AUDIT_PLAN_CREATE:1'",
        )
        .await
    }

    pub async fn plans(&self) -> String {
        self.column("SELECT status FROM review_business_plan ORDER BY id").await
    }

    pub async fn instances(&self) -> String {
        self.column(
            "SELECT CONCAT(data_version, '/', submit_round, '/', approval_attempt, '/',
                           approval_status) AS line
             FROM fi_resident_income_payment_order_approval_instance ORDER BY id",
        )
        .await
    }

    /// Everything V1's S05 is there for, once.
    pub async fn assert_created_once(&self) {
        assert_eq!(self.audit_plan_status().await, "CREATED CREATED");
        assert_eq!(self.instances().await, "1/1/1/IN_REVIEW");
        assert_eq!(self.plans().await, "DOING");
        let agree = "SELECT COUNT(*) AS n FROM fi_resident_income_payment_order o
             JOIN fi_resident_income_payment_order_approval_instance i
               ON i.review_plan_id = o.review_plan_id
             JOIN review_business_plan p ON p.id = o.review_plan_id
             WHERE o.business_status = 'UNDER_REVIEW'";
        assert_eq!(self.column(agree).await, "1");
        assert!(self.task().await.starts_with("2|"), "{}", self.task().await);
        self.assert_rules_hold().await;
    }

    pub async fn assert_rules_hold(&self) {
        for rule in RULES.iter().chain(counterfoil_review::rules::RULES) {
            let breach = counterfoil_task::check(&self.db, rule).await.unwrap();
            assert_eq!(breach, None, "{}", rule.name);
        }
    }
}

pub fn frozen(minutes: i64) -> Settings {
    let at = start() + TimeDelta::minutes(minutes);
    Settings { clock: Clock::Frozen(at), max_connections: 4, ..Settings::default() }
}

pub async fn by_hand(db: &Db, statement: &str) {
    let mut tx = db.begin().await.unwrap();
    tx.execute(Query::built(statement.to_owned())).await.unwrap();
    tx.commit("test.by_hand").await.unwrap();
}

/// One automatic round of S05.
pub async fn round(db: &Db, centre: Arc<dyn ReviewCentre>) -> Result<Summary, RoundError> {
    let engine = Engine::new(db.clone(), EngineSettings::default()).with(AuditPlan::new(centre));
    engine.round(AUDIT_PLAN_CREATE.handler, "").await
}

/// The adapter under test.
pub fn http(centre: &str, max_time: Duration) -> Arc<dyn ReviewCentre> {
    // The second test of a process finds it installed.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Arc::new(HttpReviewCentre::new(centre, max_time).unwrap())
}

const FIXTURE: [&str; 4] = [
    "INSERT INTO fi_resident_income_payment_order (id, order_no, status, business_status,
       build_status, create_user_id)
     VALUES (2, 'PO20260901000001', 20, 'PENDING_AUDIT_PLAN', 'PUBLISHED', 7)",
    "INSERT INTO sys_partner (id, name, manager_a_user_id, manager_b_user_id)
     VALUES (51, 'P1', 11, 21)",
    "INSERT INTO sys_partner (id, name, manager_a_user_id, manager_b_user_id)
     VALUES (52, 'P2', 12, 21)",
    "INSERT INTO sys_project_company (id, name, organisation, epctenantid)
     VALUES (61, 'C1', 'ORG1', 'T1')",
];
