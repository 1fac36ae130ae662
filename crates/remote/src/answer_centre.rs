//! The form centre in another process, over signed HTTP.

use chrono::{DateTime, Utc};
use counterfoil_reconcile::service_hall::centre::{Answer, Centre};
use counterfoil_reconcile::wire::{
    Ack, AskedRange, Authorities, Authority, Digests, GrantState, KeySpan, ManifestPage, Question,
    Questions, RangeRows, Ranges, Report,
};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::signed::{SignedAnswer, SignedClient};

/// The centre behind a signed client.
#[derive(Debug, Clone)]
pub struct HttpFormCentre {
    client: SignedClient,
}

impl HttpFormCentre {
    /// The centre that the client calls.
    pub fn new(client: SignedClient) -> HttpFormCentre {
        HttpFormCentre { client }
    }

    async fn post<T: DeserializeOwned>(
        &self,
        path: &str,
        body: &impl Serialize,
        now: DateTime<Utc>,
    ) -> Answer<T> {
        match serde_json::to_vec(body) {
            Ok(body) => read(self.client.post(path, body, now).await),
            Err(error) => Answer::Unknown { message: error.to_string() },
        }
    }
}

/// Task ids come from the centre's order: only what can be a path's step is put into one.
fn task_path(task: &str, rest: &str) -> Option<String> {
    let is_step = |letter: char| letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_');
    let is_id = !task.is_empty() && task.chars().all(is_step);
    is_id.then(|| format!("oapi/form-sync/tasks/{task}/{rest}"))
}

fn no_path<T>() -> Answer<T> {
    Answer::Unknown { message: "the task's id cannot stand in a path".into() }
}

#[async_trait::async_trait]
impl Centre for HttpFormCentre {
    async fn manifest(
        &self,
        task: &str,
        cursor: Option<&str>,
        size: u32,
        now: DateTime<Utc>,
    ) -> Answer<ManifestPage> {
        let cursor = cursor.map(|cursor| format!("cursor={cursor}&")).unwrap_or_default();
        let Some(path) = task_path(task, &format!("manifest?{cursor}size={size}")) else {
            return no_path();
        };
        read(self.client.get(&path, now).await)
    }

    async fn digests(
        &self,
        task: &str,
        ranges: &[AskedRange],
        now: DateTime<Utc>,
    ) -> Answer<Digests> {
        let Some(path) = task_path(task, "digests") else { return no_path() };
        self.post(&path, &Ranges { ranges: ranges.to_vec() }, now).await
    }

    async fn rows(&self, task: &str, ranges: &[KeySpan], now: DateTime<Utc>) -> Answer<RangeRows> {
        let Some(path) = task_path(task, "rows") else { return no_path() };
        self.post(&path, &Ranges { ranges: ranges.to_vec() }, now).await
    }

    async fn grant(&self, task: &str, now: DateTime<Utc>) -> Answer<GrantState> {
        let Some(path) = task_path(task, "grant") else { return no_path() };
        read(self.client.get(&path, now).await)
    }

    async fn answers(
        &self,
        task: &str,
        questions: &[Question],
        now: DateTime<Utc>,
    ) -> Answer<Vec<Authority>> {
        let Some(path) = task_path(task, "answers") else { return no_path() };
        let questions = Questions { items: questions.to_vec() };
        match self.post::<Authorities>(&path, &questions, now).await {
            Answer::Said(said) => Answer::Said(said.items),
            Answer::Refused { code, message } => Answer::Refused { code, message },
            Answer::Unknown { message } => Answer::Unknown { message },
        }
    }

    async fn report(&self, report: &Report, now: DateTime<Utc>) -> Answer<Ack> {
        let Some(path) = task_path(&report.task_id, "result") else { return no_path() };
        self.post(&path, report, now).await
    }
}

/// 2xx with a body that can be read is the centre's word, 4xx its refusal, the rest nothing.
fn read<T: DeserializeOwned>(answer: SignedAnswer) -> Answer<T> {
    let (status, body) = match answer {
        SignedAnswer::Proved { status, body } => (status, body),
        SignedAnswer::Unknown { message } => return Answer::Unknown { message },
    };
    match status {
        200..=299 => match serde_json::from_slice(&body) {
            Ok(word) => Answer::Said(word),
            // The error may quote the body: its kind and place are enough.
            Err(error) => Answer::Unknown {
                message: format!("its answer cannot be read (line {})", error.line()),
            },
        },
        400..=499 if status != 401 => {
            let (code, message) = crate::service_halls::refusal(status, &body);
            Answer::Refused { code, message }
        }
        _ => Answer::Unknown { message: format!("it answered {status}") },
    }
}
