//! The OpenAPI document, made of the table.

use serde_json::{Map, Value, json};

use super::{Access, Body, Endpoint, Field, Holds, endpoints};

/// OpenAPI 3.1 of everything that programs call.
pub fn document() -> Value {
    let mut paths: Map<String, Value> = Map::new();
    for endpoint in endpoints() {
        let path = paths.entry(endpoint.path).or_insert_with(|| json!({}));
        path[endpoint.method] = operation(&endpoint);
    }
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Counterfoil",
            "version": env!("CARGO_PKG_VERSION"),
            "description": "A durable task engine, resident income payment, answer reconciliation. \
                Amounts are whole fen. Lists page by an opaque cursor. Errors are \
                application/problem+json with a stable code.",
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
        },
        "paths": paths,
        "components": { "schemas": schemas(), "securitySchemes": security_schemes() },
    })
}

fn operation(endpoint: &Endpoint) -> Value {
    let mut parameters = path_parameters(endpoint.path);
    parameters.extend(endpoint.query.iter().map(|field| parameter("query", field)));
    if endpoint.is_keyed {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header", "required": false,
            "schema": { "type": "string", "minLength": 1, "maxLength": 255 },
            "description": "The same key with the same body answers the same, for ever; with \
                another body it is refused.",
        }));
    }
    let mut operation = json!({
        "operationId": operation_id(endpoint),
        "tags": [endpoint.tag],
        "summary": endpoint.does,
        "parameters": parameters,
        "responses": responses(endpoint),
    });
    if let Some(body) = request_body(endpoint.body) {
        operation["requestBody"] = body;
    }
    let scheme = match endpoint.access {
        Access::Open => None,
        Access::Signed => Some("signature"),
        Access::Token => Some("xxlToken"),
        Access::Sealed => Some("sealed"),
    };
    operation["security"] = scheme.map_or_else(|| json!([]), |name| json!([{ name: [] }]));
    operation
}

/// `getApiPaymentOrdersOrderLines`: unique, because method and path are.
fn operation_id(endpoint: &Endpoint) -> String {
    let words = endpoint.path.split(|letter: char| !letter.is_ascii_alphanumeric());
    let capital = |word: &str| {
        let mut letters = word.chars();
        let first = letters.next().map(|letter| letter.to_ascii_uppercase());
        first.into_iter().chain(letters).collect::<String>()
    };
    words.map(capital).fold(endpoint.method.to_owned(), |id, word| id + &word)
}

fn path_parameters(path: &'static str) -> Vec<Value> {
    let parts = path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'));
    let holds = |name: &str| match name {
        "month" => Holds::Month,
        "session" | "detail" | "delivery" | "planId" | "partnerId" => Holds::Id,
        _ => Holds::Text,
    };
    parts
        .map(|name| {
            let field = Field { name, holds: holds(name), needed: true, means: "" };
            parameter("path", &field)
        })
        .collect()
}

fn parameter(place: &str, field: &Field) -> Value {
    let mut parameter = json!({
        "name": field.name, "in": place, "required": field.needed, "schema": schema(field.holds),
    });
    if !field.means.is_empty() {
        parameter["description"] = json!(field.means);
    }
    parameter
}

fn schema(holds: Holds) -> Value {
    match holds {
        Holds::Text => json!({ "type": "string" }),
        Holds::Id => json!({ "type": "integer", "format": "int64", "minimum": 1 }),
        Holds::Ids => json!({ "type": "array", "items": schema(Holds::Id) }),
        Holds::Number => json!({ "type": "integer", "format": "int64" }),
        Holds::Flag => json!({ "type": "boolean" }),
        Holds::Instant => json!({ "type": "string", "format": "date-time" }),
        Holds::Month => json!({ "type": "string", "pattern": "^[0-9]{4}(0[1-9]|1[0-2])$" }),
        Holds::Limit => json!({ "type": "integer", "minimum": 1, "maximum": 200 }),
        Holds::Cursor => json!({ "type": "string" }),
        Holds::Bills => json!({
            "type": "array",
            "items": {
                "type": "object",
                "required": ["stationId", "billYearmonth"],
                "properties": {
                    "stationId": schema(Holds::Text), "billYearmonth": schema(Holds::Month),
                },
            },
        }),
        Holds::Object => json!({ "type": "object" }),
        Holds::Objects => json!({ "type": "array", "items": { "type": "object" } }),
        Holds::Word(words) => json!({ "type": "string", "enum": words }),
    }
}

fn request_body(body: Body) -> Option<Value> {
    let (media, schema) = match body {
        Body::None => return None,
        Body::Fields(fields) => ("application/json", object(fields)),
        Body::Json(means) => {
            ("application/json", json!({ "type": "object", "description": means }))
        }
        Body::Other(media, means) => (media, json!({ "type": "string", "description": means })),
    };
    Some(json!({ "required": true, "content": { media: { "schema": schema } } }))
}

fn object(fields: &[Field]) -> Value {
    let mut properties = Map::new();
    for field in fields {
        let mut property = schema(field.holds);
        if !field.means.is_empty() {
            property["description"] = json!(field.means);
        }
        properties.insert(field.name.to_owned(), property);
    }
    let needed: Vec<&str> =
        fields.iter().filter(|field| field.needed).map(|field| field.name).collect();
    json!({
        "type": "object", "required": needed, "properties": properties,
        "additionalProperties": false,
    })
}

fn responses(endpoint: &Endpoint) -> Value {
    let mut responses = Map::new();
    for answer in endpoint.good {
        let media = if endpoint.tag == "operations" { "*/*" } else { "application/json" };
        let content = json!({ media: { "schema": {} } });
        let answer_body = json!({ "description": answer.says, "content": content });
        responses.insert(answer.status.to_string(), answer_body);
    }
    if endpoint.access == Access::Signed {
        let why = "not believed: no signature, a wrong one, or a used nonce; nothing else is said";
        responses.insert("401".into(), json!({ "description": why }));
    }
    let mut why = "a problem with a stable code".to_owned();
    if !endpoint.codes.is_empty() {
        why.push_str(&format!(", such as {}", endpoint.codes.join(", ")));
    }
    let problem = json!({ "$ref": "#/components/schemas/Problem" });
    let content = json!({ "application/problem+json": { "schema": problem } });
    responses.insert("default".into(), json!({ "description": why, "content": content }));
    Value::Object(responses)
}

fn schemas() -> Value {
    json!({
        "Problem": {
            "type": "object",
            "description": "RFC 9457. Each code has a page in docs/errors.",
            "required": ["type", "title", "status", "detail", "code"],
            "properties": {
                "type": { "type": "string", "description": "urn:counterfoil:problem:<code>" },
                "title": { "type": "string" },
                "status": { "type": "integer" },
                "detail": { "type": "string" },
                "code": { "type": "string" },
                "errors": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "required": ["field", "detail"],
                        "properties": {
                            "field": { "type": "string" }, "detail": { "type": "string" },
                        },
                    },
                },
            },
        },
    })
}

fn security_schemes() -> Value {
    let header = |name: &str, means: &str| {
        let (kind, place) = ("apiKey", "header");
        json!({ "type": kind, "in": place, "name": name, "description": means })
    };
    json!({
        "signature": header("Signature", "RFC 9421 with Signature-Input and Content-Digest \
            (RFC 9530); the answer is signed, too."),
        "xxlToken": header("XXL-JOB-ACCESS-TOKEN", "The token that admin and executor share."),
        "sealed": header("webhook-signature", "Standard Webhooks; the body is encrypted, then \
            signed."),
    })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_operation_has_a_name_of_its_own_and_names_every_part_of_its_path() {
        let mut ids = BTreeSet::new();
        for endpoint in endpoints() {
            let operation = operation(&endpoint);
            assert!(ids.insert(operation["operationId"].to_string()), "{}", endpoint.path);
            let parameters = operation["parameters"].as_array().unwrap();
            let named = parameters.iter().filter(|one| one["in"] == "path").count();
            assert_eq!(named, endpoint.path.matches('{').count(), "{}", endpoint.path);
            assert!(!endpoint.does.is_empty() && !endpoint.good.is_empty(), "{}", endpoint.path);
        }
    }

    #[test]
    fn the_codes_that_it_names_have_pages() {
        for endpoint in endpoints() {
            for code in endpoint.codes.iter().filter(|code| !code.contains('_')) {
                let page = format!("{}/../../docs/errors/{code}.md", env!("CARGO_MANIFEST_DIR"));
                assert!(std::path::Path::new(&page).exists(), "{}: {code}", endpoint.path);
            }
        }
    }
}
