//! What the centre is asked to review.

use std::collections::BTreeSet;

use counterfoil_protocol::{DataVersion, OrderId, SubmitRound, UserId};

use super::Edition;
use crate::configuration::{MAX_REVIEWERS, OPERATION_MANAGER_A, OPERATION_MANAGER_B};
use crate::{ReviewError, defect_of_text};

/// Characters of a type, a number, a tenant or an organisation.
pub const MAX_NAME: usize = 64;

/// What the centre is asked to review.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PlanOpening {
    /// The id of what is reviewed.
    pub from_id: OrderId,
    /// Its number, for people.
    pub from_num: String,
    /// The review's type.
    pub type_name: String,
    /// The tenant; may be empty where there is one tenant only.
    pub epctenantid: String,
    /// The organisation, for people; may be empty.
    pub organisation: String,
    /// Who submitted it, and so never reviews it.
    pub submitter: UserId,
    /// The business round.
    pub round: SubmitRound,
    /// The data version under review.
    pub data_version: DataVersion,
    /// Operations managers A: any one of them decides that node.
    pub managers_a: Vec<UserId>,
    /// Operations managers B.
    pub managers_b: Vec<UserId>,
}

impl PlanOpening {
    /// The value that only one plan of the order can hold while it is active.
    pub(super) fn active_key(&self) -> String {
        format!("{}:{}:{}", self.type_name, self.epctenantid, self.from_id)
    }

    pub(super) fn edition(&self) -> Edition {
        Edition { round: self.round, data: self.data_version }
    }

    pub(super) fn stale(&self, newest: Edition) -> ReviewError {
        ReviewError::Stale {
            round: self.round,
            data_version: self.data_version,
            newest_round: newest.round,
            newest_data_version: newest.data,
        }
    }

    /// The managers the request names for a node; the submitter is never among them.
    pub(super) fn reviewers_of(&self, node_code: &str) -> BTreeSet<UserId> {
        let named: &[UserId] = match node_code {
            OPERATION_MANAGER_A => &self.managers_a,
            OPERATION_MANAGER_B => &self.managers_b,
            _ => &[],
        };
        named.iter().copied().filter(|user| *user != self.submitter).collect()
    }

    /// Before anything is written: a database answers a width or a NUL with an error of its own.
    pub(super) fn validate(&self) -> Result<(), ReviewError> {
        let numbers = [
            ("fromId", self.from_id.0, i64::MAX),
            ("submitter", self.submitter.0, i64::MAX),
            ("submitRound", self.round.0, i32::MAX.into()),
            ("dataVersion", self.data_version.0, i32::MAX.into()),
        ];
        for (field, number, most) in numbers {
            if number <= 0 || number > most {
                let why = format!("must be between 1 and {most}");
                return Err(ReviewError::invalid(field, why));
            }
        }
        if self.type_name.is_empty() {
            return Err(ReviewError::invalid("type", "must not be empty"));
        }
        let texts = [
            ("fromNum", &self.from_num),
            ("type", &self.type_name),
            ("epctenantid", &self.epctenantid),
            ("organisation", &self.organisation),
        ];
        for (field, text) in texts {
            if let Some(why) = defect_of_text(text, MAX_NAME) {
                return Err(ReviewError::invalid(field, why));
            }
        }
        validate_managers("managersA", &self.managers_a)?;
        validate_managers("managersB", &self.managers_b)
    }
}

fn validate_managers(field: &'static str, users: &[UserId]) -> Result<(), ReviewError> {
    if users.len() > MAX_REVIEWERS {
        let why = format!("must not be more than {MAX_REVIEWERS} users");
        return Err(ReviewError::invalid(field, why));
    }
    if users.iter().any(|user| user.0 <= 0) {
        return Err(ReviewError::invalid(field, "every user id must be positive"));
    }
    Ok(())
}
