//! `[xxl-job]`: being an executor of an XXL-Job admin.

use std::path::PathBuf;
use std::sync::Arc;

use anyhow::{Context, Result};
use counterfoil_remote::{EnvironmentAndFiles, Secrets, XxlAdmins};
use serde::{Deserialize, Serialize};

/// The token that every admin is shipped with: whoever knows XXL-Job knows it.
const WELL_KNOWN_TOKEN: &str = "default_token";
/// Admins at most.
const MAX_ADMINS: usize = 16;
/// Days that logs are kept at most.
const MAX_LOG_DAYS: u32 = 3650;

/// How this process is an executor. Without admin addresses it is none.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct XxlConfig {
    /// The admins of one house, tried in turn, each with its path.
    pub admin_addresses: Vec<String>,
    /// The executor's name, as the admin's executor group has it.
    pub app_name: String,
    /// Where the shared token is: `env:NAME` or `file:PATH`.
    pub access_token: String,
    /// The address that admins call, such as `http://10.0.0.7:8080/xxl/`; empty = where we listen.
    pub address: String,
    /// Where logs, and results that no admin has taken yet, are kept: one folder a process.
    pub data_dir: PathBuf,
    /// Days that logs are kept.
    pub log_retention_days: u32,
}

impl Default for XxlConfig {
    fn default() -> XxlConfig {
        XxlConfig {
            admin_addresses: Vec::new(),
            app_name: "counterfoil".into(),
            access_token: String::new(),
            address: String::new(),
            data_dir: "xxl-job".into(),
            log_retention_days: 30,
        }
    }
}

impl XxlConfig {
    /// Whether this process is an executor.
    pub fn is_configured(&self) -> bool {
        !self.admin_addresses.is_empty()
    }

    /// What is wrong with it.
    ///
    /// # Errors
    /// A limit out of its range, or a name or an address that is none.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(
            self.admin_addresses.len() <= MAX_ADMINS,
            "xxl-job.admin-addresses: at most {MAX_ADMINS}"
        );
        anyhow::ensure!(
            (1..=MAX_LOG_DAYS).contains(&self.log_retention_days),
            "xxl-job.log-retention-days must be from 1 to {MAX_LOG_DAYS}"
        );
        anyhow::ensure!(!self.app_name.trim().is_empty(), "xxl-job.app-name must not be empty");
        let is_address =
            self.address.starts_with("http://") || self.address.starts_with("https://");
        anyhow::ensure!(
            self.address.is_empty() || is_address,
            "xxl-job.address must be an http:// or https:// URL"
        );
        Ok(())
    }

    /// The token, read from where it is kept.
    ///
    /// # Errors
    /// There is none, or it is the one that everybody knows.
    pub fn token(&self) -> Result<String> {
        let reference = self.access_token.as_str();
        anyhow::ensure!(
            !reference.is_empty(),
            "xxl-job.access-token must be env:NAME or file:PATH: without a token anybody may \
             trigger rounds"
        );
        let token = EnvironmentAndFiles.read(reference).map_err(anyhow::Error::msg);
        let token = token.context("xxl-job.access-token")?.trim().to_owned();
        anyhow::ensure!(!token.is_empty(), "xxl-job.access-token: the token is empty");
        anyhow::ensure!(
            token != WELL_KNOWN_TOKEN,
            "xxl-job.access-token is the one that every admin is shipped with: give the admin \
             one of your own"
        );
        let is_header = token.chars().all(|letter| ('!'..='~').contains(&letter));
        anyhow::ensure!(is_header, "xxl-job.access-token: the token must be printable ASCII");
        Ok(token)
    }

    /// The address to register for a process that listens on `listens_on`. Always spelled alike:
    /// an admin tells executors apart by the text.
    ///
    /// # Errors
    /// Listening everywhere is no address.
    pub fn registered_address(&self, listens_on: std::net::SocketAddr) -> Result<String> {
        if !self.address.is_empty() {
            return Ok(format!("{}/", self.address.trim_end_matches('/')));
        }
        anyhow::ensure!(
            !listens_on.ip().is_unspecified(),
            "xxl-job.address must be set: {listens_on} is no address that an admin can call"
        );
        Ok(format!("http://{listens_on}/xxl/"))
    }

    /// The admins.
    ///
    /// # Errors
    /// An address that is none.
    pub fn admins(&self, token: &str) -> Result<Arc<XxlAdmins>> {
        let admins = XxlAdmins::new(&self.admin_addresses, token, &self.app_name);
        Ok(Arc::new(admins.context("xxl-job.admin-addresses")?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_executor_does_not_start_without_a_token_or_with_the_well_known_one() {
        let folder = tempfile::tempdir().unwrap();
        let kept = |text: &str| {
            let path = folder.path().join("token");
            std::fs::write(&path, text).unwrap();
            let access_token = format!("file:{}", path.display());
            XxlConfig { access_token, ..XxlConfig::default() }.token()
        };
        assert_eq!(kept("of our own\u{a}".replace(' ', "-").as_str()).unwrap(), "of-our-own");
        for refused in ["", "  ", "default_token", "default_token\n", "zwei Worte", "令牌"] {
            assert!(kept(refused).is_err(), "{refused:?}");
        }
        assert!(XxlConfig::default().token().is_err());
        // A token written where its place belongs is not repeated.
        let written = XxlConfig { access_token: "s3cret".into(), ..XxlConfig::default() };
        let refused = format!("{:#}", written.token().unwrap_err());
        assert!(!refused.contains("s3cret"), "{refused}");
    }

    #[test]
    fn the_registered_address_is_always_spelled_alike() {
        let at = |address: &str, listens_on: &str| {
            let config = XxlConfig { address: address.into(), ..XxlConfig::default() };
            config.registered_address(listens_on.parse().unwrap()).ok()
        };
        let expected = Some("http://10.0.0.7:8080/xxl/".to_owned());
        assert_eq!(at("http://10.0.0.7:8080/xxl", "0.0.0.0:1"), expected);
        assert_eq!(at("http://10.0.0.7:8080/xxl/", "0.0.0.0:1"), expected);
        assert_eq!(at("", "10.0.0.7:8080"), expected);
        assert_eq!(at("", "0.0.0.0:8080"), None);
        assert_eq!(at("", "[::]:8080"), None);
    }
}
