//! Orders and bills for people: the verdict first, tables after it.

use counterfoil_db::Instant;
use counterfoil_payment::order_view::{
    Answer, BillView, ChangedLine, Diff, LinesPage, Money, OrderView, OrdersPage, Paying, Stage,
    StageState, Timeline,
};

use super::output::{table, tries};

fn at(instant: Instant) -> String {
    instant.to_rfc3339_opts(chrono::SecondsFormat::Secs, true)
}

fn maybe<T>(value: Option<T>, show: impl FnOnce(T) -> String) -> String {
    value.map_or_else(String::new, show)
}

fn yuan(money: Option<Money>) -> String {
    maybe(money, |money| money.to_string())
}

/// Sections with an empty line between them; empty ones are left out.
fn sections(parts: Vec<String>) -> String {
    let parts = parts.into_iter().filter(|part| !part.is_empty());
    parts.collect::<Vec<_>>().join("\n\n")
}

fn titled(title: &str, header: &[&str], rows: &[Vec<String>]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    format!("{title}\n{}", table(header, rows))
}

/// The looks of the console, told apart without colour.
fn look(state: StageState) -> &'static str {
    match state {
        StageState::Done => "● done",
        StageState::Running => "● running",
        StageState::Waiting => "■ waiting",
        StageState::Trouble => "◆ trouble",
        StageState::Unknown => "○ unknown",
        StageState::NotYet => "◌ not yet",
    }
}

fn answer(answer: Answer) -> &'static str {
    match answer {
        Answer::Yes => "yes",
        Answer::No => "no",
        Answer::NotYet => "not yet",
    }
}

pub(super) fn orders(page: &OrdersPage) -> String {
    if page.orders.is_empty() {
        return "no order matches".into();
    }
    let rows: Vec<Vec<String>> = page
        .orders
        .iter()
        .map(|order| {
            vec![
                order.id.to_string(),
                order.order_no.clone().unwrap_or_default(),
                order.status_name.into(),
                order.published_data_version.to_string(),
                order.total_amount.to_string(),
                order.payable_count.to_string(),
                order.unqualified_count.to_string(),
                order.create_user_id.to_string(),
                at(order.create_time),
            ]
        })
        .collect();
    let header = [
        "ID",
        "NUMBER",
        "STATUS",
        "VERSION",
        "YUAN",
        "PAYABLE",
        "UNQUALIFIED",
        "CREATOR",
        "CREATED",
    ];
    let mut text = table(&header, &rows);
    if let Some(before) = page.next_before {
        text.push_str(&format!("\nmore: --before {before}"));
    }
    text
}

pub(super) fn order(view: &OrderView) -> String {
    let mut verdict = view.verdict.sentence.clone();
    for note in &view.verdict.notes {
        verdict.push_str(&format!("\nnote: {note}"));
    }
    for action in &view.verdict.actions {
        let command = maybe(action.command.as_ref(), |command| format!(": {command}"));
        verdict.push_str(&format!("\nmay:  {}{command}", action.what));
    }
    let order = &view.order;
    let head = format!(
        "order {} {}, {}, published data version {}, round {}\n{} yuan in {} payable lines; {} \
         unqualified; created by user {} at {}\nlocks: {} RESERVED, {} ACTIVE, {} RELEASED",
        order.id,
        order.order_no.as_deref().unwrap_or("without a number"),
        order.status_name,
        order.published_data_version,
        order.submit_round,
        order.total_amount,
        order.payable_count,
        order.unqualified_count,
        order.create_user_id,
        at(order.create_time),
        view.locks.reserved,
        view.locks.active,
        view.locks.released,
    );
    let stages: Vec<Vec<String>> = view.stages.iter().map(stage).collect();
    let kinds = view.success.all();
    let kinds: Vec<Vec<String>> = kinds
        .iter()
        .map(|(name, kind)| vec![(*name).into(), answer(kind.answer).into(), kind.evidence.clone()])
        .collect();
    sections(vec![
        verdict,
        head,
        titled(
            "STAGES",
            &["", "STAGE", "WHY", "WAITS FOR", "OWNER", "LEASE", "NEXT", "TRIES"],
            &stages,
        ),
        titled("SIX KINDS OF SUCCESS", &["", "", "EVIDENCE"], &kinds),
        violations(view),
        conflicts(view),
        versions(view),
    ])
}

fn stage(stage: &Stage) -> Vec<String> {
    let tries = match (stage.retry_count, stage.max_retry_count) {
        (Some(tried), Some(most)) => tries(tried, most),
        _ => String::new(),
    };
    vec![
        look(stage.state).into(),
        stage.name.into(),
        stage.why.clone(),
        stage.blocker.clone().unwrap_or_default(),
        stage.owner.clone().unwrap_or_default(),
        maybe(stage.lease_until, at),
        maybe(stage.next_try, at),
        tries,
    ]
}

fn violations(view: &OrderView) -> String {
    let rows: Vec<Vec<String>> = view
        .recheck_violations
        .iter()
        .map(|violation| {
            vec![
                violation.order_bill_id.to_string(),
                violation.station_id.clone(),
                violation.bill_yearmonth.clone(),
                violation.code.into(),
                violation.message.clone(),
            ]
        })
        .collect();
    let title = format!("NOT TO BE PAID, REASONS: {}", view.recheck_violation_count);
    titled(&title, &["LINE", "STATION", "MONTH", "CODE", "WHY"], &rows)
}

fn conflicts(view: &OrderView) -> String {
    let rows: Vec<Vec<String>> = view
        .conflicts
        .first
        .iter()
        .map(|conflict| {
            let number = conflict.holder_order_no.clone();
            vec![
                conflict.station_id.clone(),
                conflict.bill_yearmonth.clone(),
                number.unwrap_or_else(|| conflict.holder_order_id.to_string()),
                conflict.holder_lock_status.clone(),
            ]
        })
        .collect();
    let title = format!("BILLS HELD BY OTHERS: {}", view.conflicts.total);
    titled(&title, &["STATION", "MONTH", "HOLDER", "LOCK"], &rows)
}

fn versions(view: &OrderView) -> String {
    let rows: Vec<Vec<String>> = view
        .versions
        .iter()
        .map(|version| {
            vec![
                version.target_data.to_string(),
                version.id.to_string(),
                version.mode.clone(),
                version.build_status.clone(),
                version.session_id.to_string(),
                at(version.create_time),
                maybe(version.publish_time, at),
                version.error_message.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = ["DATA", "RECORD", "MODE", "STATUS", "SESSION", "SUBMITTED", "PUBLISHED", "ERROR"];
    titled("VERSIONS", &header, &rows)
}

pub(super) fn lines(page: &LinesPage) -> String {
    if page.lines.is_empty() {
        return format!("data version {} has no more lines", page.data_version);
    }
    let rows: Vec<Vec<String>> = page
        .lines
        .iter()
        .map(|line| {
            vec![
                line.order_bill_id.to_string(),
                line.station_id.clone(),
                line.bill_yearmonth.clone(),
                line.line_type.into(),
                line.line_status.into(),
                yuan(line.pay_amount),
                line.lock_status.clone().unwrap_or_default(),
                line.payee_name.clone().unwrap_or_default(),
                line.payee_account.clone().unwrap_or_default(),
                line.unqualified_reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = [
        "LINE", "STATION", "MONTH", "TYPE", "STATUS", "YUAN", "LOCK", "PAYEE", "ACCOUNT", "REASON",
    ];
    let mut text = table(&header, &rows);
    if let Some(after) = page.next_after {
        text.push_str(&format!("\nmore: --after {after}"));
    }
    text
}

pub(super) fn timeline(told: &Timeline) -> String {
    let rows: Vec<Vec<String>> = told
        .entries
        .iter()
        .map(|entry| {
            vec![
                at(entry.time),
                entry.kind.into(),
                maybe(entry.data_version, |data| data.to_string()),
                entry.what.clone(),
                maybe(entry.operator_user_id, |user| user.to_string()),
                entry.task_code.clone().unwrap_or_default(),
                entry.detail.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let mut text = table(&["TIME", "KIND", "DATA", "WHAT", "USER", "TASK", "DETAIL"], &rows);
    if told.truncated {
        text.push_str("\nolder entries are not shown");
    }
    text
}

pub(super) fn diff(told: &Diff) -> String {
    let counts: Vec<Vec<String>> = told
        .kinds
        .iter()
        .map(|kind| {
            vec![
                kind.kind.name().into(),
                kind.bills.to_string(),
                kind.amount_before.to_string(),
                kind.amount_after.to_string(),
            ]
        })
        .collect();
    let (v1, v2) = (told.from_data_version, told.to_data_version);
    let title = format!("ORDER {}, DATA VERSION {v1} TO {v2}", told.payment_order_id);
    let mut parts = vec![titled(&title, &["KIND", "BILLS", "YUAN BEFORE", "YUAN AFTER"], &counts)];
    for kind in &told.kinds {
        let rows: Vec<Vec<String>> = kind.first.iter().map(changed).collect();
        let title = format!("{}, {} of {}", kind.kind.name(), rows.len(), kind.bills);
        let header =
            ["STATION", "MONTH", "BEFORE", "AFTER", "PAYEE BEFORE", "PAYEE AFTER", "REASON"];
        parts.push(titled(&title, &header, &rows));
    }
    sections(parts)
}

fn changed(line: &ChangedLine) -> Vec<String> {
    let side = |kind: Option<&'static str>, amount: Option<Money>| {
        format!("{} {}", kind.unwrap_or_default(), yuan(amount)).trim().to_owned()
    };
    vec![
        line.station_id.clone(),
        line.bill_yearmonth.clone(),
        side(line.line_type_before, line.amount_before),
        side(line.line_type_after, line.amount_after),
        line.payee_before.clone().unwrap_or_default(),
        line.payee_after.clone().unwrap_or_default(),
        line.unqualified_reason.clone().unwrap_or_default(),
    ]
}

pub(super) fn bill(view: &BillView) -> String {
    let head = match view.can_be_paid_again.verdict {
        Paying::Yes => "can be paid",
        Paying::OnlyTheRest => "can be paid for the rest",
        Paying::No => "cannot be paid again",
        Paying::NothingDue => "needs no payment",
        Paying::Unclear => "is unclear: look before you pay",
    };
    let mut verdict = format!("{} {} {head}", view.station_id, view.bill_yearmonth);
    for why in &view.can_be_paid_again.because {
        verdict.push_str(&format!("\n{}: {}", why.reason, why.sentence));
    }
    let cut = if view.truncated { "older lines, locks or notes are not shown" } else { "" };
    sections(vec![
        verdict,
        records(view),
        bill_lines(view),
        bill_locks(view),
        notes(view),
        cut.to_owned(),
    ])
}

fn records(view: &BillView) -> String {
    let rows: Vec<Vec<String>> = view
        .records
        .iter()
        .map(|record| {
            vec![
                record.record.into(),
                record.id.to_string(),
                record.payment_status.into(),
                yuan(record.pre_rent.or(record.amount)),
                record.cumulative_paid_amount.to_string(),
                maybe(record.locked_payment_order_id, |order| order.to_string()),
                maybe(record.locked_order_bill_id, |line| line.to_string()),
                record.unqualified_reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = ["RECORD", "ID", "STATUS", "YUAN", "PAID", "ORDER", "LINE", "REASON"];
    titled("RECORDS", &header, &rows)
}

fn bill_lines(view: &BillView) -> String {
    let rows: Vec<Vec<String>> = view
        .lines
        .iter()
        .map(|line| {
            let order = line.order_no.clone();
            vec![
                at(line.create_time),
                order.unwrap_or_else(|| line.payment_order_id.to_string()),
                line.data_version.to_string(),
                if line.is_published { "published" } else { "" }.into(),
                line.order_bill_id.to_string(),
                line.line_type.into(),
                line.line_status.into(),
                yuan(line.pay_amount),
            ]
        })
        .collect();
    let header = ["BUILT", "ORDER", "DATA", "", "LINE", "TYPE", "STATUS", "YUAN"];
    titled("LINES", &header, &rows)
}

fn bill_locks(view: &BillView) -> String {
    let rows: Vec<Vec<String>> = view
        .locks
        .iter()
        .map(|lock| {
            let order = lock.order_no.clone();
            vec![
                lock.lock_id.to_string(),
                lock.lock_status.clone(),
                order.unwrap_or_else(|| lock.payment_order_id.to_string()),
                lock.data_version.to_string(),
                lock.order_bill_id.to_string(),
                at(lock.create_time),
                maybe(lock.release_time, at),
                lock.release_reason.clone().unwrap_or_default(),
            ]
        })
        .collect();
    let header = ["LOCK", "STATUS", "ORDER", "DATA", "LINE", "RESERVED", "RELEASED", "REASON"];
    titled("LOCKS", &header, &rows)
}

fn notes(view: &BillView) -> String {
    let rows: Vec<Vec<String>> = view
        .notes
        .iter()
        .map(|note| {
            vec![
                at(note.time),
                note.note.clone(),
                note.what.clone(),
                maybe(note.operator_user_id, |user| user.to_string()),
                note.task_code.clone(),
            ]
        })
        .collect();
    titled("NOTES", &["TIME", "NOTE", "WHAT", "USER", "TASK"], &rows)
}
