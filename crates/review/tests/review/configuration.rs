//! The shipped configuration, and rows made by hand.

use counterfoil_db::{Settings, migrate};
use counterfoil_protocol::UserId;
use counterfoil_review::MIGRATIONS;
use counterfoil_review::configuration::install_default;
use counterfoil_review::decision::approve;
use counterfoil_review::states::PlanStatus;

use crate::database::TestDb;
use crate::{B, by_hand, column, everywhere, opened, opening, review_centre};

everywhere! {
    the_shipped_configuration_is_installed_once_by_however_many_processes;
    a_changed_configuration_is_left_alone_and_used;
    rows_made_by_hand_with_the_contract_columns_only_are_valid;
}

async fn the_shipped_configuration_is_installed_once_by_however_many_processes(test: TestDb) {
    let db = test.open(Settings::default()).await;
    migrate(&db, MIGRATIONS).await.unwrap();
    let mut racers = Vec::new();
    for _ in 0..4 {
        let db = test.open(Settings { max_connections: 1, ..Settings::default() }).await;
        racers.push(tokio::spawn(async move { install_default(&db).await.unwrap() }));
    }
    let mut installed = 0;
    for racer in racers {
        installed += u32::from(racer.await.unwrap());
    }
    assert_eq!(installed, 1);
    assert!(!install_default(&db).await.unwrap());
    let links = "SELECT CONCAT(from_node_code, '>', to_node_code) AS line
                 FROM review_config_link ORDER BY sort";
    assert_eq!(
        column(&db, links).await,
        "SUBMIT>OPERATION_MANAGER_A OPERATION_MANAGER_A>OPERATION_MANAGER_B \
         OPERATION_MANAGER_B>DONE"
    );
    let nodes = "SELECT node_code FROM review_config_node ORDER BY sort";
    assert_eq!(column(&db, nodes).await, "OPERATION_MANAGER_A OPERATION_MANAGER_B");
}

async fn a_changed_configuration_is_left_alone_and_used(test: TestDb) {
    let db = review_centre(&test).await;
    let statements = [
        "INSERT INTO review_config_node (type, node_code, node_name, sort, role)
         VALUES ('RESIDENT_INCOME_PAYMENT_REVIEW', 'TREASURER', 'T', 3, '')",
        "INSERT INTO review_config_node_user (type, node_code, user_id)
         VALUES ('RESIDENT_INCOME_PAYMENT_REVIEW', 'TREASURER', 31)",
        "UPDATE review_config_link SET to_node_code = 'TREASURER' WHERE from_node_code = 'SUBMIT'",
        "INSERT INTO review_config_link (type, from_node_code, to_node_code)
         VALUES ('RESIDENT_INCOME_PAYMENT_REVIEW', 'TREASURER', 'OPERATION_MANAGER_B')",
    ];
    for statement in statements {
        by_hand(&db, statement).await.unwrap();
    }
    assert!(!install_default(&db).await.unwrap());
    let plan = opened(&db, &opening(1)).await;
    let first = approve(&db, plan, UserId(31), "").await.unwrap();
    assert_eq!(first.node_code, "TREASURER");
    assert_eq!(first.next_node_code.as_deref(), Some("OPERATION_MANAGER_B"));
    assert_eq!(approve(&db, plan, B, "").await.unwrap().status, PlanStatus::Passed);
}

async fn rows_made_by_hand_with_the_contract_columns_only_are_valid(test: TestDb) {
    let db = review_centre(&test).await;
    let statements = [
        "INSERT INTO review_config (type, node_code, node_name, sort, role)
         VALUES ('X', 'A', 'a', 1, 'r')",
        "INSERT INTO review_config_node (type, node_code, node_name, sort, role)
         VALUES ('X', 'A', 'a', 1, 'r')",
        "INSERT INTO review_config_link (type) VALUES ('X')",
        "INSERT INTO review_config_node_user (type) VALUES ('X')",
        "INSERT INTO review_business_plan (from_id, from_num, type, epctenantid, status, active_key)
         VALUES (1, 'N', 'X', 'T', 'DOING', 'k')",
        "INSERT INTO review_business_plan (from_id, from_num, type, epctenantid, status, active_key)
         VALUES (1, 'N', 'X', 'T', 'PASSED', NULL)",
        "INSERT INTO review_business_node (node_code) VALUES ('A')",
        "INSERT INTO review_business_link (sort) VALUES (1)",
        "INSERT INTO review_business_node_user (node_id, user_id, decision, decide_time)
         VALUES (1, 2, NULL, NULL)",
        "INSERT INTO review_business_node_user (node_id, user_id, decision, decide_time)
         VALUES (1, 3, 'APPROVE', NULL)",
        "INSERT INTO review_business_log (plan_id) VALUES (1)",
    ];
    for statement in statements {
        assert_eq!(by_hand(&db, statement).await.unwrap(), 1, "{statement}");
    }
    let again = by_hand(&db, statements[4]).await.unwrap_err();
    assert!(matches!(again, counterfoil_db::Error::Duplicate(_)), "{again:?}");
}
