//! `/oapi/…` and `/api/form/…`.

use super::Access::Signed;
use super::Holds::{Cursor, Limit, Number, Text, Word};
use super::{Body, Endpoint, Field, good, maybe, needed};

const TAG: &str = "answer reconciliation";
const ADMIN: &str = "form administration";

const fn get(path: &'static str, tag: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("get", path, tag, Signed, does)
}

const fn post(path: &'static str, tag: &'static str, does: &'static str) -> Endpoint {
    Endpoint::new("post", path, tag, Signed, does)
}

const LISTING: &[Field] = &[
    maybe("state", Text, ""),
    maybe("consumerAppKey", Text, ""),
    maybe("formUuid", Text, ""),
    maybe("cursor", Cursor, "the last page's nextCursor"),
    maybe("limit", Limit, "rows of a page"),
];

/// All of it. Codes of reconciliation are upper-case words of their protocol, on the wire.
pub(super) const ENDPOINTS: &[Endpoint] = &[
    post("/oapi/form/answers", TAG, "Writes an answer")
        .takes(Body::Json("answerUuid?, formUuid, schId, values or isDeleted, expectedRevision?")),
    get("/oapi/form/answers", TAG, "Answers of a form and a school").asks(&[
        needed("formUuid", Text, ""),
        needed("schId", Text, ""),
        maybe("cursor", Number, "the last page's nextCursor"),
        maybe("size", Limit, ""),
    ]),
    post("/oapi/form-sync/reconcile", TAG, "Orders a hall to reconcile")
        .takes(Body::Json("the task, as the centre sends it"))
        .says(&[good(202, "accepted")]),
    get("/oapi/form-sync/tasks/{task}/manifest", TAG, "A page of the manifest")
        .asks(&[maybe("cursor", Text, "an answer's uuid"), maybe("size", Limit, "")])
        .refuses(&["TASK_NOT_FOUND", "MANIFEST_INCOMPLETE"]),
    post("/oapi/form-sync/tasks/{task}/digests", TAG, "Digests of ranges of the manifest")
        .takes(Body::Json("ranges")),
    post("/oapi/form-sync/tasks/{task}/rows", TAG, "The manifest's rows of ranges")
        .takes(Body::Json("ranges")),
    get("/oapi/form-sync/tasks/{task}/grant", TAG, "What the consumer may see now"),
    get("/oapi/form-sync/tasks/{task}/answers/{uuid}", TAG, "The authority's word on one answer")
        .asks(&[maybe("expectedRevision", Number, "")]),
    post("/oapi/form-sync/tasks/{task}/answers", TAG, "The authority's word on many answers")
        .takes(Body::Json("questions")),
    post("/oapi/form-sync/tasks/{task}/result", TAG, "Reports what came of it")
        .takes(Body::Json("the result")),
    post("/api/form/admin/sync/tasks", ADMIN, "Makes reconciliation tasks")
        .takes(Body::Fields(&[
            needed("scope", Word(&["FORM", "ANSWER"]), ""),
            needed("consumerAppKey", Text, ""),
            maybe("consumerSchoolId", Text, ""),
            maybe("formUuid", Text, ""),
            maybe("answerUuid", Text, ""),
        ]))
        .says(&[good(201, "the tasks")]),
    get("/api/form/admin/sync/tasks", ADMIN, "Reconciliation tasks").asks(LISTING),
    get("/api/form/admin/sync/tasks/{task}", ADMIN, "One of them"),
    get("/api/form/admin/sync/tasks/{task}/results", ADMIN, "Its results"),
    post("/api/form/admin/sync/tasks/{task}/cancel", ADMIN, "Cancels it")
        .takes(Body::Fields(&[needed("reason", Text, "")])),
    post("/api/form/admin/sync/answers/{uuid}/replay", ADMIN, "Delivers an answer once more")
        .takes(Body::Fields(&[needed("consumerAppKey", Text, "")])),
    get("/api/form/admin/sync/deliveries/failed", ADMIN, "Deliveries that failed").asks(LISTING),
];
