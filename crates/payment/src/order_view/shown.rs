//! How values are shown: money, accounts, instants.

use counterfoil_db::Instant;
use counterfoil_protocol::Fen;
use serde::Serialize;
use serde::ser::{SerializeStruct, Serializer};

/// An amount for people and programs: `{"fen": 123405, "yuan": "1,234.05"}`. Programs count in
/// whole fen; nobody has to know which of the two a bare number would be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Money(pub Fen);

impl Serialize for Money {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut money = serializer.serialize_struct("Money", 2)?;
        money.serialize_field("fen", &self.0.0)?;
        money.serialize_field("yuan", &self.0.to_string())?;
        money.end()
    }
}

impl std::fmt::Display for Money {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

impl From<i64> for Money {
    fn from(fen: i64) -> Money {
        Money(Fen(fen))
    }
}

/// Digits of an account number that are shown.
const SHOWN_DIGITS: usize = 4;

/// An account number with all but its end hidden. Short ones are hidden whole.
pub(crate) fn masked(account: &str) -> String {
    let letters: Vec<char> = account.chars().collect();
    if letters.len() <= SHOWN_DIGITS {
        return "*".repeat(letters.len());
    }
    let end: String = letters[letters.len() - SHOWN_DIGITS..].iter().collect();
    format!("****{end}")
}

/// A number of things inside a sentence.
pub(crate) fn count(number: i64, thing: &str) -> String {
    match number {
        1 => format!("1 {thing}"),
        n => format!("{n} {thing}s"),
    }
}

/// An instant inside a sentence.
pub(crate) fn at(instant: Instant) -> String {
    instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_in_both_units() {
        let shown = serde_json::to_string(&Money::from(123_405)).unwrap();
        assert_eq!(shown, r#"{"fen":123405,"yuan":"1,234.05"}"#);
    }

    #[test]
    fn an_account_number_keeps_its_last_four_digits_to_itself_or_shows_only_them() {
        let table = [
            ("6222020200112233", "****2233"),
            ("123", "***"),
            ("1234", "****"),
            ("", ""),
        ];
        for (account, shown) in table {
            assert_eq!(masked(account), shown);
        }
    }
}
