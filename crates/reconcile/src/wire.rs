//! The messages between the two sides, as JSON. Source: `shared/spec/reconcile.md`.

use chrono::{DateTime, Utc};
use counterfoil_protocol::canon::{AnswerContent, Json, Unhashable};
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::value::RawValue;

/// What a task is about: one consumer, one school, one form; perhaps one answer of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Coordinate {
    /// The consumer.
    pub consumer: String,
    /// The answers' own school.
    pub school: String,
    /// The form.
    pub form: String,
    /// With scope ANSWER, the one answer.
    pub answer: Option<String>,
}

impl Coordinate {
    /// `FORM` or `ANSWER`.
    pub fn scope(&self) -> &'static str {
        if self.answer.is_some() { "ANSWER" } else { "FORM" }
    }

    /// Whether an answer of the form and school is meant by it.
    pub fn sees(&self, uuid: &str) -> bool {
        self.answer.as_deref().is_none_or(|only| only == uuid)
    }
}

/// The order to reconcile. It never holds an address.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Dispatch {
    pub task_id: String,
    pub attempt: i64,
    pub source_app_key: String,
    pub consumer_app_key: String,
    pub consumer_school_id: String,
    pub form_uuid: String,
    pub scope: String,
    pub answer_uuid: Option<String>,
    pub grant_epoch: i64,
    pub window_start: DateTime<Utc>,
    pub sent_at: DateTime<Utc>,
}

/// One answer as the manifest has it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ManifestRow {
    pub answer_uuid: String,
    pub revision: i64,
    pub content_hash: String,
    #[serde(deserialize_with = "flag")]
    pub is_deleted: bool,
    pub form_uuid: String,
    pub form_version: i64,
    pub seq_no: i64,
}

/// A page of the manifest. `completed` is the only end mark.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct ManifestPage {
    pub task_id: String,
    pub rows: Vec<ManifestRow>,
    pub next_cursor: Option<String>,
    pub completed: bool,
    pub total_rows: i64,
    pub total_pages: i64,
    pub task_state: String,
}

/// A range of keys, `[from, to)`; 32 `f` end it with the key space, that key included.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct KeySpan {
    pub from: String,
    pub to: String,
}

/// A range whose parts' digests are asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct AskedRange {
    pub from: String,
    pub to: String,
    #[serde(default = "one")]
    pub parts: u32,
}

fn one() -> u32 {
    1
}

/// Ranges, ascending and apart: of digests or of rows.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Ranges<R> {
    pub ranges: Vec<R>,
}

/// What the manifest has in a range.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct DigestedRange {
    pub from: String,
    pub to: String,
    pub count: i64,
    pub digest: String,
}

/// The digests that were asked for, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Digests {
    pub task_id: String,
    pub ranges: Vec<DigestedRange>,
    pub total_rows: i64,
    pub task_state: String,
}

/// The manifest's rows in the ranges that were asked for, ascending.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct RangeRows {
    pub task_id: String,
    pub rows: Vec<ManifestRow>,
    pub total_rows: i64,
    pub task_state: String,
}

/// The grant of a task as it is now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct GrantState {
    pub grant_epoch: i64,
    #[serde(deserialize_with = "flag")]
    pub enabled: bool,
    #[serde(deserialize_with = "flag")]
    pub subscribe: bool,
    #[serde(deserialize_with = "flag")]
    pub read: bool,
}

/// One answer asked for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Question {
    pub answer_uuid: String,
    #[serde(default)]
    pub expected_revision: Option<i64>,
}

/// Answers asked for at once.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Questions {
    pub items: Vec<Question>,
}

/// The centre's answers, in the order of the questions.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[allow(missing_docs)]
pub struct Authorities {
    pub items: Vec<Authority>,
}

/// What the centre says of an answer now.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "Presence", into = "Presence")]
#[allow(missing_docs)]
pub enum Authority {
    Present { envelope: Box<Envelope> },
    Absent { proof: Option<Proof> },
}

/// [`Authority`] as it is spelt. (A tagged enum would be buffered, and lose how numbers are spelt.)
#[derive(Serialize, Deserialize)]
struct Presence {
    presence: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    envelope: Option<Box<Envelope>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    proof: Option<Option<Proof>>,
}

impl From<Authority> for Presence {
    fn from(authority: Authority) -> Presence {
        match authority {
            Authority::Present { envelope } => {
                Presence { presence: "PRESENT".into(), envelope: Some(envelope), proof: None }
            }
            Authority::Absent { proof } => {
                Presence { presence: "ABSENT".into(), envelope: None, proof: Some(proof) }
            }
        }
    }
}

impl TryFrom<Presence> for Authority {
    type Error = &'static str;

    fn try_from(said: Presence) -> Result<Authority, &'static str> {
        match (said.presence.as_str(), said.envelope) {
            ("PRESENT", Some(envelope)) => Ok(Authority::Present { envelope }),
            ("ABSENT", None) => Ok(Authority::Absent { proof: said.proof.flatten() }),
            _ => Err("presence is PRESENT with an envelope, or ABSENT"),
        }
    }
}

/// An answer's snapshot by authority.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Envelope {
    pub event_id: String,
    pub task_id: Option<String>,
    pub proof_id: Option<String>,
    pub source_app_key: String,
    pub consumer_app_key: String,
    pub consumer_school_id: String,
    pub sch_id: String,
    pub form_uuid: String,
    pub form_version: i64,
    pub answer_uuid: String,
    pub revision: i64,
    pub content_hash: String,
    #[serde(deserialize_with = "flag")]
    pub is_deleted: bool,
    /// As written: parsed by the canonicaliser, which keeps numbers' own text.
    pub values: Option<Box<RawValue>>,
    pub grant_epoch: i64,
}

impl Envelope {
    /// What of it is hashed.
    ///
    /// # Errors
    /// Values that have no content hash.
    pub fn content(&self) -> Result<AnswerContent, Unhashable> {
        let content = AnswerContent {
            answer_uuid: self.answer_uuid.clone(),
            form_uuid: self.form_uuid.clone(),
            form_version: self.form_version,
            is_deleted: self.is_deleted,
            sch_id: self.sch_id.clone(),
            values: Json::Null,
        };
        content.with_values(self.values.as_deref().map(RawValue::get))
    }
}

/// That an answer was neither in the manifest nor is there now. A reference, no credential.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Proof {
    pub proof_id: String,
    pub task_id: String,
    pub consumer_app_key: String,
    pub consumer_school_id: String,
    pub form_uuid: String,
    pub sch_id: String,
    pub answer_uuid: String,
    pub expected_revision: Option<i64>,
    pub grant_epoch: i64,
    pub issued_at: DateTime<Utc>,
}

/// What was found and done, by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[allow(missing_docs)]
pub struct Counts {
    pub scanned: i64,
    pub equal: i64,
    pub missing: i64,
    pub stale: i64,
    pub hash_conflict: i64,
    pub tombstone: i64,
    pub local_ahead: i64,
    pub extra: i64,
    pub revision_zero: i64,
    pub repaired: i64,
    pub retired: i64,
    pub reported: i64,
    pub deferred: i64,
    pub resumed: i64,
}

/// One item of a report. Never an answer's values.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
#[derive(Default)]
#[allow(missing_docs)]
pub struct ErrorItem {
    pub code: String,
    pub answer_uuid: Option<String>,
    pub revision: Option<i64>,
    pub range: Option<String>,
}

/// A hall's report of an attempt.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Report {
    pub task_id: String,
    pub attempt: i64,
    pub state: String,
    #[serde(default)]
    pub manifest_complete: bool,
    #[serde(default)]
    pub local_completed: bool,
    #[serde(default)]
    pub counts: Counts,
    #[serde(default)]
    pub unresolved: i64,
    #[serde(default)]
    pub errors: Vec<ErrorItem>,
    #[serde(default)]
    pub consumer_app_key: String,
}

/// What the centre made of a report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "SCREAMING_SNAKE_CASE")]
#[allow(missing_docs)]
pub enum Decision {
    CurrentAccepted,
    CurrentDuplicate,
    StaleRetry,
    CenterTerminal,
}

/// The centre's answer to a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs)]
pub struct Ack {
    pub task_id: String,
    pub consumer_app_key: String,
    pub decision: Decision,
    pub report_attempt: i64,
    pub attempt: i64,
    pub result_state: Option<String>,
    pub stale: bool,
}

/// States that nothing follows.
pub const FINAL_STATES: [&str; 4] = ["COMPLETED", "PARTIAL", "FAILED", "CANCELLED"];

/// Whether nothing follows a state.
pub fn is_final(state: &str) -> bool {
    FINAL_STATES.contains(&state)
}

/// true, false, 1 or 0: peers write both.
fn flag<'de, D: Deserializer<'de>>(from: D) -> Result<bool, D::Error> {
    match serde_json::Value::deserialize(from)? {
        serde_json::Value::Bool(value) => Ok(value),
        value => match value.as_i64() {
            Some(0) => Ok(false),
            Some(1) => Ok(true),
            _ => Err(serde::de::Error::custom("expected true, false, 1 or 0")),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_authority_is_spelt_as_the_contract_has_it() {
        let absent = serde_json::to_value(Authority::Absent { proof: None }).unwrap();
        assert_eq!(absent, serde_json::json!({ "presence": "ABSENT", "proof": null }));
        let decision = serde_json::to_value(Decision::CenterTerminal).unwrap();
        assert_eq!(decision, "CENTER_TERMINAL");
    }

    #[test]
    fn values_keep_their_own_spelling_on_the_way() {
        let text = r#"{"presence":"PRESENT","envelope":{"eventId":"e","taskId":"t","proofId":"p",
            "sourceAppKey":"c","consumerAppKey":"h","consumerSchoolId":"s","schId":"s",
            "formUuid":"f","formVersion":1,"answerUuid":"a","revision":1,"contentHash":"x",
            "isDeleted":0,"values":{"n":0.1000,"m":1e2},"grantEpoch":1}}"#;
        let authority: Authority = serde_json::from_str(text).unwrap();
        let Authority::Present { envelope } = authority else { panic!("{authority:?}") };
        let content = envelope.content().unwrap();
        assert_eq!(content.canonical_values().unwrap(), r#"{"m":100,"n":0.1}"#);
        assert!(serde_json::to_string(&envelope).unwrap().contains("0.1000"));
    }
}
