//! The first page: is anything stuck, where is the work, what ended, and how far the newest orders
//! have come.

use axum::extract::{Query, State};
use chrono::TimeDelta;
use counterfoil_db::{Db, Instant, Query as Sql, Read, sql};
use counterfoil_payment::kinds;
use counterfoil_payment::order_view::{self, OrderQuery, OrderView};
use counterfoil_task::TaskStatus;
use maud::{Markup, html};
use serde::Deserialize;

use super::Console;
use super::chart::{Bar, bars};
use super::door::Visitor;
use super::looks::Look;
use super::shell::{Answer, Page, Room, Trouble};
use super::texts::Lang;
use super::{parts, stuck};

/// Counting stops here: what matters is that there are many.
const MAX_COUNTED: u32 = 1001;
/// Tasks that the chart looks at, the newest.
const MAX_CHARTED: u32 = 20_000;
/// Orders whose six kinds of success are shown.
const NEWEST_ORDERS: u32 = 8;
/// Bars of the chart.
const BARS: usize = 24;

/// Stretch of time that the chart shows.
#[derive(Debug, Default, Deserialize)]
pub(super) struct Span {
    #[serde(default)]
    span: String,
}

/// One stage with what is open in it.
struct Flow {
    name: &'static str,
    path: String,
    open: i64,
    failed: i64,
    oldest: Option<Instant>,
}

pub(super) async fn show(
    State(console): State<Console>,
    visitor: Visitor,
    Query(Span { span }): Query<Span>,
) -> Answer {
    let (lang, db) = (visitor.lang(), &console.db);
    let now = db.now().await?;
    let stuck = stuck::read(&console, lang).await?;
    let trouble = stuck.iter().filter(|stuck| stuck.look == Look::Trouble).count();
    let flows = flows(db, lang).await?;
    let charted = charted(db, now, &span).await?;
    let orders = newest(db).await?;
    let body = html! {
        h1 { (lang.overview()) }
        @if trouble == 0 {
            div class="verdict good" {
                strong { (parts::state(Look::Done, lang.nothing_stuck())) }
                span { (parts::time(now)) }
            }
        } @else {
            div class="verdict" {
                strong { (parts::state(Look::Trouble, lang.some_stuck())) }
                span { (trouble) " " (lang.pick("处等人处理", "need a person")) }
                a class="button primary" href="/console/stuck" { (lang.look_at_stuck()) }
            }
        }
        h2 { (lang.flow()) }
        p class="lede" { (lang.flow_lede()) }
        div class="card" { (flow_picture(lang, &flows, now)) }
        h2 { (lang.throughput()) }
        p class="lede" { (lang.throughput_lede()) " " (spans(lang, &span)) }
        div class="card" {
            @if charted.iter().all(|bar| bar.good + bar.bad == 0) {
                (parts::empty(lang.chart_empty()))
            } @else {
                (bars(lang, lang.throughput(), &charted))
            }
        }
        h2 { (lang.six_kinds()) }
        div class="card wide" { (matrix(lang, &orders)) }
    };
    Ok(Page::new(Room::Overview, lang.overview(), body).live().shown_to(&visitor))
}

/// The stages in the order of the work: task type, 中文, English.
const STAGES: [(&str, &str, &str); 9] = [
    (kinds::SUBMIT_BUILD.task_type, "S03 构建", "S03 build"),
    (kinds::LOCK_ACTIVATE.task_type, "S04 占用激活", "S04 locks"),
    (kinds::AUDIT_PLAN_CREATE.task_type, "S05 审核计划", "S05 audit plan"),
    (kinds::REVIEW_CALLBACK.task_type, "S07 · S08 回调生效", "S07 · S08 decision"),
    ("SHARDS", "S12 状态刷新", "S12 refresh"),
    (kinds::BILL_SNAPSHOT.task_type, "S13 账单快照", "S13 snapshots"),
    (kinds::SIDE_EFFECT.task_type, "S09 外发", "S09 side effects"),
    ("BATCHES", "付款推送", "Push batches"),
    (kinds::LOCK_RELEASE.task_type, "S06 占用释放", "S06 lock release"),
];

async fn flows(db: &Db, lang: Lang) -> Result<Vec<Flow>, Trouble> {
    let mut flows = Vec::new();
    for (key, zh, en) in STAGES {
        let (open, failed, path) = match key {
            "SHARDS" => (
                rows_in(db, SHARDS, &["PENDING", "RUNNING"]).await?,
                rows_in(db, SHARDS, &["FAILED"]).await?,
                "/console/stuck".to_owned(),
            ),
            "BATCHES" => (
                rows_in(db, BATCHES, &["WAIT_PUSH", "PUSHING"]).await?,
                rows_in(db, BATCHES, &["WAIT_DATA_FIX", "PUSH_FAIL"]).await?,
                "/console/batches".to_owned(),
            ),
            task_type => (
                tasks_in(db, task_type, &[TaskStatus::Pending, TaskStatus::Running]).await?,
                tasks_in(db, task_type, &[TaskStatus::Failed]).await?,
                format!("/console/tasks?type={task_type}"),
            ),
        };
        flows.push(Flow {
            name: lang.pick(zh, en),
            path,
            open: open.0 + failed.0,
            failed: failed.0,
            oldest: open.1.into_iter().chain(failed.1).min(),
        });
    }
    Ok(flows)
}

/// How many, and the oldest of them.
type Counted = (i64, Option<Instant>);

async fn tasks_in(db: &Db, task_type: &str, statuses: &[TaskStatus]) -> Result<Counted, Trouble> {
    let mut sum: Counted = (0, None);
    for status in statuses {
        let query = sql!(
            "SELECT COUNT(*) AS n, MIN(create_time) AS oldest FROM (
               SELECT create_time FROM fi_async_task
               WHERE task_type = :type AND task_status = :status AND deleted = 0
               ORDER BY task_type, task_status, next_execute_time {nulls_first},
                 retry_count {nulls_first}, id
               LIMIT :limit) counted",
            r#type = task_type,
            status = status.code(),
            limit = MAX_COUNTED,
        );
        add(db, query, &mut sum).await?;
    }
    Ok(sum)
}

const SHARDS: &str = "SELECT COUNT(*) AS n, MIN(create_time) AS oldest FROM (
    SELECT create_time FROM fi_resident_income_payment_status_refresh_shard
    WHERE source_type IN ('REVIEW_APPROVED', 'PAYMENT_RESULT', 'MANUAL')
      AND task_status = :status AND deleted = 0 LIMIT :limit) counted";
const BATCHES: &str = "SELECT COUNT(*) AS n, MIN(create_time) AS oldest FROM (
    SELECT create_time FROM fi_resident_income_payment_push_batch
    WHERE status = :status AND deleted = 0 LIMIT :limit) counted";

async fn rows_in(db: &Db, text: &'static str, statuses: &[&str]) -> Result<Counted, Trouble> {
    let mut sum: Counted = (0, None);
    for status in statuses {
        add(db, sql!(text, status = *status, limit = MAX_COUNTED), &mut sum).await?;
    }
    Ok(sum)
}

async fn add(db: &Db, query: Sql, sum: &mut Counted) -> Result<(), Trouble> {
    if let Some(row) = db.row(query).await? {
        let oldest = row.maybe_instant("oldest")?;
        *sum = (sum.0 + row.int("n")?, sum.1.into_iter().chain(oldest).min());
    }
    Ok(())
}

fn flow_picture(lang: Lang, flows: &[Flow], now: Instant) -> Markup {
    let shown = |count: i64| match count >= i64::from(MAX_COUNTED) {
        true => format!("{}+", parts::number(i64::from(MAX_COUNTED) - 1)),
        false => parts::number(count),
    };
    html! {
        ol class="flow" {
            @for flow in flows {
                li class=(match (flow.failed, flow.open) {
                    (0, 0) => "quietly",
                    (0, _) => "now",
                    _ => "stuck",
                }) {
                    a href=(flow.path) { (flow.name) }
                    b class="count" { (shown(flow.open)) }
                    small {
                        @match flow.oldest {
                            Some(oldest) => {
                                (lang.oldest()) " " (parts::span(lang, oldest, now))
                            }
                            None => { (lang.pick("空", "empty")) }
                        }
                    }
                    @if flow.failed > 0 {
                        small { (parts::state(Look::Trouble, &format!(
                            "{} {}", lang.failed_tasks(), shown(flow.failed)))) }
                    }
                }
            }
        }
    }
}

fn spans(lang: Lang, chosen: &str) -> Markup {
    let all = [("hour", lang.last_hour()), ("day", lang.last_day()), ("week", lang.last_week())];
    html! {
        @for (name, label) in all {
            a href={ "/console?span=" (name) } aria-current=[(name == chosen).then_some("true")] {
                (label)
            } " "
        }
    }
}

/// The names of the bounds: a statement's parameters have fixed names.
const BOUNDS: [&str; BARS + 1] = [
    "b0", "b1", "b2", "b3", "b4", "b5", "b6", "b7", "b8", "b9", "b10", "b11", "b12", "b13", "b14",
    "b15", "b16", "b17", "b18", "b19", "b20", "b21", "b22", "b23", "b24",
];

/// Of the newest tasks, how many ended in each stretch and how. One walk down the primary key.
async fn charted(db: &Db, now: Instant, span: &str) -> Result<Vec<Bar>, Trouble> {
    let step = match span {
        "day" => TimeDelta::minutes(60),
        "week" => TimeDelta::hours(7),
        _ => TimeDelta::seconds(150),
    };
    let bound = |at: usize| now - step * i32::try_from(BARS - at).unwrap_or(0);
    let mut sums = String::new();
    for at in 0..BARS {
        let (from, to) = (BOUNDS[at], BOUNDS[at + 1]);
        let comma = if at == 0 { "" } else { ", " };
        for (name, status) in [("g", 2), ("f", 3)] {
            let comma = if name == "f" { ", " } else { comma };
            sums.push_str(&format!(
                "{comma}SUM(CASE WHEN task_status = {status} AND update_time >= :{from}
                   AND update_time < :{to} THEN 1 ELSE 0 END) AS {name}{at}"
            ));
        }
    }
    let mut query = Sql::built(format!(
        "SELECT {sums} FROM (SELECT task_status, update_time FROM fi_async_task
           WHERE deleted = 0 ORDER BY id DESC LIMIT :limit) newest"
    ))
    .bind("limit", MAX_CHARTED);
    for (at, name) in BOUNDS.iter().enumerate() {
        query = query.bind(name, bound(at));
    }
    let row = db.row(query).await?;
    let mut bars = Vec::new();
    for at in 0..BARS {
        let sum = |kind: char| {
            let row = row.as_ref()?;
            row.shown(&format!("{kind}{at}"))?.parse::<i64>().ok()
        };
        bars.push(Bar { from: bound(at), good: sum('g').unwrap_or(0), bad: sum('f').unwrap_or(0) });
    }
    Ok(bars)
}

async fn newest(db: &Db) -> Result<Vec<OrderView>, Trouble> {
    let query = OrderQuery { limit: Some(NEWEST_ORDERS), ..OrderQuery::default() };
    let mut views = Vec::new();
    for order in order_view::list(db, &query).await?.orders {
        views.push(order_view::one(db, order.id).await?);
    }
    Ok(views)
}

/// The six kinds by their names, in order.
pub(super) fn kinds_of_success(lang: Lang) -> [&'static str; 6] {
    [
        lang.accepted(),
        lang.round_ran(),
        lang.handed_over(),
        lang.effective(),
        lang.refresh_done(),
        lang.outside_answered(),
    ]
}

fn matrix(lang: Lang, orders: &[OrderView]) -> Markup {
    html! {
        @if orders.is_empty() {
            (parts::empty(lang.no_orders()))
        } @else {
            table class="stack" {
                thead { tr {
                    th { (lang.newest_orders()) } th { (lang.status()) }
                    @for kind in kinds_of_success(lang) { th { (kind) } }
                } }
                tbody {
                    @for view in orders {
                        tr {
                            td data-label=(lang.order()) {
                                (parts::order_link(view.order.id.0, view.order.order_no.as_deref()))
                            }
                            td data-label=(lang.status()) {
                                (parts::stored(lang, view.order.status_name))
                            }
                            @let kinds = view.success.all();
                            @for (name, (_, kind)) in kinds_of_success(lang).iter().zip(kinds) {
                                td data-label=(name) title=(kind.evidence) {
                                    (answer(lang, kind.answer))
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Whether one kind of success has come.
pub(super) fn answer(lang: Lang, answer: order_view::Answer) -> Markup {
    let text = match answer {
        order_view::Answer::Yes => lang.pick("是", "yes"),
        order_view::Answer::No => lang.pick("否", "no"),
        order_view::Answer::NotYet => lang.pick("未到", "not yet"),
    };
    parts::state(answer.into(), text)
}
