//! Which line goes into which batch: pure.
//!
//! Source: inputs.md "Partner split rule". Lines come in the order of their ids; a part is closed
//! when the next line does not fit and is never opened again, so that one part a group is enough
//! to go on from.

use std::collections::HashMap;

use crate::treasury::MAX_BATCH_DETAILS;

/// `sys_partner.split_rule`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SplitRule {
    /// One batch a project company, with the lines of all partners that say so.
    None,
    /// One batch a station.
    ByStation,
    /// So many lines a batch at most.
    MaxLines(i64),
    /// So many fen a batch at most; a single line above it is a batch of its own.
    MaxAmount(i64),
}

impl SplitRule {
    /// Reads a stored rule. Blank is NONE.
    ///
    /// # Errors
    /// What is wrong with it.
    pub fn parse(text: &str) -> Result<SplitRule, &'static str> {
        let text = text.trim();
        let limit = |text: &str| match text.parse::<i64>() {
            Ok(limit) if limit > 0 && text.bytes().all(|byte| byte.is_ascii_digit()) => Ok(limit),
            _ => Err("its number must be a whole number above zero"),
        };
        match text.split_once(':') {
            None if text.is_empty() || text == "NONE" => Ok(SplitRule::None),
            None if text == "BY_STATION" => Ok(SplitRule::ByStation),
            Some(("MAX_LINES", lines)) => Ok(SplitRule::MaxLines(limit(lines)?)),
            Some(("MAX_AMOUNT", fen)) => Ok(SplitRule::MaxAmount(limit(fen)?)),
            _ => Err("write NONE, BY_STATION, MAX_LINES:<n> or MAX_AMOUNT:<fen>"),
        }
    }

    /// The lines that share batches: a project company's, apart by partner where the rule is one.
    pub fn group(self, partner: Option<i64>, station: &str) -> String {
        let partner = partner.unwrap_or(0);
        match self {
            SplitRule::None => "ALL".to_owned(),
            SplitRule::ByStation => format!("P{partner}:{station}"),
            SplitRule::MaxLines(_) | SplitRule::MaxAmount(_) => format!("P{partner}"),
        }
    }

    fn fits(self, part: &Part, amount: i64) -> bool {
        if part.lines >= MAX_BATCH_DETAILS {
            return false;
        }
        match self {
            SplitRule::None | SplitRule::ByStation => true,
            SplitRule::MaxLines(most) => part.lines < most,
            SplitRule::MaxAmount(most) => part.amount.saturating_add(amount) <= most,
        }
    }
}

/// A project company's id (0 where a line names none) and the group's key.
pub type Group = (i64, String);

/// One part of a group: a batch, or what is to become one.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// Its batch, once it has a row.
    pub batch: Option<i64>,
    /// From 1.
    pub number: i64,
    /// Lines in it.
    pub lines: i64,
    /// Fen in it.
    pub amount: i64,
}

impl Part {
    /// The batch's split key: part and group. The part stands first, because a station may hold
    /// anything.
    pub fn split_key(&self, group: &str) -> String {
        format!("{}:{group}", self.number)
    }
}

/// Where lines go. It holds the part of each group that is being filled, and the parts that were
/// closed since it was made.
#[derive(Debug, Default)]
pub struct Placing {
    filling: HashMap<Group, Part>,
    closed: Vec<(Group, Part)>,
}

impl Placing {
    /// Goes on from the parts that are being filled.
    pub fn from(filling: HashMap<Group, Part>) -> Placing {
        Placing { filling, closed: Vec::new() }
    }

    /// Places one line; answers its part's number.
    pub fn place(&mut self, group: &Group, rule: SplitRule, amount: i64) -> i64 {
        let part = match self.filling.remove(group) {
            None => Part { batch: None, number: 1, lines: 0, amount: 0 },
            // A line above the limit goes into an empty part alone: nothing fits beside it.
            Some(part) if part.lines == 0 || rule.fits(&part, amount) => part,
            Some(full) => {
                let number = full.number + 1;
                self.closed.push((group.clone(), full));
                Part { batch: None, number, lines: 0, amount: 0 }
            }
        };
        let part = Part { lines: part.lines + 1, amount: part.amount + amount, ..part };
        let number = part.number;
        self.filling.insert(group.clone(), part);
        number
    }

    /// Every part touched or known, closed ones first, with whether it is still being filled.
    pub fn into_parts(self) -> Vec<(Group, Part, bool)> {
        let closed = self.closed.into_iter().map(|(group, part)| (group, part, false));
        let mut filling: Vec<_> =
            self.filling.into_iter().map(|(group, part)| (group, part, true)).collect();
        filling.sort_by(|(a, ..), (b, ..)| a.cmp(b));
        closed.chain(filling).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn placed(rule: &str, amounts: &[i64]) -> Vec<i64> {
        let rule = SplitRule::parse(rule).unwrap();
        let mut placing = Placing::default();
        let group = (1, rule.group(Some(7), "S1"));
        amounts.iter().map(|amount| placing.place(&group, rule, *amount)).collect()
    }

    #[test]
    fn a_part_is_closed_when_the_next_line_does_not_fit() {
        assert_eq!(placed("NONE", &[1, 1, 1]), [1, 1, 1]);
        assert_eq!(placed("MAX_LINES:2", &[1, 1, 1, 1, 1]), [1, 1, 2, 2, 3]);
        assert_eq!(placed("MAX_AMOUNT:100", &[60, 40, 1, 99, 1]), [1, 1, 2, 2, 3]);
    }

    #[test]
    fn a_line_above_the_limit_is_a_batch_of_its_own() {
        assert_eq!(placed("MAX_AMOUNT:100", &[500, 10, 20, 101, 5]), [1, 2, 2, 3, 4]);
        assert_eq!(placed("MAX_AMOUNT:100", &[10, 500, 500, 10]), [1, 2, 3, 4]);
    }

    #[test]
    fn no_batch_is_larger_than_one_message_may_be() {
        let amounts = vec![1; usize::try_from(MAX_BATCH_DETAILS).unwrap() + 1];
        assert_eq!(placed("NONE", &amounts).last(), Some(&2));
    }

    #[test]
    fn a_rule_that_is_none_of_the_four_is_refused() {
        for text in [
            "none",
            "BY STATION",
            "MAX_LINES",
            "MAX_LINES:",
            "MAX_LINES:0",
            "MAX_LINES:-1",
            "MAX_LINES:+5",
            "MAX_LINES:1.5",
            "MAX_AMOUNT:x",
            "MAX_AMOUNT:99999999999999999999",
            "NONE:1",
            "BY_STATION:2",
            "MAX_LINES:2:3",
        ] {
            assert!(SplitRule::parse(text).is_err(), "{text}");
        }
        assert_eq!(SplitRule::parse(" MAX_AMOUNT:500 "), Ok(SplitRule::MaxAmount(500)));
        assert_eq!(SplitRule::parse(""), Ok(SplitRule::None));
    }
}
