//! What waits for whom.

use counterfoil_protocol::{OrderId, UserId};
use counterfoil_review::decision::{approve, reject};
use counterfoil_review::inbox::{of_everybody, of_user, reviewers_of};
use counterfoil_review::plan_opening::PlanOpening;
use counterfoil_review::withdrawal::{Withdrawal, withdraw};

use crate::database::TestDb;
use crate::{A, A_TOO, B, everywhere, opened, opening, review_centre};

everywhere! {
    an_inbox_shows_what_has_the_turn_and_nothing_else;
    an_inbox_is_read_page_by_page_without_gaps_or_repeats;
    who_has_decided_on_a_plan_is_not_asked_again;
}

fn order(id: i64) -> PlanOpening {
    PlanOpening { from_id: OrderId(id), ..opening(1) }
}

async fn an_inbox_shows_what_has_the_turn_and_nothing_else(test: TestDb) {
    let db = review_centre(&test).await;
    let plans = [opened(&db, &order(1)).await, opened(&db, &order(2)).await];
    let waiting = async |user: UserId| -> Vec<i64> {
        let page = of_user(&db, user, None, 10).await.unwrap();
        page.items.iter().map(|item| item.from_id.0).collect()
    };
    assert_eq!(waiting(A).await, [1, 2]);
    assert_eq!(waiting(B).await, [0; 0]);
    let item = of_user(&db, A, None, 10).await.unwrap().items.remove(0);
    assert_eq!((item.plan, item.node_code.as_str()), (plans[0], "OPERATION_MANAGER_A"));
    assert_eq!(reviewers_of(&db, item.node).await.unwrap(), [A, A_TOO]);
    approve(&db, plans[0], A, "").await.unwrap();
    assert_eq!(waiting(A).await, [2]);
    assert_eq!(waiting(A_TOO).await, [2]);
    assert_eq!(waiting(B).await, [1]);
    reject(&db, plans[1], A_TOO, "").await.unwrap();
    assert_eq!(waiting(A).await, [0; 0]);
    let everybody = of_everybody(&db, None, 10).await.unwrap();
    assert_eq!(everybody.items.len(), 1);
    let withdrawal = Withdrawal {
        from_id: OrderId(1),
        type_name: order(1).type_name,
        through_round: None,
        operator: None,
        reason: "order cancelled".into(),
    };
    withdraw(&db, &withdrawal).await.unwrap();
    assert_eq!(waiting(B).await, [0; 0]);
    assert!(of_everybody(&db, None, 10).await.unwrap().items.is_empty());
}

async fn an_inbox_is_read_page_by_page_without_gaps_or_repeats(test: TestDb) {
    let db = review_centre(&test).await;
    for id in 1..=7 {
        opened(&db, &order(id)).await;
    }
    let (mut seen, mut everybody) = (Vec::new(), Vec::new());
    let mut after = None;
    loop {
        let page = of_user(&db, A, after, 3).await.unwrap();
        seen.extend(page.items.iter().map(|item| item.from_id.0));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    loop {
        let page = of_everybody(&db, after, 2).await.unwrap();
        everybody.extend(page.items.iter().map(|item| item.from_id.0));
        after = page.next;
        if after.is_none() {
            break;
        }
    }
    assert_eq!(seen, [1, 2, 3, 4, 5, 6, 7]);
    assert_eq!(everybody, seen);
}

async fn who_has_decided_on_a_plan_is_not_asked_again(test: TestDb) {
    let db = review_centre(&test).await;
    let mut both = order(1);
    both.managers_b.push(A);
    let plan = opened(&db, &both).await;
    approve(&db, plan, A, "").await.unwrap();
    assert!(of_user(&db, A, None, 10).await.unwrap().items.is_empty());
    assert_eq!(of_user(&db, B, None, 10).await.unwrap().items.len(), 1);
}
