//! Selection sessions: opening, adding, judging, removing, showing.

mod bill_file;

use bill_file::{execute, import, number, references, table};
use counterfoil_db::{Db, FaultAction, FaultPlan, Side};
use counterfoil_e2e::on_every_database;
use counterfoil_payment::PaymentError;
use counterfoil_payment::session::add::{ADD_BATCH, Added, BillKey, Selection, add_bills};
use counterfoil_payment::session::edit::{
    Editor, Marked, mark_payable, mark_unqualified, remove_bills,
};
use counterfoil_payment::session::open::{open_new, open_revise};
use counterfoil_payment::session::qualify::Tolerance;
use counterfoil_payment::session::show::show;
use counterfoil_protocol::{Fen, OrderId, SessionId, UserId};

const USER: UserId = UserId(7);
const STRANGER: UserId = UserId(8);

/// Bills of 202609: S1 and S2 as they should be, S3 abnormal, S4 without an intended rent, S5 both.
const BILLS: [&str; 5] = [
    "S1,202609,1000,1000,1000,1,7,张三,6001,中国银行,1000,1000",
    "S2,202609,1000,990,990,2,8,,,,,990",
    "S3,202609,1000,500,500,1,7,李四,6003,中国银行,500,",
    "S4,202609,1000,1000,,1,7,王五,6004,中国银行,1000,",
    "S5,202609,1000,500,1000,2,8,赵六,6005,中国银行,500,",
];

fn bill(station: &str) -> BillKey {
    BillKey {
        station: station.into(),
        month: "202609".parse().unwrap(),
    }
}

fn listed(stations: &[&str]) -> Selection {
    Selection::Bills(stations.iter().map(|station| bill(station)).collect())
}

fn month() -> Selection {
    of(None, None)
}

fn of(company: Option<i64>, partner: Option<i64>) -> Selection {
    Selection::Month {
        month: "202609".parse().unwrap(),
        company,
        partner,
    }
}

async fn add(db: &Db, editor: Editor, selection: &Selection) -> Result<Added, PaymentError> {
    add_bills(db, editor, selection, &Tolerance::default()).await
}

/// Bills, and a NEW session to select them in.
async fn opened(db: &Db) -> Editor {
    references(db).await;
    import(db, &BILLS).await.unwrap();
    Editor {
        session: open_new(db, USER).await.unwrap(),
        user: USER,
    }
}

async fn items(db: &Db, session: SessionId) -> Vec<String> {
    let query = format!(
        "SELECT station_id, line_type, unqualified_reason, pre_rent, pay_amount,
                source_order_bill_id
         FROM selection_session_item WHERE session_id = {session} AND deleted = 0
         ORDER BY station_id"
    );
    table(db, query).await
}

/// `bill: why` of what could not be selected.
fn reasons(added: &Added) -> Vec<String> {
    let shown = added.unselectable.iter();
    shown
        .map(|one| format!("{}: {}", one.bill.station, one.why))
        .collect()
}

fn unmarked(marked: &Marked) -> Vec<String> {
    let shown = marked.unmarked.iter();
    shown
        .map(|one| format!("{}: {}", one.bill.station, one.why))
        .collect()
}

/// Order 5 of USER at a status, its published version 3 in round 2 with three lines.
async fn published_order(db: &Db, status: i64) {
    for statement in [
        format!(
            "INSERT INTO fi_resident_income_payment_order
               (id, order_no, status, current_publish_version, submit_round, create_user_id)
             VALUES (5, 'PO5', {status}, 3, 2, 7)"
        ),
        "INSERT INTO selection_session (id, status, creator_user_id) VALUES (50, 'COMPLETED', 7)"
            .into(),
        "INSERT INTO fi_resident_income_payment_order_version
           (id, payment_order_id, session_id, target_data_version, target_submit_round,
            version_build_status) VALUES (51, 5, 50, 3, 2, 'PUBLISHED')"
            .into(),
        "INSERT INTO fi_resident_income_payment_order_bill
           (id, payment_order_id, data_version, submit_round, line_type, station_id,
            bill_yearmonth, diff_id, unqualified_reason, pre_rent, pay_amount)
         VALUES (101, 5, 3, 2, 10, 'S1', '202609', 11, NULL, 100000, 100000),
                (102, 5, 3, 2, 20, 'S3', '202609', 13, '农户租金异常', 50000, 0),
                (103, 5, 2, 1, 10, 'S9', '202609', 19, NULL, 1, 1)"
            .into(),
        "INSERT INTO fi_resident_income_payment_bill_lock
           (lock_key, lock_status, payment_order_id, order_bill_id, station_id, bill_yearmonth)
         VALUES ('S1:202609', 'ACTIVE', 5, 101, 'S1', '202609')"
            .into(),
    ] {
        execute(db, statement).await;
    }
}

on_every_database! {
    async fn a_month_is_added_at_once_and_each_bill_judged(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        let added = add(&db, editor, &month()).await.unwrap();
        assert_eq!(added, Added { payable: 2, unqualified: 3, ..Added::default() });
        assert_eq!(items(&db, editor.session).await, [
            "S1 10 - 100000 100000 -",
            "S2 10 - 99000 99000 -",
            "S3 20 农户租金异常 50000 0 -",
            "S4 20 拟付租金校验不通过 - 0 -",
            "S5 20 农户租金异常,拟付租金校验不通过 100000 0 -",
        ]);
        let references = "SELECT COUNT(*) FROM selection_session_item i
            JOIN fi_monthly_income_difference d ON d.id = i.diff_id
             AND d.station_id = i.station_id
            LEFT JOIN fi_customer_bill s ON s.station_id = i.station_id
            LEFT JOIN fi_customer_bill_partner p ON p.station_id = i.station_id
            WHERE COALESCE(s.id, 0) = COALESCE(i.small_bill_id, 0)
              AND COALESCE(p.id, 0) = COALESCE(i.partner_bill_id, 0)";
        assert_eq!(number(&db, references).await, 5);
        let again = add(&db, editor, &month()).await.unwrap();
        assert_eq!(again, Added { already: 5, ..Added::default() });
    }

    async fn a_month_can_be_narrowed_to_a_company_and_a_partner(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        add(&db, editor, &of(Some(2), Some(7))).await.unwrap();
        assert_eq!(items(&db, editor.session).await, [""; 0]);
        add(&db, editor, &of(None, Some(8))).await.unwrap();
        assert_eq!(items(&db, editor.session).await.len(), 2);
        add(&db, editor, &of(Some(1), None)).await.unwrap();
        assert_eq!(items(&db, editor.session).await.len(), 5);
        assert_eq!(remove_bills(&db, editor, &of(Some(1), None)).await.unwrap(), 3);
        assert_eq!(remove_bills(&db, editor, &month()).await.unwrap(), 2);
    }

    async fn every_bill_that_cannot_be_selected_says_why(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        import(&db, &["S6,202608,9,9,9,1,7,,,,,9"]).await.unwrap();
        for statement in [
            "INSERT INTO month_close (bill_yearmonth) VALUES ('202608')",
            "INSERT INTO fi_resident_income_payment_order (id, order_no) VALUES (5, 'PO5')",
            "INSERT INTO fi_resident_income_payment_bill_lock
               (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
             VALUES ('S1:202609', 'RESERVED', 5, 'S1', '202609'),
                    ('S2:202609', 'ACTIVE', 6, 'S2', '202609'),
                    ('S3:202609:RELEASED:9', 'RELEASED', 5, 'S3', '202609')",
            "UPDATE fi_monthly_income_difference SET paid_amount = 100000
             WHERE station_id = 'S4'",
            "UPDATE fi_monthly_income_difference SET payment_status = 60
             WHERE station_id = 'S5'",
        ] {
            execute(&db, statement).await;
        }
        let added = add(&db, editor, &month()).await.unwrap();
        assert_eq!((added.unqualified, added.unselectable_count), (1, 4));
        assert_eq!(reasons(&added), [
            "S1: order PO5 holds it",
            "S2: order 6 holds it",
            "S4: it is paid in full",
            "S5: it is paid in full",
        ]);
        let closed = BillKey { station: "S6".into(), month: "202608".parse().unwrap() };
        let bills = vec![closed, bill("S0"), bill("S2"), bill("S3"), bill("S3")];
        let added = add(&db, editor, &Selection::Bills(bills)).await.unwrap();
        assert_eq!((added.already, added.unselectable_count), (1, 3));
        assert_eq!(reasons(&added), [
            "S6: the month is closed",
            "S2: order 6 holds it",
            "S0: no such station has a bill for this month",
        ]);
    }

    async fn a_bill_that_its_own_failed_submission_still_holds_can_be_selected(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        for statement in [
            "INSERT INTO fi_resident_income_payment_bill_lock
               (lock_key, lock_status, payment_order_id, station_id, bill_yearmonth)
             VALUES ('S1:202609', 'RESERVED', 5, 'S1', '202609')".to_owned(),
            format!("UPDATE selection_session
                     SET status = 'SUBMIT_FAILED', target_payment_order_id = 5
                     WHERE id = {}", editor.session),
        ] {
            execute(&db, statement).await;
        }
        let added = add(&db, editor, &listed(&["S1"])).await.unwrap();
        assert_eq!((added.payable, added.unselectable_count), (1, 0));
    }

    async fn only_the_creator_edits_and_only_before_a_submission_or_after_it_failed(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        let stranger = Editor { user: STRANGER, ..editor };
        let refused = add(&db, stranger, &month()).await.unwrap_err();
        assert_eq!(refused.code(), "forbidden");
        let nowhere = Editor { session: SessionId(1), ..editor };
        assert_eq!(add(&db, nowhere, &month()).await.unwrap_err().code(), "session-not-found");
        for (status, flag, code) in [
            ("SUBMITTING", 0, Some("session-state")),
            ("PUBLISHED_LOCK_SYNCING", 0, Some("session-state")),
            ("COMPLETED", 0, Some("session-state")),
            ("SUBMIT_FAILED", 1, Some("session-state")),
            ("SUBMIT_FAILED", 0, None),
        ] {
            let set = format!("UPDATE selection_session
                SET status = '{status}', invalidated_flag = {flag} WHERE id = {}", editor.session);
            execute(&db, set).await;
            let outcomes = [
                add(&db, editor, &month()).await.err(),
                remove_bills(&db, editor, &month()).await.err(),
                mark_unqualified(&db, editor, &[bill("S1")]).await.err(),
                mark_payable(&db, editor, &[bill("S1")], &Tolerance::default()).await.err(),
            ];
            for outcome in outcomes {
                assert_eq!(outcome.map(|error| error.code()), code, "{status}");
            }
        }
        let version = format!("SELECT state_version FROM selection_session WHERE id = {}",
            editor.session);
        assert_eq!(number(&db, version).await, 4, "each edit raises it, refused ones do not");
    }

    async fn edits_at_once_each_win_or_lose_as_a_whole(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        let tasks: Vec<_> = ["S1", "S2", "S3", "S4", "S5"].into_iter().map(|station| {
            let db = db.clone();
            tokio::spawn(async move { add(&db, editor, &listed(&[station])).await })
        }).collect();
        let mut won = 0;
        for task in tasks {
            match task.await.unwrap() {
                Ok(added) => won += added.payable + added.unqualified,
                Err(error) => assert_eq!(error.code(), "changed-meanwhile"),
            }
        }
        assert!(won >= 1);
        assert_eq!(items(&db, editor.session).await.len() as u64, won);
        let version = format!("SELECT state_version FROM selection_session WHERE id = {}",
            editor.session);
        assert_eq!(number(&db, version).await.unsigned_abs(), won);
    }

    async fn a_line_is_taken_out_of_payment_by_hand_and_back(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        add(&db, editor, &month()).await.unwrap();
        let marked = mark_unqualified(&db, editor, &[bill("S1"), bill("S3"), bill("S9")]).await;
        let marked = marked.unwrap();
        assert_eq!(marked.changed, 1, "S3 keeps its own reason");
        assert_eq!(unmarked(&marked), ["S9: it is not in this session"]);
        let lines = items(&db, editor.session).await;
        assert_eq!(lines[0], "S1 20 用户手动选到不合格 100000 0 -");
        assert_eq!(lines[2], "S3 20 农户租金异常 50000 0 -");
        // What the ledger says meanwhile counts.
        import(&db, &[&BILLS[0].replace("1000,1000,1000,1", "1000,998,998,1")]).await.unwrap();
        execute(&db, "UPDATE fi_monthly_income_difference SET paid_amount = 50000
                      WHERE station_id = 'S2'").await;
        execute(&db, "UPDATE fi_monthly_income_difference SET paid_amount = 100000
                      WHERE station_id = 'S4'").await;
        let stations = ["S1", "S2", "S3", "S4", "S9"].map(bill);
        let marked = mark_payable(&db, editor, &stations, &Tolerance::default()).await.unwrap();
        assert_eq!(marked.changed, 1);
        assert_eq!(unmarked(&marked), [
            "S2: 拟付租金校验不通过",
            "S3: 农户租金异常",
            "S4: it is paid in full",
            "S9: it is not in this session",
        ]);
        assert_eq!(items(&db, editor.session).await[..4], [
            "S1 10 - 99800 99800 -",
            "S2 20 拟付租金校验不通过 99000 0 -",
            "S3 20 农户租金异常 50000 0 -",
            "S4 20 拟付租金校验不通过 - 0 -",
        ]);
    }

    async fn a_new_session_holds_its_scope_and_nobody_in_particular_opens_none(app: TestApp) {
        let db = app.db.clone();
        let session = open_new(&db, USER).await.unwrap();
        let stored = "SELECT mode, status, creator_user_id, state_version, active_revise_key
                      FROM selection_session";
        assert_eq!(table(&db, stored).await, ["NEW EDITING 7 0 -"]);
        let key = table(&db, "SELECT active_scope_key FROM selection_session").await;
        assert_eq!(key, [format!("scope:{session}")]);
        for nobody in [0, -1] {
            let refused = open_new(&db, UserId(nobody)).await.unwrap_err();
            assert_eq!(refused.code(), "invalid-input");
        }
        open_new(&db, USER).await.unwrap();
    }

    async fn a_revision_starts_with_the_lines_of_the_published_version(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        published_order(&db, 30).await;
        let session = open_revise(&db, USER, OrderId(5)).await.unwrap();
        assert_eq!(items(&db, session).await, [
            "S1 10 - 100000 100000 101",
            "S3 20 农户租金异常 50000 0 102",
        ]);
        let stored = format!("SELECT mode, target_payment_order_id, active_revise_key
                              FROM selection_session WHERE id = {session}");
        assert_eq!(table(&db, stored).await, ["REVISE 5 revise:5"]);
    }

    async fn a_bill_taken_out_of_a_revision_and_put_back_is_still_the_same_line(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        import(&db, &BILLS).await.unwrap();
        published_order(&db, 20).await;
        let session = open_revise(&db, USER, OrderId(5)).await.unwrap();
        let editor = Editor { session, user: USER };
        assert_eq!(remove_bills(&db, editor, &listed(&["S1", "S3"])).await.unwrap(), 2);
        let added = add(&db, editor, &listed(&["S1", "S2"])).await.unwrap();
        assert_eq!((added.payable, added.unselectable_count), (2, 0), "its own lock");
        assert_eq!(items(&db, session).await, [
            "S1 10 - 100000 100000 101",
            "S2 10 - 99000 99000 -",
        ]);
    }

    async fn of_two_revisions_opened_at_once_one_wins(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        published_order(&db, 20).await;
        let tasks: Vec<_> = (0..4).map(|_| {
            let db = db.clone();
            tokio::spawn(async move { open_revise(&db, USER, OrderId(5)).await })
        }).collect();
        let (mut won, mut lost) = (Vec::new(), Vec::new());
        for task in tasks {
            match task.await.unwrap() {
                Ok(session) => won.push(session),
                Err(error) => lost.push(error.to_string()),
            }
        }
        assert_eq!((won.len(), lost.len()), (1, 3));
        let why = format!("order 5 is 20: session {} revises it already", won[0]);
        assert!(lost.iter().all(|error| *error == why), "{lost:?}");
        assert_eq!(items(&db, won[0]).await.len(), 2);
        assert_eq!(number(&db, "SELECT COUNT(*) FROM selection_session_item").await, 2);
    }

    async fn only_the_first_creator_revises_and_only_what_can_be_revised(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        published_order(&db, 20).await;
        let code = async |user, order| {
            let opened = open_revise(&db, user, OrderId(order)).await;
            opened.unwrap_err().code()
        };
        assert_eq!(code(STRANGER, 5).await, "forbidden");
        assert_eq!(code(USER, 6).await, "order-not-found");
        for status in [10, 40, 50, 55, 90] {
            let set = format!("UPDATE fi_resident_income_payment_order SET status = {status}");
            execute(&db, set).await;
            assert_eq!(code(USER, 5).await, "order-state", "{status}");
        }
        execute(&db, "UPDATE fi_resident_income_payment_order SET status = 30").await;
        execute(&db, "UPDATE selection_session SET status = 'PUBLISHED_LOCK_SYNCING'").await;
        assert_eq!(code(USER, 5).await, "order-state");
        execute(&db, "UPDATE selection_session SET status = 'COMPLETED'").await;
        open_revise(&db, USER, OrderId(5)).await.unwrap();
    }

    async fn a_crash_while_opening_a_revision_leaves_no_half_of_it(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        published_order(&db, 20).await;
        for (side, sessions) in [(Side::Before, 1), (Side::After, 2)] {
            let point = "session.open-revise".to_owned();
            let action = FaultAction::Crash;
            db.faults().arm(FaultPlan { point, side, passage: 1, action });
            assert!(open_revise(&db, USER, OrderId(5)).await.is_err());
            let found = number(&db, "SELECT COUNT(*) FROM selection_session").await;
            assert_eq!(found, sessions);
            let items = number(&db, "SELECT COUNT(*) FROM selection_session_item").await;
            assert_eq!(items, 2 * (sessions - 1));
        }
    }

    async fn thousands_of_bills_are_added_in_batches_and_a_crash_loses_one_batch(app: TestApp) {
        let db = app.db.clone();
        references(&db).await;
        const BILLS: usize = 3 * ADD_BATCH + 200;
        let bills: Vec<String> =
            (0..BILLS).map(|n| format!("S{n:05},202609,10,10,10,1,7,,,,,10")).collect();
        let bills: Vec<&str> = bills.iter().map(String::as_str).collect();
        import(&db, &bills).await.unwrap();
        let editor = Editor { session: open_new(&db, USER).await.unwrap(), user: USER };
        let point = "session.add".to_owned();
        let action = FaultAction::Crash;
        db.faults().arm(FaultPlan { point, side: Side::Before, passage: 3, action });
        assert!(add(&db, editor, &month()).await.is_err());
        let found = number(&db, "SELECT COUNT(*) FROM selection_session_item").await;
        assert_eq!(found, 2 * ADD_BATCH as i64);
        let added = add(&db, editor, &month()).await.unwrap();
        assert_eq!(added.already, 2 * ADD_BATCH as u64);
        assert_eq!(added.payable, (BILLS - 2 * ADD_BATCH) as u64);
        let view = show(&db, editor.session).await.unwrap();
        assert_eq!((view.payable, view.payable_amount), (BILLS as u64, Fen(1_000 * BILLS as i64)));
    }

    async fn a_session_shows_its_counts_sums_reasons_and_the_first_conflicts(app: TestApp) {
        let db = app.db.clone();
        let editor = opened(&db).await;
        let empty = show(&db, editor.session).await.unwrap();
        assert_eq!((empty.lines, empty.payable_amount, empty.failure), (0, Fen(0), None));
        add(&db, editor, &month()).await.unwrap();
        let session = editor.session;
        for statement in [
            format!("UPDATE selection_session SET status = 'SUBMIT_FAILED', submit_attempt = 2,
                failure_phase = 'BUILD', target_payment_order_id = 5 WHERE id = {session}"),
            "INSERT INTO fi_resident_income_payment_order (id, order_no) VALUES (5, 'PO5')".into(),
            format!("INSERT INTO fi_resident_income_payment_order_version
                (id, payment_order_id, session_id, target_data_version, error_code, error_message)
                VALUES (61, 5, {session}, 1, NULL, NULL),
                       (62, 5, {session}, 2, 'bill-taken', '25 bills are taken')"),
        ] {
            execute(&db, statement).await;
        }
        for n in 0..25 {
            execute(&db, format!("INSERT INTO selection_conflict
                (payment_order_version_id, station_id, bill_yearmonth, holder_lock_id,
                 holder_order_id, holder_order_no, holder_lock_status)
                VALUES (62, 'S{n}', '202609', 1, 9, 'PO9', 'ACTIVE')")).await;
        }
        let view = show(&db, session).await.unwrap();
        assert_eq!((view.status.as_str(), view.submit_attempt), ("SUBMIT_FAILED", 2));
        assert_eq!((view.creator, view.order_no.as_deref()), (USER, Some("PO5")));
        assert_eq!((view.lines, view.payable, view.unqualified), (5, 2, 3));
        assert_eq!(view.payable_amount, Fen(199_000));
        let groups: Vec<String> = view.groups.iter().map(|group| {
            let reason = group.reason.as_deref().unwrap_or("-");
            format!("{} {reason} {} {}", group.month, group.lines, group.amount)
        }).collect();
        assert_eq!(groups.len(), 4);
        assert_eq!(groups[0], "202609 - 2 1,990.00");
        let failure = view.failure.unwrap();
        assert_eq!(failure.phase.as_deref(), Some("BUILD"));
        assert_eq!(failure.code.as_deref(), Some("bill-taken"));
        assert_eq!((failure.conflict_count, failure.conflicts.len()), (25, 20));
        assert_eq!(failure.conflicts[0].bill, bill("S0"));
        let missing = show(&db, SessionId(1)).await.unwrap_err();
        assert_eq!(missing.code(), "session-not-found");
    }
}
