//! A bill's month, `YYYYMM`, in Asia/Shanghai.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use thiserror::Error;

/// A bill's month. 200001 to 209912.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct BillMonth(String);

/// Why a text is no month.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("is not a month: write YYYYMM from 200001 to 209912")]
pub struct MonthError;

impl BillMonth {
    /// The six digits.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The six digits, as the database gave them back.
    pub fn stored(text: impl Into<String>) -> BillMonth {
        BillMonth(text.into())
    }
}

impl FromStr for BillMonth {
    type Err = MonthError;

    fn from_str(text: &str) -> Result<BillMonth, MonthError> {
        let digits = text.len() == 6 && text.bytes().all(|b| b.is_ascii_digit());
        let in_century = digits && text.starts_with("20");
        let month_exists = in_century && ("01"..="12").contains(&&text[4..]);
        if month_exists { Ok(BillMonth(text.to_owned())) } else { Err(MonthError) }
    }
}

impl TryFrom<String> for BillMonth {
    type Error = MonthError;

    fn try_from(text: String) -> Result<BillMonth, MonthError> {
        text.parse()
    }
}

impl From<BillMonth> for String {
    fn from(month: BillMonth) -> String {
        month.0
    }
}

impl fmt::Display for BillMonth {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_is_six_digits_from_200001_to_209912() {
        for good in ["200001", "202609", "209912"] {
            assert!(good.parse::<BillMonth>().is_ok(), "{good}");
        }
        for bad in ["", "202600", "202613", "199912", "210001", "2026-9", "20269", "２０２６０９"]
        {
            assert_eq!(bad.parse::<BillMonth>(), Err(MonthError), "{bad}");
        }
    }
}
