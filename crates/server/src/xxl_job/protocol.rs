//! What an admin sends and is answered. Both spellings, both names of the payload.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Everything went well.
pub const SUCCESS: i32 = 200;
/// Refused or failed.
pub const FAILURE: i32 = 500;
/// Out of time.
pub const TIMED_OUT: i32 = 502;
/// The one kind of job that is run: a handler of this program, never code that is sent.
const BEAN: &str = "BEAN";

/// One trigger of one job. Fields that later admins add are passed over.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Trigger {
    /// The job: its triggers stand in one queue.
    pub job_id: i64,
    /// The handler.
    pub executor_handler: Option<String>,
    /// The handler's parameter.
    pub executor_params: Option<String>,
    /// What to do while the job is busy.
    pub executor_block_strategy: Option<String>,
    /// Seconds that the round may take; none or 0 = as long as it takes.
    pub executor_timeout: Option<i64>,
    /// The trigger's own number.
    pub log_id: i64,
    /// When it was triggered, in milliseconds.
    #[serde(alias = "logDateTim")]
    pub log_date_time: Option<i64>,
    /// BEAN, or code that was sent along.
    pub glue_type: Option<String>,
    /// Which of the executors this is, where all are triggered.
    pub broadcast_index: Option<i64>,
    /// How many are triggered; some admins say 0.
    pub broadcast_total: Option<i64>,
}

/// What to do with a trigger of a busy job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BlockStrategy {
    /// It waits for its turn.
    Serial,
    /// It is refused.
    DiscardLater,
    /// It takes the place of those before it.
    CoverEarly,
}

impl Trigger {
    /// The handler's name.
    pub fn handler(&self) -> &str {
        self.executor_handler.as_deref().unwrap_or_default().trim()
    }

    /// The handler's parameter.
    pub fn parameter(&self) -> &str {
        self.executor_params.as_deref().unwrap_or_default()
    }

    /// When it was triggered, as the admin said.
    pub fn triggered(&self) -> i64 {
        self.log_date_time.unwrap_or_default()
    }

    /// How long it may take.
    pub fn timeout(&self) -> Option<std::time::Duration> {
        let seconds = self.executor_timeout.and_then(|seconds| u64::try_from(seconds).ok());
        seconds.filter(|seconds| *seconds > 0).map(std::time::Duration::from_secs)
    }

    /// Whether it brings no code along.
    pub fn is_bean(&self) -> bool {
        self.glue_type.as_deref().is_none_or(|kind| kind.is_empty() || kind == BEAN)
    }

    /// What to do with it while the job is busy; a strategy that nobody knows is the default one.
    pub fn strategy(&self) -> BlockStrategy {
        match self.executor_block_strategy.as_deref() {
            Some("DISCARD_LATER") => BlockStrategy::DiscardLater,
            Some("COVER_EARLY") => BlockStrategy::CoverEarly,
            _ => BlockStrategy::Serial,
        }
    }
}

/// `/idleBeat` and `/kill`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct OfJob {
    /// The job.
    pub job_id: i64,
}

/// `/log`.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct LogQuery {
    /// The trigger.
    pub log_id: i64,
    /// The first line wanted; lines count from 1.
    pub from_line_num: i64,
}

/// A part of a trigger's log.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct LogPart {
    /// The first line.
    pub from_line_num: i64,
    /// The last line; below the first when there is none yet.
    pub to_line_num: i64,
    /// The lines.
    pub log_content: String,
    /// Whether nothing comes after them.
    pub is_end: bool,
}

/// An answer: `content` for admins up to 3.2, `data` for those from 3.3 on.
pub fn answer(code: i32, message: Option<&str>, payload: &Value) -> Value {
    json!({ "code": code, "msg": message, "content": payload, "data": payload })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_spellings_of_the_triggers_time_are_read_and_unknown_fields_passed_over() {
        let read = |text: &str| serde_json::from_str::<Trigger>(text).unwrap();
        assert_eq!(read(r#"{"logId":7,"logDateTime":9}"#).triggered(), 9);
        assert_eq!(read(r#"{"logId":7,"logDateTim":9,"newField":{}}"#).triggered(), 9);
        assert_eq!(read(r#"{"executorTimeout":-1}"#).timeout(), None);
        assert_eq!(read(r#"{"executorHandler":null}"#).handler(), "");
    }

    #[test]
    fn code_that_is_sent_along_is_no_bean() {
        let of = |kind: Option<&str>| {
            Trigger { glue_type: kind.map(str::to_owned), ..Trigger::default() }.is_bean()
        };
        assert!(of(None) && of(Some("BEAN")) && of(Some("")));
        for kind in ["GLUE_GROOVY", "GLUE_SHELL", "GLUE_PYTHON", "bean", "OTHER"] {
            assert!(!of(Some(kind)), "{kind}");
        }
    }
}
