//! The review centre, the executor, and the doors of operations.

use super::Access::{Open, Token};
use super::Holds::{Cursor, Id, Ids, Limit, Number, Text, Word};
use super::{Body, Endpoint, Good, good, maybe, needed};

const OPERATIONS_TAG: &str = "operations";
const REVIEW_TAG: &str = "review centre";
const XXL_TAG: &str = "XXL-Job executor";

const fn get(path: &'static str, tag: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("get", path, tag, Open, does)
}

const fn post(path: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("post", path, REVIEW_TAG, Open, does)
}

const ALWAYS: &[Good] = &[good(200, "always; code 200 or 500 in the body says how it went")];

const fn door(path: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("post", path, XXL_TAG, Token, does).says(ALWAYS)
}

/// Of every role.
pub(super) const OPERATIONS: &[Endpoint] = &[
    get("/healthz", OPERATIONS_TAG, "The process lives"),
    get("/readyz", OPERATIONS_TAG, "Work can be sent here")
        .says(&[good(200, "it can"), good(503, "it cannot, and why")]),
    get("/metrics", OPERATIONS_TAG, "Prometheus text"),
    get("/openapi.json", OPERATIONS_TAG, "This description"),
    get("/openapi", OPERATIONS_TAG, "This description as a page"),
];

/// Called by payment and by reviewers' programs, from within.
pub(super) const REVIEW: &[Endpoint] = &[
    post("/reviewBusinessPlan/initInfo", "Opens a plan; the same for the same round")
        .takes(Body::Fields(&[
            needed("fromId", Id, ""),
            needed("fromNum", Text, ""),
            needed("type", Text, ""),
            needed("epctenantid", Text, ""),
            needed("organisation", Text, ""),
            needed("submitter", Id, ""),
            needed("submitRound", Id, ""),
            needed("dataVersion", Id, ""),
            needed("managersA", Ids, ""),
            needed("managersB", Ids, ""),
        ]))
        .says(&[good(201, "opened"), good(200, "there already")])
        .refuses(&[
            "review-nobody-left",
            "review-round-stale",
            "review-other-submitter",
            "review-not-configured",
        ]),
    post("/reviewBusinessPlan/withdraw", "Takes plans back").takes(Body::Fields(&[
        needed("fromId", Id, ""),
        needed("type", Text, ""),
        maybe("throughRound", Id, ""),
        maybe("operator", Id, ""),
        needed("reason", Text, ""),
    ])),
    get("/reviewBusinessPlan/inbox", REVIEW_TAG, "What waits for a person").asks(&[
        needed("userId", Id, ""),
        maybe("cursor", Cursor, "the last page's nextCursor"),
        maybe("limit", Limit, ""),
    ]),
    post("/reviewBusinessPlan/{planId}/decisions", "A reviewer decides")
        .takes(Body::Fields(&[
            needed("userId", Id, ""),
            needed("decision", Word(&["APPROVE", "REJECT"]), ""),
            maybe("remark", Text, ""),
            maybe("nodeId", Id, "the node that was looked at"),
        ]))
        .refuses(&["review-own-order", "review-not-your-turn", "review-already-decided"]),
];

/// Where `xxl-job.admin-addresses` is set.
pub(super) const XXL_JOB: &[Endpoint] = &[
    door("/xxl/beat", "The executor lives"),
    door("/xxl/idleBeat", "A job is idle").takes(Body::Fields(&[needed("jobId", Number, "")])),
    door("/xxl/run", "Triggers a round").takes(TRIGGER),
    door("/xxl/trigger", "The same, as admins from 3.5 on call it").takes(TRIGGER),
    door("/xxl/kill", "Stops a job").takes(Body::Fields(&[needed("jobId", Number, "")])),
    door("/xxl/log", "A part of a trigger's log").takes(Body::Fields(&[
        needed("logId", Number, ""),
        maybe("fromLineNum", Number, "from 1"),
    ])),
];

const TRIGGER: Body = Body::Json(
    "jobId, logId, logDateTime, executorHandler, executorParams, executorBlockStrategy, \
     executorTimeout, glueType (BEAN), broadcastIndex, broadcastTotal",
);
