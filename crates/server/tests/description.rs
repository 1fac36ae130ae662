//! The description of the interface is equal to the routes, both ways, and can be read without
//! anything from elsewhere.

use std::collections::BTreeSet;
use std::path::Path;

use counterfoil_e2e::{Dialect, TestApp};
use counterfoil_server::config::Config;
use counterfoil_server::description::{Access, document, endpoints};
use counterfoil_server::serve::{Role, Service};
use counterfoil_server::wiring;
use serde_json::Value;

/// Where routes for programs are written, and what stands before their paths.
const ROOMS: [(&str, &str); 4] =
    [("api", ""), ("http", ""), ("description", ""), ("xxl_job", "/xxl")];
/// The simulated partner is for trying out; it is no interface of this program.
const NOT_DESCRIBED: &str = "partner.rs";
/// The one route whose path is configured, at its default.
const CONFIGURED: (&str, &str) = ("post", "/oapi/form-sync/reconcile");
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

type Routes = BTreeSet<(String, String)>;

/// The routes of a source text: `.route("path", get(one).post(other))`.
fn routes_of(text: &str, prefix: &str, found: &mut Routes) {
    for part in text.split(".route(").skip(1) {
        let Some(rest) = part.trim_start().strip_prefix('"') else {
            continue; // a path that is no literal
        };
        let (path, rest) = rest.split_once('"').expect("a whole literal");
        let mut depth = 1_i32;
        let end = rest.find(|letter: char| {
            depth += i32::from(letter == '(') - i32::from(letter == ')');
            depth == 0
        });
        let call = &rest[..end.expect("a whole call")];
        for method in METHODS {
            let begins = call.match_indices(&format!("{method}(")).any(|(at, _)| {
                let before = call[..at].chars().next_back();
                before.is_none_or(|letter| !letter.is_alphanumeric() && letter != '_')
            });
            if begins {
                found.insert((method.to_owned(), format!("{prefix}{path}")));
            }
        }
    }
}

fn read(folder: &Path, prefix: &str, found: &mut Routes) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.is_dir() {
            read(&path, prefix, found);
        } else if path.file_name().is_some_and(|name| name != NOT_DESCRIBED) {
            let text = std::fs::read_to_string(&path).expect("a source");
            routes_of(text.split("#[cfg(test)]").next().unwrap_or_default(), prefix, found);
        }
    }
}

#[test]
fn every_route_is_described_and_every_description_has_a_route() {
    let mut routes = Routes::from([(CONFIGURED.0.to_owned(), CONFIGURED.1.to_owned())]);
    for (room, prefix) in ROOMS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src").join(room);
        read(&folder, prefix, &mut routes);
    }
    let described: Routes =
        endpoints().iter().map(|one| (one.method.to_owned(), one.path.to_owned())).collect();
    assert!(routes.len() > 50, "the sources were not read");
    let missing: Vec<_> = routes.difference(&described).collect();
    let stale: Vec<_> = described.difference(&routes).collect();
    assert!(
        missing.is_empty() && stale.is_empty(),
        "no description: {missing:?}; no route: {stale:?}"
    );
}

#[test]
fn a_route_that_nobody_described_is_found() {
    let mut found = Routes::new();
    let text = "Router::new().route(\"/a/{b}\", post(create).get(list).fallback(other)).route(
        \"/c\", forget(x))";
    routes_of(text, "/p", &mut found);
    let pair = |method: &str, path: &str| (method.to_owned(), path.to_owned());
    assert_eq!(found, Routes::from([pair("get", "/p/a/{b}"), pair("post", "/p/a/{b}")]));
}

async fn all_doors(app: &TestApp, folder: &Path) -> Service {
    let _ = rustls::crypto::ring::default_provider().install_default();
    counterfoil_db::migrate(&app.db, &wiring::migrations()).await.expect("migrations");
    std::fs::write(folder.join("token"), "of-our-own").expect("a token");
    let mut config = Config::default();
    config.server.listen = "127.0.0.1:0".into();
    config.xxl_job.admin_addresses = vec!["http://127.0.0.1:9/".into()];
    config.xxl_job.access_token = format!("file:{}", folder.join("token").display());
    config.xxl_job.data_dir = folder.join("executor");
    let roles = BTreeSet::from([Role::Api, Role::Review, Role::Centre, Role::Hall]);
    Service::start(&app.db, &config, &roles).await.expect("a service")
}

#[tokio::test]
async fn every_description_is_answered_by_its_door_and_by_nobody_else() {
    counterfoil_e2e::run(Dialect::Sqlite, |app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let service = all_doors(&app, folder.path()).await;
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build();
        let client = client.expect("a client");
        for endpoint in endpoints() {
            let parts = endpoint.path.split('/');
            let path: Vec<&str> =
                parts.map(|part| if part.starts_with('{') { "1" } else { part }).collect();
            let url = format!("http://{}{}", service.address, path.join("/"));
            let method = endpoint.method.to_uppercase().parse().expect("a method");
            let response = client.request(method, url).send().await.expect("an answer");
            let (status, path) = (response.status().as_u16(), endpoint.path);
            let text = response.text().await.expect("text");
            assert!(status != 405 && !text.contains("path-not-found"), "{path}: {status} {text}");
            match endpoint.access {
                Access::Signed => assert_eq!((status, text.as_str()), (401, ""), "{path}"),
                Access::Token => {
                    assert!(status == 200 && text.contains("token is wrong"), "{path}: {text}");
                }
                Access::Open | Access::Sealed => assert_ne!(status, 401, "{path}"),
            }
        }
        service.stop().await;
    })
    .await;
}

#[tokio::test]
async fn the_description_is_served_and_its_page_loads_nothing_from_anywhere() {
    counterfoil_e2e::run(Dialect::Sqlite, |app| async move {
        let folder = tempfile::tempdir().expect("a folder");
        let service = all_doors(&app, folder.path()).await;
        let client = reqwest::Client::builder().tls_certs_only([]).no_proxy().build();
        let client = client.expect("a client");
        let get = async |path: &str| {
            let url = format!("http://{}{path}", service.address);
            client.get(url).send().await.expect("an answer")
        };
        let served: Value = get("/openapi.json").await.json().await.expect("JSON");
        assert_eq!(served, document());
        assert_eq!(served["openapi"], "3.1.0");
        let page = get("/openapi").await;
        let policy = page.headers()["content-security-policy"].to_str().expect("text");
        assert!(policy.starts_with("default-src 'none'"), "{policy}");
        let page = page.text().await.expect("text");
        for load in ["src=", "@import", "url(", "<script", "<link"] {
            assert!(!page.contains(load), "{load}");
        }
        for endpoint in endpoints() {
            assert!(page.contains(&format!("<code>{}</code>", endpoint.path)), "{}", endpoint.path);
        }
        service.stop().await;
    })
    .await;
}
