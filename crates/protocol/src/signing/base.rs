//! The signature base (RFC 9421, section 2.5), and what a message says about its signature.

use super::field::{Bare, Item, Member, Parameters, dictionary, show, show_item, show_list};
use super::{Header, RequestParts, ResponseParts, SignatureError};

/// What is signed: a request, or a response to one.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) request: RequestParts<'a>,
    pub(super) response: Option<ResponseParts<'a>>,
}

/// The one signature of a message.
#[derive(Debug)]
pub(super) struct Claim {
    pub(super) components: Vec<Item>,
    pub(super) parameters: Parameters,
    pub(super) signature: Vec<u8>,
}

impl Claim {
    /// Reads the one signature. Two would leave open which of them was meant.
    pub(super) fn read(headers: &[Header]) -> Result<Claim, SignatureError> {
        let inputs = joined(headers, "signature-input").ok_or(SignatureError::Missing)?;
        let signatures = joined(headers, "signature").ok_or(SignatureError::Missing)?;
        let (mut inputs, mut signatures) = (dictionary(&inputs)?, dictionary(&signatures)?);
        let (Some(input), Some(signature)) = (inputs.pop(), signatures.pop()) else {
            return Err(SignatureError::Missing);
        };
        if !inputs.is_empty() || !signatures.is_empty() || input.0 != signature.0 {
            return Err(SignatureError::Missing);
        }
        let (
            Member::List(components, parameters),
            Member::Item(Item { value: Bare::Bytes(signature), .. }),
        ) = (input.1, signature.1)
        else {
            return Err(SignatureError::Malformed("it is no list, or no bytes"));
        };
        for (at, component) in components.iter().enumerate() {
            if components[..at].contains(component) {
                return Err(SignatureError::Malformed("a component is covered twice"));
            }
        }
        Ok(Claim { components, parameters, signature })
    }

    /// Whether a component is covered, without parameters or with `;req`.
    pub(super) fn covers(&self, name: &str, of_request: bool) -> bool {
        self.components.iter().any(|component| {
            let is_req = component.parameters.iter().any(|(key, _)| key == "req");
            matches!(&component.value, Bare::Text(text) if text == name) && is_req == of_request
        })
    }

    pub(super) fn require(&self, name: &str, of_request: bool) -> Result<(), SignatureError> {
        if self.covers(name, of_request) {
            return Ok(());
        }
        let of = if of_request { ";req" } else { "" };
        Err(SignatureError::Coverage(format!("\"{name}\"{of}")))
    }

    pub(super) fn text(&self, name: &'static str) -> Result<&str, SignatureError> {
        match self.parameter(name) {
            Some(Bare::Text(text)) if !text.is_empty() => Ok(text),
            _ => Err(SignatureError::Parameter(name)),
        }
    }

    pub(super) fn seconds(&self, name: &'static str) -> Result<i64, SignatureError> {
        match self.parameter(name) {
            Some(Bare::Integer(number)) => Ok(*number),
            _ => Err(SignatureError::Parameter(name)),
        }
    }

    fn parameter(&self, name: &str) -> Option<&Bare> {
        self.parameters.iter().find(|(key, _)| key == name).map(|(_, value)| value)
    }
}

/// A component without parameters.
pub(super) fn component(name: &str) -> Item {
    Item { value: Bare::Text(name.to_owned()), parameters: Vec::new() }
}

/// A component of the response's request.
pub(super) fn of_request(name: &str) -> Item {
    let parameters = vec![("req".to_owned(), Bare::Boolean(true))];
    Item { value: Bare::Text(name.to_owned()), parameters }
}

/// The text that is signed.
pub(super) fn signature_base(
    message: Message<'_>,
    components: &[Item],
    parameters: &Parameters,
) -> Result<String, SignatureError> {
    let mut base = String::new();
    for component in components {
        let value = value_of(message, component)?;
        if value.contains(['\n', '\r']) {
            return Err(SignatureError::Malformed("a component holds a line break"));
        }
        base.push_str(&format!("{}: {value}\n", show_item(component)));
    }
    base.push_str(&format!("\"@signature-params\": {}", show_list(components, parameters)));
    Ok(base)
}

fn value_of(message: Message<'_>, component: &Item) -> Result<String, SignatureError> {
    let Bare::Text(name) = &component.value else {
        return Err(SignatureError::Malformed("a component is no text"));
    };
    let (mut of_request, mut member) = (message.response.is_none(), None);
    for (parameter, value) in &component.parameters {
        match (parameter.as_str(), value) {
            ("req", Bare::Boolean(true)) if message.response.is_some() => of_request = true,
            ("key", Bare::Text(key)) => member = Some(key),
            _ => return Err(SignatureError::Malformed("a component's parameter is unknown")),
        }
    }
    let missing = || SignatureError::Coverage(show_item(component));
    if name.starts_with('@') {
        let value = match message.response.filter(|_| !of_request) {
            Some(response) => (name == "@status").then(|| response.status.to_string()),
            None => derived(&message.request, name),
        };
        return value.filter(|_| member.is_none()).ok_or_else(missing);
    }
    let headers = match message.response.filter(|_| !of_request) {
        Some(response) => response.headers,
        None => message.request.headers,
    };
    let value = joined(headers, name).ok_or_else(missing)?;
    let Some(member) = member else {
        return Ok(value);
    };
    let members = dictionary(&value)?;
    let found = members.into_iter().find(|(key, _)| key == member).ok_or_else(missing)?;
    Ok(match found.1 {
        Member::Item(item) if item.parameters.is_empty() => show(&item.value),
        Member::Item(item) => show_item(&item),
        Member::List(items, parameters) => show_list(&items, &parameters),
    })
}

fn derived(request: &RequestParts<'_>, name: &str) -> Option<String> {
    let (scheme, rest) = request.target_uri.split_once("://")?;
    let end = rest.find(['/', '?', '#']).unwrap_or(rest.len());
    let (authority, target) = rest.split_at(end);
    let (path, query) = match target.split_once('?') {
        Some((path, query)) => (path, format!("?{query}")),
        None => (target, "?".to_owned()),
    };
    let path = if path.is_empty() { "/" } else { path };
    Some(match name {
        "@method" => request.method.to_owned(),
        "@target-uri" => request.target_uri.to_owned(),
        "@authority" => authority.to_ascii_lowercase(),
        "@scheme" => scheme.to_ascii_lowercase(),
        "@path" => path.to_owned(),
        "@query" => query,
        _ => return None,
    })
}

/// All values of a field in their order, trimmed.
fn joined(headers: &[Header], name: &str) -> Option<String> {
    let values = headers.iter().filter(|(known, _)| known == name);
    let values: Vec<&str> = values.map(|(_, value)| value.trim_matches([' ', '\t'])).collect();
    (!values.is_empty()).then(|| values.join(", "))
}

#[cfg(test)]
mod tests {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;

    use super::super::{SigningKey, VerifyingKey};
    use super::*;

    const DIGEST: &str = "sha-512=:WZDPaVn/7XgHaAy8pmojAkGWoRx2UFChF41A2svX+TaPm+AbwAgBWnrIiYllu7\
                          BNNyealdVLvRwEmTHWXvJwew==:";

    fn headers(more: &[(&str, &str)]) -> Vec<Header> {
        let common = [
            ("host", "example.com"),
            ("date", "Tue, 20 Apr 2021 02:07:55 GMT"),
            ("content-type", "application/json"),
            ("content-digest", DIGEST),
            ("content-length", "18"),
        ];
        let all = common.iter().chain(more);
        all.map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    fn test_request(headers: &[Header]) -> RequestParts<'_> {
        RequestParts {
            method: "POST",
            target_uri: "https://example.com/foo?param=Value&Pet=dog",
            headers,
            body: b"{\"hello\": \"world\"}",
        }
    }

    /// The key's 32 bytes end both forms (PKCS #8 and SPKI) in which the standard prints it.
    fn last_32(text: &str) -> String {
        let bytes = STANDARD.decode(text).unwrap();
        STANDARD.encode(&bytes[bytes.len() - 32..])
    }

    fn proved(input: &str, signature: &str, key: &VerifyingKey) -> (bool, Claim) {
        let headers = headers(&[("signature-input", input), ("signature", signature)]);
        let claim = Claim::read(&headers).unwrap();
        let message = Message { request: test_request(&headers), response: None };
        let base = signature_base(message, &claim.components, &claim.parameters).unwrap();
        (key.proves(base.as_bytes(), &claim.signature), claim)
    }

    /// RFC 9421, appendices B.1.4 and B.2.6.
    #[test]
    fn the_published_ed25519_signature_is_proved_and_made_again() {
        let public = last_32("MCowBQYDK2VwAyEAJrQLj5P/89iXES9+vFgrIy29clF9CC/oPPsw3c5D0bs=");
        let private = last_32("MC4CAQAwBQYDK2VwBCIEIJ+DYvh6SEqVTm50DFtMDoQikTmiCqirVv9mWG9qfSnF");
        let private = SigningKey::read("ed25519", &private).unwrap();
        assert_eq!(private.public(), Some(public.clone()));
        let input = "sig-b26=(\"date\" \"@method\" \"@path\" \"@authority\" \"content-type\" \
                     \"content-length\");created=1618884473;keyid=\"test-key-ed25519\"";
        let signature = "sig-b26=:wqcAqbmYJ2ji2glfAMaRy4gruYYnx2nEFN2HN6jrnDnQCK1u02Gb04v9EDgwUPiu\
                         4A0w6vuQv5lIp5WPpBKRCw==:";
        let key = VerifyingKey::read("ed25519", &public).unwrap();
        let (is_right, claim) = proved(input, signature, &key);
        assert!(is_right);
        let headers = headers(&[]);
        let message = Message { request: test_request(&headers), response: None };
        let base = signature_base(message, &claim.components, &claim.parameters).unwrap();
        assert_eq!(private.sign(base.as_bytes()), claim.signature);
        assert!(!proved(&input.replace("473", "474"), signature, &key).0);
    }

    /// RFC 9421, appendices B.1.5 and B.2.5.
    #[test]
    fn the_published_hmac_signature_is_proved() {
        let secret = "uzvJfB4u3N0Jy4T7NZ75MDVcr8zSTInedJtkgcu46YW4XByzNJjxBdtjUkdJPBtbmHhIDi6pcl8j\
                      sasjlTMtDQ==";
        let key = VerifyingKey::read("hmac-sha256", secret).unwrap();
        let input = "sig-b25=(\"date\" \"@authority\" \"content-type\");created=1618884473;\
                     keyid=\"test-shared-secret\"";
        let signature = "sig-b25=:pxcQw6G3AjtMBQjwo8XzkZf/bws5LelbaMk5rGIGtE8=:";
        assert!(proved(input, signature, &key).0);
        assert!(!proved(&input.replace("date", "host"), signature, &key).0);
    }

    /// RFC 9421, section 2.2.
    #[test]
    fn derived_components_are_the_standards() {
        let headers = headers(&[]);
        let request = test_request(&headers);
        let value = |name: &str| derived(&request, name);
        assert_eq!(value("@path").as_deref(), Some("/foo"));
        assert_eq!(value("@query").as_deref(), Some("?param=Value&Pet=dog"));
        assert_eq!(value("@authority").as_deref(), Some("example.com"));
        assert_eq!(value("@scheme").as_deref(), Some("https"));
        assert_eq!(value("@status"), None);
        let bare = RequestParts { target_uri: "http://Example.com", ..request };
        assert_eq!(derived(&bare, "@path").as_deref(), Some("/"));
        assert_eq!(derived(&bare, "@query").as_deref(), Some("?"));
    }

    #[test]
    fn two_signatures_or_a_component_covered_twice_are_refused() {
        let read = |input: &str, signature: &str| {
            let pairs = [("signature-input", input), ("signature", signature)];
            Claim::read(&headers(&pairs)).map(|_| ())
        };
        assert_eq!(read("a=(\"date\")", "a=:AQI=:"), Ok(()));
        assert_eq!(read("a=(\"date\"), b=()", "a=:AQI=:"), Err(SignatureError::Missing));
        assert_eq!(read("a=(\"date\")", "b=:AQI=:"), Err(SignatureError::Missing));
        assert!(read("a=(\"date\" \"date\")", "a=:AQI=:").is_err());
        assert!(read("a=1", "a=:AQI=:").is_err());
        assert_eq!(Claim::read(&headers(&[])).map(|_| ()), Err(SignatureError::Missing));
    }
}
