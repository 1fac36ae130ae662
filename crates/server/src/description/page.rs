//! The page to browse: the same table as HTML, without any script.

use super::{Access, Body, Endpoint, Field, Holds, endpoints};

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;\
padding:0 1rem;color:#1d2733;background:#fff}h2{margin-top:2.5rem;border-bottom:1px solid #cbd3dc}\
details{border-bottom:1px solid #e3e8ee;padding:.4rem 0}summary{cursor:pointer}\
code{font:.9em ui-monospace,monospace}.method{display:inline-block;width:3.5rem;font-weight:600;\
text-transform:uppercase;font-size:.8em}.who{color:#5b6875;font-size:.85em}\
table{border-collapse:collapse;margin:.5rem 0;font-size:.9em}\
td,th{text-align:left;padding:.15rem .8rem .15rem 0;vertical-align:top}\
@media(prefers-color-scheme:dark){body{background:#14191f;color:#dbe2ea}\
h2,details{border-color:#36404b}.who{color:#93a0ad}a{color:#8ab4f8}}";

/// Everything, by room.
pub(super) fn page() -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><head><meta charset=\"utf-8\">\
         <meta name=\"viewport\" content=\"width=device-width\">\
         <title>Counterfoil: the interface for programs</title><style>{STYLE}</style></head>\
         <body><h1>The interface for programs</h1>\
         <p>The same as <a href=\"/openapi.json\">OpenAPI 3.1</a>. Version {}.</p>",
        env!("CARGO_PKG_VERSION")
    );
    let mut room = "";
    for endpoint in endpoints() {
        if endpoint.tag != room {
            room = endpoint.tag;
            page.push_str(&format!("<h2>{}</h2>", escaped(room)));
        }
        page.push_str(&shown(&endpoint));
    }
    page.push_str("</body></html>");
    page
}

fn shown(endpoint: &Endpoint) -> String {
    let who = match endpoint.access {
        Access::Open => "open",
        Access::Signed => "signed",
        Access::Token => "token",
        Access::Sealed => "sealed",
    };
    let mut text = format!(
        "<details><summary><span class=\"method\">{}</span> <code>{}</code> {} \
         <span class=\"who\">{who}</span></summary>",
        endpoint.method,
        escaped(endpoint.path),
        escaped(endpoint.does)
    );
    text.push_str(&fields("Query", endpoint.query));
    match endpoint.body {
        Body::None => {}
        Body::Fields(list) => text.push_str(&fields("Body, JSON", list)),
        Body::Json(means) => {
            text.push_str(&format!("<p>Body, JSON: {}</p>", escaped(means)));
        }
        Body::Other(media, means) => {
            text.push_str(&format!("<p>Body, {}: {}</p>", escaped(media), escaped(means)));
        }
    }
    if endpoint.is_keyed {
        text.push_str("<p>Reads an <code>Idempotency-Key</code>.</p>");
    }
    for answer in endpoint.good {
        text.push_str(&format!("<p>{}: {}</p>", answer.status, escaped(answer.says)));
    }
    if !endpoint.codes.is_empty() {
        text.push_str(&format!("<p>Refuses with {}</p>", escaped(&endpoint.codes.join(", "))));
    }
    text.push_str("</details>");
    text
}

fn fields(title: &str, fields: &[Field]) -> String {
    if fields.is_empty() {
        return String::new();
    }
    let mut text = format!("<table><tr><th>{title}</th><th></th><th></th></tr>");
    for field in fields {
        let must = if field.needed { "" } else { "optional" };
        text.push_str(&format!(
            "<tr><td><code>{}</code></td><td>{} {must}</td><td>{}</td></tr>",
            escaped(field.name),
            escaped(&kind(field.holds)),
            escaped(field.means)
        ));
    }
    text.push_str("</table>");
    text
}

fn kind(holds: Holds) -> String {
    match holds {
        Holds::Text => "text".into(),
        Holds::Id => "id".into(),
        Holds::Ids => "list of ids".into(),
        Holds::Number => "whole number".into(),
        Holds::Flag => "true or false".into(),
        Holds::Instant => "instant".into(),
        Holds::Month => "YYYYMM".into(),
        Holds::Limit => "rows, at most 200".into(),
        Holds::Cursor => "cursor".into(),
        Holds::Bills => "[{stationId, billYearmonth}]".into(),
        Holds::Object => "object".into(),
        Holds::Objects => "list of objects".into(),
        Holds::Word(words) => words.join(" | "),
    }
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}
