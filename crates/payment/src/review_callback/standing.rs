//! Where a decision stands against the order and its approval instance. Pure.

use counterfoil_db::{Read, sql};
use counterfoil_protocol::{DataVersion, OrderId, PlanId, SubmitRound};

use super::{CallbackError, Conclusion, Identity};

/// The order as S07 and S08 look at it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct OrderFacts {
    pub(crate) status: i64,
    pub(crate) pointer: DataVersion,
    pub(crate) plan: Option<PlanId>,
    pub(crate) round: SubmitRound,
}

impl OrderFacts {
    /// Whether a decision about this version, plan and round is about what the order is now.
    pub(crate) fn is_at(&self, data: DataVersion, plan: PlanId, round: SubmitRound) -> bool {
        self.pointer == data && self.plan == Some(plan) && self.round == round
    }

    /// Reads the live order under its row lock: the one that publishing, cancelling, FINALIZE and
    /// batch creation take too.
    pub(crate) async fn lock(
        tx: &impl Read,
        order: OrderId,
    ) -> counterfoil_db::Result<Option<OrderFacts>> {
        let query = sql!(
            "SELECT status, current_publish_version, review_plan_id, submit_round
             FROM fi_resident_income_payment_order
             WHERE id = :order AND deleted = 0 {for_update}",
            order = order.0,
        );
        OrderFacts::read_by(tx, query).await
    }

    /// Reads the live order without a lock.
    pub(crate) async fn read(
        from: &impl Read,
        order: OrderId,
    ) -> counterfoil_db::Result<Option<OrderFacts>> {
        let query = sql!(
            "SELECT status, current_publish_version, review_plan_id, submit_round
             FROM fi_resident_income_payment_order WHERE id = :order AND deleted = 0",
            order = order.0,
        );
        OrderFacts::read_by(from, query).await
    }

    async fn read_by(
        from: &impl Read,
        query: counterfoil_db::Query,
    ) -> counterfoil_db::Result<Option<OrderFacts>> {
        let Some(row) = from.row(query).await? else {
            return Ok(None);
        };
        Ok(Some(OrderFacts {
            status: row.int("status")?,
            pointer: DataVersion(row.int("current_publish_version")?),
            plan: row.maybe_int("review_plan_id")?.map(PlanId),
            round: SubmitRound(row.int("submit_round")?),
        }))
    }
}

/// The approval instance: four parts name it, and the round is not one of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Instance {
    pub(crate) id: i64,
    /// How it was concluded; `None` = in review.
    pub(crate) concluded: Option<Conclusion>,
}

impl Instance {
    /// Reads and locks the instance of an identity.
    pub(crate) async fn lock(
        tx: &impl Read,
        identity: &Identity,
    ) -> counterfoil_db::Result<Option<Instance>> {
        let query = sql!(
            "SELECT id, approval_status
             FROM fi_resident_income_payment_order_approval_instance
             WHERE payment_order_id = :order AND data_version = :data
               AND approval_attempt = :attempt AND review_plan_id = :plan AND deleted = 0
             {for_update}",
            order = identity.order.0,
            data = identity.data_version.0,
            attempt = identity.attempt.0,
            plan = identity.plan.0,
        );
        let Some(row) = tx.row(query).await? else {
            return Ok(None);
        };
        let concluded = match row.text("approval_status")?.as_str() {
            "APPROVED" => Some(Conclusion::Pass),
            "REJECTED" => Some(Conclusion::Reject),
            _ => None,
        };
        Ok(Some(Instance { id: row.int("id")?, concluded }))
    }
}

/// What is to be done about a decision.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Standing {
    /// The order moved on: nothing is touched.
    Stale,
    /// The order shows the decision already; the instance may lack it.
    Applied {
        /// The instance is still in review.
        instance_lags: bool,
    },
    /// It is to be applied now.
    Due,
}

/// Judges a decision by the facts.
///
/// # Errors
/// A missing order or instance; unless stale, the opposite conclusion, and an order that cannot
/// take the decision.
pub(crate) fn judge(
    identity: &Identity,
    order: Option<&OrderFacts>,
    instance: Option<&Instance>,
) -> Result<Standing, CallbackError> {
    let instance = instance.ok_or_else(|| instance_missing(identity))?;
    let order = order.ok_or(CallbackError::OrderNotFound(identity.order))?;
    if !order.is_at(identity.data_version, identity.plan, identity.round) {
        return Ok(Standing::Stale);
    }
    if let Some(said) = instance.concluded.filter(|said| *said != identity.conclusion) {
        return Err(CallbackError::Opposite { order: identity.order, plan: identity.plan, said });
    }
    let shows_it = match identity.conclusion {
        Conclusion::Reject => order.status == 30,
        Conclusion::Pass => matches!(order.status, 40 | 50 | 55),
    };
    if shows_it {
        return Ok(Standing::Applied { instance_lags: instance.concluded.is_none() });
    }
    if order.status == 20 {
        return Ok(Standing::Due);
    }
    Err(CallbackError::OrderState {
        order: identity.order,
        status: order.status,
        why: "a decision is applied to an order under review (20)",
    })
}

pub(crate) fn instance_missing(identity: &Identity) -> CallbackError {
    CallbackError::InstanceNotFound {
        order: identity.order,
        plan: identity.plan,
        of: format!(", version {}, attempt {}", identity.data_version, identity.attempt),
    }
}

#[cfg(test)]
mod tests {
    use counterfoil_protocol::ApprovalAttempt;

    use super::*;

    fn identity(conclusion: Conclusion) -> Identity {
        Identity {
            order: OrderId(1),
            plan: PlanId(9),
            data_version: DataVersion(2),
            attempt: ApprovalAttempt(1),
            round: SubmitRound(2),
            conclusion,
        }
    }

    fn order(status: i64) -> OrderFacts {
        OrderFacts { status, pointer: DataVersion(2), plan: Some(PlanId(9)), round: SubmitRound(2) }
    }

    fn instance(concluded: Option<Conclusion>) -> Instance {
        Instance { id: 5, concluded }
    }

    #[test]
    fn every_status_takes_the_decisions_it_can_and_no_other() {
        use Conclusion::{Pass, Reject};
        let applied = |instance_lags| Some(Standing::Applied { instance_lags });
        let table = [
            (20, Pass, None, Some(Standing::Due)),
            (20, Reject, None, Some(Standing::Due)),
            // A half-done pair: the instance is concluded and the order is not.
            (20, Pass, Some(Pass), Some(Standing::Due)),
            (20, Reject, Some(Reject), Some(Standing::Due)),
            (20, Pass, Some(Reject), None),
            (20, Reject, Some(Pass), None),
            (30, Reject, None, applied(true)),
            (30, Reject, Some(Reject), applied(false)),
            (30, Pass, None, None),
            (30, Pass, Some(Reject), None),
            (40, Pass, None, applied(true)),
            (50, Pass, Some(Pass), applied(false)),
            (55, Pass, None, applied(true)),
            (40, Reject, None, None),
            (40, Reject, Some(Pass), None),
            (10, Pass, None, None),
            (90, Pass, None, None),
            (90, Reject, None, None),
        ];
        for (status, conclusion, concluded, expected) in table {
            let judged =
                judge(&identity(conclusion), Some(&order(status)), Some(&instance(concluded)));
            assert_eq!(judged.ok(), expected, "{status} {conclusion:?} {concluded:?}");
        }
    }

    #[test]
    fn an_order_that_moved_on_is_stale_whatever_its_instance_says() {
        let moved = [
            OrderFacts { pointer: DataVersion(3), ..order(20) },
            OrderFacts { plan: Some(PlanId(8)), ..order(20) },
            OrderFacts { plan: None, ..order(20) },
            OrderFacts { round: SubmitRound(3), ..order(90) },
        ];
        for facts in moved {
            let opposite = instance(Some(Conclusion::Reject));
            let judged = judge(&identity(Conclusion::Pass), Some(&facts), Some(&opposite));
            assert_eq!(judged.unwrap(), Standing::Stale, "{facts:?}");
        }
    }

    #[test]
    fn what_is_missing_is_a_failure_and_never_stale() {
        let moved = OrderFacts { pointer: DataVersion(3), ..order(20) };
        let pass = identity(Conclusion::Pass);
        let missing = judge(&pass, Some(&moved), None).unwrap_err();
        assert_eq!(missing.code(), "approval-instance-not-found");
        let missing = judge(&pass, None, Some(&instance(None))).unwrap_err();
        assert_eq!(missing.code(), "order-not-found");
    }
}
