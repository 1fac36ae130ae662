//! The operator console as configured.

use anyhow::Result;
use serde::{Deserialize, Serialize};

/// The console for people, served with the role `api`.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct ConsoleConfig {
    /// Whether it is served.
    pub enabled: bool,
    /// Where browsers find it; `https://…` makes its cookies go over TLS only.
    pub public_url: String,
    /// Whether a proxy of our own stands before it: its `X-Forwarded-For` says who called.
    pub behind_proxy: bool,
}

impl Default for ConsoleConfig {
    fn default() -> ConsoleConfig {
        ConsoleConfig { enabled: true, public_url: String::new(), behind_proxy: false }
    }
}

impl ConsoleConfig {
    /// Whether browsers come over TLS.
    pub fn is_secure(&self) -> bool {
        self.public_url.starts_with("https://")
    }

    /// Refuses what cannot be meant.
    ///
    /// # Errors
    /// An address that is none.
    pub fn check(&self) -> Result<()> {
        let url = self.public_url.as_str();
        let fits = url.is_empty() || url.starts_with("http://") || url.starts_with("https://");
        anyhow::ensure!(fits, "console.public-url must begin with http:// or https://");
        Ok(())
    }
}
