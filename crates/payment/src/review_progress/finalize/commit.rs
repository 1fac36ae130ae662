//! FINALIZE's one transaction. It writes a few rows, one a shard, and nothing a line.

use counterfoil_db::{Read, Tx, sql};
use counterfoil_task::{Held, Progress, Subject, Turn, TurnEnd, WorkError, end_handed_over};

use super::{Plan, WAIT_PAY, recheck};
use crate::kinds::REVIEW_CALLBACK;
use crate::review_callback::{LogEntry, OrderFacts, write_log};
use crate::review_progress::facts::Progressed;
use crate::review_progress::supersede;
use crate::side_effect::{SeedFacts, seeds};
use crate::status_refresh::{LinesOf, Source, insert_shards};

pub(super) async fn commit(
    turn: &Turn<'_>,
    planned: &Progressed,
    plan: &Plan,
) -> Result<TurnEnd, WorkError> {
    // The order's lock first: publishing, cancelling and batch creation take it first, too.
    let tx = turn.db().begin().await?;
    let order = OrderFacts::lock(&tx, planned.order).await?;
    let mut tx = turn.hold(tx).await?;
    let facts = Progressed::read(&*tx, planned.id.0).await?;
    let Some(order) = order.filter(|order| facts.is_of(Some(order))) else {
        return supersede::give_up(tx, &facts).await;
    };
    check_counts(&facts)?;
    check_order(&facts, &order)?;
    check_lines(&mut tx, &facts, plan).await?;
    move_order(&mut tx, &facts, plan).await?;
    approve_instance(&mut tx, &facts).await?;
    let entry = LogEntry {
        order: facts.order,
        operation: "REVIEW_APPROVED",
        from: 20,
        to: facts.target,
        time: facts.time.unwrap_or(tx.now()),
        remark: facts.remark.as_deref(),
        plan: facts.plan,
        data: facts.data,
        counts: Some((facts.payable, facts.unqualified)),
    };
    write_log(&mut tx, &entry).await?;
    let shards = plant_shards(&mut tx, &facts, plan).await?;
    plant_side_effects(&mut tx, &facts, plan).await?;
    let locks = unqualified_locks(&tx, &facts).await?;
    end_task(&mut tx, &facts).await?;
    let now = tx.now();
    let progress = Progress::none()
        .set("phase", "LOCK_RELEASE")
        .set("phase_status", "INIT")
        .set("main_task_status", "SUCCESS")
        .set("finalize_time", now)
        .set("lock_release_expected", locks)
        .set("shard_expected", shards)
        .set("refresh_ready", 0);
    tx.let_go("review_progress.finalize", progress, TurnEnd::Advanced).await
}

/// What the batches counted is what PREPARE counted.
fn check_counts(facts: &Progressed) -> Result<(), WorkError> {
    let agrees = facts.payable_updated == facts.payable
        && facts.unqualified_updated == facts.unqualified
        && facts.payable + facts.unqualified == facts.total;
    if agrees && (facts.payable > 0) != (facts.target == WAIT_PAY) {
        let message = format!(
            "{} PAYABLE lines, but the progress aims at status {}",
            facts.payable, facts.target
        );
        return Err(WorkError::failed("finalize-counts", message));
    }
    if agrees {
        return Ok(());
    }
    let message = format!(
        "PREPARE counted {} lines, {} PAYABLE and {} UNQUALIFIED; {} and {} were updated",
        facts.total,
        facts.payable,
        facts.unqualified,
        facts.payable_updated,
        facts.unqualified_updated
    );
    Err(WorkError::failed("finalize-counts", message))
}

fn check_order(facts: &Progressed, order: &OrderFacts) -> Result<(), WorkError> {
    if order.status == 20 {
        return Ok(());
    }
    let message = format!("order {} is at {}, not under review (20)", facts.order, order.status);
    Err(WorkError::failed("order-state", message))
}

/// Each PAYABLE line has its ACTIVE lock and violates nothing, under the order's lock.
async fn check_lines(tx: &mut Tx, facts: &Progressed, plan: &Plan) -> Result<(), WorkError> {
    if facts.target != WAIT_PAY {
        return Ok(());
    }
    let locked = locked_lines(tx, facts).await?;
    if locked != facts.payable {
        let message =
            format!("{} PAYABLE lines, and {locked} of them have an ACTIVE lock", facts.payable);
        return Err(WorkError::failed("finalize-locks", message));
    }
    let proof = recheck::prove(tx, facts, plan.recheck, plan.ways).await?;
    if proof.lines != facts.payable {
        let message =
            format!("PREPARE counted {} PAYABLE lines, now {}", facts.payable, proof.lines);
        return Err(WorkError::failed("finalize-counts", message));
    }
    if proof.violated > 0 {
        // Changed since the recheck: the next turn lists them by line.
        let message = format!("{} lines changed while the order was rechecked", proof.violated);
        return Err(WorkError::failed("recheck-changed", message));
    }
    Ok(())
}

/// PAYABLE lines that have an ACTIVE lock of this version.
async fn locked_lines(tx: &mut Tx, facts: &Progressed) -> Result<i64, WorkError> {
    let query = sql!(
        "SELECT COUNT(*) FROM fi_resident_income_payment_order_bill l
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 10 AND l.deleted = 0
           AND l.id IN (SELECT k.order_bill_id FROM fi_resident_income_payment_bill_lock k
             WHERE k.payment_order_id = :order AND k.data_version = :data
               AND k.lock_status = 'ACTIVE' AND k.deleted = 0)",
        order = facts.order.0,
        data = facts.data.0,
        round = facts.round.0,
    );
    Ok(tx.count_by_hash(query).await?)
}

async fn unqualified_locks(tx: &Tx, facts: &Progressed) -> Result<i64, WorkError> {
    let query = sql!(
        "SELECT COUNT(*)
         FROM fi_resident_income_payment_order_bill l
         JOIN fi_resident_income_payment_bill_lock k ON k.order_bill_id = l.id
         WHERE l.payment_order_id = :order AND l.data_version = :data
           AND l.submit_round = :round AND l.line_type = 20
           AND l.deleted = 0 AND k.payment_order_id + 0 = :order AND k.data_version = :data
           AND k.lock_status = 'ACTIVE'",
        order = facts.order.0,
        data = facts.data.0,
        round = facts.round.0,
    );
    Ok(tx.count(query).await?)
}

/// Guard: 20, and still this version, plan and round. Under the order's lock it always wins.
async fn move_order(tx: &mut Tx, facts: &Progressed, plan: &Plan) -> Result<(), WorkError> {
    let now = tx.now();
    let payment_type = plan.payment_type.map(super::PaymentType::as_str);
    let push_status = plan
        .payment_type
        .filter(|kind| *kind == super::PaymentType::Treasury)
        .map(|_| "NOT_PUSHED");
    let update = sql!(
        "UPDATE fi_resident_income_payment_order
         SET status = :target, review_finish_time = :time, payment_type = :payment_type,
             push_status = :push_status, update_time = :now
         WHERE id = :order AND deleted = 0 AND status = 20 AND current_publish_version = :data
           AND review_plan_id = :plan AND submit_round = :round",
        target = facts.target,
        time = facts.time.unwrap_or(now),
        payment_type = payment_type,
        push_status = push_status,
        now = now,
        order = facts.order.0,
        data = facts.data.0,
        plan = facts.plan.0,
        round = facts.round.0,
    );
    won(tx.execute(update).await?, || format!("order {}", facts.order))
}

/// Guard: IN_REVIEW. One that says APPROVED already is half a pair, and is completed by the rest.
async fn approve_instance(tx: &mut Tx, facts: &Progressed) -> Result<(), WorkError> {
    let now = tx.now();
    let update = sql!(
        "UPDATE fi_resident_income_payment_order_approval_instance
         SET approval_status = 'APPROVED', finish_time = COALESCE(finish_time, :time),
             update_time = :now
         WHERE payment_order_id = :order AND data_version = :data
           AND approval_attempt = :attempt AND review_plan_id = :plan AND deleted = 0
           AND approval_status IN ('IN_REVIEW', 'APPROVED')",
        time = facts.time.unwrap_or(now),
        now = now,
        order = facts.order.0,
        data = facts.data.0,
        attempt = facts.attempt.0,
        plan = facts.plan.0,
    );
    if tx.execute(update).await? == 1 {
        return Ok(());
    }
    let message = format!(
        "order {} has no approval instance of plan {} (attempt {}) that is in review or approved",
        facts.order, facts.plan, facts.attempt
    );
    Err(WorkError::failed("finalize-instance", message))
}

async fn plant_shards(tx: &mut Tx, facts: &Progressed, plan: &Plan) -> Result<i64, WorkError> {
    let lines = LinesOf { order: facts.order, data: facts.data, round: facts.round };
    let source = Source::ReviewApproved;
    let planted = insert_shards(tx, source, facts.id.0, &lines, &plan.shards).await?;
    let expected = u64::try_from(plan.shards.len()).unwrap_or(u64::MAX);
    if planted != expected || expected == 0 {
        let message = format!("{expected} refresh shards were planned and {planted} inserted");
        return Err(WorkError::failed("finalize-shards", message));
    }
    Ok(i64::try_from(planted).unwrap_or(i64::MAX))
}

async fn plant_side_effects(
    tx: &mut Held<'_>,
    facts: &Progressed,
    plan: &Plan,
) -> Result<(), WorkError> {
    let subject = Subject::none()
        .with("payment_order_id", facts.order.0)
        .with("data_version", facts.data.0)
        .with("submit_round", facts.round.0);
    let effects = SeedFacts {
        payable_count: facts.payable,
        unqualified_count: facts.unqualified,
        is_treasury: plan.payment_type == Some(super::PaymentType::Treasury),
    };
    for seed in seeds(facts.id, effects, &subject, None) {
        tx.accept(&seed).await?;
    }
    Ok(())
}

/// The S07 task that made this progress: RUNNING becomes SUCCESS, exactly one row.
async fn end_task(tx: &mut Tx, facts: &Progressed) -> Result<(), WorkError> {
    let Some(task) = facts.task else {
        return Err(WorkError::failed("finalize-task", "the progress names no S07 task"));
    };
    if end_handed_over(tx, &REVIEW_CALLBACK, task, None).await? {
        return Ok(());
    }
    let message = format!("S07 task {task} is not RUNNING");
    Err(WorkError::failed("finalize-task", message))
}

fn won(changed: u64, what: impl Fn() -> String) -> Result<(), WorkError> {
    if changed == 1 {
        return Ok(());
    }
    let message = format!("{} was changed by somebody else meanwhile", what());
    Err(WorkError::failed("changed-meanwhile", message))
}
