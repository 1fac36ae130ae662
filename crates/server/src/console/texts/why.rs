//! Stages, what they wait for and why, for people. The domain says it in English; what it says is
//! shown with it as the record.

use counterfoil_payment::order_view::{Stage, StageState};

use super::Lang;
use crate::console::parts;

/// Stage key, 中文. English is the domain's own name.
const STAGES: &[(&str, &str)] = &[
    ("submitted", "提交"),
    ("build", "S03 构建"),
    ("published", "发布"),
    ("lock_activation", "S04 占用激活"),
    ("audit_plan", "S05 审核计划"),
    ("review", "审核"),
    ("review_callback", "S07 审核回调"),
    ("main_business", "S08 主业务生效"),
    ("status_refresh", "S12 状态刷新"),
    ("bill_snapshot", "S13 账单快照"),
    ("side_effects", "S09 外发"),
    ("payment", "付款"),
    ("lock_release", "S06 占用释放"),
];

/// What a stage is called.
pub(in crate::console) fn stage_name(lang: Lang, stage: &Stage) -> &str {
    let found = STAGES.iter().find(|(key, _)| *key == stage.stage);
    lang.pick(found.map_or(stage.name, |(_, zh)| zh), stage.name)
}

/// The stage of a kind of work, 中文, English.
const KINDS: &[(&str, &str, &str)] = &[
    ("submit-build", "S03 构建", "S03 build"),
    ("lock-activation", "S04 占用激活", "S04 lock activation"),
    ("audit-plan", "S05 审核计划", "S05 audit plan"),
    ("lock-release", "S06 占用释放", "S06 lock release"),
    ("review-callback", "S07 审核回调", "S07 review callback"),
    ("review-progress", "S08 主业务生效", "S08 main business"),
    ("side-effect", "S09 外发", "S09 side effects"),
    ("side-effect-rebuild", "S09 补建", "S09 rebuild"),
    ("status-refresh", "S12 状态刷新", "S12 status refresh"),
    ("bill-snapshot", "S13 账单快照", "S13 bill snapshots"),
    ("review-decision", "审核结论通知", "decision notice"),
    ("treasury-push", "付款推送", "push"),
    ("treasury-notice", "付款推送通知", "push notice"),
    ("reconcile-schedule", "对账：定时", "reconciliation: schedule"),
    ("reconcile-dispatch", "对账：派发", "reconciliation: dispatch"),
    ("reconcile-work", "对账：比对", "reconciliation: work"),
];

/// What a kind of work is called, by its stage.
pub(in crate::console) fn kind_name(lang: Lang, stage: &'static str) -> &'static str {
    let found = KINDS.iter().find(|(key, ..)| *key == stage);
    found.map_or(stage, |(_, zh, en)| lang.pick(zh, en))
}

/// Blocker as the domain says it, 中文.
const BLOCKERS: &[(&str, &str)] = &[
    ("the next round", "下一轮调度"),
    ("its next try", "下一次重试"),
    ("another worker's lease", "另一个进程的租约"),
    ("a round that takes it over", "接管它的下一轮"),
    ("a person", "人来处理"),
    ("its task was cancelled", "任务已被取消"),
    ("there is no task", "没有任务"),
    ("the failed submission", "失败的提交"),
    ("the publish record", "发布记录"),
    ("the review callback", "审核回调"),
    ("a cancelled task", "被取消的任务"),
    ("its tasks", "它的任务"),
    ("the payer's results", "付款方的结果"),
    ("whoever pays it offline", "线下付款的人"),
];

/// What a stage waits for.
pub(in crate::console) fn blocker(lang: Lang, said: &str) -> String {
    if lang == Lang::En {
        return said.to_owned();
    }
    if let Some((_, zh)) = BLOCKERS.iter().find(|(en, _)| *en == said) {
        return (*zh).to_owned();
    }
    if let Some(plan) = said.strip_prefix("the reviewers of plan ") {
        return format!("审核计划 {plan} 的审核人");
    }
    if let Some(bills) = said.strip_suffix(" held by other orders") {
        return format!("别的付款单占着 {} 张账单", bills.split(' ').next().unwrap_or_default());
    }
    if let Some(shards) = said.strip_suffix(" to be tried again") {
        return format!("{} 个分片等重试", shards.split(' ').next().unwrap_or_default());
    }
    said.to_owned()
}

/// Why a stage looks as it does.
pub(in crate::console) fn why(lang: Lang, stage: &Stage) -> String {
    if lang == Lang::En {
        return stage.why.clone();
    }
    let mut parts = vec![match stage.state {
        StageState::Done => "已完成".to_owned(),
        StageState::Running => "正在执行".to_owned(),
        StageState::Waiting => "等待".to_owned(),
        StageState::Trouble => "停住了".to_owned(),
        StageState::Unknown => "记录互相矛盾".to_owned(),
        StageState::NotYet => return "还没轮到".to_owned(),
    }];
    if let Some(said) = &stage.blocker {
        parts.push(format!("等的是：{}", blocker(lang, said)));
    }
    if let (Some(tried), Some(most)) = (stage.retry_count, stage.max_retry_count)
        && tried > 0
    {
        let most = if most >= i64::from(i32::MAX) { String::new() } else { format!(" / {most}") };
        parts.push(format!("已失败 {tried}{most} 次"));
    }
    if stage.state != StageState::Done {
        if let Some(worker) = &stage.owner {
            parts.push(format!("执行者 {worker}"));
        }
        if let Some(next) = stage.next_try {
            parts.push(format!("最早 {} 再试", parts::local(next)));
        }
    }
    if let Some(done) = stage.processed_count
        && done > 0
    {
        parts.push(format!("已处理 {done} 行"));
    }
    parts.join("；")
}

/// What may be done, by the command that would do it.
pub(in crate::console) fn label_of_step(lang: Lang, what: &str, command: &str) -> String {
    const LABELS: &[(&str, &str, &str)] = &[
        ("task rerun", "试算重跑", "See what a rerun would do"),
        ("task trace", "看任务为什么这样", "See why"),
        ("job run", "现在跑一轮", "Run a round now"),
        ("order cancel", "取消这张单", "Cancel the order"),
        ("order repair-publish", "修正发布记录", "Put the publish record right"),
        ("order record-payment", "登记线下付款", "Record the payment"),
        ("order timeline", "看发生过什么", "See what happened"),
        ("push-batch list", "看付款批次", "See its push batches"),
        ("push-batch fix", "改正收款人", "Put payees right"),
        ("review list", "看谁该审核", "See who has to decide"),
        ("session create --revise", "修订本单", "Revise the order"),
        ("session create", "打开新的选单会话", "Open a new session"),
        ("session remove", "移出被占的账单", "Take the held bills out"),
        ("session submit", "再次提交", "Submit again"),
        ("check", "跑规则", "Check the rules"),
    ];
    let found = LABELS.iter().find(|(begins, ..)| command.starts_with(begins));
    match (found, lang) {
        (Some((_, zh, _)), Lang::Zh) => (*zh).to_owned(),
        (Some((.., en)), Lang::En) if what.is_empty() => (*en).to_owned(),
        _ => what.to_owned(),
    }
}
