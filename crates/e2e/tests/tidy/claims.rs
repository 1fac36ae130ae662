//! The README claims nothing that no test holds.

use crate::links::{Link, links, resolve};
use crate::source::{Source, assert_none, repository};

const README: &str = "README.md";

/// The heading of the claims, in any case.
const HEADINGS: [&str; 2] = ["what it proves", "claims"];

/// The claims with their lines: the rows of the table, or the points of the list, under the
/// heading.
fn claims(readme: &Source) -> Vec<(usize, &str)> {
    let mut inside = false;
    let mut found = Vec::new();
    for (index, line) in readme.text.lines().enumerate() {
        if line.starts_with('#') {
            let heading = line.to_lowercase();
            inside = HEADINGS.iter().any(|words| heading.contains(words));
        } else if inside && (line.starts_with('|') || line.starts_with("- ")) {
            found.push((index + 1, line));
        }
    }
    without_heads(found)
}

/// A table's head is the row above its rule; neither is a claim.
fn without_heads(rows: Vec<(usize, &str)>) -> Vec<(usize, &str)> {
    let is_rule =
        |row: &str| row.starts_with('|') && row.trim_matches(['|', '-', ':', ' ']).is_empty();
    let rules: Vec<usize> =
        rows.iter().filter(|(_, row)| is_rule(row)).map(|(line, _)| *line).collect();
    let is_claim = |line: usize| !rules.contains(&line) && !rules.contains(&(line + 1));
    rows.into_iter().filter(|(line, _)| is_claim(*line)).collect()
}

fn unproved(sources: &[Source]) -> Vec<String> {
    let Some(readme) = sources.iter().find(|source| source.path == README) else {
        return vec![format!("{README}:1: there is none")];
    };
    let claims = claims(readme);
    if claims.is_empty() {
        return vec![readme.breach(1, format!("no claims under a heading \"{}\"", HEADINGS[0]))];
    }
    let mut found = Vec::new();
    for (line, row) in claims {
        let proofs: Vec<Link> =
            links(row).into_iter().filter(|link| link.path().is_some_and(is_test)).collect();
        if proofs.is_empty() {
            found.push(readme.breach(line, "the claim links to no test"));
        }
        let missing = proofs.iter().filter_map(|link| missing(link, sources));
        found.extend(missing.map(|what| readme.breach(line, what)));
    }
    found
}

fn is_test(path: &str) -> bool {
    path.ends_with(".rs") && (path.contains("/tests/") || path.contains("/src/"))
}

/// What a proof lacks: its file, a test in the file, or the one test that the label names.
fn missing(link: &Link, sources: &[Source]) -> Option<String> {
    let path = link.path().and_then(|path| resolve(README, path))?;
    let Some(file) = sources.iter().find(|source| source.path == path) else {
        return Some(format!("{path} does not exist"));
    };
    if !file.text.contains("test]") && !path.contains("/tests/") {
        return Some(format!("{path} holds no test"));
    }
    let name = link.label.strip_prefix('`')?.strip_suffix('`')?;
    let is_sentence = name.contains('_') && !name.contains(['/', '.', ' ', ':']);
    (is_sentence && !has_word(&file.text, name)).then(|| format!("{path} has no test {name}"))
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_').any(|all| all == word)
}

#[test]
fn every_claim_of_the_readme_links_to_the_test_that_holds_it() {
    assert_none(unproved(&repository()));
}

#[test]
fn a_claim_without_a_test_is_found() {
    let readme = "# A\n| not | a claim |\n\n## What it proves\n| claim | test |\n|---|---|\n\
        | held | [t](crates/a/tests/a.rs#L2) |\n\
        | named | [`bills_are_paid_once`](crates/a/tests/a.rs) |\n\
        | bare | none |\n\
        | gone | [t](crates/a/tests/gone.rs) |\n\
        | renamed | [`bills_are_paid`](crates/a/tests/a.rs) |\n\
        | source | [t](crates/a/src/a.rs) |\n\
        - listed\n## Next\n| x |\n";
    let found = unproved(&[
        Source::new(README, readme),
        Source::new("crates/a/tests/a.rs", "#[test]\nfn bills_are_paid_once() {}"),
        Source::new("crates/a/src/a.rs", "fn a() {}"),
    ]);
    assert_eq!(
        found,
        [
            "README.md:9: the claim links to no test",
            "README.md:10: crates/a/tests/gone.rs does not exist",
            "README.md:11: crates/a/tests/a.rs has no test bills_are_paid",
            "README.md:12: crates/a/src/a.rs holds no test",
            "README.md:13: the claim links to no test",
        ]
    );
}

#[test]
fn a_readme_that_claims_nothing_is_found() {
    assert_eq!(unproved(&[]).len(), 1);
    assert_eq!(unproved(&[Source::new(README, "## What it proves\nMuch.\n")]).len(), 1);
}
