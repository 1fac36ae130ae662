//! `fc.canon.v1`: what of an answer is hashed.

use sha2::{Digest, Sha256};

use super::write::{exact, quote};
use super::{Json, MAX_DEPTH, Reason, Unhashable, read, step};

/// What the hashed bytes begin with.
pub const CANON_PREFIX: &str = "fc.canon.v1\n";

/// A content hash: 64 lower-case hexadecimal digits.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ContentHash(pub String);

impl std::fmt::Display for ContentHash {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// What of an answer is hashed. Its revision and its place in a sequence are not part of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AnswerContent {
    /// 32 lower-case hexadecimal digits.
    pub answer_uuid: String,
    /// The form.
    pub form_uuid: String,
    /// The version of the form that the answer is pinned to.
    pub form_version: i64,
    /// Whether it is a tombstone; its values are null then, whatever is stored.
    pub is_deleted: bool,
    /// The answer's own school.
    pub sch_id: String,
    /// The values as stored; null where there are none.
    pub values: Json,
}

impl AnswerContent {
    /// Content with values as JSON text; none, or a blank text, is null.
    ///
    /// # Errors
    /// Values that are no JSON, or are nested too deep.
    pub fn with_values(self, text: Option<&str>) -> Result<AnswerContent, Unhashable> {
        let text = text.filter(|text| !text.trim().is_empty() && !self.is_deleted);
        let values = match text {
            None => Json::Null,
            Some(text) => {
                read(text.as_bytes(), MAX_DEPTH).map_err(|fault| fault.under("values"))?
            }
        };
        Ok(AnswerContent { values, ..self })
    }

    /// The canonical text.
    ///
    /// # Errors
    /// A value that its canonical text would change, with its path.
    pub fn canonical(&self) -> Result<String, Unhashable> {
        let mut text = String::from("{\"answerUuid\":");
        quote(&mut text, &self.answer_uuid);
        text.push_str(",\"formUuid\":");
        quote(&mut text, &self.form_uuid);
        text.push_str(&format!(",\"formVersion\":{}", self.form_version));
        text.push_str(&format!(",\"isDeleted\":{},\"schId\":", self.is_deleted));
        quote(&mut text, &self.sch_id);
        text.push_str(",\"values\":");
        let none = Json::Null;
        exact(&mut text, if self.is_deleted { &none } else { &self.values }, "values")?;
        text.push('}');
        Ok(text)
    }

    /// SHA-256 of the prefix and the canonical text.
    ///
    /// # Errors
    /// As [`AnswerContent::canonical`].
    pub fn hash(&self) -> Result<ContentHash, Unhashable> {
        Ok(hash_of(&self.canonical()?))
    }

    /// The canonical text of the values alone: what is stored, and sent.
    ///
    /// # Errors
    /// As [`AnswerContent::canonical`].
    pub fn canonical_values(&self) -> Result<String, Unhashable> {
        let mut text = String::new();
        exact(&mut text, &self.values, "values")?;
        Ok(text)
    }
}

pub(super) fn hash_of(canonical: &str) -> ContentHash {
    let mut digest = Sha256::new();
    digest.update(CANON_PREFIX);
    digest.update(canonical);
    let digits = digest.finalize().iter().map(|byte| format!("{byte:02x}")).collect();
    ContentHash(digits)
}

/// Fields that an answer may carry without being part of the hash.
const LEFT_OUT: [&str; 2] = ["revision", "seqNo"];

/// Reads one answer's JSON: answerUuid, formUuid, formVersion, isDeleted, schId, values.
///
/// # Errors
/// What cannot be hashed, with its path.
pub fn read_answer(text: &[u8]) -> Result<AnswerContent, Unhashable> {
    // The answer itself is one level around its values.
    let document = read(text, MAX_DEPTH + 1).map_err(|fault| match fault.reason {
        Reason::TooDeep(_) => Reason::TooDeep(MAX_DEPTH).at(&fault.path),
        reason => reason.at(&fault.path),
    })?;
    let Json::Object(members) = document else {
        return Err(Reason::Field("an answer is a JSON object").at(""));
    };
    let mut members: Vec<(String, Json)> =
        members.into_iter().filter(|(key, _)| !LEFT_OUT.contains(&key.as_str())).collect();
    let mut take = |name: &str| {
        let at = members.iter().position(|(key, _)| key == name)?;
        Some(members.swap_remove(at).1)
    };
    let is_deleted = match take("isDeleted") {
        Some(Json::Bool(value)) => value,
        _ => return Err(Reason::Field("must be true or false").at("/isDeleted")),
    };
    let form_version = match take("formVersion") {
        Some(Json::Number(literal)) => integer(&literal),
        _ => None,
    };
    let form_version = form_version
        .ok_or_else(|| Reason::Field("must be an integer within ±(2^53−1)").at("/formVersion"))?;
    let mut text = |name: &str| match take(name) {
        Some(Json::Text(text)) if !text.is_empty() => Ok(text),
        _ => Err(Reason::Field("must be a text").at(&step("", name))),
    };
    let (answer_uuid, form_uuid) = (text("answerUuid")?, text("formUuid")?);
    let sch_id = text("schId")?;
    let values = match take("values") {
        None if !is_deleted => return Err(Reason::Field("is missing").at("/values")),
        Some(values) => values,
        None => Json::Null,
    };
    if let Some((unknown, _)) = members.first() {
        return Err(Reason::Field("is unknown").at(&step("", unknown)));
    }
    let content =
        AnswerContent { answer_uuid, form_uuid, form_version, is_deleted, sch_id, values };
    content.canonical()?;
    Ok(content)
}

/// An integer of up to 2^53 − 1, spelt as one.
fn integer(literal: &str) -> Option<i64> {
    let number: i64 = super::number::exact_number(literal).ok()?.parse().ok()?;
    Some(number)
}
