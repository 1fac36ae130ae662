//! Structured fields (RFC 8941), as much as signatures need, read strictly.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::SignatureError;

/// Characters of one field; ours have some 400.
const MAX_FIELD: usize = 8 * 1024;
/// Members of a dictionary, items of a list, parameters of an item.
const MAX_ITEMS: usize = 64;

/// A value without parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Bare {
    Integer(i64),
    Text(String),
    Token(String),
    Bytes(Vec<u8>),
    Boolean(bool),
}

/// Parameters in their order.
pub(super) type Parameters = Vec<(String, Bare)>;

/// A value with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Item {
    pub(super) value: Bare,
    pub(super) parameters: Parameters,
}

/// A member of a dictionary.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Member {
    Item(Item),
    List(Vec<Item>, Parameters),
}

/// Reads a dictionary. A key given twice is refused: two readers could take different ones.
pub(super) fn dictionary(text: &str) -> Result<Vec<(String, Member)>, SignatureError> {
    if text.len() > MAX_FIELD {
        return Err(SignatureError::Malformed("a field is too long"));
    }
    let mut reader = Reader { rest: text.trim_matches([' ', '\t']) };
    let mut members: Vec<(String, Member)> = Vec::new();
    while !reader.rest.is_empty() {
        let key = reader.key()?;
        if members.iter().any(|(known, _)| *known == key) || members.len() == MAX_ITEMS {
            return Err(SignatureError::Malformed(
                "a member is given twice, or there are too many",
            ));
        }
        let member = if reader.take("=") { reader.member()? } else { reader.flag()? };
        members.push((key, member));
        reader.rest = reader.rest.trim_start_matches([' ', '\t']);
        if reader.rest.is_empty() {
            break;
        }
        reader.expect(",")?;
        reader.rest = reader.rest.trim_start_matches([' ', '\t']);
        if reader.rest.is_empty() {
            return Err(SignatureError::Malformed("a field ends in a comma"));
        }
    }
    Ok(members)
}

/// A list with its parameters, as the signature base holds it.
pub(super) fn show_list(items: &[Item], parameters: &Parameters) -> String {
    let items: Vec<String> = items.iter().map(show_item).collect();
    format!("({}){}", items.join(" "), show_parameters(parameters))
}

/// An item with its parameters.
pub(super) fn show_item(item: &Item) -> String {
    format!("{}{}", show(&item.value), show_parameters(&item.parameters))
}

fn show_parameters(parameters: &Parameters) -> String {
    let shown = parameters.iter().map(|(key, value)| match value {
        Bare::Boolean(true) => format!(";{key}"),
        value => format!(";{key}={}", show(value)),
    });
    shown.collect()
}

pub(super) fn show(value: &Bare) -> String {
    match value {
        Bare::Integer(number) => number.to_string(),
        Bare::Text(text) => format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\"")),
        Bare::Token(token) => token.clone(),
        Bare::Bytes(bytes) => format!(":{}:", STANDARD.encode(bytes)),
        Bare::Boolean(true) => "?1".into(),
        Bare::Boolean(false) => "?0".into(),
    }
}

struct Reader<'t> {
    rest: &'t str,
}

impl<'t> Reader<'t> {
    fn take(&mut self, prefix: &str) -> bool {
        match self.rest.strip_prefix(prefix) {
            Some(rest) => {
                self.rest = rest;
                true
            }
            None => false,
        }
    }

    fn expect(&mut self, prefix: &str) -> Result<(), SignatureError> {
        if self.take(prefix) {
            return Ok(());
        }
        Err(SignatureError::Malformed("a field is no dictionary"))
    }

    fn while_of(&mut self, is_part: impl Fn(char) -> bool) -> &'t str {
        let end = self.rest.find(|c| !is_part(c)).unwrap_or(self.rest.len());
        let (part, rest) = self.rest.split_at(end);
        self.rest = rest;
        part
    }

    fn key(&mut self) -> Result<String, SignatureError> {
        let is_first = |c: char| c.is_ascii_lowercase() || c == '*';
        if !self.rest.starts_with(is_first) {
            return Err(SignatureError::Malformed("a key is missing"));
        }
        let key = self.while_of(|c| {
            c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '_' | '-' | '.' | '*')
        });
        Ok(key.to_owned())
    }

    fn flag(&mut self) -> Result<Member, SignatureError> {
        let parameters = self.parameters()?;
        Ok(Member::Item(Item { value: Bare::Boolean(true), parameters }))
    }

    fn member(&mut self) -> Result<Member, SignatureError> {
        if !self.take("(") {
            return Ok(Member::Item(self.item()?));
        }
        let mut items = Vec::new();
        loop {
            self.rest = self.rest.trim_start_matches(' ');
            if self.take(")") {
                return Ok(Member::List(items, self.parameters()?));
            }
            if items.len() == MAX_ITEMS {
                return Err(SignatureError::Malformed("a list is too long"));
            }
            items.push(self.item()?);
            if !self.rest.starts_with([' ', ')']) {
                return Err(SignatureError::Malformed("a list is not closed"));
            }
        }
    }

    fn item(&mut self) -> Result<Item, SignatureError> {
        let value = self.bare()?;
        Ok(Item { value, parameters: self.parameters()? })
    }

    fn parameters(&mut self) -> Result<Parameters, SignatureError> {
        let mut parameters: Parameters = Vec::new();
        while self.take(";") {
            self.rest = self.rest.trim_start_matches(' ');
            let key = self.key()?;
            let is_known = parameters.iter().any(|(known, _)| *known == key);
            if is_known || parameters.len() == MAX_ITEMS {
                return Err(SignatureError::Malformed("a parameter is given twice"));
            }
            let value = if self.take("=") { self.bare()? } else { Bare::Boolean(true) };
            parameters.push((key, value));
        }
        Ok(parameters)
    }

    fn bare(&mut self) -> Result<Bare, SignatureError> {
        match self.rest.bytes().next() {
            Some(b'"') => self.text(),
            Some(b':') => self.bytes(),
            Some(b'?') => {
                let value = Bare::Boolean(self.rest.starts_with("?1"));
                if !self.take("?1") {
                    self.expect("?0")?;
                }
                Ok(value)
            }
            Some(b'-' | b'0'..=b'9') => self.integer(),
            Some(first) if first.is_ascii_alphabetic() || first == b'*' => {
                let is_part = |c: char| c.is_ascii_graphic() && !r#"",;()<>@[]?={}\"#.contains(c);
                Ok(Bare::Token(self.while_of(is_part).to_owned()))
            }
            _ => Err(SignatureError::Malformed("a value is missing")),
        }
    }

    fn integer(&mut self) -> Result<Bare, SignatureError> {
        let sign = if self.take("-") { -1 } else { 1 };
        let digits = self.while_of(|c| c.is_ascii_digit());
        if digits.len() > 15 || self.rest.starts_with('.') {
            return Err(SignatureError::Malformed("a number is no integer of 15 digits"));
        }
        let number: Result<i64, _> = digits.parse();
        let number = number.map_err(|_| SignatureError::Malformed("a number has no digits"))?;
        Ok(Bare::Integer(sign * number))
    }

    fn text(&mut self) -> Result<Bare, SignatureError> {
        let mut text = String::new();
        let mut letters = self.rest.char_indices().skip(1);
        while let Some((at, letter)) = letters.next() {
            match letter {
                '"' => {
                    self.rest = &self.rest[at + 1..];
                    return Ok(Bare::Text(text));
                }
                '\\' => match letters.next() {
                    Some((_, escaped @ ('"' | '\\'))) => text.push(escaped),
                    _ => return Err(SignatureError::Malformed("a text has a wrong escape")),
                },
                ' '..='~' => text.push(letter),
                _ => return Err(SignatureError::Malformed("a text has a wrong character")),
            }
        }
        Err(SignatureError::Malformed("a text is not closed"))
    }

    fn bytes(&mut self) -> Result<Bare, SignatureError> {
        let end = self.rest[1..].find(':').map(|at| at + 1);
        let end = end.ok_or(SignatureError::Malformed("bytes are not closed"))?;
        let bytes = STANDARD.decode(&self.rest[1..end]);
        self.rest = &self.rest[end + 1..];
        Ok(Bare::Bytes(bytes.map_err(|_| SignatureError::Malformed("bytes are no base64"))?))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn again(text: &str) -> String {
        let members = dictionary(text).unwrap();
        let shown = members.iter().map(|(key, member)| match member {
            Member::Item(item) => format!("{key}={}", show_item(item)),
            Member::List(items, parameters) => format!("{key}={}", show_list(items, parameters)),
        });
        shown.collect::<Vec<_>>().join(", ")
    }

    #[test]
    fn a_dictionary_is_read_and_shown_again() {
        let text = "a=(\"@method\" \"x\";req;key=\"s\");created=1;nonce=\"n\\\"\", b=:AQI=:, c=tok";
        assert_eq!(again(text), text);
        assert_eq!(again("a=(  \"x\"  );  n=-5 ,\tb=?0"), "a=(\"x\");n=-5, b=?0");
    }

    #[test]
    fn what_two_readers_could_read_differently_is_refused() {
        for bad in [
            "a=1, a=2",
            "a=(\"x\" \"y\"",
            "a=\"x",
            "a=:AQ",
            "a=:A Q:",
            "A=1",
            "a=1,",
            "a=1 b=2",
            "a=(\"x\"\"y\")",
            "a=1.5",
            "a=1;b=1;b=2",
            "a=\"\u{e9}\"",
            "a=\"\\x\"",
            "=1",
            "a=",
        ] {
            assert!(dictionary(bad).is_err(), "{bad}");
        }
        assert!(dictionary(&format!("a=\"{}\"", "x".repeat(MAX_FIELD))).is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_the_reader_panic(text in ".{0,200}") {
            let _ = dictionary(&text);
        }

        #[test]
        fn no_text_of_its_own_letters_makes_the_reader_panic(text in "[a(=;:\"? ,)1\\\\-]{0,60}") {
            if let Ok(members) = dictionary(&text) {
                prop_assert!(members.len() <= MAX_ITEMS);
            }
        }
    }
}
