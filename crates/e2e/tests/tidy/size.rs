//! Nothing is wider or longer than a reader can take in.

use crate::source::{Source, assert_none, repository, rust};
use crate::syntax::{Kind, parse, parts};

const COLUMNS: usize = 100;
const LINES_IN_A_FUNCTION: usize = 70;
const LINES_IN_A_FILE: usize = 500;

fn wide_lines(source: &Source) -> Vec<String> {
    let lines = source.text.lines().enumerate();
    lines
        .map(|(index, line)| (index + 1, line.chars().count()))
        .filter(|(_, columns)| *columns > COLUMNS)
        .map(|(line, columns)| source.breach(line, format!("{columns} columns")))
        .collect()
}

fn long_functions(source: &Source) -> Vec<String> {
    let parts = parts(&parse(source));
    let functions =
        parts.into_iter().filter(|part| matches!(part.kind, Kind::Function | Kind::Test));
    functions
        .map(|part| (part.lines.end() - part.lines.start() + 1, part))
        .filter(|(length, _)| *length > LINES_IN_A_FUNCTION)
        .map(|(length, part)| {
            source.breach(*part.lines.start(), format!("fn {} has {length} lines", part.name))
        })
        .collect()
}

fn long_file(source: &Source) -> Option<String> {
    let length = source.text.lines().count();
    (length > LINES_IN_A_FILE).then(|| source.breach(length, format!("{length} lines")))
}

#[test]
fn no_line_of_code_is_wider_than_a_hundred_columns() {
    let code = repository().into_iter().filter(|source| source.is_code() && !source.is("sql"));
    assert_none(code.flat_map(|source| wide_lines(&source)).collect());
}

#[test]
fn no_function_is_longer_than_seventy_lines() {
    assert_none(rust().iter().flat_map(long_functions).collect());
}

#[test]
fn no_rust_file_is_longer_than_five_hundred_lines() {
    assert_none(rust().iter().filter_map(long_file).collect());
}

#[test]
fn a_line_of_a_hundred_and_one_columns_is_found_and_columns_are_characters() {
    let fits = "账".repeat(COLUMNS);
    let source = Source::new("a.rs", &format!("{fits}\n{fits}x\n"));
    assert_eq!(wide_lines(&source), ["a.rs:2: 101 columns"]);
}

#[test]
fn a_function_of_seventy_one_lines_is_found_wherever_it_stands() {
    let body = "    step();\n".repeat(LINES_IN_A_FUNCTION - 1);
    let long = format!("/// Docs do not count.\nfn long() {{\n{body}}}\n");
    let fits = long.replacen("    step();\n", "", 1);
    let found = |text: &str| long_functions(&Source::new("a.rs", text));
    assert_eq!(found(&long), ["a.rs:2: fn long has 71 lines"]);
    assert_eq!(found(&fits), [""; 0]);
    assert_eq!(found(&format!("impl A {{\n{long}}}\n")), ["a.rs:3: fn long has 71 lines"]);
    assert_eq!(found(&format!("trait A {{\n{long}}}\n")), ["a.rs:3: fn long has 71 lines"]);
    assert_eq!(found(&format!("each! {{\n{long}}}\n")), ["a.rs:3: fn long has 71 lines"]);
    let nested = format!("fn outer() {{ each!({{\n{long}}}) }}\n");
    assert!(found(&nested).contains(&"a.rs:3: fn long has 71 lines".to_owned()));
}

#[test]
fn a_brace_in_a_string_or_a_comment_does_not_end_a_function() {
    let body = "    step(\"}\"); // }\n".repeat(LINES_IN_A_FUNCTION - 1);
    let source = Source::new("a.rs", &format!("fn long() {{\n{body}}}\n"));
    assert_eq!(long_functions(&source), ["a.rs:1: fn long has 71 lines"]);
}

#[test]
fn a_file_of_five_hundred_and_one_lines_is_found() {
    let file = |lines| Source::new("a.rs", &"//\n".repeat(lines));
    assert_eq!(long_file(&file(LINES_IN_A_FILE)), None);
    assert_eq!(long_file(&file(LINES_IN_A_FILE + 1)), Some("a.rs:501: 501 lines".to_owned()));
}
