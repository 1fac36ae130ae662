//! Which characters a text of a payment may hold.

/// The set of characters that the receiving bank takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Characters {
    /// Whatever can be printed: the schema's own rule, and what banks in China take for names.
    #[default]
    Printable,
    /// The Latin set of SEPA. Accents are taken off; what has no Latin letter is refused.
    Sepa,
}

impl Characters {
    /// Reads a configured name.
    pub fn of(name: &str) -> Option<Characters> {
        match name {
            "printable" => Some(Characters::Printable),
            "sepa" => Some(Characters::Sepa),
            _ => None,
        }
    }

    /// The text as it may be sent, blanks at the ends taken off.
    ///
    /// # Errors
    /// The first character that has no place in the set.
    pub fn fit(self, text: &str) -> Result<String, char> {
        let text = text.trim();
        match self {
            Characters::Printable => match text.chars().find(|c| !is_printable(*c)) {
                Some(c) => Err(c),
                None => Ok(text.to_owned()),
            },
            Characters::Sepa => {
                let mut fitted = String::with_capacity(text.len());
                for c in text.chars() {
                    if is_sepa(c) {
                        fitted.push(c);
                    } else {
                        fitted.push_str(latin(c).ok_or(c)?);
                    }
                }
                Ok(fitted)
            }
        }
    }
}

/// Neither control characters, nor what XML 1.0 has no place for, nor what turns the direction of
/// writing around: a name must be what it looks like.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(c, '\u{fffe}' | '\u{ffff}' | '\u{feff}' | '\u{2028}' | '\u{2029}')
        && !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

/// The characters that every bank in SEPA takes (EPC217-08).
pub(super) fn is_sepa(c: char) -> bool {
    c.is_ascii_alphanumeric()
        || matches!(c, '/' | '-' | '?' | ':' | '(' | ')' | '.' | ',' | '\'' | '+' | ' ')
}

fn latin(c: char) -> Option<&'static str> {
    Some(match c {
        'À' | 'Á' | 'Â' | 'Ã' | 'Å' | 'Ā' | 'Ă' | 'Ą' | 'Ǎ' => "A",
        'à' | 'á' | 'â' | 'ã' | 'å' | 'ā' | 'ă' | 'ą' | 'ǎ' => "a",
        'Ä' => "Ae",
        'ä' => "ae",
        'Æ' => "AE",
        'æ' => "ae",
        'Ç' | 'Ć' | 'Č' => "C",
        'ç' | 'ć' | 'č' => "c",
        'Ď' | 'Đ' => "D",
        'ď' | 'đ' => "d",
        'È' | 'É' | 'Ê' | 'Ë' | 'Ē' | 'Ę' | 'Ě' => "E",
        'è' | 'é' | 'ê' | 'ë' | 'ē' | 'ę' | 'ě' => "e",
        'Ì' | 'Í' | 'Î' | 'Ï' | 'Ī' | 'Ǐ' => "I",
        'ì' | 'í' | 'î' | 'ï' | 'ī' | 'ǐ' => "i",
        'Ł' => "L",
        'ł' => "l",
        'Ñ' | 'Ń' | 'Ň' => "N",
        'ñ' | 'ń' | 'ň' => "n",
        'Ò' | 'Ó' | 'Ô' | 'Õ' | 'Ø' | 'Ō' | 'Ő' | 'Ǒ' => "O",
        'ò' | 'ó' | 'ô' | 'õ' | 'ø' | 'ō' | 'ő' | 'ǒ' => "o",
        'Ö' => "Oe",
        'ö' => "oe",
        'Ř' => "R",
        'ř' => "r",
        'Ś' | 'Š' | 'Ş' => "S",
        'ś' | 'š' | 'ş' => "s",
        'ß' => "ss",
        'Ť' | 'Ţ' => "T",
        'ť' | 'ţ' => "t",
        'Ù' | 'Ú' | 'Û' | 'Ū' | 'Ů' | 'Ű' | 'Ǔ' => "U",
        'ù' | 'ú' | 'û' | 'ū' | 'ů' | 'ű' | 'ǔ' => "u",
        'Ü' => "Ue",
        'ü' => "ue",
        'Ý' | 'Ÿ' => "Y",
        'ý' | 'ÿ' => "y",
        'Ź' | 'Ż' | 'Ž' => "Z",
        'ź' | 'ż' | 'ž' => "z",
        '&' => "+",
        '_' => "-",
        '“' | '”' | '"' | '’' | '‘' | '`' => "'",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn accents_are_taken_off_and_what_has_no_latin_letter_is_refused() {
        let sepa = Characters::Sepa;
        assert_eq!(sepa.fit(" Jürgen Groß & Söhne_1 "), Ok("Juergen Gross + Soehne-1".into()));
        assert_eq!(sepa.fit("王小明"), Err('王'));
        assert_eq!(Characters::Printable.fit(" 王小明 "), Ok("王小明".into()));
    }

    #[test]
    fn what_cannot_be_seen_is_refused() {
        for c in ['\u{0}', '\n', '\u{7f}', '\u{202e}', '\u{200b}', '\u{fffe}'] {
            let text = format!("a{c}b");
            assert_eq!(Characters::Printable.fit(&text), Err(c), "{c:?}");
            assert_eq!(Characters::Sepa.fit(&text), Err(c), "{c:?}");
        }
    }
}
