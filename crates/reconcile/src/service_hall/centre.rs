//! The form centre as the hall sees it.

use counterfoil_db::Instant;

use crate::wire::{
    Ack, AskedRange, Authority, Digests, GrantState, KeySpan, ManifestPage, Question, RangeRows,
    Report,
};

/// What a call came to.
#[derive(Debug, Clone)]
pub enum Answer<T> {
    /// The centre's own answer.
    Said(T),
    /// The centre's own refusal, by its code.
    Refused {
        /// The code.
        code: String,
        /// What it said.
        message: String,
    },
    /// Nothing that can be believed.
    Unknown {
        /// Why.
        message: String,
    },
}

/// Calls to the centre. `now` is the hall's clock: what a call is signed at.
#[async_trait::async_trait]
pub trait Centre: Send + Sync {
    /// A page of a task's manifest after `cursor`.
    async fn manifest(
        &self,
        task: &str,
        cursor: Option<&str>,
        size: u32,
        now: Instant,
    ) -> Answer<ManifestPage>;

    /// The digests of the parts of some ranges of a task's manifest.
    async fn digests(&self, task: &str, ranges: &[AskedRange], now: Instant) -> Answer<Digests>;

    /// The rows that a task's manifest has in some ranges.
    async fn rows(&self, task: &str, ranges: &[KeySpan], now: Instant) -> Answer<RangeRows>;

    /// The task's grant as it is now.
    async fn grant(&self, task: &str, now: Instant) -> Answer<GrantState>;

    /// What is so of each answer now, in the order of the questions.
    async fn answers(
        &self,
        task: &str,
        questions: &[Question],
        now: Instant,
    ) -> Answer<Vec<Authority>>;

    /// Reports an attempt.
    async fn report(&self, report: &Report, now: Instant) -> Answer<Ack>;
}
