//! The arrows between the crates, and the walls inside them.

use crate::source::{Source, assert_none, repository};
use crate::syntax::{Kind, Token, parse, parts, tokens};

const OURS: &str = "counterfoil-";

/// Which of our crates each crate may use. Tests (dev-dependencies) may use any.
const ARROWS: [(&str, &[&str]); 10] = [
    ("protocol", &[]),
    ("db", &[]),
    ("task", &["db", "protocol"]),
    ("account", &["db", "protocol"]),
    ("review", &["task", "db", "protocol"]),
    ("payment", &["task", "db", "protocol"]),
    ("reconcile", &["task", "db", "protocol"]),
    ("remote", &["payment", "review", "reconcile", "protocol"]),
    ("server", &["protocol", "db", "account", "task", "review", "payment", "reconcile", "remote"]),
    (
        "e2e",
        &[
            "protocol",
            "db",
            "account",
            "task",
            "review",
            "payment",
            "reconcile",
            "remote",
            "server",
        ],
    ),
];

/// Outside crates, with their families (`axum-extra`), that only one of ours may know.
const HOLDERS: [(&str, &str); 8] = [
    ("sea-orm", "db"),
    ("sqlx", "db"),
    ("axum", "server"),
    ("clap", "server"),
    ("reqwest", "remote"),
    ("rdkafka", "remote"),
    ("lapin", "remote"),
    ("redis", "remote"),
];

/// Modules that may not know each other: each must work where the other is not installed.
const WALLS: [(&str, &str); 2] = [("form_centre", "service_hall"), ("service_hall", "form_centre")];

fn wrong_arrows(manifest: &Source) -> Vec<String> {
    let table: toml::Table =
        manifest.text.parse().unwrap_or_else(|error| panic!("{}: {error}", manifest.path));
    let Some(name) = table.get("package").and_then(|package| package.get("name")) else {
        return Vec::new();
    };
    let name = name.as_str().unwrap_or_default();
    let own = name.strip_prefix(OURS).unwrap_or(name);
    let Some((_, allowed)) = ARROWS.iter().find(|(layer, _)| *layer == own) else {
        return vec![manifest.breach(1, format!("{name} has no place among the layers"))];
    };
    let mut found = Vec::new();
    for used in used(&table) {
        if let Some(layer) = used.strip_prefix(OURS) {
            if !allowed.contains(&layer) {
                found.push(manifest.breach(1, format!("{own} may not use {layer}")));
            }
        } else if let Some((_, holder)) = HOLDERS.iter().find(|(outside, _)| is_of(&used, outside))
            && *holder != own
        {
            found.push(manifest.breach(1, format!("only {holder} may use {used}, not {own}")));
        }
    }
    found
}

/// The packages a manifest depends on, under every target, by their true names.
fn used(table: &toml::Table) -> Vec<String> {
    let targets = table.get("target").and_then(toml::Value::as_table);
    let tables = targets.into_iter().flat_map(toml::Table::values);
    let tables = tables.filter_map(toml::Value::as_table).chain([table]);
    let mut names = Vec::new();
    for table in tables {
        for section in ["dependencies", "build-dependencies"] {
            let entries = table.get(section).and_then(toml::Value::as_table);
            names.extend(entries.into_iter().flatten().map(|(name, value)| {
                let renamed = value.get("package").and_then(toml::Value::as_str);
                renamed.unwrap_or(name).to_owned()
            }));
        }
    }
    names
}

fn is_of(used: &str, family: &str) -> bool {
    let rest = used.strip_prefix(family);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with(['-', '_']))
}

fn holes_in_walls(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (room, other) in WALLS {
        let in_room = source.path.split(['/', '.']).any(|step| step == room);
        let modules: Vec<_> = if in_room {
            vec![1..=usize::MAX]
        } else {
            let parts = parts(&parse(source)).into_iter();
            parts
                .filter(|part| part.kind == Kind::Module && part.name == room)
                .map(|part| part.lines)
                .collect()
        };
        if modules.is_empty() {
            continue;
        }
        let words = tokens(source).into_iter().filter(|(line, token)| {
            matches!(token, Token::Word(word) if word == other)
                && modules.iter().any(|lines| lines.contains(line))
        });
        found.extend(words.map(|(line, _)| source.breach(line, format!("{room} knows {other}"))));
    }
    found
}

#[test]
fn the_crates_depend_on_each_other_only_downwards() {
    let manifests: Vec<Source> = repository()
        .into_iter()
        .filter(|source| source.path.starts_with("crates/") && source.path.ends_with("Cargo.toml"))
        .collect();
    assert!(!manifests.is_empty(), "no manifest was read");
    assert_none(manifests.iter().flat_map(wrong_arrows).collect());
}

#[test]
fn the_form_centre_and_the_service_hall_do_not_know_each_other() {
    let rust = repository().into_iter().filter(|source| source.is("rs"));
    let programs = rust.filter(|source| source.path.contains("/src/"));
    assert_none(programs.flat_map(|source| holes_in_walls(&source)).collect());
}

#[test]
fn an_arrow_upwards_or_to_an_outside_crate_of_another_is_found() {
    let found = |name: &str, rest: &str| {
        let text = format!("[package]\nname = \"counterfoil-{name}\"\n{rest}\n");
        wrong_arrows(&Source::new("Cargo.toml", &text))
    };
    let up = "[dependencies]\ncounterfoil-payment.workspace = true";
    assert_eq!(found("task", up), ["Cargo.toml:1: task may not use payment"]);
    assert_eq!(found("remote", up), [""; 0]);
    let axum = "[dependencies]\nweb = { package = \"axum-extra\", version = \"1\" }";
    assert_eq!(found("task", axum), ["Cargo.toml:1: only server may use axum-extra, not task"]);
    assert_eq!(found("server", axum), [""; 0]);
    let target = "[target.'cfg(unix)'.dependencies]\nsqlx = \"1\"";
    assert_eq!(found("task", target), ["Cargo.toml:1: only db may use sqlx, not task"]);
    let build = "[build-dependencies]\nreqwest = \"1\"";
    assert_eq!(found("server", build), ["Cargo.toml:1: only remote may use reqwest, not server"]);
    let test = "[dev-dependencies]\ncounterfoil-payment.workspace = true\nsea-orm = \"2\"";
    assert_eq!(found("task", test), [""; 0]);
    assert_eq!(
        found("annex", ""),
        ["Cargo.toml:1: counterfoil-annex has no place among the layers"]
    );
}

#[test]
fn a_hole_in_a_wall_is_found_in_a_folder_a_file_and_a_module() {
    let found = |path: &str, text: &str| holes_in_walls(&Source::new(path, text));
    let uses = "use crate::{\n    service_hall::Answer,\n};";
    let path = "crates/reconcile/src/form_centre/sign.rs";
    assert_eq!(found(path, uses), [format!("{path}:2: form_centre knows service_hall")]);
    assert_eq!(found("crates/reconcile/src/form_centre.rs", uses).len(), 1);
    assert_eq!(
        found("crates/reconcile/src/lib.rs", "mod form_centre;\nmod service_hall;").len(),
        0
    );
    let module = "mod service_hall {\n    fn a() { super::form_centre::b() }\n}\nmod form_centre;";
    assert_eq!(found("crates/reconcile/src/lib.rs", module).len(), 1);
    let remark = "//! Answers the service_hall.\nconst A: &str = \"service_hall\";";
    assert_eq!(found("crates/reconcile/src/form_centre.rs", remark), [""; 0]);
}
