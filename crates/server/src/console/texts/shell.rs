//! What stands on every page, at the door, and where something went wrong.

use super::texts;

texts! {
    brand: "存根 Counterfoil", "Counterfoil";
    nav: "主导航", "Main";
    to_content: "跳到正文", "Skip to content";
    overview: "总览", "Overview";
    stuck: "卡点", "Stuck";
    orders: "付款单", "Orders";
    bills: "账单", "Bills";
    tasks: "任务", "Tasks";
    reviews: "审核", "Reviews";
    deliveries: "外发", "Deliveries";
    batches: "付款批次", "Push batches";
    reconciliation: "对账", "Reconciliation";
    rules: "规则", "Rules";
    incidents: "事故", "Incidents";
    accounts: "账户", "Accounts";
    audit: "操作记录", "Audit";
    own_account: "我的账户", "My account";
    find_hint: "单号、电站、任务编码、批次…", "Order, station, task, batch…";
    find: "查找", "Find";
    other_language: "English", "中文";
    sign_out: "退出", "Sign out";
    sign_in: "登录", "Sign in";
    login: "登录名", "Login";
    password: "密码", "Password";
    signed_out: "已退出。", "You are signed out.";
    signed_out_by_time: "会话已结束，请重新登录；没有做任何事。",
        "Your session has ended. Sign in again; nothing was done.";
    refused_login: "登录名或密码不对。", "Login or password is wrong.";
    stale_form: "这个表单已过期或不是本页发出的，没有做任何事。请返回、刷新后再试。",
        "This form is out of date or did not come from this page. Nothing was done. \
         Go back, reload, try again.";
    not_allowed: "你的角色不能这样做。", "Your role may not do this.";
    not_there: "没有这个页面，或它指的东西已不在。",
        "There is no such page, or what it is about is not there.";
    failed: "没有做成。", "It did not work.";
    database_down: "数据库暂时没有回答；请稍后再试。",
        "The database does not answer at the moment; try again shortly.";
    reference: "请求编号", "Request";
    back_home: "回总览", "Back to the overview";
    next_page: "下一页", "Next page";
    first_page: "回到第一页", "First page";
    reason: "原因", "Reason";
    reason_hint: "为什么这样做？会永久记录，连同你的名字。",
        "Why? Kept for good, with your name.";
    never_mind: "算了", "Never mind";
    will: "会发生", "Will happen";
    will_not: "不会发生", "Will not happen";
    cannot: "不可能发生", "Cannot happen";
    dry_run: "试算：还没有做任何事", "Dry run: nothing was done yet";
    all: "全部", "All";
    status: "状态", "Status";
    filter: "筛选", "Filter";
    since: "自", "Since";
    age: "已有", "Age";
    role: "角色", "Role";
    time: "时间", "Time";
    who: "谁", "Who";
    what: "什么", "What";
    detail: "细节", "Detail";
    live: "每 10 秒更新", "Updates every 10 s";
}
