//! `counterfoil canon` as programs call it.

use std::io::Write;
use std::process::{Command, Output, Stdio};

fn canon(answer: &str) -> Output {
    let mut child = Command::new(env!("CARGO_BIN_EXE_counterfoil"))
        .args(["canon", "-", "--json"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(answer.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

fn said(output: &Output) -> serde_json::Value {
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_command_answers_canonical_text_and_hash() {
    let vectors = include_str!("../../../docs/canon-vectors.json");
    let vectors: Vec<serde_json::Value> = serde_json::from_str(vectors).unwrap();
    let output = canon(vectors[0]["answer"].as_str().unwrap());
    assert!(output.status.success());
    assert_eq!(said(&output)["canonical"], vectors[0]["canonical"]);
    assert_eq!(said(&output)["hash"], vectors[0]["hash"]);
}

#[test]
fn what_cannot_be_hashed_ends_with_2_the_path_and_the_reason() {
    let output = canon(
        r#"{"answerUuid":"a","formUuid":"f","formVersion":1,"isDeleted":false,"schId":"s",
            "values":{"age":9007199254740993}}"#,
    );
    assert_eq!(output.status.code(), Some(2));
    assert_eq!(said(&output)["code"], "answer-unhashable");
    assert_eq!(said(&output)["path"], "/values/age");
    let words = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(words.contains("/values/age") && words.contains("9007199254740991"), "{words}");
}
