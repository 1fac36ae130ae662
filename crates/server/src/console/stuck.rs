//! What stands still: why each waits, for whom, until when, and what may be done about it.

use axum::extract::State;
use chrono::TimeDelta;
use counterfoil_db::{Db, Instant, Read, Row, sql};
use counterfoil_payment::order_view::{Standing, TaskFacts, standing};
use counterfoil_protocol::TaskCode;
use counterfoil_task::{Kind, TaskStatus};
use maud::{Markup, html};

use super::Console;
use super::door::Visitor;
use super::looks::Look;
use super::parts;
use super::shell::{Answer, Page, Room, Trouble};
use super::subjects::orders_of;
use super::texts::{Lang, kind_name};

/// Rows of one source at most.
const MAX_OF_SOURCE: u32 = 50;
/// Tasks of one kind and status that are looked at, in the order they are due.
const MAX_LOOKED_AT: u32 = 200;
/// A task that is due and not taken for so long stands still.
const OVERDUE: TimeDelta = TimeDelta::minutes(10);
/// What ended badly is shown for so long.
const SHOWN_FOR: TimeDelta = TimeDelta::days(7);
/// A review waits for so long before it is shown.
const REVIEW_PATIENCE: TimeDelta = TimeDelta::days(1);

/// Something that stands still.
pub(super) struct Stuck {
    /// Trouble needs a person; what waits goes on by itself.
    pub(super) look: Look,
    what: Markup,
    stage: String,
    why: String,
    blocker: String,
    owner: Option<String>,
    lease: Option<Instant>,
    next: Option<Instant>,
    since: Instant,
    act: Option<(String, &'static str)>,
}

/// All that stands still, what needs a person first, the longest first.
pub(super) async fn read(console: &Console, lang: Lang) -> Result<Vec<Stuck>, Trouble> {
    let db = &console.db;
    let now = db.now().await?;
    let mut all = Vec::new();
    for kind in console.engine.kinds() {
        for status in [TaskStatus::Failed, TaskStatus::Running, TaskStatus::Pending] {
            all.extend(tasks(db, lang, kind, status, now).await?);
        }
    }
    all.extend(progresses(db, lang, now).await?);
    all.extend(batches(db, lang).await?);
    all.extend(deliveries(db, lang, now).await?);
    all.extend(reconciliations(db, lang, now).await?);
    all.extend(reviews(db, lang, now).await?);
    all.sort_by_key(|stuck| (stuck.look != Look::Trouble, stuck.since));
    Ok(all)
}

pub(super) async fn show(State(console): State<Console>, visitor: Visitor) -> Answer {
    let lang = visitor.lang();
    let (now, all) = (console.db.now().await?, read(&console, lang).await?);
    let needs_person = all.iter().filter(|stuck| stuck.look == Look::Trouble).count();
    let body = html! {
        h1 { (lang.stuck()) }
        @if all.is_empty() {
            p class="lede" { (parts::state(Look::Done, lang.nothing_stuck())) }
        } @else {
            p class="lede" {
                strong { (needs_person) } " " (lang.pick("个等人处理", "need a person")) " · "
                strong { (all.len() - needs_person) } " "
                (lang.pick("个会自己继续", "go on by themselves"))
            }
            div class="card wide" { (table(lang, &all, now)) }
        }
    };
    Ok(Page::new(Room::Stuck, lang.stuck(), body).live().shown_to(&visitor))
}

fn table(lang: Lang, all: &[Stuck], now: Instant) -> Markup {
    html! {
        table class="stack" {
            thead { tr {
                th { (lang.what()) } th { (lang.stage()) } th { (lang.waits_for()) }
                th { (lang.why_so()) } th { (lang.owner()) } th { (lang.next_try()) }
                th class="num" { (lang.age()) } th {}
            } }
            tbody { @for stuck in all { (row(lang, stuck, now)) } }
        }
    }
}

fn row(lang: Lang, stuck: &Stuck, now: Instant) -> Markup {
    html! {
        tr {
            td data-label=(lang.what()) { (stuck.what) }
            td data-label=(lang.stage()) { (stuck.stage) }
            td data-label=(lang.waits_for()) class="words" {
                (parts::state(stuck.look, &stuck.blocker))
            }
            td data-label=(lang.why_so()) class="words" { (stuck.why) }
            td data-label=(lang.owner()) class="mono" {
                (stuck.owner.as_deref().unwrap_or("—"))
                @if let Some(lease) = stuck.lease { br; (lang.lease()) " " (parts::time(lease)) }
            }
            td data-label=(lang.next_try()) { (parts::maybe_time(stuck.next)) }
            td data-label=(lang.age()) class="num" { (parts::span(lang, stuck.since, now)) }
            td {
                @if let Some((path, label)) = &stuck.act {
                    a class="button" href=(path) { (label) }
                }
            }
        }
    }
}

async fn tasks(
    db: &Db,
    lang: Lang,
    kind: &Kind,
    status: TaskStatus,
    now: Instant,
) -> Result<Vec<Stuck>, Trouble> {
    let query = sql!(
        "SELECT task_code, business_key, task_data, COALESCE(retry_count, 0) AS retries,
                COALESCE(max_retry_count, 3) AS most, next_execute_time,
                COALESCE(running_attempt, 0) AS attempt, lost_attempts, error_message,
                create_time, update_time
         FROM fi_async_task
         WHERE task_type = :task_type AND task_status = :status AND deleted = 0
         ORDER BY task_type, task_status, next_execute_time {nulls_first},
           retry_count {nulls_first}, id
         LIMIT :limit",
        task_type = kind.task_type,
        status = status.code(),
        limit = MAX_LOOKED_AT,
    );
    let mut found = Vec::new();
    let mut data = Vec::new();
    for row in db.rows(query).await? {
        if let Some(stuck) = task(lang, kind, status, &row, now)? {
            found.push(stuck);
            data.push(row.maybe_text("task_data")?);
        }
    }
    found.truncate(MAX_OF_SOURCE as usize);
    data.truncate(MAX_OF_SOURCE as usize);
    for (stuck, order) in found.iter_mut().zip(orders_of(db, &data).await?) {
        if let Some(order) = order {
            let task = std::mem::take(&mut stuck.what);
            stuck.what = html! { (parts::order_link(order, None)) br; (task) };
        }
    }
    Ok(found)
}

fn task(
    lang: Lang,
    kind: &Kind,
    status: TaskStatus,
    row: &Row,
    now: Instant,
) -> Result<Option<Stuck>, Trouble> {
    let code = row.text("task_code")?;
    let facts = TaskFacts {
        code: TaskCode::stored(code.clone()),
        status,
        retries: row.int("retries")?,
        max_retries: row.int("most")?,
        due: row.maybe_instant("next_execute_time")?,
        attempt: row.int("attempt")?,
        lost: row.int("lost_attempts")?,
        message: row.maybe_text("error_message")?,
        touched: row.instant("update_time")?,
    };
    let person = lang.pick("人来处理", "a person");
    let (look, blocker, next) = match standing(Some(&facts), None, now) {
        Standing::Exhausted => {
            (Look::Trouble, lang.pick("人：次数用尽", "a person: no tries left"), None)
        }
        Standing::Parked => (Look::Trouble, person, None),
        Standing::BackedOff { until } => {
            (Look::Waiting, lang.pick("下一次重试", "its next try"), Some(until))
        }
        Standing::Stale { until } => {
            (Look::Waiting, lang.pick("接管它的下一轮", "a round that takes it over"), until)
        }
        Standing::Due if now - facts.touched > OVERDUE => (
            Look::Waiting,
            lang.pick("一轮调度：没有进程在跑？", "a round: is a worker running?"),
            None,
        ),
        _ => return Ok(None),
    };
    let tries = if facts.max_retries >= i64::from(i32::MAX) {
        format!("{}", facts.retries)
    } else {
        format!("{} / {}", facts.retries, facts.max_retries)
    };
    Ok(Some(Stuck {
        look,
        what: parts::task_link(&code),
        stage: kind_name(lang, kind.stage).to_owned(),
        why: facts.message.unwrap_or_default(),
        blocker: format!("{blocker} · {tries}"),
        owner: None,
        lease: None,
        next,
        since: row.instant("create_time")?,
        act: Some((
            format!("/console/tasks/{}/rerun", parts::escaped(&code)),
            lang.pick("试算重跑", "Dry-run a rerun"),
        )),
    }))
}

/// Approvals that are being applied and failed, or that must not be applied as they stand.
async fn progresses(db: &Db, lang: Lang, now: Instant) -> Result<Vec<Stuck>, Trouble> {
    let query = sql!(
        "SELECT payment_order_id, phase, phase_status, worker_id, lease_expire_time,
                next_retry_time, retry_count, last_error_code, last_error_message, create_time
         FROM fi_resident_income_payment_review_callback_progress
         WHERE main_task_status IN ('RUNNING', 'SUCCESS')
           AND phase IN ('PREPARE', 'BILL_UPDATE', 'FINALIZE', 'LOCK_RELEASE')
           AND phase_status = 'FAILED' AND deleted = 0
         ORDER BY id LIMIT :limit",
        limit = MAX_OF_SOURCE,
    );
    let mut found = Vec::new();
    for row in db.rows(query).await? {
        let order = row.int("payment_order_id")?;
        let code = row.maybe_text("last_error_code")?.unwrap_or_default();
        let parked = code == counterfoil_payment::review_progress::RECHECK_VIOLATED;
        let next = row.maybe_instant("next_retry_time")?.filter(|next| *next > now && !parked);
        let (look, blocker) = match parked {
            true => (Look::Trouble, lang.pick("人：付款前复核不通过", "a person: the recheck")),
            false => (Look::Waiting, lang.pick("下一次重试", "its next try")),
        };
        let message = row.maybe_text("last_error_message")?.unwrap_or_default();
        found.push(Stuck {
            look,
            what: parts::order_link(order, None),
            stage: format!("S08 {}", row.text("phase")?),
            why: format!("{code}: {message}"),
            blocker: blocker.to_owned(),
            owner: row.maybe_text("worker_id")?,
            lease: row.maybe_instant("lease_expire_time")?,
            next,
            since: row.instant("create_time")?,
            act: Some((format!("/console/orders/{order}"), lang.pick("看这张单", "See the order"))),
        });
    }
    Ok(found)
}

async fn batches(db: &Db, lang: Lang) -> Result<Vec<Stuck>, Trouble> {
    let mut found = Vec::new();
    for status in ["WAIT_DATA_FIX", "PUSH_FAIL", "PUSH_PARTIAL_SUCCESS"] {
        let query = sql!(
            "SELECT id, batch_no, payment_order_id, next_handle_time, error_message, create_time
             FROM fi_resident_income_payment_push_batch
             WHERE status = :status AND deleted = 0
             ORDER BY status, next_handle_time {nulls_first}, id LIMIT :limit",
            status = status,
            limit = MAX_OF_SOURCE,
        );
        for row in db.rows(query).await? {
            let (id, number) = (row.int("id")?, row.text("batch_no")?);
            let next = row.maybe_instant("next_handle_time")?;
            let by_itself = status == "PUSH_FAIL" && next.is_some();
            let path = format!("/console/batches/{id}");
            found.push(Stuck {
                look: if by_itself { Look::Waiting } else { Look::Trouble },
                what: html! {
                    (parts::order_link(row.int("payment_order_id")?, None)) br;
                    (parts::link(&path, &number))
                },
                stage: lang.pick("付款推送", "push").to_owned(),
                why: row.maybe_text("error_message")?.unwrap_or_default(),
                blocker: match by_itself {
                    true => lang.pick("下一次推送", "its next push").to_owned(),
                    false => lang.pick("人改数据", "a person's data fix").to_owned(),
                },
                owner: None,
                lease: None,
                next,
                since: row.instant("create_time")?,
                act: Some((path.clone(), lang.pick("看批次", "See the batch"))),
            });
        }
    }
    Ok(found)
}

async fn deliveries(db: &Db, lang: Lang, now: Instant) -> Result<Vec<Stuck>, Trouble> {
    let mut found = Vec::new();
    for status in ["UNKNOWN", "FAIL"] {
        let query = sql!(
            "SELECT id, payment_order_id, idempotency_key, last_error, create_time
             FROM fi_resident_income_payment_external_log
             WHERE status = :status AND deleted = 0 AND create_time > :from
             ORDER BY id DESC LIMIT :limit",
            status = status,
            from = now - SHOWN_FOR,
            limit = MAX_OF_SOURCE,
        );
        for row in db.rows(query).await? {
            let path = format!("/console/deliveries/{}", row.int("id")?);
            found.push(Stuck {
                look: if status == "UNKNOWN" { Look::Unknown } else { Look::Trouble },
                what: html! {
                    (parts::order_link(row.int("payment_order_id")?, None)) br;
                    (parts::link(&path, &row.text("idempotency_key")?))
                },
                stage: lang.pick("S09 通知合作方", "S09 partner notice").to_owned(),
                why: row.maybe_text("last_error")?.unwrap_or_default(),
                blocker: match status {
                    "UNKNOWN" => lang.pick("对方是否收到未知", "no verdict of the partner"),
                    _ => lang.pick("人：对方拒绝", "a person: refused"),
                }
                .to_owned(),
                owner: None,
                lease: None,
                next: None,
                since: row.instant("create_time")?,
                act: Some((path.clone(), lang.pick("看内容", "See it"))),
            });
        }
    }
    Ok(found)
}

async fn reconciliations(db: &Db, lang: Lang, now: Instant) -> Result<Vec<Stuck>, Trouble> {
    let query = sql!(
        "SELECT task_id, consumer_app_key, state, reason_code, reason, next_dispatch_at,
                lease_until, create_time
         FROM answer_reconcile_task
         WHERE deleted = 0 AND create_time > :from
           AND (state IN ('FAILED', 'PARTIAL')
             OR (state = 'QUEUED' AND attempt > 0) OR (state = 'DISPATCHED' AND lease_until < :now))
         ORDER BY id DESC LIMIT :limit",
        from = now - SHOWN_FOR,
        now = now,
        limit = MAX_OF_SOURCE,
    );
    let mut found = Vec::new();
    for row in db.rows(query).await? {
        let (task, state) = (row.text("task_id")?, row.text("state")?);
        let over = matches!(state.as_str(), "FAILED" | "PARTIAL");
        let path = format!("/console/reconciliation/{}", parts::escaped(&task));
        let code = row.maybe_text("reason_code")?.unwrap_or_default();
        let reason = row.maybe_text("reason")?.unwrap_or_default();
        found.push(Stuck {
            look: if over { Look::Trouble } else { Look::Waiting },
            what: parts::link(&path, &task),
            stage: format!("{} {state}", lang.reconciliation()),
            why: format!("{code} {reason}"),
            blocker: match over {
                true => lang.pick("人看差异", "a person to look").to_owned(),
                false => {
                    format!("{} {}", lang.pick("消费方", "consumer"), row.text("consumer_app_key")?)
                }
            },
            owner: None,
            lease: row.maybe_instant("lease_until")?,
            next: row.maybe_instant("next_dispatch_at")?,
            since: row.instant("create_time")?,
            act: Some((path.clone(), lang.pick("看任务", "See the task"))),
        });
    }
    Ok(found)
}

async fn reviews(db: &Db, lang: Lang, now: Instant) -> Result<Vec<Stuck>, Trouble> {
    let page = counterfoil_review::inbox::of_everybody(db, None, MAX_OF_SOURCE).await?;
    let mut found = Vec::new();
    for item in page.items.into_iter().filter(|item| now - item.since > REVIEW_PATIENCE) {
        let path = format!("/console/reviews/{}", item.plan);
        found.push(Stuck {
            look: Look::Waiting,
            what: html! {
                (parts::order_link(item.from_id.0, Some(&item.from_num))) br;
                (parts::link(&path, &item.plan.to_string()))
            },
            stage: lang.pick("审核", "review").to_owned(),
            why: item.node_name.clone(),
            blocker: format!("{} {}", lang.pick("审核人", "reviewers of"), item.node_code),
            owner: None,
            lease: None,
            next: None,
            since: item.since,
            act: Some((path, lang.pick("看审核", "See the review"))),
        });
    }
    Ok(found)
}
