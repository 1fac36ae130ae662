//! Who this process is to other programs, and which of them it trusts.

use std::collections::BTreeMap;

use anyhow::{Context, Result};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD as BASE64;
use chrono::TimeDelta;
use counterfoil_protocol::signing::{Keyring, MAX_APP_KEY, SigningKey, Terms, VerifyingKey};
use serde::{Deserialize, Serialize};

/// The longest that a signature may be valid, and the widest allowed skew.
const MAX_LIFETIME_SECONDS: u32 = 300;
const MAX_SKEW_SECONDS: u32 = 3600;

/// `[signing]`: how this process signs.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct SigningConfig {
    /// Our own app key: the `keyid` of what we sign.
    pub app_key: String,
    /// Our ed25519 private key: its 32 bytes in base64. Empty = only pairs with a secret.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub private_key: String,
    /// How long our signatures are valid, and others' at most.
    pub lifetime_seconds: u32,
    /// How far two clocks may be apart.
    pub skew_seconds: u32,
    /// The address that callers sign for, such as `https://centre.example/base`. Empty = the Host
    /// header over plain HTTP, as it is on a loopback or a private network.
    pub public_url: String,
}

impl Default for SigningConfig {
    fn default() -> SigningConfig {
        SigningConfig {
            app_key: String::new(),
            private_key: String::new(),
            lifetime_seconds: 300,
            skew_seconds: 300,
            public_url: String::new(),
        }
    }
}

/// `[apps.<appKey>]`: a program that is trusted.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case", default)]
pub struct AppConfig {
    /// Its keys, newest first; two may be valid at a time, so that keys rotate without a gap.
    pub keys: Vec<AppKeyConfig>,
}

/// One key of a program. The record binds the algorithm.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields, rename_all = "kebab-case")]
pub struct AppKeyConfig {
    /// `ed25519`, or `hmac-sha256` with a secret of this very pair.
    #[serde(default = "default_algorithm")]
    pub alg: String,
    /// Base64 of the public key, or of the secret.
    pub key: String,
}

fn default_algorithm() -> String {
    "ed25519".into()
}

/// Our app key where none is configured.
pub(crate) const OWN_APP: &str = "counterfoil";

/// Keys of one app at a time.
const MAX_KEYS: usize = 2;

impl SigningConfig {
    /// How long signatures last.
    pub fn terms(&self) -> Terms {
        Terms {
            lifetime: TimeDelta::seconds(self.lifetime_seconds.into()),
            skew: TimeDelta::seconds(self.skew_seconds.into()),
        }
    }

    /// What is wrong with the limits.
    ///
    /// # Errors
    /// A limit out of its range.
    pub fn check(&self) -> Result<()> {
        anyhow::ensure!(
            (1..=MAX_LIFETIME_SECONDS).contains(&self.lifetime_seconds),
            "signing.lifetime-seconds must be from 1 to {MAX_LIFETIME_SECONDS}"
        );
        anyhow::ensure!(
            self.skew_seconds <= MAX_SKEW_SECONDS,
            "signing.skew-seconds must be {MAX_SKEW_SECONDS} or less"
        );
        Ok(())
    }

    /// A process whose review centre and payment are both its own signs what they say to each
    /// other with a key of its own, which nobody else knows and which ends with it.
    pub fn complete(&mut self, apps: &mut BTreeMap<String, AppConfig>) {
        if self.app_key.is_empty() {
            OWN_APP.clone_into(&mut self.app_key);
        }
        if self.private_key.is_empty() {
            self.private_key = BASE64.encode(rand::random::<[u8; 32]>());
        }
        let own = SigningKey::read("ed25519", &self.private_key).ok();
        let Some(public) = own.and_then(|key| key.public()) else {
            return; // the keyring names what is wrong with the key
        };
        let keys = &mut apps.entry(self.app_key.clone()).or_default().keys;
        if keys.is_empty() {
            keys.push(AppKeyConfig { alg: default_algorithm(), key: public });
        }
    }

    /// Our key and those of the apps.
    ///
    /// # Errors
    /// A key that is none, more than two keys of an app, or one secret for two apps.
    pub fn keyring(&self, apps: &BTreeMap<String, AppConfig>) -> Result<Keyring> {
        let own = match self.private_key.as_str() {
            "" => None,
            text => Some(SigningKey::read("ed25519", text).context("signing.private-key")?),
        };
        let mut ring = Keyring::new(&self.app_key, own);
        for (app, config) in apps {
            let place = || format!("apps.{app}");
            let is_key = |letter: char| ('!'..='~').contains(&letter);
            let is_app = !app.is_empty() && app.len() <= MAX_APP_KEY && app.chars().all(is_key);
            anyhow::ensure!(is_app, "{}: this is no app key", place());
            anyhow::ensure!(
                config.keys.len() <= MAX_KEYS,
                "{}: at most {MAX_KEYS} keys are valid at a time",
                place()
            );
            for AppKeyConfig { alg, key } in &config.keys {
                let key = VerifyingKey::read(alg, key).with_context(place)?;
                ring.trust(app, key).with_context(place)?;
            }
        }
        Ok(ring)
    }
}
