//! How an approved order is paid: by the treasury where its asset manager is one that the
//! dictionary knows as normal, else offline.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_db::{Read, sql};
use counterfoil_task::WorkError;

use crate::review_progress::facts::Progressed;

/// How an order is paid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PaymentType {
    Treasury,
    Offline,
}

impl PaymentType {
    pub(super) fn as_str(self) -> &'static str {
        match self {
            PaymentType::Treasury => "TREASURY",
            PaymentType::Offline => "OFFLINE",
        }
    }
}

/// Project companies of one order at most.
const MAX_COMPANIES: u32 = 10_000;

/// Company id to asset manager code, of the companies that have something to pay.
type Codes = BTreeMap<i64, Option<String>>;

/// The one asset manager of all companies.
fn agreed(codes: &Codes) -> Result<&str, String> {
    let missing: Vec<String> = codes
        .iter()
        .filter(|(_, code)| code.as_deref().is_none_or(str::is_empty))
        .map(|(company, _)| company.to_string())
        .collect();
    if !missing.is_empty() {
        let shown = missing.iter().take(MAX_SHOWN).cloned().collect::<Vec<_>>().join(", ");
        return Err(format!("project companies without an asset manager: {shown}"));
    }
    let codes: BTreeSet<&str> = codes.values().filter_map(Option::as_deref).collect();
    let mut all = codes.iter();
    match (all.next(), all.next()) {
        (Some(code), None) => Ok(code),
        (None, _) => Err("no project payment of this version and round is to be paid".into()),
        _ => {
            let shown = codes.into_iter().take(MAX_SHOWN).collect::<Vec<_>>().join(", ");
            Err(format!("the project companies' asset managers do not agree: {shown}"))
        }
    }
}

/// Companies or codes named in one message.
const MAX_SHOWN: usize = 10;

/// Reads the project payments and decides. The inner error says why there is no payment type.
pub(super) async fn decide(
    from: &impl Read,
    facts: &Progressed,
) -> Result<Result<PaymentType, String>, WorkError> {
    let query = sql!(
        "SELECT p.project_company_id AS company, c.asset_manager_code AS code
         FROM fi_resident_income_payment_order_project_payment p
         LEFT JOIN sys_project_company c ON c.id = p.project_company_id AND c.deleted = 0
         WHERE p.payment_order_id = :order AND p.data_version = :data
           AND p.submit_round = :round AND p.deleted = 0
           AND p.payment_status <> 'NO_NEED_PAYMENT'
         ORDER BY p.project_company_id LIMIT :limit",
        order = facts.order.0,
        data = facts.data.0,
        round = facts.round.0,
        limit = MAX_COMPANIES,
    );
    let mut codes = Codes::new();
    for row in from.rows(query).await? {
        codes.insert(row.int("company")?, row.maybe_text("code")?);
    }
    let code = match agreed(&codes) {
        Ok(code) => code,
        Err(why) => return Ok(Err(why)),
    };
    let normal = sql!(
        "SELECT COUNT(*) FROM sys_dict
         WHERE dict_type = 'ASSET_MANAGER' AND dict_key = :code AND status = 1 AND deleted = 0",
        code = code,
    );
    let is_normal = from.count(normal).await? > 0;
    Ok(Ok(if is_normal { PaymentType::Treasury } else { PaymentType::Offline }))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_companies_must_agree_on_who_runs_their_assets() {
        let by_company = |codes: &[Option<&str>]| -> Codes {
            let numbered = codes.iter().enumerate();
            numbered.map(|(at, code)| (at as i64, code.map(str::to_owned))).collect()
        };
        let table: [(&[Option<&str>], Option<&str>); 6] = [
            (&[Some("A")], Some("A")),
            (&[Some("A"), Some("A")], Some("A")),
            (&[Some("A"), Some("B")], None),
            (&[Some("A"), None], None),
            (&[Some("A"), Some("")], None),
            (&[], None),
        ];
        for (codes, expected) in table {
            let codes = by_company(codes);
            assert_eq!(agreed(&codes).ok(), expected, "{codes:?}");
        }
    }
}
