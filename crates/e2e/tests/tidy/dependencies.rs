//! What we build upon: known licences, one registry, one of each, and none of what we chose
//! against. It needs no network: the advisories that cargo-deny would fetch are not looked at.

use std::process::Command;

use crate::licence::is_allowed;
use crate::source::{Source, assert_none, repository, root};

const LICENCES: [&str; 13] = [
    "0BSD",
    "Apache-2.0",
    "BSD-2-Clause",
    "BSD-3-Clause",
    "BSL-1.0",
    "CC0-1.0",
    "CDLA-Permissive-2.0",
    "ISC",
    "MIT",
    "MIT-0",
    "Unicode-3.0",
    "Unlicense",
    "Zlib",
];

const REGISTRY: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// Two versions of one of these would be two types of one name, or two pools, or two runtimes.
const ONE_OF_EACH: [&str; 12] = [
    "axum",
    "chrono",
    "clap",
    "http",
    "hyper",
    "reqwest",
    "rustls",
    "sea-orm",
    "serde",
    "serde_json",
    "sqlx",
    "tokio",
];

/// Chosen against: `time` writes other text than chrono on SQLite, the rest is a second TLS.
const NONE_OF: [&str; 6] =
    ["aws-lc-rs", "aws-lc-sys", "native-tls", "openssl", "openssl-sys", "time"];

/// A crate that is really built, features considered.
struct Built {
    name: String,
    version: String,
    licence: String,
}

/// `Cargo.lock` also lists what no feature turns on; the tree is what gets compiled.
fn built() -> Vec<Built> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .current_dir(root())
        .args(["tree", "--workspace", "--locked", "--edges", "normal,build,dev"])
        .args(["--prefix", "none", "--format", "{p}\t{l}"])
        .output()
        .expect("cargo can be started");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "cargo tree failed: {errors}");
    read_tree(&String::from_utf8_lossy(&output.stdout))
}

/// Lines of `name v1.2.3 (where)`, a tab, the licence, and `(*)` when it was listed before.
fn read_tree(tree: &str) -> Vec<Built> {
    let mut built = Vec::new();
    for line in tree.lines().filter(|line| !line.is_empty()) {
        let (package, licence) = line.split_once('\t').expect("a package and its licence");
        let mut words = package.split(' ');
        let name = words.next().unwrap_or_default().to_owned();
        let version = words.next().unwrap_or_default().trim_start_matches('v').to_owned();
        let licence = licence.trim_end_matches("(*)").trim().to_owned();
        built.push(Built { name, version, licence });
    }
    built.sort_by(|a, b| (&a.name, &a.version).cmp(&(&b.name, &b.version)));
    built.dedup_by(|a, b| a.name == b.name && a.version == b.version);
    built
}

fn unknown_licences(built: &[Built]) -> Vec<String> {
    let refused = built.iter().filter(|package| !is_allowed(&package.licence, &LICENCES));
    refused
        .map(|Built { name, version, licence }| format!("{name} {version} is under \"{licence}\""))
        .collect()
}

fn second_versions(built: &[Built]) -> Vec<String> {
    let mut found = Vec::new();
    for name in ONE_OF_EACH {
        let versions: Vec<&str> = built
            .iter()
            .filter(|package| package.name == name)
            .map(|package| package.version.as_str())
            .collect();
        if versions.len() > 1 {
            found.push(format!("{name} is built {} times: {versions:?}", versions.len()));
        }
    }
    found
}

fn chosen_against(built: &[Built]) -> Vec<String> {
    let found = built.iter().filter(|package| NONE_OF.contains(&package.name.as_str()));
    found.map(|package| format!("{} {} is built", package.name, package.version)).collect()
}

/// Packages of a lock file that come neither from the registry nor out of the workspace.
fn strangers(lock: &Source, members: &[String]) -> Vec<String> {
    let table: toml::Table = lock.text.parse().expect("a lock file is TOML");
    let packages = table.get("package").and_then(toml::Value::as_array).expect("packages");
    let mut found = Vec::new();
    for package in packages {
        let text = |key| package.get(key).and_then(toml::Value::as_str).unwrap_or_default();
        let (name, source) = (text("name"), text("source"));
        let is_member = source.is_empty() && members.iter().any(|member| member == name);
        if source != REGISTRY && !is_member {
            found.push(format!("{name} comes from \"{source}\""));
        }
    }
    found
}

/// Members that set their own lints, licence or edition instead of the workspace's.
fn free_members(manifest: &Source) -> Vec<String> {
    let table: toml::Table =
        manifest.text.parse().unwrap_or_else(|error| panic!("{}: {error}", manifest.path));
    let is_inherited = |value: Option<&toml::Value>| {
        value.and_then(|value| value.get("workspace")).and_then(toml::Value::as_bool) == Some(true)
    };
    let package = table.get("package");
    let keys = ["edition", "license", "publish", "rust-version", "version"];
    let mut found: Vec<String> = keys
        .into_iter()
        .filter(|key| !is_inherited(package.and_then(|package| package.get(key))))
        .map(|key| manifest.breach(1, format!("{key} is not the workspace's")))
        .collect();
    if !is_inherited(table.get("lints")) {
        found.push(manifest.breach(1, "the lints are not the workspace's"));
    }
    found
}

fn manifests() -> Vec<Source> {
    let found: Vec<Source> = repository()
        .into_iter()
        .filter(|source| source.path.starts_with("crates/") && source.path.ends_with("/Cargo.toml"))
        .collect();
    assert!(!found.is_empty(), "no manifest was read");
    found
}

#[test]
fn every_dependency_is_under_a_licence_of_the_list() {
    assert_none(unknown_licences(&built()));
}

#[test]
fn no_key_dependency_is_built_twice() {
    let built = built();
    assert!(built.iter().any(|package| package.name == "tokio"), "the tree was not read");
    assert_none(second_versions(&built));
}

#[test]
fn nothing_is_built_that_was_chosen_against() {
    assert_none(chosen_against(&built()));
}

#[test]
fn every_dependency_comes_from_the_one_registry() {
    let text = std::fs::read_to_string(root().join("Cargo.lock")).expect("Cargo.lock is committed");
    let manifests = manifests();
    let members: Vec<String> = manifests
        .iter()
        .filter_map(|manifest| manifest.text.parse::<toml::Table>().ok())
        .filter_map(|table| Some(table.get("package")?.get("name")?.as_str()?.to_owned()))
        .collect();
    assert_none(strangers(&Source::new("Cargo.lock", &text), &members));
}

#[test]
fn every_crate_inherits_the_lints_and_the_licence_of_the_workspace() {
    assert_none(manifests().iter().flat_map(free_members).collect());
}

#[test]
fn an_unknown_licence_a_second_version_and_a_refused_crate_are_found() {
    let built = read_tree(
        "counterfoil-db v0.1.0 (/work/crates/db)\tApache-2.0\n\
         tokio v1.2.0\tMIT\ntokio v1.2.0\tMIT (*)\ntokio v2.0.0\tMIT\n\
         time v0.3.1\tMIT OR Apache-2.0\nodd v1.0.0 (proc-macro)\tGPL-3.0\nbare v1.0.0\t\n",
    );
    assert_eq!(
        unknown_licences(&built),
        ["bare 1.0.0 is under \"\"", "odd 1.0.0 is under \"GPL-3.0\""]
    );
    assert_eq!(second_versions(&built), ["tokio is built 2 times: [\"1.2.0\", \"2.0.0\"]"]);
    assert_eq!(chosen_against(&built), ["time 0.3.1 is built"]);
}

#[test]
fn a_dependency_from_elsewhere_is_found() {
    let lock = format!(
        "[[package]]\nname = \"ours\"\n[[package]]\nname = \"beside\"\n\
         [[package]]\nname = \"good\"\nsource = \"{REGISTRY}\"\n\
         [[package]]\nname = \"forked\"\nsource = \"git+https://a.example/forked\"\n"
    );
    assert_eq!(
        strangers(&Source::new("Cargo.lock", &lock), &["ours".to_owned()]),
        ["beside comes from \"\"", "forked comes from \"git+https://a.example/forked\""]
    );
}

#[test]
fn a_crate_with_lints_of_its_own_is_found() {
    let text = "[package]\nname = \"a\"\nversion.workspace = true\nedition.workspace = true\n\
        rust-version.workspace = true\nlicense = \"MIT\"\npublish.workspace = true\n\
        [lints.rust]\nunsafe_code = \"allow\"\n";
    assert_eq!(
        free_members(&Source::new("Cargo.toml", text)),
        [
            "Cargo.toml:1: license is not the workspace's",
            "Cargo.toml:1: the lints are not the workspace's",
        ]
    );
}
