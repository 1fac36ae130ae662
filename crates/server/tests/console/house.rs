//! A service with its console, and people who use it.

use std::collections::BTreeSet;

use counterfoil_account::people::{self, Newcomer};
use counterfoil_account::{Cost, Role};
use counterfoil_db::migrate;
use counterfoil_e2e::{Bill, Fixture, TestApp};
use counterfoil_payment::kinds::{AUDIT_PLAN_CREATE, LOCK_ACTIVATE, SUBMIT_BUILD};
use counterfoil_server::config::Config;
use counterfoil_server::serve::{Role as Part, Service};
use counterfoil_server::wiring;

pub const PASSWORD: &str = "correct horse battery";

/// The service.
pub struct House {
    pub app: TestApp,
    service: Service,
}

/// What came back.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: reqwest::header::HeaderMap,
    pub body: String,
}

impl Answer {
    /// A header, empty when it is not there.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default()
    }

    /// The value of a cookie that is set.
    pub fn cookie(&self, name: &str) -> Option<String> {
        let all = self.headers.get_all("set-cookie").iter();
        let mut values = all.filter_map(|value| {
            let (known, rest) = value.to_str().ok()?.split_once('=')?;
            (known == name).then(|| rest.split(';').next().unwrap_or_default().to_owned())
        });
        values.next()
    }

    /// The proof in the page's first form.
    pub fn proof(&self) -> String {
        let (_, rest) = self.body.split_once("name=\"csrf\" value=\"").expect("a form");
        rest.split('"').next().unwrap_or_default().to_owned()
    }
}

/// Somebody who is signed in.
pub struct Person<'h> {
    house: &'h House,
    pub cookie: String,
    pub proof: String,
    pub id: i64,
}

impl House {
    pub async fn open(app: TestApp) -> House {
        let _ = rustls::crypto::ring::default_provider().install_default();
        migrate(&app.db, &wiring::migrations()).await.expect("migrations");
        let mut config = Config::default();
        config.server.listen = "127.0.0.1:0".into();
        let parts = BTreeSet::from([Part::Api, Part::Review]);
        let service = Service::start(&app.db, &config, &parts).await.expect("a service");
        House { app, service }
    }

    pub fn url(&self) -> String {
        format!("http://{}", self.service.address)
    }

    pub async fn close(self) {
        self.service.stop().await;
    }

    /// Sends a request as it is.
    pub async fn send(&self, request: reqwest::RequestBuilder) -> Answer {
        let response = request.send().await.expect("an answer");
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        Answer { status, headers, body: response.text().await.expect("a body") }
    }

    pub fn client(&self) -> reqwest::Client {
        let none = reqwest::redirect::Policy::none();
        reqwest::Client::builder().redirect(none).build().expect("a client")
    }

    pub async fn get(&self, path: &str, cookie: &str) -> Answer {
        let url = format!("{}{path}", self.url());
        self.send(self.client().get(url).header("cookie", cookie)).await
    }

    pub async fn post(&self, path: &str, cookie: &str, fields: &[(&str, &str)]) -> Answer {
        let url = format!("{}{path}", self.url());
        let body: Vec<String> =
            fields.iter().map(|(name, value)| format!("{name}={}", encoded(value))).collect();
        let request = self.client().post(url).header("cookie", cookie);
        let kind = "application/x-www-form-urlencoded";
        self.send(request.header("content-type", kind).body(body.join("&"))).await
    }

    /// Tries to sign in, from the form on.
    pub async fn enter(&self, login: &str, password: &str) -> Answer {
        let form = self.get("/console/sign-in", "").await;
        let door = form.cookie("counterfoil_door").expect("the form's cookie");
        let cookie = format!("counterfoil_door={door}");
        let proof = form.proof();
        let fields = [("csrf", proof.as_str()), ("login", login), ("password", password)];
        self.post("/console/sign-in", &cookie, &fields).await
    }

    /// Adds somebody and signs him in.
    pub async fn person(&self, login: &str, role: Role, id: Option<i64>) -> Person<'_> {
        let new = Newcomer {
            id,
            login: login.into(),
            name: String::new(),
            role,
            password: PASSWORD.into(),
        };
        let account = people::add(&self.app.db, &new, Cost::Least).await.expect("an account");
        let entered = self.enter(login, PASSWORD).await;
        assert_eq!(entered.status, 303, "{}", entered.body);
        let token = entered.cookie("counterfoil_session").expect("a session");
        let cookie = format!("counterfoil_session={token}; counterfoil_lang=en");
        let proof = self.get("/console/me", &cookie).await.proof();
        Person { house: self, cookie, proof, id: account.id }
    }

    /// An order of three bills under review, created by person 7; answers its id. Persons 101 and
    /// 102 are to decide on it, one after the other.
    pub async fn order(&self) -> String {
        let fixture = Fixture(&self.app);
        fixture.records(3).await;
        let session = fixture.new_session(&[1, 2, 3].map(Bill::payable)).await;
        let submission = fixture.submit(session).await;
        for kind in [SUBMIT_BUILD, LOCK_ACTIVATE] {
            assert!(self.app.round(kind.handler).await.is_success());
        }
        let engine = self.app.engine_with_centre(&self.url());
        let summary = engine.round(AUDIT_PLAN_CREATE.handler, "").await.expect("a round");
        assert!(summary.is_success(), "{summary:?}");
        submission.order.to_string()
    }

    /// The audit plan of an order.
    pub async fn plan(&self, order: &str) -> String {
        let query = "SELECT review_plan_id FROM fi_resident_income_payment_order WHERE id = ";
        self.app.value(&format!("{query}{order}")).await
    }
}

impl Person<'_> {
    pub async fn get(&self, path: &str) -> Answer {
        self.house.get(path, &self.cookie).await
    }

    /// Posts a form with its proof.
    pub async fn post(&self, path: &str, fields: &[(&str, &str)]) -> Answer {
        let mut all = vec![("csrf", self.proof.as_str())];
        all.extend_from_slice(fields);
        self.house.post(path, &self.cookie, &all).await
    }
}

fn encoded(text: &str) -> String {
    text.bytes().map(|byte| format!("%{byte:02X}")).collect()
}
