//! Service halls in other processes, over signed HTTP. Their addresses are registered here.

use std::collections::BTreeMap;

use counterfoil_reconcile::form_centre::dispatch::{Halls, Sent};
use counterfoil_reconcile::wire::Dispatch;
use serde_json::Value;

use crate::review_centre::cut;
use crate::signed::{SignedAnswer, SignedClient};

/// The halls by their consumers' app keys.
#[derive(Debug, Clone)]
pub struct HttpServiceHalls {
    clients: BTreeMap<String, SignedClient>,
    path: String,
}

impl HttpServiceHalls {
    /// Halls, and the path that orders go to.
    pub fn new(clients: BTreeMap<String, SignedClient>, path: &str) -> HttpServiceHalls {
        HttpServiceHalls { clients, path: path.to_owned() }
    }
}

#[async_trait::async_trait]
impl Halls for HttpServiceHalls {
    async fn dispatch(&self, order: &Dispatch) -> Sent {
        let Some(client) = self.clients.get(&order.consumer_app_key) else {
            let code = "TARGET_NOT_REGISTERED".to_owned();
            let message = "no address is registered for the consumer".to_owned();
            return Sent::Refused { code, message };
        };
        let body = match serde_json::to_vec(order) {
            Ok(body) => body,
            Err(error) => return Sent::Unknown { message: error.to_string() },
        };
        match client.post(&self.path, body, order.sent_at).await {
            SignedAnswer::Proved { status: 200..=299, .. } => Sent::Accepted,
            SignedAnswer::Proved { status, body } if (400..=499).contains(&status) => {
                let (code, message) = refusal(status, &body);
                Sent::Refused { code, message }
            }
            SignedAnswer::Proved { status, .. } => {
                Sent::Unknown { message: format!("it answered {status}") }
            }
            SignedAnswer::Unknown { message } => Sent::Unknown { message },
        }
    }
}

/// A peer's own code and detail (RFC 9457), or the status where it does not say.
pub(crate) fn refusal(status: u16, body: &[u8]) -> (String, String) {
    let body: Option<Value> = serde_json::from_slice(body).ok();
    let text = |name: &str| body.as_ref()?.get(name)?.as_str().map(str::to_owned);
    let code = text("code").unwrap_or_else(|| format!("HTTP_{status}"));
    let message = text("detail").unwrap_or_else(|| format!("it answered {status}"));
    (cut(&code, 64), cut(&message, 500))
}
