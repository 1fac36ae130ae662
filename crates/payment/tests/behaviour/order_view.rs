//! What people are shown of orders and bills.

use counterfoil_e2e::{Bill, CREATOR, Fixture, TestApp, on_every_database};
use counterfoil_payment::PaymentError;
use counterfoil_payment::kinds::{LOCK_ACTIVATE, LOCK_RELEASE, SUBMIT_BUILD};
use counterfoil_payment::order_view::{
    Answer, DiffKind, LineQuery, OrderQuery, OrderView, Paying, StageState, bill, diff, find,
    lines, list, one, timeline,
};
use counterfoil_payment::session::Submission;
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_protocol::{BillMonth, DataVersion, OrderId, UserId};

/// Every ledger owes a hundred yuan.
const RENTS: &str = "UPDATE fi_monthly_income_difference
    SET pre_rent = 10000, actual_rent = 10000, contract_rent = 10200";
const RENT_ABNORMAL: &str = "农户租金异常";

async fn submit(app: &TestApp, bills: &[Bill]) -> Submission {
    let fixture = Fixture(app);
    let session = fixture.new_session(bills).await;
    fixture.submit(session).await
}

async fn publish(app: &TestApp) {
    app.round(SUBMIT_BUILD.handler).await;
    app.round(LOCK_ACTIVATE.handler).await;
}

/// A, B and C, published and in line.
async fn first_version(app: &TestApp) -> Submission {
    Fixture(app).records(5).await;
    let submission = submit(app, &[1, 2, 3].map(Bill::payable)).await;
    publish(app).await;
    submission
}

async fn shown(app: &TestApp, order: OrderId) -> OrderView {
    one(&app.db, order).await.expect("a view")
}

fn state(view: &OrderView, stage: &str) -> StageState {
    let found = view.stages.iter().find(|found| found.stage == stage);
    found.unwrap_or_else(|| panic!("no stage {stage}")).state
}

fn month() -> BillMonth {
    "202609".parse().expect("a month")
}

on_every_database! {
    async fn an_order_is_followed_from_its_submission_to_the_hand_over(app: TestApp) {
        Fixture(&app).records(3).await;
        let order = submit(&app, &[1, 2, 3].map(Bill::payable)).await.order;
        let view = shown(&app, order).await;
        assert!(view.verdict.sentence.contains("is at S03 build"), "{:?}", view.verdict);
        assert_eq!(state(&view, "published"), StageState::NotYet);
        assert_eq!(view.success.accepted.answer, Answer::Yes);
        assert_eq!(view.success.round_ran.answer, Answer::NotYet);

        app.round(SUBMIT_BUILD.handler).await;
        let view = shown(&app, order).await;
        assert!(view.verdict.sentence.contains("is at S04 lock activation"), "{:?}", view.verdict);
        assert_eq!(state(&view, "published"), StageState::Done);
        assert_eq!((view.locks.reserved, view.locks.active), (3, 0));
        assert_eq!(view.order.total_amount.to_string(), "300.00");
        assert_eq!(view.success.handed_over.answer, Answer::NotYet);

        app.round(LOCK_ACTIVATE.handler).await;
        let view = shown(&app, order).await;
        assert!(view.verdict.sentence.contains("is at S05 audit plan"), "{:?}", view.verdict);
        let activation = view.stages.iter().find(|stage| stage.stage == "lock_activation");
        let activation = activation.expect("S04");
        assert_eq!(activation.state, StageState::Done);
        assert_eq!(activation.batch_status.as_deref(), Some("DONE"));
        assert_eq!(activation.processed_count, Some(3));
        assert_eq!((view.locks.reserved, view.locks.active), (0, 3));
        assert_eq!(view.success.handed_over.answer, Answer::Yes);
        assert_eq!(view.success.main_business_effective.answer, Answer::NotYet);
        assert_eq!(state(&view, "review"), StageState::NotYet);
    }

    async fn a_worker_at_work_is_named_with_its_lease_until_it_is_taken_for_dead(app: TestApp) {
        Fixture(&app).records(1).await;
        let submission = submit(&app, &[Bill::payable(1)]).await;
        app.round(SUBMIT_BUILD.handler).await;
        app.arm(counterfoil_e2e::Crash {
            point: "lock_activation.activate",
            side: counterfoil_db::Side::Before,
            passage: 1,
        });
        assert!(app.try_round(LOCK_ACTIVATE.handler, "").await.is_err());
        let view = shown(&app, submission.order).await;
        let stage = view.stages.iter().find(|stage| stage.stage == "lock_activation");
        let stage = stage.expect("S04");
        assert_eq!(stage.state, StageState::Running);
        assert!(stage.owner.is_some(), "{stage:?}");
        assert_eq!(stage.lease_until, Some(app.now() + chrono::TimeDelta::minutes(10)));
        app.pass_minutes(11);
        let view = shown(&app, submission.order).await;
        assert_eq!(state(&view, "lock_activation"), StageState::Waiting);
        assert!(view.verdict.sentence.contains("lost its process"), "{:?}", view.verdict);
    }

    async fn a_submission_that_met_held_bills_lists_them_with_their_holder(app: TestApp) {
        let first = first_version(&app).await;
        let second = submit(&app, &[3, 4].map(Bill::payable)).await;
        app.round(SUBMIT_BUILD.handler).await;
        let view = shown(&app, second.order).await;
        assert_eq!(view.conflicts.total, 1);
        let conflict = &view.conflicts.first[0];
        assert_eq!((conflict.station_id.as_str(), conflict.holder_order_id), ("S3", first.order));
        let holder = shown(&app, first.order).await.order.called();
        let told = format!("S3 202609 by {holder}");
        assert!(view.verdict.sentence.contains(&told), "{:?}", view.verdict);
        assert_eq!(state(&view, "build"), StageState::Trouble);
        assert_eq!(state(&view, "lock_release"), StageState::Waiting);
        app.round(LOCK_RELEASE.handler).await;
        let view = shown(&app, second.order).await;
        assert!(view.verdict.sentence.contains("may be submitted again"), "{:?}", view.verdict);
    }

    async fn a_revision_that_failed_leaves_the_page_to_the_published_version(app: TestApp) {
        let first = first_version(&app).await;
        submit(&app, &[Bill::payable(5)]).await;
        publish(&app).await;
        let fixture = Fixture(&app);
        let bills = [1, 2, 5].map(Bill::payable);
        let session = fixture.revise_session(first.order.0, &bills).await;
        fixture.submit(session).await;
        let view = shown(&app, first.order).await;
        assert_eq!(view.version.expect("a version").target_data, DataVersion(2));
        app.round(SUBMIT_BUILD.handler).await;
        let view = shown(&app, first.order).await;
        assert_eq!(view.version.as_ref().expect("a version").target_data, DataVersion(1));
        assert!(view.verdict.sentence.contains("S05"), "{:?}", view.verdict);
        assert!(view.verdict.notes[0].contains("data version 2, failed"), "{:?}", view.verdict);
        let built: Vec<&str> = view.versions.iter().map(|v| v.build_status.as_str()).collect();
        assert_eq!(built, ["BUILD_FAILED", "PUBLISHED"]);
    }

    async fn orders_are_listed_newest_first_page_by_page(app: TestApp) {
        Fixture(&app).records(4).await;
        let mut orders = Vec::new();
        for number in 1..=4 {
            orders.push(submit(&app, &[Bill::payable(number)]).await.order);
        }
        app.execute(&format!("UPDATE fi_resident_income_payment_order
            SET create_user_id = 8, status = 20 WHERE id = {}", orders[1])).await;
        let mut query = OrderQuery { limit: Some(3), ..OrderQuery::default() };
        let page = list(&app.db, &query).await.expect("a page");
        let ids: Vec<OrderId> = page.orders.iter().map(|order| order.id).collect();
        assert_eq!(ids, [orders[3], orders[2], orders[1]]);
        query.before = page.next_before;
        let page = list(&app.db, &query).await.expect("a page");
        assert_eq!(page.orders.len(), 1);
        assert_eq!((page.orders[0].id, page.next_before), (orders[0], None));
        for (status, creator, expected) in [
            (Some(20), None, vec![orders[1]]),
            (None, Some(UserId(8)), vec![orders[1]]),
            (Some(10), Some(UserId(8)), vec![]),
            (Some(10), Some(CREATOR), vec![orders[3], orders[2], orders[0]]),
        ] {
            let query = OrderQuery { status, creator, ..OrderQuery::default() };
            let page = list(&app.db, &query).await.expect("a page");
            let ids: Vec<OrderId> = page.orders.iter().map(|order| order.id).collect();
            assert_eq!(ids, expected, "{query:?}");
        }
    }

    async fn an_order_is_found_by_its_id_and_by_its_number(app: TestApp) {
        let order = first_version(&app).await.order;
        let number = shown(&app, order).await.order.order_no.expect("a number");
        for text in [order.to_string(), number.clone(), format!(" {number} ")] {
            assert_eq!(find(&app.db, &text).await.expect("the order"), order, "{text}");
        }
        for text in ["", "0", "PO", "-1", "9223372036854775808"] {
            let error = find(&app.db, text).await.expect_err(text);
            assert_eq!(error.code(), "order-not-found", "{text}");
            assert!(error.to_string().starts_with("order:"), "{error}");
        }
    }

    async fn the_lines_of_a_version_are_walked_by_id(app: TestApp) {
        let order = first_version(&app).await.order;
        app.execute("UPDATE fi_resident_income_payment_order_bill
            SET payee_account = '6222020200112233'").await;
        let query = LineQuery { limit: Some(2), ..LineQuery::default() };
        let page = lines(&app.db, order, &query).await.expect("a page");
        assert_eq!((page.data_version, page.lines.len()), (DataVersion(1), 2));
        let first = &page.lines[0];
        assert_eq!((first.station_id.as_str(), first.line_type), ("S1", "PAYABLE"));
        assert_eq!(first.lock_status.as_deref(), Some("ACTIVE"));
        assert_eq!(first.payee_account.as_deref(), Some("****2233"));
        assert_eq!(first.pay_amount.expect("an amount").to_string(), "100.00");
        let query = LineQuery { after: page.next_after, ..query };
        let page = lines(&app.db, order, &query).await.expect("a page");
        assert_eq!((page.lines.len(), page.next_after), (1, None));
        let query = LineQuery { data_version: Some(DataVersion(9)), ..LineQuery::default() };
        let error = lines(&app.db, order, &query).await.expect_err("no such version");
        assert!(error.to_string().contains("dataVersion"), "{error}");
        assert!(error.to_string().contains("its newest is 1"), "{error}");
    }

    async fn a_timeline_tells_everything_in_the_order_it_happened(app: TestApp) {
        Fixture(&app).records(2).await;
        let order = submit(&app, &[1, 2].map(Bill::payable)).await.order;
        app.pass_minutes(1);
        app.round(SUBMIT_BUILD.handler).await;
        app.pass_minutes(1);
        app.round(LOCK_ACTIVATE.handler).await;
        app.pass_minutes(1);
        app.execute(&format!("INSERT INTO fi_resident_income_payment_order_approval_instance
            (payment_order_id, data_version, approval_attempt, review_plan_id, create_time)
            SELECT id, 1, 1, 9, '{}' FROM fi_resident_income_payment_order WHERE id = {order}",
            app.now().format("%Y-%m-%d %H:%M:%S"))).await;
        let told = timeline(&app.db, order, None).await.expect("a timeline");
        let words: Vec<&str> = told.entries.iter().map(|entry| entry.what.as_str()).collect();
        let expected = [
            "data version 1 submitted",
            "S03 build ACCEPT: PENDING",
            "data version 1 published",
            "PUBLISHED: DRAFT to UNDER_REVIEW",
            "S04 lock activation ACCEPT: PENDING",
            "S03 build is SUCCESS",
            "S05 audit plan ACCEPT: PENDING",
            "2 locks ACTIVE",
            "S05 audit plan is PENDING",
            "S04 lock activation is SUCCESS",
            "plan 9 opened",
        ];
        assert_eq!(words.len(), expected.len(), "{words:#?}");
        for (word, begins) in words.iter().zip(expected) {
            assert!(word.starts_with(begins), "{word} / {begins}: {words:#?}");
        }
        assert!(!told.truncated);
        assert_eq!((told.locks.len(), told.locks[0].locks), (1, 2));
        let short = timeline(&app.db, order, Some(3)).await.expect("a timeline");
        assert_eq!(short.entries, told.entries[told.entries.len() - 3..]);
        assert!(short.truncated);
        let error = timeline(&app.db, OrderId(i64::MAX), None).await.expect_err("no such order");
        assert_eq!(error.code(), "order-not-found");
    }

    async fn a_diff_puts_every_bill_into_one_kind_with_its_sums(app: TestApp) {
        let order = first_version(&app).await.order;
        let fixture = Fixture(&app);
        let bills = [
            Bill::payable(1),
            Bill::unqualified(3, RENT_ABNORMAL, 0),
            Bill::payable(4),
        ];
        let session = fixture.revise_session(order.0, &bills).await;
        fixture.submit(session).await;
        publish(&app).await;
        let told = diff(&app.db, order, DataVersion(1), DataVersion(2), 10).await.expect("a diff");
        let counted = |kind: DiffKind| {
            let kind = told.kind(kind).expect("every kind");
            (kind.bills, kind.amount_before.to_string(), kind.amount_after.to_string())
        };
        let hundred = || "100.00".to_owned();
        let nothing = || "0.00".to_owned();
        assert_eq!(counted(DiffKind::Kept), (1, hundred(), hundred()));
        assert_eq!(counted(DiffKind::Removed), (1, hundred(), nothing()));
        assert_eq!(counted(DiffKind::Added), (1, nothing(), hundred()));
        assert_eq!(counted(DiffKind::PayableToUnqualified), (1, hundred(), nothing()));
        assert_eq!(counted(DiffKind::UnqualifiedToPayable), (0, nothing(), nothing()));
        let unqualified = &told.kind(DiffKind::PayableToUnqualified).expect("a kind").first[0];
        assert_eq!(unqualified.station_id, "S3");
        assert_eq!(unqualified.unqualified_reason.as_deref(), Some(RENT_ABNORMAL));
        let back = diff(&app.db, order, DataVersion(2), DataVersion(1), 10).await.expect("a diff");
        assert_eq!(back.kind(DiffKind::UnqualifiedToPayable).map(|kind| kind.bills), Some(1));
    }

    async fn a_diff_tells_a_changed_amount_from_a_changed_payee(app: TestApp) {
        let order = first_version(&app).await.order;
        let fixture = Fixture(&app);
        let session = fixture.revise_session(order.0, &[1, 2, 3].map(Bill::payable)).await;
        fixture.submit(session).await;
        publish(&app).await;
        let change = |set: &str, station: &str| format!(
            "UPDATE fi_resident_income_payment_order_bill SET {set}
             WHERE data_version = 2 AND station_id = '{station}'");
        app.execute(&change("pay_amount = 9950", "S1")).await;
        app.execute(&change("payee_account = '6222020200112233'", "S2")).await;
        app.execute(&change("pay_amount = 1, payee_name = 'B'", "S3")).await;
        let told = diff(&app.db, order, DataVersion(1), DataVersion(2), 10).await.expect("a diff");
        for (kind, station, parts) in [
            (DiffKind::AmountChanged, "S1", vec![]),
            (DiffKind::PayeeChanged, "S2", vec!["account"]),
            (DiffKind::AmountAndPayeeChanged, "S3", vec!["name"]),
        ] {
            let kind = told.kind(kind).expect("every kind");
            assert_eq!((kind.bills, kind.first.len()), (1, 1), "{kind:?}");
            assert_eq!(kind.first[0].station_id, station);
            assert_eq!(kind.first[0].payee_parts, parts, "{kind:?}");
        }
        let amount = told.kind(DiffKind::AmountChanged).expect("a kind");
        assert_eq!(amount.amount_after.to_string(), "99.50");
        let none = diff(&app.db, order, DataVersion(1), DataVersion(2), 0).await.expect("a diff");
        assert!(none.kinds.iter().all(|kind| kind.first.is_empty()));
        for (v1, v2, field) in [(7, 1, "v1"), (1, 7, "v2")] {
            let error = diff(&app.db, order, DataVersion(v1), DataVersion(v2), 1).await;
            let error = error.expect_err("no such version").to_string();
            assert!(error.starts_with(field), "{error}");
        }
    }

    async fn a_bill_tells_who_holds_it_and_everything_it_went_through(app: TestApp) {
        let order = first_version(&app).await.order;
        app.execute(RENTS).await;
        let fixture = Fixture(&app);
        let session = fixture.revise_session(order.0, &[1, 3].map(Bill::payable)).await;
        fixture.submit(session).await;
        publish(&app).await;
        let kept = bill(&app.db, "S1", &month(), &Tolerance::default()).await.expect("a bill");
        assert_eq!(kept.can_be_paid_again.verdict, Paying::No);
        assert_eq!(kept.can_be_paid_again.because[0].reason, "held");
        let versions: Vec<(i64, bool)> =
            kept.lines.iter().map(|line| (line.data_version.0, line.is_published)).collect();
        assert_eq!(versions, [(2, true), (1, false)]);
        assert_eq!(kept.locks.len(), 1, "a kept lock stays the same row");
        assert_eq!(kept.locks[0].data_version, DataVersion(2));
        let records: Vec<(&str, &str)> =
            kept.records.iter().map(|record| (record.record, record.payment_status)).collect();
        assert_eq!(records, [
            ("difference ledger", "PAYMENT_REVIEW"),
            ("small bill", "PAYMENT_REVIEW"),
            ("partner bill", "PAYMENT_REVIEW"),
        ]);
        assert!(kept.notes.iter().any(|note| note.what.contains("AUDIT_PLAN_CREATE is PENDING")));

        let removed = bill(&app.db, "S2", &month(), &Tolerance::default()).await.expect("a bill");
        assert_eq!(removed.can_be_paid_again.verdict, Paying::Yes, "{removed:?}");
        assert_eq!(removed.locks[0].release_reason.as_deref(), Some("REVISE_REMOVED"));
        let never = bill(&app.db, "S5", &month(), &Tolerance::default()).await.expect("a bill");
        assert_eq!((never.lines.len(), never.can_be_paid_again.verdict), (0, Paying::Yes));
        let error = bill(&app.db, "S9", &month(), &Tolerance::default()).await.expect_err("no such bill");
        assert_eq!(error.code(), "bill-not-found");
    }

    async fn a_bill_that_was_paid_closed_or_contradicts_itself_says_so(app: TestApp) {
        first_version(&app).await;
        let of = async |station: &str| {
            bill(&app.db, station, &month(), &Tolerance::default()).await.expect("a bill").can_be_paid_again
        };
        app.execute(RENTS).await;
        app.execute("UPDATE fi_resident_income_payment_order_bill SET line_status = 30
            WHERE station_id = 'S1'").await;
        let told: Vec<&str> = of("S1").await.because.iter().map(|why| why.reason).collect();
        assert_eq!(told, ["held", "paid-in-full"]);
        app.execute("UPDATE fi_monthly_income_difference SET cumulative_paid_amount = 4000,
            pre_rent = 6000 WHERE station_id = 'S4'").await;
        let rest = of("S4").await;
        assert_eq!(rest.verdict, Paying::OnlyTheRest);
        assert_eq!(rest.because[0].sentence, "40.00 was paid of 100.00 due; 60.00 is left");
        app.execute("UPDATE fi_customer_bill SET locked_payment_order_id = 77
            WHERE station_id = 'S5'").await;
        assert_eq!(of("S5").await.verdict, Paying::Unclear);
        app.execute("INSERT INTO month_close (bill_yearmonth) VALUES ('202609')").await;
        let told: Vec<&str> = of("S5").await.because.iter().map(|why| why.reason).collect();
        assert_eq!(told, ["month-closed"]);
    }

    async fn nothing_is_read_without_a_limit(app: TestApp) {
        let order = first_version(&app).await.order;
        let query = OrderQuery { limit: Some(0), ..OrderQuery::default() };
        assert_eq!(list(&app.db, &query).await.expect("a page").orders.len(), 1);
        let query = LineQuery { limit: Some(u32::MAX), ..LineQuery::default() };
        assert_eq!(lines(&app.db, order, &query).await.expect("a page").lines.len(), 3);
        let missing = one(&app.db, OrderId(i64::MAX)).await;
        assert!(matches!(missing, Err(PaymentError::OrderNotFound(OrderId(i64::MAX)))));
    }
}
