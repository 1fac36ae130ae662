//! Accounts on every database: signing in, throttling, sessions, changes, the audit.

use std::sync::Arc;

use chrono::TimeDelta;
use counterfoil_account::audit::{self, Actor, Deed, Outcome};
use counterfoil_account::people::{self, Change, Newcomer};
use counterfoil_account::session;
use counterfoil_account::sign_in::{Attempt, Opened, sign_in};
use counterfoil_account::{Account, AccountError, Cost, MIGRATIONS, Role};
use counterfoil_db::migrate;
use counterfoil_e2e::{TestApp, on_every_database};

const PASSWORD: &str = "correct horse battery";

async fn add(app: &TestApp, login: &str, role: Role) -> Account {
    migrate(&app.db, MIGRATIONS).await.expect("migrations");
    let new = Newcomer {
        id: None,
        login: login.into(),
        name: String::new(),
        role,
        password: PASSWORD.into(),
    };
    people::add(&app.db, &new, Cost::Least).await.expect("an account")
}

async fn enter(app: &TestApp, login: &str, password: &str) -> Result<Opened, AccountError> {
    sign_in(&app.db, Attempt { login, password, address: "192.0.2.7" }).await
}

fn is_wrong(outcome: &Result<Opened, AccountError>) -> bool {
    matches!(outcome, Err(AccountError::WrongPassword))
}

fn is_blocked(outcome: &Result<Opened, AccountError>) -> bool {
    matches!(outcome, Err(AccountError::Blocked { .. }))
}

on_every_database! {
    async fn only_the_password_opens_a_session_and_no_answer_tells_what_was_wrong(app: TestApp) {
        let account = add(&app, "Li.Wei", Role::Operator).await;
        assert_eq!(account.login, "li.wei");
        let (wrong, unknown) =
            (enter(&app, "li.wei", "wrong").await, enter(&app, "nobody", "wrong").await);
        assert!(is_wrong(&wrong) && is_wrong(&unknown));
        assert!(is_wrong(&enter(&app, "li\0wei", "wrong").await), "no login, and no failure");
        assert_eq!(wrong.unwrap_err().to_string(), unknown.unwrap_err().to_string());
        let opened = enter(&app, " LI.WEI ", PASSWORD).await.expect("in");
        let signed = session::of_token(&app.db, &opened.token).await.unwrap().expect("known");
        assert_eq!(signed.account, account);
        assert!(session::of_token(&app.db, "guess").await.unwrap().is_none());
        let stored = app.value("SELECT token_hash FROM account_session").await;
        assert!(!stored.contains(&opened.token), "the token itself is stored");
        let hash = app.value("SELECT password_hash FROM account").await;
        assert!(hash.starts_with("$argon2id$") && !hash.contains(PASSWORD), "{hash}");
    }

    async fn guesses_are_counted_before_they_are_compared_and_then_nobody_listens(app: TestApp) {
        add(&app, "ops", Role::Operator).await;
        let app = Arc::new(app);
        let guesses = (0..20).map(|_| {
            let app = app.clone();
            tokio::spawn(async move { enter(&app, "ops", "wrong").await })
        });
        let mut wrong = 0;
        for guess in guesses.collect::<Vec<_>>() {
            wrong += i64::from(is_wrong(&guess.await.unwrap()));
        }
        assert_eq!(wrong, 5, "so many guesses were compared");
        let right = enter(&app, "ops", PASSWORD).await;
        assert!(is_blocked(&right), "the right password is not listened to either: {right:?}");
        app.clock.advance(TimeDelta::seconds(16));
        assert!(enter(&app, "ops", PASSWORD).await.is_ok());
        assert!(is_wrong(&enter(&app, "ops", "wrong").await), "the right one took the count back");
    }

    async fn one_address_that_tries_many_logins_is_blocked_and_the_others_are_not(app: TestApp) {
        add(&app, "ops", Role::Operator).await;
        for at in 0..30 {
            enter(&app, &format!("guess{at}"), "wrong").await.unwrap_err();
        }
        assert!(is_blocked(&enter(&app, "ops", PASSWORD).await));
        let elsewhere = Attempt { login: "ops", password: PASSWORD, address: "192.0.2.8" };
        assert!(sign_in(&app.db, elsewhere).await.is_ok());
        let rows: i64 =
            app.value("SELECT COUNT(*) AS n FROM account_login_failure").await.parse().unwrap();
        assert!(rows <= 34, "{rows} rows");
    }

    async fn a_session_ends_by_time_by_idleness_by_leaving_and_by_a_change_of_password(
        app: TestApp
    ) {
        add(&app, "ops", Role::Operator).await;
        let holds = async |token: &str| {
            session::of_token(&app.db, token).await.unwrap().is_some()
        };
        let first = enter(&app, "ops", PASSWORD).await.unwrap().token;
        for _ in 0..23 {
            app.pass_minutes(30);
            assert!(holds(&first).await, "it is used, and not twelve hours old");
        }
        app.pass_minutes(31);
        assert!(!holds(&first).await, "twelve hours are over");
        let second = enter(&app, "ops", PASSWORD).await.unwrap().token;
        app.pass_minutes(61);
        assert!(!holds(&second).await, "nobody used it for an hour");
        let third = enter(&app, "ops", PASSWORD).await.unwrap().token;
        session::close(&app.db, &third).await.unwrap();
        assert!(!holds(&third).await);
        let fourth = enter(&app, "ops", PASSWORD).await.unwrap().token;
        people::set_password(&app.db, "ops", "another long password", Cost::Least).await.unwrap();
        assert!(!holds(&fourth).await);
        assert!(is_wrong(&enter(&app, "ops", PASSWORD).await));
        assert!(enter(&app, "ops", "another long password").await.is_ok());
    }

    async fn an_account_has_ten_sessions_at_most_and_the_oldest_make_room(app: TestApp) {
        add(&app, "ops", Role::Operator).await;
        let mut tokens = Vec::new();
        for _ in 0..12 {
            tokens.push(enter(&app, "ops", PASSWORD).await.unwrap().token);
        }
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM account_session").await, "10");
        assert!(session::of_token(&app.db, &tokens[1]).await.unwrap().is_none());
        assert!(session::of_token(&app.db, &tokens[2]).await.unwrap().is_some());
    }

    async fn who_is_disabled_or_changed_is_so_at_once(app: TestApp) {
        add(&app, "chief", Role::Admin).await;
        add(&app, "ops", Role::Operator).await;
        let token = enter(&app, "ops", PASSWORD).await.unwrap().token;
        people::change(&app.db, "ops", Change::Role(Role::Viewer)).await.unwrap();
        let signed = session::of_token(&app.db, &token).await.unwrap().unwrap();
        assert_eq!(signed.account.role, Role::Viewer);
        people::change(&app.db, "ops", Change::Disable).await.unwrap();
        assert!(session::of_token(&app.db, &token).await.unwrap().is_none());
        assert!(is_wrong(&enter(&app, "ops", PASSWORD).await));
        people::change(&app.db, "ops", Change::Enable).await.unwrap();
        assert!(session::of_token(&app.db, &token).await.unwrap().is_none(), "the old one is gone");
        assert!(enter(&app, "ops", PASSWORD).await.is_ok());
    }

    async fn the_last_admin_stays_however_two_of_them_race(app: TestApp) {
        add(&app, "one", Role::Admin).await;
        add(&app, "two", Role::Admin).await;
        let (a, b) = tokio::join!(
            people::change(&app.db, "one", Change::Disable),
            people::change(&app.db, "two", Change::Role(Role::Viewer)),
        );
        let won = [a.is_ok(), b.is_ok()];
        assert_eq!(won.iter().filter(|won| **won).count(), 1, "{a:?} {b:?}");
        let left = "SELECT COUNT(*) AS n FROM account WHERE role = 'admin' AND is_disabled = 0";
        assert_eq!(app.value(left).await, "1");
    }

    async fn a_login_and_a_person_belong_to_one_account(app: TestApp) {
        migrate(&app.db, MIGRATIONS).await.expect("migrations");
        assert!(!people::is_anybody(&app.db).await.unwrap());
        let new = |id, login: &str| Newcomer {
            id,
            login: login.into(),
            name: "李伟".into(),
            role: Role::Reviewer,
            password: PASSWORD.into(),
        };
        let added = people::add(&app.db, &new(Some(7), "wei"), Cost::Least).await.unwrap();
        assert_eq!((added.id, added.name.as_str()), (7, "李伟"));
        for taken in [new(Some(7), "other"), new(Some(8), "WEI")] {
            let refused = people::add(&app.db, &taken, Cost::Least).await.unwrap_err();
            assert_eq!(refused.code(), "account-exists");
        }
        let another = people::add(&app.db, &new(None, "another"), Cost::Least).await.unwrap();
        assert!(another.id >= 1_000_000_000_000, "{}", another.id);
        assert!(people::is_anybody(&app.db).await.unwrap());
    }

    async fn what_was_done_is_on_record_with_its_person_reason_and_request(app: TestApp) {
        let account = add(&app, "ops", Role::Operator).await;
        let actor =
            Actor { account, address: "192.0.2.7".into(), request_id: "r-1".into() };
        let deed = Deed { action: "task-rerun", subject: "RIPSB:1", reason: "对方已修好\0" };
        audit::record(&app.db, &actor, deed, Outcome::Asked, "").await.unwrap();
        audit::record(&app.db, &actor, deed, Outcome::Done, &"长".repeat(2000)).await.unwrap();
        let rows = audit::list(&app.db, None, 10).await.unwrap();
        assert_eq!(rows.len(), 2);
        assert_eq!((rows[0].outcome.as_str(), rows[1].outcome.as_str()), ("DONE", "ASKED"));
        assert_eq!((rows[1].login.as_str(), rows[1].reason.as_str()), ("ops", "对方已修好"));
        let told = audit::of_request(&app.db, actor.account.id, "r-1").await.unwrap().unwrap();
        assert_eq!(told.outcome, "DONE");
        assert!(audit::of_request(&app.db, 1, "r-1").await.unwrap().is_none(), "of another person");
    }
}
