//! No unfinished work, no ignored test, no sleeping.

use syn::visit::{self, Visit};

use crate::source::{Source, assert_none, repository};
use crate::syntax::{parse, test_lines};

/// Never in code. Each is put together here, so that this file does not contain it.
const NEVER: [&str; 6] = [
    concat!("to", "do!("),
    concat!("unimple", "mented!("),
    concat!("#[", "ignore"),
    concat!("TO", "DO"),
    concat!("FIX", "ME"),
    concat!("thread::", "sleep"),
];

/// Never in a test: a test waits for what it waits for, or moves the clock.
const NEVER_IN_A_TEST: &str = concat!("time::", "sleep");

fn unfinished(source: &Source) -> Vec<String> {
    let mut found = Vec::new();
    for (index, line) in source.text.lines().enumerate() {
        let marks = NEVER.iter().filter(|mark| line.contains(**mark));
        found.extend(marks.map(|mark| source.breach(index + 1, format!("contains {mark}"))));
    }
    found
}

fn sleeping_tests(source: &Source) -> Vec<String> {
    let file = parse(source);
    let regions = test_lines(source, &file);
    let mut lines: Vec<usize> = imports_of_sleep(&file);
    let texts = source.text.lines().enumerate();
    lines.extend(texts.filter(|(_, line)| line.contains(NEVER_IN_A_TEST)).map(|(i, _)| i + 1));
    lines.retain(|line| regions.iter().any(|region| region.contains(line)));
    lines.sort_unstable();
    lines.dedup();
    lines.into_iter().map(|line| source.breach(line, "a test sleeps")).collect()
}

/// The lines on which `use` brings in a sleep, also out of a group: `time::{self, sleep}`.
fn imports_of_sleep(file: &syn::File) -> Vec<usize> {
    struct Imports(Vec<usize>);
    impl<'ast> Visit<'ast> for Imports {
        fn visit_use_path(&mut self, path: &'ast syn::UsePath) {
            if path.ident == "time" || path.ident == "thread" {
                leaves(&path.tree, &mut self.0);
            }
            visit::visit_use_path(self, path);
        }
    }
    let mut imports = Imports(Vec::new());
    imports.visit_file(file);
    imports.0
}

fn leaves(tree: &syn::UseTree, found: &mut Vec<usize>) {
    let name = match tree {
        syn::UseTree::Name(leaf) => &leaf.ident,
        syn::UseTree::Rename(leaf) => &leaf.ident,
        syn::UseTree::Group(group) => {
            return group.items.iter().for_each(|item| leaves(item, found));
        }
        syn::UseTree::Path(_) | syn::UseTree::Glob(_) => return,
    };
    if name == "sleep" || name == "sleep_until" {
        found.push(name.span().start().line);
    }
}

#[test]
fn nothing_is_left_unfinished_ignored_or_asleep() {
    let code = repository().into_iter().filter(|source| source.is_code() || source.is("toml"));
    assert_none(code.flat_map(|source| unfinished(&source)).collect());
}

#[test]
fn no_test_sleeps() {
    let rust = repository().into_iter().filter(|source| source.is("rs"));
    assert_none(rust.flat_map(|source| sleeping_tests(&source)).collect());
}

#[test]
fn every_mark_of_unfinished_work_is_found() {
    for mark in NEVER {
        let source = Source::new("a.rs", &format!("fn a() {{\n    {mark}\n}}\n"));
        assert!(
            unfinished(&source).contains(&format!("a.rs:2: contains {mark}")),
            "{mark} is not found"
        );
    }
}

#[test]
fn a_sleep_is_found_in_every_place_a_test_can_have() {
    let call = format!("tokio::{NEVER_IN_A_TEST}(a).await;");
    let found = |path: &str, text: &str| sleeping_tests(&Source::new(path, text));
    let plain = format!("async fn a() {{\n{call}\n}}\n");
    assert_eq!(found("crates/a/tests/b.rs", &plain), ["crates/a/tests/b.rs:2: a test sleeps"]);
    assert_eq!(found("crates/a/src/b.rs", &plain), [""; 0], "a program may wait");
    let module = format!("#[cfg(test)]\nmod tests {{\n{plain}}}\n");
    assert_eq!(found("crates/a/src/b.rs", &module), ["crates/a/src/b.rs:4: a test sleeps"]);
    let function = format!("#[tokio::test]\n{plain}");
    assert_eq!(found("crates/a/src/b.rs", &function), ["crates/a/src/b.rs:3: a test sleeps"]);
    let import = "use tokio::{\n    time::{\n        self, sleep,\n    },\n};\n";
    assert_eq!(found("crates/a/tests/b.rs", import), ["crates/a/tests/b.rs:3: a test sleeps"]);
}
