//! Who gets in, and how long.

use counterfoil_account::Role;
use counterfoil_e2e::on_every_database;

use crate::house::{House, PASSWORD};

on_every_database! {
    async fn nobody_sees_a_page_without_a_session_and_a_sign_in_leads_back_to_it(app: TestApp) {
        let house = House::open(app).await;
        let paths = ["/console", "/console/orders", "/console/tasks/X", "/console/accounts"];
        for path in paths {
            let answer = house.get(path, "").await;
            assert_eq!(answer.status, 303, "{path}");
            let expected = format!("/console/sign-in?next={}", path.replace('/', "%2F"));
            assert_eq!(answer.header("location"), expected);
            let guessed = house.get(path, "counterfoil_session=guess").await;
            assert_eq!(guessed.status, 303, "{path}");
        }
        let refused = house.post("/console/rules/check", "", &[("csrf", "x")]).await;
        assert_eq!(refused.header("location"), "/console/sign-in?ended=1");
        house.close().await;
    }

    async fn a_session_is_a_cookie_that_no_script_reads_and_ends_with_the_sign_out(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("ops", Role::Operator, None).await;
        let entered = house.enter("ops", PASSWORD).await;
        let cookie = entered
            .headers
            .get_all("set-cookie")
            .iter()
            .filter_map(|value| value.to_str().ok())
            .find(|value| value.starts_with("counterfoil_session="))
            .expect("a cookie");
        assert!(cookie.contains("; HttpOnly; SameSite=Lax"), "{cookie}");
        assert!(!cookie.contains("Secure"), "this is no TLS: {cookie}");
        assert_eq!(person.get("/console").await.status, 200);
        assert_eq!(person.post("/console/sign-out", &[]).await.status, 303);
        assert_eq!(person.get("/console").await.status, 303, "signed out");
        house.close().await;
    }

    async fn wrong_passwords_are_refused_alike_and_after_five_nobody_listens(app: TestApp) {
        let house = House::open(app).await;
        house.person("ops", Role::Operator, None).await;
        let unknown = house.enter("nobody-here", "wrong").await;
        assert_eq!(unknown.status, 403);
        for _ in 0..5 {
            let wrong = house.enter("ops", "wrong").await;
            assert_eq!(wrong.status, 403);
            assert!(wrong.body.contains("Login or password is wrong."), "{}", wrong.body);
            assert!(wrong.cookie("counterfoil_session").is_none());
        }
        let blocked = house.enter("ops", PASSWORD).await;
        assert_eq!(blocked.status, 429, "{}", blocked.body);
        assert!(!blocked.header("retry-after").is_empty());
        house.close().await;
    }

    async fn a_form_without_its_proof_or_from_another_site_does_nothing(app: TestApp) {
        let house = House::open(app).await;
        let one = house.person("one", Role::Admin, None).await;
        let other = house.person("other", Role::Admin, None).await;
        let path = "/console/accounts/other";
        let disable = [("what", "disable"), ("reason", "because")];
        let forged = [
            house.post(path, &one.cookie, &disable).await,
            house.post(path, &one.cookie, &[("csrf", ""), disable[0], disable[1]]).await,
            house.post(path, &one.cookie, &[("csrf", &other.proof), disable[0], disable[1]]).await,
        ];
        for answer in forged {
            assert_eq!(answer.status, 403);
            assert!(answer.body.contains("stale-form"), "{}", answer.body);
        }
        let url = format!("{}{path}", house.url());
        let body = format!("csrf={}&what=disable&reason=r", one.proof);
        let foreign = house.client().post(url).header("cookie", &one.cookie).body(body)
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "cross-site");
        assert_eq!(house.send(foreign).await.status, 403);
        let disabled = "SELECT COUNT(*) AS n FROM account WHERE is_disabled = 1";
        assert_eq!(house.app.value(disabled).await, "0");
        assert_eq!(one.post(path, &disable).await.status, 303, "the true one works");
        assert_eq!(house.app.value(disabled).await, "1");
        house.close().await;
    }

    async fn a_sign_in_form_of_another_browser_is_refused(app: TestApp) {
        let house = House::open(app).await;
        house.person("ops", Role::Operator, None).await;
        let form = house.get("/console/sign-in", "").await;
        let proof = form.proof();
        let fields = [("csrf", proof.as_str()), ("login", "ops"), ("password", PASSWORD)];
        assert_eq!(house.post("/console/sign-in", "", &fields).await.status, 403);
        let other = house.post("/console/sign-in", "counterfoil_door=other", &fields).await;
        assert_eq!(other.status, 403);
        assert!(other.cookie("counterfoil_session").is_none());
        house.close().await;
    }

    async fn a_form_that_is_too_long_is_refused_before_it_is_read(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("ops", Role::Operator, None).await;
        let long = "x".repeat(70_000);
        let answer = person.post("/console/rules/check", &[("more", &long)]).await;
        assert_eq!(answer.status, 413, "{}", answer.body);
        house.close().await;
    }

    async fn every_answer_carries_the_headers_that_keep_foreign_code_out(app: TestApp) {
        let house = House::open(app).await;
        let person = house.person("ops", Role::Operator, None).await;
        for path in ["/console", "/console/sign-in", "/console/assets/console.js"] {
            let answer = person.get(path).await;
            let policy = answer.header("content-security-policy");
            assert!(policy.contains("default-src 'none'"), "{path}: {policy}");
            assert!(!policy.contains("unsafe"), "{path}: {policy}");
            assert_eq!(answer.header("x-content-type-options"), "nosniff");
            assert_eq!(answer.header("x-frame-options"), "DENY");
        }
        assert_eq!(person.get("/console").await.header("cache-control"), "no-store");
        house.close().await;
    }
}
