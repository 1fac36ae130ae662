//! `counterfoil doctor`: configuration, connection, clock, migrations, keys, address, peers: what
//! `serve` would refuse to start with is said here first.

use std::time::Duration;

use anyhow::Result;
use chrono::TimeDelta;
use counterfoil_db::{Db, Read};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};

use super::output::table;
use super::{Output, Session};
use crate::config::Config;
use crate::signing_config::OWN_APP;
use crate::{scheduler, wiring};

/// How far the database's clock and this machine's may be apart.
const MAX_SKEW: TimeDelta = TimeDelta::seconds(30);
/// How long a peer may take to accept a connection.
const MAX_CONNECT: Duration = Duration::from_secs(3);
/// Stands for peers that the configuration does not name; nothing is sent there.
const NO_PEER: &str = "http://127.0.0.1:9";

struct Finding {
    what: &'static str,
    good: bool,
    said: String,
}

pub(super) async fn run(session: &Session) -> Result<Output> {
    let mut findings = vec![configuration(session)];
    match session.open().await {
        Ok(db) => {
            let said = format!("{} answers at {}", db.dialect().name(), db.shown_url());
            findings.push(Finding { what: "database", good: true, said });
            findings.push(clock(&db).await);
            findings.push(migrations(&db).await);
            findings.push(work(&db, &session.config));
        }
        Err(error) => {
            findings.push(Finding { what: "database", good: false, said: format!("{error:#}") });
        }
    }
    findings.push(keys(&session.config));
    findings.push(address(&session.config.server.listen).await);
    findings.push(review_centre(session).await);
    findings.push(xxl_job(&session.config).await);
    let failed = findings.iter().any(|finding| !finding.good);
    let json: Vec<_> = findings
        .iter()
        .map(|one| json!({ "what": one.what, "ok": one.good, "said": one.said }))
        .collect();
    let rows: Vec<Vec<String>> = findings
        .into_iter()
        .map(|one| {
            let mark = if one.good { "ok" } else { "TROUBLE" };
            vec![one.what.into(), mark.into(), one.said]
        })
        .collect();
    let text = table(&["WHAT", "", "FOUND"], &rows);
    Ok(Output::new(json!({ "findings": json }), text).failed(failed))
}

fn configuration(session: &Session) -> Finding {
    let said = match &session.globals.config {
        Some(path) => format!("read from {}", path.display()),
        None => "defaults, counterfoil.toml if there is one, environment".to_owned(),
    };
    Finding { what: "configuration", good: true, said }
}

async fn clock(db: &Db) -> Finding {
    match db.now().await {
        Ok(now) => {
            let skew = now - chrono::Utc::now();
            let good = skew.abs() <= MAX_SKEW;
            let said = format!("{} ms from this machine's", skew.num_milliseconds());
            Finding { what: "clock", good, said }
        }
        Err(error) => Finding { what: "clock", good: false, said: error.to_string() },
    }
}

async fn migrations(db: &Db) -> Finding {
    let what = "migrations";
    match wiring::schema(db).await.and_then(|schema| schema.accept()) {
        Ok(()) => Finding { what, good: true, said: "all applied".to_owned() },
        Err(error) => Finding { what, good: false, said: error.to_string() },
    }
}

/// Work, hints and cron as `serve` makes them of the configuration.
fn work(db: &Db, config: &Config) -> Finding {
    let what = "work";
    match started(db, config) {
        Ok(jobs) => {
            let said = format!("{jobs} handlers have a cron expression that is understood");
            Finding { what, good: true, said }
        }
        Err(error) => Finding { what, good: false, said: format!("{error:#}") },
    }
}

fn started(db: &Db, config: &Config) -> Result<usize> {
    let mut config = config.clone();
    config.signing.complete(&mut config.apps);
    let engine = wiring::engine(db, &config, NO_PEER)?;
    let stages: Vec<&str> = engine.kinds().map(|kind| kind.stage).collect();
    config.kick.kicker(&stages)?;
    scheduler::rules_cron(&config.scheduler)?;
    Ok(scheduler::jobs(&engine, &config.scheduler)?.len())
}

fn keys(config: &Config) -> Finding {
    let what = "keys";
    if let Err(error) = config.keyring() {
        return Finding { what, good: false, said: format!("{error:#}") };
    }
    let own = match config.signing.private_key.as_str() {
        "" => "no signing.private-key: each process signs with one of its own, and other \
               programs cannot know it"
            .to_owned(),
        _ => match config.signing.app_key.as_str() {
            "" => format!("signs as {OWN_APP}"),
            app => format!("signs as {app}"),
        },
    };
    let apps = config.apps.len();
    Finding { what, good: true, said: format!("{own}; trusted programs: {apps}") }
}

async fn address(listen: &str) -> Finding {
    let what = "address";
    match TcpListener::bind(listen).await {
        Ok(_) => Finding { what, good: true, said: format!("{listen} is free") },
        Err(error) if error.kind() == std::io::ErrorKind::AddrInUse => {
            let said = format!("somebody listens on {listen}: a `serve` of yours, or a stranger");
            Finding { what, good: true, said }
        }
        Err(error) => Finding { what, good: false, said: format!("{listen}: {error}") },
    }
}

async fn review_centre(session: &Session) -> Finding {
    let what = "review centre";
    let url = session.config.review.url.as_str();
    if url.is_empty() {
        let said = "this process's own (set review.url for another)".to_owned();
        return Finding { what, good: true, said };
    }
    reached(what, url).await
}

/// Whether somebody accepts connections at a URL's host.
async fn reached(what: &'static str, url: &str) -> Finding {
    let host = url.split("://").nth(1).unwrap_or(url).split('/').next().unwrap_or_default();
    let host = if host.contains(':') { host.to_owned() } else { format!("{host}:80") };
    match tokio::time::timeout(MAX_CONNECT, TcpStream::connect(&host)).await {
        Ok(Ok(_)) => Finding { what, good: true, said: format!("{host} accepts connections") },
        Ok(Err(error)) => Finding { what, good: false, said: format!("{host}: {error}") },
        Err(_) => Finding { what, good: false, said: format!("{host} does not answer in time") },
    }
}

/// The executor as `serve` makes it of the configuration, and whether an admin is there.
async fn xxl_job(config: &Config) -> Finding {
    let what = "xxl-job";
    let executor = &config.xxl_job;
    if !executor.is_configured() {
        let said = "no executor (set xxl-job.admin-addresses to be one)".to_owned();
        return Finding { what, good: true, said };
    }
    let refused = || -> Result<()> {
        executor.admins(&executor.token()?)?;
        executor.registered_address(config.server.listen.parse()?)?;
        std::fs::create_dir_all(&executor.data_dir)?;
        Ok(())
    };
    if let Err(error) = refused() {
        return Finding { what, good: false, said: format!("{error:#}") };
    }
    let mut last = Finding { what, good: false, said: String::new() };
    for address in &executor.admin_addresses {
        last = reached(what, address).await;
        if last.good {
            break;
        }
    }
    last
}
