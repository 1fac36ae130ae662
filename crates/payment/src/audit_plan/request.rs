//! The request to the review centre, from what the version's lines refer to.

use std::collections::BTreeSet;

use counterfoil_db::{Read, sql};
use counterfoil_protocol::UserId;

use super::{AuditPlanError, PlanRequest};
use crate::{PaymentError, VersionContext};

/// Managers named for a node at most. Any one of them decides it: more would add nothing.
const MAX_MANAGERS: usize = 200;
/// Project companies of one version looked at.
const MAX_COMPANIES: u32 = 1000;

/// The managers that one partner names.
#[derive(Debug, Clone, Copy)]
struct Managers {
    a: Option<i64>,
    b: Option<i64>,
}

#[derive(Debug, Clone)]
struct Company {
    organisation: String,
    epctenantid: String,
}

/// The request, or why there can be none.
pub(super) async fn assemble(
    from: &impl Read,
    facts: &VersionContext,
) -> Result<Result<PlanRequest, AuditPlanError>, PaymentError> {
    let managers = managers(from, facts).await?;
    let companies = companies(from, facts).await?;
    Ok(compose(facts, &managers, &companies))
}

async fn managers(from: &impl Read, facts: &VersionContext) -> Result<Vec<Managers>, PaymentError> {
    let query = sql!(
        "SELECT DISTINCT p.manager_a_user_id, p.manager_b_user_id
         FROM fi_resident_income_payment_order_bill l
         JOIN sys_partner p ON p.id = l.partner_id AND p.deleted = 0
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.submit_round = :round
           AND l.deleted = 0
         ORDER BY p.manager_a_user_id, p.manager_b_user_id LIMIT :limit",
        order = facts.order.0,
        data = facts.target_data.0,
        round = facts.target_round.0,
        limit = i64::try_from(MAX_MANAGERS).unwrap_or(i64::MAX),
    );
    let rows = from.rows(query).await?;
    let pairs = rows.iter().map(|row| {
        let a = row.maybe_int("manager_a_user_id")?;
        let b = row.maybe_int("manager_b_user_id")?;
        Ok(Managers { a, b })
    });
    pairs.collect()
}

async fn companies(from: &impl Read, facts: &VersionContext) -> Result<Vec<Company>, PaymentError> {
    let query = sql!(
        "SELECT DISTINCT c.id, c.organisation, c.epctenantid
         FROM fi_resident_income_payment_order_bill l
         JOIN sys_project_company c ON c.id = l.project_company_id AND c.deleted = 0
         WHERE l.payment_order_id = :order AND l.data_version = :data AND l.submit_round = :round
           AND l.deleted = 0
         ORDER BY c.id LIMIT :limit",
        order = facts.order.0,
        data = facts.target_data.0,
        round = facts.target_round.0,
        limit = MAX_COMPANIES,
    );
    let rows = from.rows(query).await?;
    let companies = rows.iter().map(|row| {
        let organisation = row.text("organisation")?;
        Ok(Company { organisation, epctenantid: row.text("epctenantid")? })
    });
    companies.collect()
}

/// One order has one tenant, or its plan could not be found again. Its organisation is for people:
/// the first company's that names one.
fn compose(
    facts: &VersionContext,
    managers: &[Managers],
    companies: &[Company],
) -> Result<PlanRequest, AuditPlanError> {
    let order = facts.order;
    let named = |which: char, pick: fn(&Managers) -> Option<i64>| {
        let users: BTreeSet<i64> = managers.iter().filter_map(pick).filter(|id| *id > 0).collect();
        if users.is_empty() {
            return Err(AuditPlanError::NoReviewer { order, which });
        }
        Ok(users.into_iter().map(UserId).collect())
    };
    let tenants = companies.iter().map(|company| company.epctenantid.as_str());
    let tenants: BTreeSet<&str> = tenants.filter(|tenant| !tenant.is_empty()).collect();
    if tenants.len() > 1 {
        let tenants = tenants.into_iter().collect::<Vec<_>>().join(", ");
        return Err(AuditPlanError::TenantAmbiguous { order, tenants });
    }
    let mut submitters = [facts.session_creator, facts.order_creator].into_iter();
    let submitter = submitters.find(|user| user.0 > 0);
    let organisation = companies.iter().map(|company| company.organisation.clone());
    Ok(PlanRequest {
        order,
        order_no: facts.order_no.clone().unwrap_or_default(),
        epctenantid: tenants.first().map(|tenant| (*tenant).to_owned()).unwrap_or_default(),
        organisation: organisation.into_iter().find(|name| !name.is_empty()).unwrap_or_default(),
        submitter: submitter.ok_or(AuditPlanError::SubmitterUnknown { order })?,
        round: facts.target_round,
        data_version: facts.target_data,
        managers_a: named('A', |pair| pair.a)?,
        managers_b: named('B', |pair| pair.b)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::audit_plan::standing::tests::ready;
    use counterfoil_protocol::{DataVersion, SubmitRound};

    fn facts(session_creator: i64, order_creator: i64) -> VersionContext {
        VersionContext {
            session_creator: UserId(session_creator),
            order_creator: UserId(order_creator),
            ..ready()
        }
    }

    fn pair(a: i64, b: i64) -> Managers {
        Managers { a: Some(a), b: Some(b) }
    }

    fn company(organisation: &str, tenant: &str) -> Company {
        Company { organisation: organisation.into(), epctenantid: tenant.into() }
    }

    #[test]
    fn all_distinct_managers_of_the_partners_are_asked() {
        let none = Managers { a: None, b: Some(0) };
        let pairs = [pair(11, 21), pair(12, 21), none, pair(11, 22)];
        let companies = [company("", ""), company("ORG", "T1"), company("OTHER", "T1")];
        let request = compose(&facts(7, 8), &pairs, &companies).unwrap();
        assert_eq!(request.managers_a, [UserId(11), UserId(12)]);
        assert_eq!(request.managers_b, [UserId(21), UserId(22)]);
        assert_eq!((request.epctenantid.as_str(), request.organisation.as_str()), ("T1", "ORG"));
        assert_eq!((request.submitter, request.order_no.as_str()), (UserId(7), "PO1"));
        assert_eq!((request.round, request.data_version), (SubmitRound(2), DataVersion(4)));
    }

    #[test]
    fn what_is_missing_is_named_and_nothing_is_guessed() {
        let good = [pair(11, 21)];
        let no_a = [Managers { a: None, b: Some(21) }];
        let no_b = [Managers { a: Some(11), b: None }];
        let tenants = [company("", "T1"), company("", "T2")];
        type Case<'a> = (VersionContext, &'a [Managers], &'a [Company], &'a str);
        let table: [Case<'_>; 5] = [
            (facts(7, 7), &no_a, &[], "audit-plan-no-reviewer"),
            (facts(7, 7), &no_b, &[], "audit-plan-no-reviewer"),
            (facts(7, 7), &[], &[], "audit-plan-no-reviewer"),
            (facts(7, 7), &good, &tenants, "audit-plan-tenant-ambiguous"),
            (facts(0, 0), &good, &[], "audit-plan-submitter-unknown"),
        ];
        for (facts, managers, companies, code) in table {
            assert_eq!(compose(&facts, managers, companies).unwrap_err().code(), code);
        }
        assert_eq!(compose(&facts(0, 8), &good, &[]).unwrap().submitter, UserId(8));
    }
}
