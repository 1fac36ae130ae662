//! `/api/payment/…`.

use super::Access::Signed;
use super::Holds::{Bills, Cursor, Flag, Id, Instant, Limit, Month, Text, Word};
use super::{Body, Endpoint, Field, good, maybe, needed};

const CURSOR: Field = maybe("cursor", Cursor, "the last page's nextCursor");
const LIMIT: Field = maybe("limit", Limit, "rows of a page");
const REASON: &[Field] = &[needed("reason", Text, "why, for the trace")];
const SELECTION: &[Field] = &[
    maybe("billYearmonth", Month, "all bills of a month; else bills"),
    maybe("projectCompanyId", Id, "of one company"),
    maybe("partnerId", Id, "of one partner"),
    maybe("bills", Bills, "these bills; else billYearmonth"),
];
const TASK_STATES: &[&str] = &["PENDING", "RUNNING", "SUCCESS", "FAILED", "CANCELLED"];
const ORDER_STATES: &[&str] =
    &["DRAFT", "UNDER_REVIEW", "REVIEW_REJECTED", "WAIT_PAY", "PAID", "NO_NEED_PAY", "CANCELLED"];
const DELIVERY_STATES: &[&str] = &["WAIT_PROCESS", "SUCCESS", "FAIL", "UNKNOWN", "SKIPPED"];

const fn get(path: &'static str, tag: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("get", path, tag, Signed, does)
}

const fn post(path: &'static str, tag: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("post", path, tag, Signed, does)
}

const SESSION: &str = "sessions";
const ORDERS: &str = "orders";
const PAYING: &str = "paying";
const TASKS: &str = "tasks";

/// All of it.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    post("/api/payment/sessions", SESSION, "Opens a selection session")
        .keyed()
        .takes(Body::Fields(&[maybe("revise", Text, "an order's id or number, to revise it")]))
        .says(&[good(201, "the session"), good(200, "the session that this key opened before")])
        .refuses(&["idempotency-key-reused", "order-state"]),
    get(
        "/api/payment/sessions/{session}",
        SESSION,
        "A session, and why its last submission failed",
    )
    .refuses(&["session-not-found"]),
    post("/api/payment/sessions/{session}/bills", SESSION, "Adds bills; says which cannot be")
        .takes(Body::Fields(SELECTION))
        .refuses(&["session-not-found", "session-state"]),
    post("/api/payment/sessions/{session}/removals", SESSION, "Takes bills out")
        .takes(Body::Fields(SELECTION))
        .refuses(&["session-not-found", "session-state"]),
    post("/api/payment/sessions/{session}/marks", SESSION, "Marks bills by hand, or takes it back")
        .takes(Body::Fields(&[
            needed("payable", Flag, "false: not to be paid; true: the mark is taken back"),
            needed("bills", Bills, "which"),
        ]))
        .refuses(&["session-not-found", "session-state"]),
    post("/api/payment/sessions/{session}/submission", SESSION, "Submits; nothing is built yet")
        .says(&[good(202, "accepted, with the code of its task")])
        .refuses(&["session-not-found", "session-state"]),
    get("/api/payment/orders", ORDERS, "Orders, the newest first").asks(&[
        maybe("status", Word(ORDER_STATES), ""),
        maybe("creatorUserId", Id, ""),
        CURSOR,
        LIMIT,
    ]),
    get("/api/payment/orders/{order}", ORDERS, "An order: what became of each stage, and why")
        .refuses(&["order-not-found"]),
    get("/api/payment/orders/{order}/lines", ORDERS, "Its formal lines")
        .asks(&[maybe("dataVersion", Id, "the published one unless said"), CURSOR, LIMIT])
        .refuses(&["order-not-found", "version-not-found"]),
    get("/api/payment/orders/{order}/timeline", ORDERS, "What happened to it, the newest first")
        .asks(&[LIMIT])
        .refuses(&["order-not-found"]),
    get("/api/payment/orders/{order}/changes", ORDERS, "What one version changed against another")
        .asks(&[needed("from", Id, "a data version"), needed("to", Id, "a data version"), LIMIT])
        .refuses(&["order-not-found", "version-not-found"]),
    post("/api/payment/orders/{order}/cancellation", ORDERS, "Cancels it")
        .takes(Body::Fields(REASON))
        .refuses(&["order-not-found", "order-state"]),
    post("/api/payment/orders/{order}/publish-repair", ORDERS, "Puts its publish record right")
        .takes(Body::Fields(REASON))
        .refuses(&["order-not-found", "publish-repair-refused"]),
    post("/api/payment/orders/{order}/payment-record", ORDERS, "It was paid outside")
        .takes(Body::Fields(&[
            needed("evidence", Text, "such as the bank slip's number"),
            maybe("paidAt", Instant, ""),
        ]))
        .refuses(&["review-callback-refresh-pending", "payment-recorded-otherwise"]),
    get("/api/payment/bills/{station}/{month}", ORDERS, "A bill: can it be paid again, why not")
        .refuses(&["bill-not-found", "review-callback-refresh-pending"]),
    get("/api/payment/push-batches", PAYING, "Push batches, the newest first").asks(&[
        maybe("order", Text, "an order's id or number"),
        maybe("status", Text, ""),
        CURSOR,
        LIMIT,
    ]),
    get("/api/payment/push-batches/{batch}", PAYING, "A batch with its details, accounts masked")
        .refuses(&["push-batch-not-found"]),
    post(
        "/api/payment/push-batches/{batch}/pushes",
        PAYING,
        "Pushes it; the outcome may be unknown",
    )
    .refuses(&["push-batch-not-found", "push-batch-state"]),
    post("/api/payment/payment-reports", PAYING, "Takes in a bank's status report")
        .takes(Body::Other("application/xml", "pain.002.001.12"))
        .refuses(&["result-report-unreadable", "result-report-stranger", "result-report-conflict"]),
    post("/api/payment/push-details/{detail}/fixes", PAYING, "Puts a payee right, or confirms it")
        .takes(Body::Fields(&[
            maybe("payeeName", Text, "absent = as it is"),
            maybe("payeeAccount", Text, "absent = as it is"),
            maybe("payeeBank", Text, "absent = as it is"),
            needed("reason", Text, "why, for the trace"),
        ]))
        .refuses(&["push-detail-not-found", "push-detail-state"]),
    get("/api/payment/deliveries", PAYING, "What partners were told, the newest first").asks(&[
        maybe("paymentOrderId", Id, ""),
        maybe("status", Word(DELIVERY_STATES), ""),
        CURSOR,
        LIMIT,
    ]),
    get("/api/payment/deliveries/{delivery}", PAYING, "One message with its bodies")
        .refuses(&["delivery-not-found"]),
    post("/api/payment/deliveries/{delivery}/redeliveries", PAYING, "Sends it once more")
        .takes(Body::Fields(REASON))
        .refuses(&["delivery-not-found", "delivery-state"]),
    get("/api/payment/tasks", TASKS, "Tasks, the newest first").asks(&[
        maybe("status", Word(TASK_STATES), ""),
        maybe("taskType", Text, ""),
        CURSOR,
        LIMIT,
    ]),
    get("/api/payment/tasks/{task}", TASKS, "A task with its trace").refuses(&["task-not-found"]),
    get(
        "/api/payment/tasks/{task}/rerun-plan",
        TASKS,
        "What a rerun would do, would not and cannot",
    )
    .refuses(&["task-not-found"]),
    post("/api/payment/tasks/{task}/reruns", TASKS, "Runs it again")
        .takes(Body::Fields(REASON))
        .says(&[good(200, "the plan and the round's summary"), good(202, "the round still runs")])
        .refuses(&["task-not-found", "task-state"]),
    post("/api/payment/tasks/{task}/cancellation", TASKS, "Cancels a PENDING or FAILED task")
        .takes(Body::Fields(REASON))
        .refuses(&["task-not-found", "task-state"]),
    get("/api/payment/handlers", TASKS, "The handlers"),
    post("/api/payment/handlers/{handler}/rounds", TASKS, "Runs one round of a handler")
        .takes(Body::Json(
            "the round's parameter: taskCode(s), businessKey(s), maxTaskCount; {} = a scan",
        ))
        .says(&[good(200, "the round's summary"), good(202, "the round still runs")])
        .refuses(&["unknown-handler", "invalid-parameter"]),
    get("/api/payment/rules", TASKS, "Checks every rule"),
    post("/api/payment/review-callbacks", ORDERS, "Takes in the reviewers' final decision")
        .takes(Body::Fields(&[
            needed("paymentOrderId", Id, ""),
            needed("reviewPlanId", Id, ""),
            needed("reviewPassed", Flag, ""),
            maybe("reviewRemark", Text, ""),
            maybe("reviewTime", Instant, ""),
            maybe("dataVersion", Id, ""),
            maybe("approvalAttempt", Id, ""),
            maybe("submitRound", Id, ""),
        ]))
        .says(&[good(202, "accepted"), good(200, "known already")])
        .refuses(&["forbidden", "approval-instance-not-found", "review-callback-opposite"]),
];
