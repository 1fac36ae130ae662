//! The console in a real browser: every page on a screen and on a phone, and the main actions by
//! mouse and by keyboard.

use counterfoil_account::people::{self, Newcomer};
use counterfoil_account::{Cost, Role};
use counterfoil_e2e::{Dialect, TestApp};

use crate::driver::Browser;
use crate::house::{House, PASSWORD};

const TAB: &str = "\u{E004}";
const ENTER: &str = "\u{E007}";
/// A screen and a phone.
const WIDTHS: [u32; 2] = [1280, 390];

async fn add(house: &House, login: &str, name: &str, role: Role, id: i64) {
    let new = Newcomer {
        id: Some(id),
        login: login.into(),
        name: name.into(),
        role,
        password: PASSWORD.into(),
    };
    people::add(&house.app.db, &new, Cost::Least).await.expect("an account");
}

/// Signs in as a person does: in the form, by the keyboard alone.
async fn sign_in(browser: &Browser, house: &House, login: &str) {
    browser.go(&format!("{}/console/sign-in", house.url())).await;
    // The login has the focus from the start.
    browser.press(login).await;
    browser.press(TAB).await;
    browser.press(PASSWORD).await;
    browser.press(ENTER).await;
    assert_eq!(browser.path().await, "/console");
}

async fn sign_out(browser: &Browser) {
    browser.click("form[action='/console/sign-out'] button").await;
    assert_eq!(browser.path().await, "/console/sign-in");
}

/// Every page fits its window, shows something, and the browser has nothing to complain of.
async fn walk(browser: &Browser, house: &House, pages: &[(&str, String)]) {
    for width in WIDTHS {
        browser.width(width).await;
        for (name, path) in pages {
            browser.go(&format!("{}{path}", house.url())).await;
            let title = browser.script("return document.querySelector('h1')?.innerText").await;
            assert!(title.as_str().is_some_and(|title| !title.is_empty()), "{path}: no heading");
            let wide = browser.script("return document.documentElement.scrollWidth").await;
            assert!(wide.as_u64() <= Some(u64::from(width)), "{path} is {wide} wide at {width}");
            let complaints = browser.complaints().await;
            assert!(complaints.is_empty(), "{path}: {complaints:?}");
            if width == 390 {
                let small = browser.script(SMALL_TARGETS).await;
                assert_eq!(small, serde_json::json!([]), "{path}: too small for a finger");
            }
            browser.picture(&format!("console-{name}-{width}"), width).await;
        }
    }
    browser.width(1280).await;
}

/// Buttons on a phone that are lower than 44 pixels.
const SMALL_TARGETS: &str = "return [...document.querySelectorAll('main button, main a.button')]
    .filter(one => one.offsetParent && one.getBoundingClientRect().height < 43.5)
    .map(one => one.outerHTML)";

fn pages(order: &str, plan: &str, task: &str) -> Vec<(&'static str, String)> {
    let of = |name: &'static str, path: &str| (name, format!("/console{path}"));
    vec![
        of("overview", ""),
        of("stuck", "/stuck"),
        of("orders", "/orders"),
        of("order", &format!("/orders/{order}")),
        of("lines", &format!("/orders/{order}/lines")),
        of("cancel", &format!("/orders/{order}/cancel")),
        of("bill", "/bills/S1/202609"),
        of("tasks", "/tasks"),
        of("task", &format!("/tasks/{task}")),
        of("rerun", &format!("/tasks/{task}/rerun")),
        of("reviews", "/reviews?of=all"),
        of("review", &format!("/reviews/{plan}")),
        of("deliveries", "/deliveries"),
        of("batches", "/batches"),
        of("reconciliation", "/reconciliation"),
        of("rules", "/rules"),
        of("incidents", "/incidents"),
        of("accounts", "/accounts"),
        of("audit", "/audit"),
        of("own", "/me"),
    ]
}

async fn sentence(app: TestApp) {
    let house = House::open(app).await;
    let order = house.order().await;
    let plan = house.plan(&order).await;
    add(&house, "chief", "李伟", Role::Admin, 7).await;
    add(&house, "first", "王芳", Role::Reviewer, 101).await;
    // The audit plan's task has failed for good, and somebody is to find out.
    house
        .app
        .execute(
            "UPDATE fi_async_task SET task_status = 3, retry_count = 3,
               error_message = 'the review centre answered 503'
             WHERE task_type LIKE '%AUDIT_PLAN_CREATE'",
        )
        .await;
    let kind = "task_type LIKE '%AUDIT_PLAN_CREATE'";
    let task = format!("SELECT task_code FROM fi_async_task WHERE {kind}");
    let task = house.app.value(&task).await;
    let browser = Browser::start("en").await;
    sign_in(&browser, &house, "chief").await;
    walk(&browser, &house, &pages(&order, &plan, &task)).await;
    moves_what_is_stuck(&browser, &house, &task).await;
    speaks_both_languages(&browser, &house).await;
    is_whole_without_scripts(&browser, &house, &order).await;
    sign_out(&browser).await;
    sign_in(&browser, &house, "first").await;
    decides(&browser, &house, &plan).await;
    house.close().await;
}

/// From the overview to the stuck task, through the dry run, to its rerun.
async fn moves_what_is_stuck(browser: &Browser, house: &House, task: &str) {
    browser.go(&format!("{}/console", house.url())).await;
    browser.click(".verdict a.button").await;
    assert_eq!(browser.path().await, "/console/stuck");
    assert!(browser.text().await.contains("the review centre answered 503"));
    browser.click("tbody a.button").await;
    let dry = browser.text().await;
    assert!(dry.contains("claim attempt 2 now"), "{dry}");
    browser.write("textarea[name=reason]", "对方已修好").await;
    browser.click("form.confirm button").await;
    let page = browser.text().await;
    assert!(page.contains("task-rerun") && page.contains(task), "{page}");
    let attempt = "SELECT running_attempt FROM fi_async_task
                   WHERE task_type LIKE '%AUDIT_PLAN_CREATE'";
    assert_eq!(house.app.value(attempt).await, "2");
}

async fn speaks_both_languages(browser: &Browser, house: &House) {
    browser.go(&format!("{}/console/orders", house.url())).await;
    browser.click("header .who a[lang=zh]").await;
    assert_eq!(browser.path().await, "/console/orders", "it leads back");
    assert!(browser.text().await.contains("付款单"));
    browser.click("header .who a[lang=en]").await;
    assert!(browser.text().await.contains("Orders"));
    // By keyboard: the first stop skips the navigation.
    browser.press(TAB).await;
    let focused = browser.script("return document.activeElement.className").await;
    assert_eq!(focused, "skip");
}

async fn is_whole_without_scripts(browser: &Browser, house: &House, order: &str) {
    browser.scripts(false).await;
    browser.go(&format!("{}/console/orders/{order}", house.url())).await;
    let page = browser.text().await;
    for part in ["Where it is", "Six kinds of success", "Stages", "Timeline", "S05 audit plan"] {
        assert!(page.contains(part), "{part} is missing: {page}");
    }
    browser.write("header input[type=search]", &format!("{order}\n")).await;
    assert_eq!(browser.path().await, format!("/console/orders/{order}"));
    browser.scripts(true).await;
}

async fn decides(browser: &Browser, house: &House, plan: &str) {
    browser.go(&format!("{}/console/reviews", house.url())).await;
    browser.click("tbody a.button").await;
    browser.write("textarea[name=reason]", "核对无误").await;
    browser.click("button[value=approve]").await;
    let page = browser.text().await;
    assert!(page.contains("OPERATION_MANAGER_A decided"), "{page}");
    let decided = format!(
        "SELECT decided_by FROM review_business_node WHERE plan_id = {plan}
         AND node_code = 'OPERATION_MANAGER_A'"
    );
    assert_eq!(house.app.value(&decided).await, "101");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn people_walk_every_page_and_do_the_main_actions_in_a_real_browser() {
    counterfoil_e2e::run(Dialect::Sqlite, sentence).await;
}
