//! Reading a JSON object field by field, so that every wrong field is named, not the first only.

use serde_json::{Map, Value};

use super::problem::{FieldFault, Problem, RequestFault};

/// An object being read. Every reader takes its field out; what is left at the end is unknown.
#[derive(Debug)]
pub(super) struct Fields {
    left: Map<String, Value>,
    faults: Vec<FieldFault>,
    /// In a query string a number is its digits.
    is_query: bool,
}

impl Fields {
    /// The object in a body.
    pub(super) fn of_json(body: &[u8]) -> Result<Fields, Problem> {
        let malformed = |why: String| Problem::of_request(RequestFault::Malformed(why));
        match serde_json::from_slice(body) {
            Ok(Value::Object(left)) => Ok(Fields { left, faults: Vec::new(), is_query: false }),
            Ok(_) => Err(malformed("it is another JSON value".into())),
            Err(error) => Err(malformed(error.to_string())),
        }
    }

    /// The parameters of a query string; all of them are texts.
    pub(super) fn of_query(pairs: Vec<(String, String)>) -> Fields {
        let mut fields = Fields { left: Map::new(), faults: Vec::new(), is_query: true };
        for (name, value) in pairs {
            if fields.left.insert(name.clone(), Value::String(value)).is_some() {
                fields.fault(&name, "is given twice");
            }
        }
        fields
    }

    /// A positive whole number; 0 when it is none, and the fault is noted.
    pub(super) fn id(&mut self, name: &str) -> i64 {
        match self.left.remove(name) {
            None | Some(Value::Null) => {
                self.fault(name, "is missing");
                0
            }
            Some(value) => self.positive(name, &value),
        }
    }

    /// A positive whole number that may be absent.
    pub(super) fn maybe_id(&mut self, name: &str) -> Option<i64> {
        match self.left.remove(name) {
            None | Some(Value::Null) => None,
            Some(value) => Some(self.positive(name, &value)),
        }
    }

    /// A list of positive whole numbers.
    pub(super) fn ids(&mut self, name: &str) -> Vec<i64> {
        match self.left.remove(name) {
            None | Some(Value::Null) => self.fault(name, "is missing"),
            Some(Value::Array(values)) => {
                let numbers = values.iter().map(Value::as_i64);
                let numbers = numbers.map(|number| number.filter(|number| *number > 0));
                if let Some(ids) = numbers.collect::<Option<Vec<i64>>>() {
                    return ids;
                }
                self.fault(name, "must hold positive whole numbers only");
            }
            Some(_) => self.fault(name, "must be a list of positive whole numbers"),
        }
        Vec::new()
    }

    /// A text; it may be empty.
    pub(super) fn text(&mut self, name: &str) -> String {
        match self.left.remove(name) {
            Some(Value::String(text)) => return text,
            None | Some(Value::Null) => self.fault(name, "is missing"),
            Some(_) => self.fault(name, "must be a text"),
        }
        String::new()
    }

    /// A text that may be absent.
    pub(super) fn maybe_text(&mut self, name: &str) -> Option<String> {
        match self.left.get(name) {
            None | Some(Value::Null) => {
                self.left.remove(name);
                None
            }
            Some(_) => Some(self.text(name)),
        }
    }

    /// A list of objects, each read by itself; `None` when it is absent.
    pub(super) fn maybe_objects(&mut self, name: &str) -> Option<Vec<Fields>> {
        let list = match self.left.remove(name) {
            None | Some(Value::Null) => return None,
            Some(Value::Array(list)) => list,
            Some(_) => {
                self.fault(name, "must be a list of objects");
                return None;
            }
        };
        let mut read = Vec::with_capacity(list.len());
        for item in list {
            let Value::Object(left) = item else {
                self.fault(name, "must hold objects only");
                return None;
            };
            read.push(Fields { left, faults: Vec::new(), is_query: false });
        }
        Some(read)
    }

    /// True or false; false when it is neither, and the fault is noted.
    pub(super) fn flag(&mut self, name: &str) -> bool {
        match self.left.remove(name) {
            Some(Value::Bool(flag)) => return flag,
            None | Some(Value::Null) => self.fault(name, "is missing"),
            Some(_) => self.fault(name, "must be true or false"),
        }
        false
    }

    /// An RFC 3339 instant that may be absent.
    pub(super) fn maybe_instant(&mut self, name: &str) -> Option<counterfoil_db::Instant> {
        let text = self.maybe_text(name)?;
        let read = chrono::DateTime::parse_from_rfc3339(&text);
        if read.is_err() {
            self.fault(name, "must be an RFC 3339 instant like 2026-09-08T02:00:00Z");
        }
        read.ok().map(|instant| instant.with_timezone(&chrono::Utc))
    }

    /// One of a few words; the first one's value stands in when it is none, and the fault is noted.
    pub(super) fn choice<T: Copy>(&mut self, name: &str, words: &[(&str, T)]) -> T {
        let given = self.left.remove(name);
        let word = given.as_ref().and_then(Value::as_str);
        if let Some((_, value)) = words.iter().find(|(known, _)| Some(*known) == word) {
            return *value;
        }
        let known = words.iter().map(|(word, _)| *word).collect::<Vec<_>>().join(" or ");
        self.fault(name, &format!("must be {known}"));
        words[0].1
    }

    /// Notes a fault that only the caller can see.
    pub(super) fn fault(&mut self, name: &str, detail: &str) {
        self.faults.push(FieldFault { field: name.to_owned(), detail: detail.to_owned() });
    }

    /// Nothing is wrong and nothing is left, or all that is.
    pub(super) fn finish(mut self) -> Result<(), Problem> {
        let unknown: Vec<String> = self.left.keys().take(MAX_UNKNOWN).cloned().collect();
        for name in unknown {
            self.fault(&name, "is unknown");
        }
        if self.faults.is_empty() { Ok(()) } else { Err(Problem::of_fields(self.faults)) }
    }

    fn positive(&mut self, name: &str, value: &Value) -> i64 {
        let number = match value {
            Value::String(digits) if self.is_query => digits.parse().ok(),
            value => value.as_i64(),
        };
        number.filter(|number| *number > 0).unwrap_or_else(|| {
            self.fault(name, "must be a positive whole number");
            0
        })
    }
}

/// Unknown fields named in one answer.
const MAX_UNKNOWN: usize = 20;
