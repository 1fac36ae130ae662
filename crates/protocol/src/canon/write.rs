//! Writing canonical JSON: members by the UTF-16 units of their keys, no blanks, shortest escapes.

use super::number::{canonical_number, exact_number};
use super::{Json, Reason, Unhashable};

/// The canonical text of a value (RFC 8785). It rounds numbers as the standard says: for hashes see
/// [`super::AnswerContent`], which refuses what would be rounded.
///
/// # Errors
/// A number beyond every double.
pub fn canonical(value: &Json) -> Result<String, Unhashable> {
    let mut text = String::new();
    write(&mut text, value, canonical_number)?;
    Ok(text)
}

/// The canonical text of a value of which nothing was rounded. `name` is where it stands.
pub(super) fn exact(text: &mut String, value: &Json, name: &str) -> Result<(), Unhashable> {
    write(text, value, exact_number).map_err(|fault| fault.under(name))
}

type Spell = fn(&str) -> Result<String, Reason>;

fn write(text: &mut String, value: &Json, spell: Spell) -> Result<(), Unhashable> {
    match value {
        Json::Null => text.push_str("null"),
        Json::Bool(true) => text.push_str("true"),
        Json::Bool(false) => text.push_str("false"),
        Json::Number(literal) => {
            text.push_str(&spell(literal).map_err(|reason| reason.at(""))?);
        }
        Json::Text(value) => quote(text, value),
        Json::List(items) => {
            text.push('[');
            for (at, item) in items.iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                let written = write(text, item, spell);
                written.map_err(|fault| fault.under(&at.to_string()))?;
            }
            text.push(']');
        }
        Json::Object(members) => {
            let mut sorted: Vec<&(String, Json)> = members.iter().collect();
            sorted.sort_by(|(a, _), (b, _)| a.encode_utf16().cmp(b.encode_utf16()));
            text.push('{');
            for (at, (key, value)) in sorted.into_iter().enumerate() {
                if at > 0 {
                    text.push(',');
                }
                quote(text, key);
                text.push(':');
                write(text, value, spell).map_err(|fault| fault.under(key))?;
            }
            text.push('}');
        }
    }
    Ok(())
}

pub(super) fn quote(text: &mut String, value: &str) {
    text.push('"');
    for letter in value.chars() {
        match letter {
            '"' => text.push_str("\\\""),
            '\\' => text.push_str("\\\\"),
            '\u{8}' => text.push_str("\\b"),
            '\t' => text.push_str("\\t"),
            '\n' => text.push_str("\\n"),
            '\u{c}' => text.push_str("\\f"),
            '\r' => text.push_str("\\r"),
            '\0'..='\u{1f}' => text.push_str(&format!("\\u{:04x}", u32::from(letter))),
            _ => text.push(letter),
        }
    }
    text.push('"');
}
