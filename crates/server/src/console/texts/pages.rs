//! What stands on the pages themselves.

use super::texts;

texts! {
    order: "付款单", "Order";
    version: "版本", "Version";
    round: "提交轮次", "Round";
    lines: "行", "lines";
    payable: "应付", "Payable";
    unqualified: "不合格", "Unqualified";
    yuan: "金额 ¥", "Yuan";
    creator: "建单人", "Creator";
    creator_note: "建单人不可审核", "the creator cannot review it";
    created: "建单", "Created";
    no_orders: "没有付款单符合条件。换一个筛选，或用 session create 选单提交。",
        "No order matches. Change the filter, or submit a selection with `session create`.";
    where_is_it: "走到哪里", "Where it is";
    six_kinds: "六种成功，互不代替", "Six kinds of success, none of them the next";
    accepted: "已受理", "Accepted";
    round_ran: "调度跑过", "Round ran";
    handed_over: "已交接", "Handed over";
    effective: "主业务生效", "In effect";
    refresh_done: "刷新完成", "Refreshed";
    outside_answered: "对方答复", "Outside answered";
    agree: "对数", "Figures that must agree";
    count: "行数", "Count";
    amount: "金额 ¥", "Yuan";
    evidence: "证据", "Evidence";
    selected_payable: "选中应付", "Selected, payable";
    locks_active: "占用中", "Locked";
    locks: "占用锁", "Locks";
    review_approved: "审核通过的明细", "Lines that carry the approval";
    in_batches: "推送明细", "In push batches";
    confirmed_paid: "已确认付款", "Confirmed paid";
    timeline: "时间线", "Timeline";
    older_not_shown: "更早的没有显示。", "Older entries are not shown.";
    stages: "各阶段", "Stages";
    stage: "阶段", "Stage";
    why_so: "为什么", "Why";
    waits_for: "在等", "Waits for";
    owner: "执行者", "Owner";
    lease: "租约到", "Lease until";
    next_try: "下一次", "Next try";
    tries: "次数", "Tries";
    versions: "版本记录", "Versions";
    what_changed: "比较两个版本", "What changed between two";
    compare: "比较", "Compare";
    callbacks: "审核回调", "Review callbacks";
    callbacks_lede: "晚到的、重复的、与已有结论相反的，都留在这里。",
        "Late ones, repeated ones and contradictory ones all stay here.";
    no_callbacks: "还没有收到回调。", "None has come yet.";
    pushes: "推送", "Pushes";
    deliveries_of_order: "通知合作方", "Notices to partners";
    batches_of_order: "付款批次", "Push batches";
    must_not_be_paid: "不能付的行", "Lines that must not be paid";
    held_by_others: "被别的付款单占着的账单", "Bills held by other orders";
    station: "电站", "Station";
    month: "月份", "Month";
    holder: "占用者", "Holder";
    payee: "收款人", "Payee";
    account_number: "账号", "Account";
    line: "明细", "Line";
    kind: "类型", "Kind";
    line_state: "明细状态", "State";
    see_lines: "看明细", "See the lines";
    no_lines: "这个版本没有更多明细。", "This version has no more lines.";
    before: "之前", "Before";
    after: "之后", "After";
    no_change: "两个版本没有差别。", "The two versions do not differ.";
    bills_count: "账单数", "Bills";
    failed_tasks: "失败", "Failed";
    oldest: "最老", "Oldest";
    flow: "工作流到哪里", "Where the work is";
    flow_lede: "每一阶段未完成的任务和最老的一个；多于一千的只数到一千。",
        "Open tasks of each stage and the oldest of them; counting stops at a thousand.";
    throughput: "完成与失败", "Done and failed over time";
    throughput_lede: "最近 20,000 个任务里，每段时间成功和失败的个数。",
        "Of the newest 20,000 tasks: how many succeeded and how many failed in each stretch.";
    last_hour: "一小时", "Hour";
    last_day: "一天", "Day";
    last_week: "一周", "Week";
    newest_orders: "最新的付款单", "Newest orders";
    nothing_stuck: "没有卡住的东西。", "Nothing is stuck.";
    some_stuck: "有东西停住，要人看", "Some things stand still and need a person";
    look_at_stuck: "看卡点", "See what is stuck";
    succeeded: "成功", "Succeeded";
    chart_empty: "这段时间没有任务结束。", "No task ended in this stretch.";
    task: "任务", "Task";
    no_tasks: "没有任务符合条件。换一个筛选；任务由提交、回调和定时产生。",
        "No task matches. Change the filter; submissions, callbacks and schedules make tasks.";
    looked_at_some: "只看了这一段 20,000 个任务；下一页接着往前看。",
        "20,000 tasks were looked at; the next page goes on before them.";
    trace: "经过", "Trace";
    no_trace: "没有记录。", "Nothing is on record.";
    what_it_carries: "它带的数据", "What it carries";
    business_key: "业务键", "Business key";
    attempts: "执行次数", "Attempts";
    lost: "连续失联", "Lost in a row";
    ask_rerun: "试算重跑", "Rerun, dry";
    rerun_now: "重跑", "Rerun";
    ask_cancel_task: "取消任务", "Cancel the task";
    cancel_task_now: "永远取消", "Cancel for good";
    run_a_round: "现在跑一轮", "Run a round now";
    cancel_order: "取消付款单", "Cancel the order";
    cancel_order_now: "永远取消这张单", "Cancel it for good";
    record_payment: "登记线下付款", "Record an offline payment";
    evidence_hint: "什么证明已经付了？回单号、日期、经办人；会永久记录。",
        "What proves that it was paid? Receipt, date, who paid; kept for good.";
    repair_publish: "修正发布记录", "Put the publish record right";
    bills_lede: "一张账单能不能再付、为什么不能：写电站和月份。",
        "Can a bill be paid again, and why not: name a station and a month.";
    month_hint: "月份 YYYYMM", "Month YYYYMM";
    three_tables: "三张表", "The three tables";
    lines_and_orders: "它进过的付款单", "Orders it was in";
    no_line_ever: "没有付款单选过它。", "No order ever had it.";
    no_lock_ever: "从来没有锁占过它。", "No lock ever held it.";
    went_through: "它经过的一切", "What it went through";
    released: "释放", "Released";
    plan: "审核计划", "Audit plan";
    node: "节点", "Node";
    nodes: "节点", "Nodes";
    submitter: "提交人", "Submitter";
    reviewers: "审核人", "Reviewers";
    decided_by: "决定人", "Decided by";
    your_turn: "等你审核的", "Waiting for you";
    everybodys_turn: "等任何人审核的", "Waiting for anybody";
    nothing_to_decide: "没有等待决定的审核。", "Nothing waits for a decision.";
    look_and_decide: "看并决定", "Look and decide";
    not_yours: "你不能在这里决定", "You do not decide here";
    see_the_order: "看付款单", "see the order";
    approve: "通过", "Approve";
    reject: "驳回", "Reject";
    delivery: "外发", "Delivery";
    partner: "合作方", "Partner";
    chunk: "分片", "Chunk";
    sent_at: "发送时间", "Sent";
    request: "发出的内容", "Request";
    response: "对方的答复", "Response";
    send_again: "再发一次", "Send again";
    hidden: "（含账号，你的角色看不到）", "(holds account numbers, which your role does not see)";
    no_deliveries: "没有外发符合条件；审核生效后才会通知合作方。",
        "No delivery matches; partners are told once an approval is in effect.";
    batch: "批次", "Batch";
    no_batches: "没有付款批次符合条件；审核生效且刷新完成后才会生成。",
        "No batch matches; they are made once an approval is in effect and refreshed.";
    no_pushes: "还没有推送过。", "Nothing was pushed yet.";
    push_now: "现在推送", "Push now";
    message: "报文", "Message";
    details: "明细", "Details";
    paying: "付款", "Payment";
    more_details: "行没有显示：counterfoil export payments 有全部。",
        "more are not shown: `counterfoil export payments` has all.";
    show_accounts: "显示完整账号（会留下记录）", "Show account numbers in full (this is recorded)";
    fix_payee: "改正收款人", "Put the payee right";
    fix_payee_lede: "空着的不变；改好后这一行单独再推送。",
        "What is left empty stays; the line is then pushed again alone.";
    bank: "开户行", "Bank";
    consumer: "消费方", "Consumer";
    school: "学校", "School";
    form: "表单", "Form";
    scope: "范围", "Scope";
    answer_uuid: "答卷", "Answer";
    rows_of_manifest: "清单行数", "Manifest rows";
    no_reconciliation: "没有对账任务；下面可以新建，或打开定时。",
        "No reconciliation task; make one below, or turn the schedule on.";
    new_reconciliation: "新建对账", "New reconciliation";
    cancel_reconciliation: "取消对账", "Cancel the reconciliation";
    differences: "差异，按种类", "Differences by kind";
    no_report: "还没有收到结果。", "No report has come yet.";
    reports: "各次结果", "Reports";
    left_over: "遗留项", "Left over";
    rules_lede: "任何时候都必须成立的事；定时检查，也可现在检查。",
        "What must hold at all times; checked on schedule, and whenever you ask.";
    must_hold: "必须成立", "What must hold";
    check_now: "现在检查全部规则", "Check all rules now";
    rules_hold: "成立", "holds";
    rules_broken: "被破坏", "broken";
    rules_unread: "没查到", "not read";
    incidents_lede: "发布事故和作废的会话；不会自己消失。",
        "Publish incidents and sessions that were invalidated; none goes away by itself.";
    no_incidents: "没有事故。", "There is no incident.";
    nothing_found: "没有叫这个的付款单、任务、批次或对账。账单请写「电站 月份」。",
        "No order, task, batch or reconciliation is called so. For a bill write `STATION MONTH`.";
    look_as_station: "当作电站找账单", "Look for a bill of that station";
    called: "姓名", "Name";
    person_id: "人员编号", "Person id";
    person_id_hint: "人员编号（可空）", "Person id (may be empty)";
    password_since: "密码自", "Password since";
    new_password: "新密码", "New password";
    old_password: "现在的密码", "Present password";
    again: "再写一遍", "Once more";
    not_the_same: "两次写的新密码不一样。", "The new password was typed differently.";
    password_terms: "至少 12 个字符，不含登录名；改后所有会话结束。",
        "At least 12 characters, without the login; all your sessions end with the change.";
    accounts_lede: "一个人一个账户；人员编号就是付款单里的建单人和审核人。",
        "One person, one account; the person id is the creator and reviewer of orders.";
    enabled: "可登录", "Enabled";
    disabled: "已停用", "Disabled";
    enable: "启用", "Enable";
    disable: "停用", "Disable";
    change: "修改", "Change";
    change_role: "改角色", "Change role";
    new_account: "新建账户", "New account";
    audit_lede: "谁、什么时候、对什么、为什么、结果如何；只增不改。",
        "Who did what to what, when, why, and what came of it; rows are only added.";
    subject: "对象", "Subject";
    outcome: "结果", "Outcome";
    session: "选单会话", "Session";
    revise_order: "修订付款单", "Revise the order";
    what_it_holds: "选了什么", "What it holds";
    session_empty: "还没有选账单；下面可以加一个月。", "No bill is selected yet; add a month below.";
    session_of_creator: "只有打开它的人可以改和提交。",
        "Only who opened it may change and submit it.";
    add_month: "加一个月的账单", "Add the bills of a month";
    take_out: "移出账单", "Take bills out";
    take_out_hint: "每行一张，电站:月份", "One a line, STATION:MONTH";
    submit_session: "提交", "Submit";
    new_session: "新选单", "New selection";
    not_refreshed: "它的付款单还在刷新状态：这里写的可能还会变。",
        "An order of it is still being refreshed: what stands here may change.";
}
