//! Names that say nothing about what is inside are not used.

use std::path::Path;

use crate::source::{Source, assert_none, repository};
use crate::syntax::{Kind, parse, parts};

/// Refused as any word of a name: a room is called by its domain verb.
const EMPTY_WORDS: [&str; 5] = ["utils", "util", "helpers", "helper", "manager"];

/// Refused as a whole name; inside one (`common_prefix`) it can be exact.
const EMPTY_NAMES: [&str; 1] = ["common"];

/// Refused at the end of a name: the second of a thing replaces the first, or has a name.
const SECOND: &str = "v2";

fn empty_names(source: &Source) -> Vec<String> {
    let mut found = empty_path(source);
    if source.is("rs") {
        for part in parts(&parse(source)) {
            // A test is a sentence, and a sentence may end with an order's second version.
            let may_be_second = part.kind == Kind::Test;
            if let Some(word) = empty_word(&part.name, may_be_second) {
                let what = format!("{:?} {} is named \"{word}\"", part.kind, part.name);
                found.push(source.breach(*part.lines.start(), what));
            }
        }
    }
    found
}

fn empty_path(source: &Source) -> Vec<String> {
    let steps = Path::new(&source.path).iter();
    steps
        .filter_map(|step| Path::new(step).file_stem()?.to_str())
        .filter_map(|stem| empty_word(stem, false))
        .map(|word| source.breach(1, format!("the path is named \"{word}\"")))
        .collect()
}

fn empty_word(name: &str, may_be_second: bool) -> Option<String> {
    let words = words(name);
    if let [word] = words.as_slice()
        && EMPTY_NAMES.contains(&word.as_str())
    {
        return Some(word.clone());
    }
    if words.len() > 1 && !may_be_second && words.last().is_some_and(|word| word == SECOND) {
        return words.last().cloned();
    }
    words.into_iter().find(|word| EMPTY_WORDS.contains(&word.as_str()))
}

/// `TaskManager`, `task_manager` and `task-manager` have the same words.
fn words(name: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut after_lower = false;
    for letter in name.chars() {
        let is_gap = !letter.is_alphanumeric();
        if is_gap || (after_lower && letter.is_uppercase()) {
            words.push(String::new());
        }
        if !is_gap && let Some(word) = words.last_mut() {
            word.extend(letter.to_lowercase());
        }
        after_lower = letter.is_lowercase();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn every_file_module_type_and_function_is_named_for_what_it_does() {
    assert_none(repository().iter().flat_map(empty_names).collect());
}

#[test]
fn an_empty_name_is_found_in_paths_modules_types_and_functions() {
    let found = |path: &str, text: &str| empty_names(&Source::new(path, text)).len();
    assert_eq!(found("crates/a/src/utils.rs", ""), 1);
    assert_eq!(found("crates/a/src/common/claim.rs", ""), 1);
    assert_eq!(found("docs/orders_v2.md", ""), 1);
    assert_eq!(found("a.rs", "mod helpers;"), 1);
    assert_eq!(found("a.rs", "struct TaskManager;"), 1);
    assert_eq!(found("a.rs", "enum OrderV2 {}"), 1);
    assert_eq!(found("a.rs", "trait Helper {}"), 1);
    assert_eq!(found("a.rs", "type StringUtil = String;"), 1);
    assert_eq!(found("a.rs", "impl A { fn claim_v2(&self) {} }"), 1);
    assert_eq!(found("a.rs", "impl A { fn url_helper(&self) {} }"), 1);
}

#[test]
fn a_name_that_says_something_is_left_alone() {
    let text = "mod claim; fn common_prefix() {} struct Version; fn utilise() {} fn v2() {}
        #[tokio::test]
        async fn a_rejected_order_is_revised_into_v2() {}";
    assert_eq!(empty_names(&Source::new("crates/task/src/claim.rs", text)), [""; 0]);
}
