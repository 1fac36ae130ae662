//! Reading JSON strictly (RFC 8259), without losing what a parsed value has lost.

use super::{Json, Reason, Unhashable, step};

/// How deep arrays and objects may be nested.
pub const MAX_DEPTH: usize = 64;

/// Reads a JSON text whose arrays and objects are nested `max_depth` deep at most.
///
/// # Errors
/// What is no JSON, or could be read in two ways: with its place.
pub fn read(text: &[u8], max_depth: usize) -> Result<Json, Unhashable> {
    let text = std::str::from_utf8(text).map_err(|_| Reason::Malformed("it is no UTF-8").at(""))?;
    let mut reader = Reader { bytes: text.as_bytes(), text, at: 0, path: Vec::new(), max_depth };
    let outcome = reader.document();
    outcome.map_err(|reason| reason.at(&reader.pointer()))
}

struct Reader<'t> {
    bytes: &'t [u8],
    text: &'t str,
    at: usize,
    path: Vec<String>,
    max_depth: usize,
}

impl Reader<'_> {
    fn pointer(&self) -> String {
        self.path.iter().fold(String::new(), |path, name| step(&path, name))
    }

    fn document(&mut self) -> Result<Json, Reason> {
        let value = self.value(0)?;
        self.blank();
        if self.at < self.bytes.len() {
            return Err(Reason::Malformed("something follows its end"));
        }
        Ok(value)
    }

    fn peek(&self) -> Option<u8> {
        self.bytes.get(self.at).copied()
    }

    fn blank(&mut self) {
        while matches!(self.peek(), Some(b' ' | b'\t' | b'\n' | b'\r')) {
            self.at += 1;
        }
    }

    fn value(&mut self, depth: usize) -> Result<Json, Reason> {
        self.blank();
        match self.peek() {
            Some(b'{') => self.object(self.deeper(depth)?),
            Some(b'[') => self.list(self.deeper(depth)?),
            Some(b'"') => Ok(Json::Text(self.string()?)),
            Some(b'-' | b'0'..=b'9') => self.number(),
            Some(b't') => self.word("true", Json::Bool(true)),
            Some(b'f') => self.word("false", Json::Bool(false)),
            Some(b'n') => self.word("null", Json::Null),
            Some(_) => Err(Reason::Malformed("a value begins with a wrong character")),
            None => Err(Reason::Malformed("it breaks off")),
        }
    }

    fn deeper(&self, depth: usize) -> Result<usize, Reason> {
        if depth == self.max_depth { Err(Reason::TooDeep(self.max_depth)) } else { Ok(depth + 1) }
    }

    fn word(&mut self, word: &str, value: Json) -> Result<Json, Reason> {
        if !self.text[self.at..].starts_with(word) {
            return Err(Reason::Malformed("a word is none of true, false and null"));
        }
        self.at += word.len();
        Ok(value)
    }

    fn object(&mut self, depth: usize) -> Result<Json, Reason> {
        self.at += 1;
        let mut members: Vec<(String, Json)> = Vec::new();
        let mut keys = std::collections::HashSet::new();
        self.blank();
        if self.peek() == Some(b'}') {
            self.at += 1;
            return Ok(Json::Object(members));
        }
        loop {
            self.blank();
            if self.peek() != Some(b'"') {
                return Err(Reason::Malformed("a key is missing"));
            }
            let key = self.string()?;
            self.path.push(key.clone());
            if !keys.insert(key.clone()) {
                return Err(Reason::DuplicateKey);
            }
            self.blank();
            if self.peek() != Some(b':') {
                return Err(Reason::Malformed("a colon is missing"));
            }
            self.at += 1;
            members.push((key, self.value(depth)?));
            self.path.pop();
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(Json::Object(members));
                }
                _ => return Err(Reason::Malformed("an object is not closed")),
            }
        }
    }

    fn list(&mut self, depth: usize) -> Result<Json, Reason> {
        self.at += 1;
        let mut items = Vec::new();
        self.blank();
        if self.peek() == Some(b']') {
            self.at += 1;
            return Ok(Json::List(items));
        }
        loop {
            self.path.push(items.len().to_string());
            items.push(self.value(depth)?);
            self.path.pop();
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(Json::List(items));
                }
                _ => return Err(Reason::Malformed("an array is not closed")),
            }
        }
    }

    fn number(&mut self) -> Result<Json, Reason> {
        let start = self.at;
        if self.peek() == Some(b'-') {
            self.at += 1;
        }
        match self.peek() {
            Some(b'0') => self.at += 1,
            Some(b'1'..=b'9') => self.digits()?,
            _ => return Err(Reason::Malformed("a number has no digits")),
        }
        if self.peek() == Some(b'.') {
            self.at += 1;
            self.digits()?;
        }
        if matches!(self.peek(), Some(b'e' | b'E')) {
            self.at += 1;
            if matches!(self.peek(), Some(b'+' | b'-')) {
                self.at += 1;
            }
            self.digits()?;
        }
        Ok(Json::Number(self.text[start..self.at].to_owned()))
    }

    fn digits(&mut self) -> Result<(), Reason> {
        let start = self.at;
        while matches!(self.peek(), Some(b'0'..=b'9')) {
            self.at += 1;
        }
        if self.at == start { Err(Reason::Malformed("a number has no digits")) } else { Ok(()) }
    }

    fn string(&mut self) -> Result<String, Reason> {
        self.at += 1;
        let mut text = String::new();
        loop {
            let start = self.at;
            while self.peek().is_some_and(|byte| byte != b'"' && byte != b'\\' && byte >= b' ') {
                self.at += 1;
            }
            text.push_str(&self.text[start..self.at]);
            match self.peek() {
                Some(b'"') => {
                    self.at += 1;
                    return Ok(text);
                }
                Some(b'\\') => text.push(self.escape()?),
                Some(_) => return Err(Reason::Malformed("a text holds a control character")),
                None => return Err(Reason::Malformed("a text is not closed")),
            }
        }
    }

    fn escape(&mut self) -> Result<char, Reason> {
        self.at += 1;
        let letter = self.peek();
        self.at += 1;
        Ok(match letter {
            Some(letter @ (b'"' | b'\\' | b'/')) => char::from(letter),
            Some(b'b') => '\u{8}',
            Some(b't') => '\t',
            Some(b'n') => '\n',
            Some(b'f') => '\u{c}',
            Some(b'r') => '\r',
            Some(b'u') => return self.unicode(),
            _ => return Err(Reason::Malformed("a text holds a wrong escape")),
        })
    }

    fn unicode(&mut self) -> Result<char, Reason> {
        let first = self.hexadecimal()?;
        let code = match first {
            0 => return Err(Reason::Nul),
            0xD800..=0xDBFF => {
                if !self.text[self.at..].starts_with("\\u") {
                    return Err(Reason::LoneSurrogate);
                }
                self.at += 2;
                let second = self.hexadecimal()?;
                if !(0xDC00..=0xDFFF).contains(&second) {
                    return Err(Reason::LoneSurrogate);
                }
                0x10000 + ((first - 0xD800) << 10) + (second - 0xDC00)
            }
            code => code,
        };
        char::from_u32(code).ok_or(Reason::LoneSurrogate)
    }

    fn hexadecimal(&mut self) -> Result<u32, Reason> {
        let digits = self.bytes.get(self.at..self.at + 4);
        let digits = digits.filter(|digits| digits.iter().all(u8::is_ascii_hexdigit));
        let digits = digits.ok_or(Reason::Malformed("a text holds a wrong escape"))?;
        let value = digits.iter().fold(0, |value, digit| {
            value * 16 + char::from(*digit).to_digit(16).unwrap_or_default()
        });
        self.at += 4;
        Ok(value)
    }
}
