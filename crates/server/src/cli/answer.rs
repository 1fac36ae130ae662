//! `counterfoil answer`: the centre's answers, one by one.

use std::io::Read;

use anyhow::{Context, Result};
use counterfoil_db::Db;
use counterfoil_reconcile::Refusal;
use counterfoil_reconcile::form_centre::answer::{self, AnswerWrite, Stored};
use counterfoil_reconcile::form_centre::write::hashable;
use counterfoil_reconcile::refusal::Code;
use serde_json::json;

use super::output::Failure;
use super::{Output, Session};
use crate::answer_file::MAX_ANSWER_BYTES;

/// What to do with an answer.
#[derive(Debug, clap::Subcommand)]
pub(super) enum Command {
    /// Writes an answer: a new one, or the next revision of one that is there
    Put(Put),
    /// Makes an answer a tombstone; its consumers are told
    Delete {
        /// Its uuid
        answer: String,
        /// The revision that it must have now
        #[arg(long)]
        expect: Option<i64>,
    },
    /// Shows an answer with its values
    Get {
        /// Its uuid
        answer: String,
    },
}

/// An answer.
#[derive(Debug, clap::Args)]
pub(super) struct Put {
    /// A file with the values as JSON; - = standard input
    values: String,
    /// The answer's uuid [default: a new one]
    #[arg(long)]
    answer: Option<String>,
    /// The form [default: as it is stored]
    #[arg(long)]
    form: Option<String>,
    /// The answer's own school [default: as it is stored]
    #[arg(long)]
    school: Option<String>,
    /// The form's version [default: as it is stored, or the form's current one]
    #[arg(long)]
    form_version: Option<i64>,
    /// The revision that it must have now; 0 = it must be new
    #[arg(long)]
    expect: Option<i64>,
}

pub(super) async fn run(session: &Session, command: Command) -> Result<Output> {
    let db = session.open_migrated().await?;
    match command {
        Command::Put(put) => write(&db, put, &session.actor()).await,
        Command::Delete { answer, expect } => {
            let put = answer::delete(&db, &answer, expect, &session.actor()).await?;
            let text = format!(
                "answer {answer} is a tombstone in revision {}, content {}",
                put.written.revision, put.written.content_hash
            );
            Ok(Output::new(&put, text))
        }
        Command::Get { answer } => show(&db, &answer).await,
    }
}

async fn write(db: &Db, put: Put, actor: &str) -> Result<Output> {
    let values = read(&put.values)?;
    let stored = match &put.answer {
        Some(uuid) => answer::find(db, uuid).await?,
        None => None,
    };
    let place = |named: Option<String>, own: fn(&Stored) -> &str, what: &str| {
        let own = stored.as_ref().map(|stored| own(stored).to_owned());
        named.or(own).ok_or_else(|| {
            let message = format!("a new answer needs --{what}");
            Failure { code: "invalid-input", message }
        })
    };
    let answer = AnswerWrite {
        form: place(put.form, |stored| &stored.form_uuid, "form")?,
        school: place(put.school, |stored| &stored.sch_id, "school")?,
        uuid: put.answer,
        version: put.form_version,
        values: Some(values),
        expected: put.expect,
    };
    hashable(&answer)?;
    let written = answer::write(db, &answer, actor).await?;
    let text = format!(
        "answer {} is in revision {}, content {}",
        written.answer_uuid, written.revision, written.content_hash
    );
    Ok(Output::new(&written, text))
}

fn read(file: &str) -> Result<String> {
    let limit = MAX_ANSWER_BYTES as u64 + 1;
    let mut bytes = Vec::new();
    let read = match file {
        "-" => std::io::stdin().lock().take(limit).read_to_end(&mut bytes),
        name => {
            let file = std::fs::File::open(name);
            file.with_context(|| format!("cannot open {name}"))?.take(limit).read_to_end(&mut bytes)
        }
    };
    read.context("the values cannot be read to their end")?;
    let invalid = |message: String| Failure { code: "invalid-input", message };
    if bytes.len() > MAX_ANSWER_BYTES {
        return Err(invalid(format!("values have at most {MAX_ANSWER_BYTES} bytes")).into());
    }
    let text = String::from_utf8(bytes).map_err(|_| invalid("the values are no UTF-8".into()))?;
    if text.trim().is_empty() {
        return Err(invalid("there are no values; write null for an answer without".into()).into());
    }
    Ok(text)
}

async fn show(db: &Db, uuid: &str) -> Result<Output> {
    let missing = || Refusal::of(Code::AnswerNotFound, "there is no such answer");
    let stored = answer::find(db, uuid).await?.ok_or_else(missing)?;
    let Stored { form_uuid, sch_id, pulled, .. } = &stored;
    let values = pulled.values.as_ref().map_or("null", |values| values.get());
    let written = &pulled.written;
    let state = if written.is_deleted { "a tombstone" } else { "live" };
    let text = format!(
        "answer {uuid} of form {form_uuid} (version {}), school {sch_id}\n\
         revision {}, {state}, written {}\ncontent {}\n{values}",
        pulled.form_version, written.revision, stored.update_time, written.content_hash
    );
    Ok(Output::new(json!(stored), text))
}
