//! Why an adapter could not be made.

use thiserror::Error;

/// A wrong address, or a client that cannot be built.
#[derive(Debug, Error)]
pub enum RemoteError {
    /// The base address is no http or https URL.
    #[error("{what}: the address must be an http:// or https:// URL: {why}")]
    Address {
        /// Whose address.
        what: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// The HTTP client could not be built: as a rule no certificates are installed.
    #[error("{what}: no HTTP client can be built")]
    Client {
        /// Whose client.
        what: &'static str,
        /// Why.
        #[source]
        source: reqwest::Error,
    },
}

impl RemoteError {
    /// The stable code; its page is `docs/errors/<code>.md`.
    pub fn code(&self) -> &'static str {
        match self {
            RemoteError::Address { .. } => "remote-address-invalid",
            RemoteError::Client { .. } => "remote-client-unavailable",
        }
    }
}
