//! Answers, grants and deliveries from the command line, with the real binary on every database.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Stdio;

use counterfoil_e2e::{TestApp, on_every_database};
use serde_json::{Value, json};
use tokio::io::AsyncWriteExt;
use tokio::process::Command;

fn counterfoil(app: &TestApp, words: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_counterfoil"));
    command
        .args(["--database", app.url(), "--now", &app.now().to_rfc3339(), "--json"])
        .args(words)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .kill_on_drop(true);
    command
}

/// Runs a command with something on its standard input; answers what it said, and checks its end.
async fn given(app: &TestApp, code: i32, input: &str, words: &[&str]) -> Value {
    let mut child = counterfoil(app, words).spawn().expect("the process");
    let mut stdin = child.stdin.take().expect("a pipe");
    stdin.write_all(input.as_bytes()).await.expect("written");
    drop(stdin);
    let done = child.wait_with_output().await.expect("its end");
    let (out, err) = (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    assert_eq!(done.status.code(), Some(code), "{words:?}: {out} {err}");
    serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out} {err}"))
}

async fn told(app: &TestApp, code: i32, words: &[&str]) -> Value {
    given(app, code, "", words).await
}

const UUID: &str = "0000000000000000000000000000000a";
const PLACE: [&str; 6] = ["--consumer", "hall", "--school", "school-1", "--form", "form-1"];

async fn granted(app: &TestApp) {
    told(app, 0, &["migrate"]).await;
    told(app, 0, &[&["grant", "set"], &PLACE[..]].concat()).await;
}

/// A file in a folder that outlives the test's commands.
fn file(folder: &Path, name: &str, text: &str) -> PathBuf {
    let path = folder.join(name);
    std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    path
}

async fn import(app: &TestApp, code: i32, path: &Path, more: &[&str]) -> Value {
    let path = path.display().to_string();
    told(app, code, &[&["import", "answers", path.as_str()], more].concat()).await
}

/// The faults as `line|column|message`.
fn faults(said: &Value) -> Vec<String> {
    let shown = said["faults"].as_array().unwrap().iter().map(|fault| {
        let text = |name: &str| fault[name].as_str().unwrap().to_owned();
        format!("{}|{}|{}", fault["line"], text("column"), text("message"))
    });
    shown.collect()
}

on_every_database! {
    async fn an_answer_is_put_read_and_deleted_with_its_revisions_and_deliveries(app: TestApp) {
        granted(&app).await;
        let put = ["answer", "put", "-", "--answer", UUID];
        let place = ["--form", "form-1", "--school", "school-1", "--expect", "0"];
        let first = given(&app, 0, "{\"b\":1,\"a\":0.10}", &[&put[..], &place].concat()).await;
        assert_eq!((&first["revision"], &first["isDeleted"]), (&json!(1), &json!(false)));
        // Its place is known by now.
        let second = given(&app, 0, "[\"值\"]", &put).await;
        assert_eq!(second["revision"], 2);
        let refused = given(&app, 2, "1", &[&put[..], &["--expect", "1"]].concat()).await;
        assert_eq!(refused["code"], "REVISION_CONFLICT");
        let shown = told(&app, 0, &["answer", "get", UUID]).await;
        assert_eq!(shown["values"], json!(["值"]));
        assert_eq!(shown["contentHash"], second["contentHash"]);
        let gone = told(&app, 0, &["--user", "7", "answer", "delete", UUID]).await;
        assert_eq!((&gone["revision"], &gone["outcome"]), (&json!(3), &json!("changed")));
        let again = told(&app, 0, &["answer", "delete", UUID]).await;
        assert_eq!((&again["revision"], &again["outcome"]), (&json!(3), &json!("unchanged")));
        let deliveries = "SELECT revision, consumer_app_key, state FROM answer_delivery ORDER BY id";
        assert_eq!(
            app.lines(deliveries).await,
            ["1|hall|PENDING", "2|hall|PENDING", "3|hall|PENDING"]
        );
        let log = "SELECT action, revision, actor FROM answer_op_log
                   WHERE answer_uuid IS NOT NULL ORDER BY id";
        assert_eq!(app.lines(log).await, ["PUT|1|cli", "PUT|2|cli", "DELETE|3|7"]);
        let seqs = "SELECT COUNT(*) AS n FROM answer a
                    JOIN answer_op_log l ON l.id = a.seq_no AND l.revision = a.revision";
        assert_eq!(app.value(seqs).await, "1");
        let missing = told(&app, 2, &["answer", "get", "000000000000000000000000000000ff"]).await;
        assert_eq!(missing["code"], "ANSWER_NOT_FOUND");
    }

    async fn a_value_that_cannot_be_hashed_is_refused_with_its_path(app: TestApp) {
        granted(&app).await;
        let put = ["answer", "put", "-", "--form", "form-1", "--school", "school-1"];
        let bad = [
            ("{\"age\":9007199254740993}", "/values/age"),
            ("{\"a\":{\"b\":[1,1e999]}}", "/values/a/b/1"),
            ("{\"a\":1,\"\\u0061\":2}", "/values/a"),
            ("{\"t\":\"\\ud800\"}", "/values/t"),
        ];
        for (values, path) in bad {
            let said = given(&app, 2, values, &put).await;
            assert_eq!(said["code"], "answer-unhashable", "{said}");
            assert_eq!(said["path"], path, "{said}");
        }
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM answer").await, "0");
        let nowhere = given(&app, 2, "1", &["answer", "put", "-"]).await;
        assert_eq!(nowhere["code"], "invalid-input");
    }

    async fn a_grant_counts_with_its_school_and_every_change_raises_its_epoch(app: TestApp) {
        granted(&app).await;
        let listed = told(&app, 0, &["grant", "list"]).await;
        let first = listed["items"][0]["epoch"].as_i64().unwrap();
        assert_eq!(listed["items"][0]["isEffective"], true);
        let same = told(&app, 0, &[&["grant", "set"], &PLACE[..]].concat()).await;
        assert_eq!(same["grant"]["grantEpoch"], first, "nothing changed");
        let less = [&["grant", "set"], &PLACE[..], &["--no-read"]].concat();
        let less = told(&app, 0, &less).await;
        assert_eq!((&less["grant"]["grantEpoch"], &less["isEffective"]),
            (&json!(first + 1), &json!(false)));
        let create = ["reconcile", "create", "--scope", "FORM"];
        let refused = told(&app, 1, &[&create[..], &PLACE[..]].concat()).await;
        assert_eq!(refused["tasks"][0]["reasonCode"], "GRANT_REVOKED");
        let revoked = [&["--user", "7", "grant", "revoke"], &PLACE[..], &["--whole-school"]];
        told(&app, 0, &revoked.concat()).await;
        let listed = told(&app, 0, &["grant", "list", "--consumer", "hall"]).await;
        assert_eq!(listed["items"][0]["isInScope"], false);
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM form_consumer_grant").await, "1");
        let log = "SELECT actor, detail FROM answer_op_log WHERE action = 'GRANT' ORDER BY id DESC";
        assert_eq!(
            app.lines(log).await[0],
            "7|hall: enabled false, subscribe false, read false"
        );
    }

    async fn a_table_of_answers_is_imported_whole_or_not_at_all(app: TestApp) {
        granted(&app).await;
        let folder = tempfile::tempdir().unwrap();
        let text = format!(
            "\u{feff}答卷编号,表单编号,sch_id,values,is_deleted\r\n\
             {UUID},form-1,school-1,\"{{\"\"n\"\":1}}\",\r\n\
             short,form-1,school-1,1,\r\n\
             ,form-1,,1,maybe\r\n\
             ,form-1,school-1,\"{{\"\"age\"\":9007199254740993}}\",否\r\n\
             ,form-1,school-1,\"[1,\n2]\",\r\n\
             000000000000000000000000000000ee,form-1,school-1,,是\r\n"
        );
        let path = file(folder.path(), "answers.csv", &text);
        let said = import(&app, 2, &path, &[]).await;
        assert_eq!(said["code"], "rows-refused");
        let uuid_rule = "an answer has a uuid of 32 lower-case hexadecimal digits, a form, a school";
        assert_eq!(faults(&said), [
            format!("3||{uuid_rule}"),
            "4|is_deleted|is neither true nor false".to_owned(),
            "4|sch_id|is missing".to_owned(),
            "5|values|/age: it is an integer beyond ±9007199254740991; write it as a text".to_owned(),
            "8|答卷编号|there is no such answer".to_owned(),
        ]);
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM answer").await, "0");
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM answer_delivery").await, "0");
        let said = import(&app, 1, &path, &["--partial"]).await;
        assert_eq!((&said["created"], &said["refused"]), (&json!(2), &json!(4)));
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM answer").await, "2");
        let header = file(folder.path(), "header.csv", "form_uuid,what,values\n1,2,3\n");
        let said = import(&app, 2, &header, &["--partial"]).await;
        let columns = "answer_uuid, form_uuid, sch_id, form_version, is_deleted, values, \
                       expected_revision";
        assert_eq!(faults(&said), [
            format!("1|what|is no column here; known are {columns}"),
            "1|sch_id|(学校编号) is missing from the header".to_owned(),
        ]);
    }

    async fn json_lines_are_writes_in_their_order_and_the_same_again_changes_nothing(app: TestApp) {
        granted(&app).await;
        let folder = tempfile::tempdir().unwrap();
        let line = |uuid: &str, rest: &str| {
            format!("{{\"answerUuid\":\"{uuid}\",\"formUuid\":\"form-1\",\
                      \"schId\":\"school-1\",{rest}}}\n")
        };
        let other = "0000000000000000000000000000000b";
        let mut text = String::new();
        for number in 0..1200 {
            text.push_str(&line(&format!("{number:031x}f"), &format!("\"values\":{{\"n\":{number}}}")));
        }
        text.push_str(&line(UUID, "\"values\":1"));
        text.push_str(&line(UUID, "\"values\":2,\"expectedRevision\":1"));
        text.push('\n');
        text.push_str(&line(other, "\"values\":{\"x\":1.50}"));
        text.push_str(&line(other, "\"isDeleted\":true"));
        let path = file(folder.path(), "answers.jsonl", &text);
        let said = import(&app, 0, &path, &[]).await;
        assert_eq!((&said["created"], &said["updated"]), (&json!(1202), &json!(2)));
        let query = "SELECT uuid, revision, is_deleted, values_json FROM answer
                     WHERE revision > 1 ORDER BY uuid";
        assert_eq!(app.lines(query).await, [format!("{UUID}|2|0|2"), format!("{other}|2|1|NULL")]);
        assert_eq!(app.value("SELECT COUNT(*) AS n FROM answer_delivery").await, "1204");
        let seqs = "SELECT COUNT(*) AS n FROM answer a JOIN answer_op_log l
                    ON l.id = a.seq_no AND l.answer_uuid = a.uuid AND l.revision = a.revision";
        assert_eq!(app.value(seqs).await, "1202");
        let tail = line(&format!("{:031x}f", 7), "\"values\":{\"n\":7}");
        let again = file(folder.path(), "again.jsonl", &tail);
        let said = import(&app, 0, &again, &[]).await;
        assert_eq!((&said["created"], &said["updated"], &said["unchanged"]),
            (&json!(0), &json!(0), &json!(1)));
        let secret = "\"values\":1,\"formVersion\":\"geheim\"";
        let bad = format!(
            "{}{}{}{}",
            line("x", "\"values\":1"),
            line(UUID, secret),
            line(UUID, "\"values\":{\"a\":[0,9007199254740993]}"),
            "{\"formUuid\":\"form-1\",\"values\":1}\n[]\n",
        );
        let bad = file(folder.path(), "bad.jsonl", &bad);
        let said = import(&app, 2, &bad, &[]).await;
        let found = faults(&said);
        assert_eq!(found.len(), 5, "{found:?}");
        assert!(found[1].starts_with("2||has a field of a wrong type"), "{found:?}");
        assert!(found[2].starts_with("3|values/a/1|it is an integer beyond"), "{found:?}");
        assert!(found[3].starts_with("4||has a missing field `schId`"), "{found:?}");
        assert!(!said.to_string().contains("geheim"), "no value is shown: {said}");
    }

    async fn an_answer_that_did_not_arrive_is_listed_and_replayed(app: TestApp) {
        granted(&app).await;
        let put = ["answer", "put", "-", "--form", "form-1", "--school", "school-1"];
        let put = [&put[..], &["--answer", UUID]].concat();
        given(&app, 0, "1", &put).await;
        app.execute("UPDATE answer_delivery SET state = 'RETURNED', last_error = 'nobody'").await;
        let failed = told(&app, 0, &["delivery", "failed"]).await;
        assert_eq!(failed["items"][0]["answerUuid"], UUID);
        assert_eq!(failed["items"][0]["lastError"], "nobody");
        let replay = ["--user", "7", "delivery", "replay", UUID, "--consumer", "hall"];
        let replayed = told(&app, 0, &replay).await;
        let query = format!(
            "SELECT state, revision FROM answer_delivery WHERE delivery_id = '{}'",
            replayed["deliveryId"].as_str().unwrap()
        );
        assert_eq!(app.lines(&query).await, ["PENDING|1"]);
        told(&app, 0, &[&["grant", "revoke"], &PLACE[..]].concat()).await;
        let refused = told(&app, 2, &replay).await;
        assert_eq!(refused["code"], "GRANT_REVOKED");
    }
}
