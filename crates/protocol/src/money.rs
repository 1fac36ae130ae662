//! Money in fen. No floats, ever.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// An amount in fen (1/100 yuan).
#[derive(
    Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct Fen(pub i64);

/// Why a text is no amount.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum MoneyError {
    /// Not digits with at most one point.
    #[error("is not an amount in yuan: write digits with at most two decimals")]
    Form,
    /// A third decimal; rounding is not ours to do.
    #[error("has more than two decimals")]
    Decimals,
    /// Does not fit in 64 bits of fen.
    #[error("is too large")]
    Large,
}

impl Fen {
    /// Nothing.
    pub const ZERO: Fen = Fen(0);

    /// Reads yuan with at most two decimals, such as `123`, `123.4`, `-0.05`.
    pub fn from_yuan(text: &str) -> Result<Fen, MoneyError> {
        let (negative, digits) = match text.strip_prefix('-') {
            Some(rest) => (true, rest),
            None => (false, text),
        };
        let (whole, cents) = digits.split_once('.').unwrap_or((digits, "0"));
        let all_digits = |s: &str| !s.is_empty() && s.bytes().all(|b| b.is_ascii_digit());
        if !all_digits(whole) || !all_digits(cents) {
            return Err(MoneyError::Form);
        }
        if cents.len() > 2 {
            return Err(MoneyError::Decimals);
        }
        let cents: i64 = format!("{cents:0<2}")
            .parse()
            .map_err(|_| MoneyError::Form)?;
        let fen = whole
            .parse::<i64>()
            .ok()
            .and_then(|yuan| yuan.checked_mul(100));
        let fen = fen
            .and_then(|fen| fen.checked_add(cents))
            .ok_or(MoneyError::Large)?;
        Ok(Fen(if negative { -fen } else { fen }))
    }

    /// The difference's size.
    pub fn distance(self, other: Fen) -> Fen {
        Fen(self.0.saturating_sub(other.0).saturating_abs())
    }

    /// `percent` hundredths of this amount, rounded down to a fen.
    pub fn percent(self, percent: u32) -> Fen {
        let share = i128::from(self.0) * i128::from(percent) / 100;
        Fen(i64::try_from(share).unwrap_or(i64::MAX))
    }
}

impl FromStr for Fen {
    type Err = MoneyError;

    fn from_str(text: &str) -> Result<Fen, MoneyError> {
        Fen::from_yuan(text)
    }
}

impl fmt::Display for Fen {
    /// Yuan with two decimals and thousands separators: `1,234.05`.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let sign = if self.0 < 0 { "-" } else { "" };
        let fen = self.0.unsigned_abs();
        let digits = (fen / 100).to_string();
        let mut yuan = String::new();
        for (at, digit) in digits.chars().enumerate() {
            if at > 0 && (digits.len() - at).is_multiple_of(3) {
                yuan.push(',');
            }
            yuan.push(digit);
        }
        f.pad(&format!("{sign}{yuan}.{:02}", fen % 100))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn yuan_with_at_most_two_decimals_become_fen() {
        for (text, fen) in [
            ("0", 0),
            ("12", 1200),
            ("12.3", 1230),
            ("12.34", 1234),
            ("-0.05", -5),
        ] {
            assert_eq!(Fen::from_yuan(text), Ok(Fen(fen)), "{text}");
        }
    }

    #[test]
    fn what_is_no_amount_is_refused_with_its_reason() {
        for text in ["", ".", "1.", ".5", "1,000", "1e3", " 1", "+1", "１"] {
            assert_eq!(Fen::from_yuan(text), Err(MoneyError::Form), "{text:?}");
        }
        assert_eq!(Fen::from_yuan("1.005"), Err(MoneyError::Decimals));
        assert_eq!(Fen::from_yuan("92233720368547759"), Err(MoneyError::Large));
    }

    #[test]
    fn an_amount_is_shown_in_yuan_with_separators() {
        assert_eq!(Fen(123_456_705).to_string(), "1,234,567.05");
        assert_eq!(Fen(-5).to_string(), "-0.05");
    }
}
