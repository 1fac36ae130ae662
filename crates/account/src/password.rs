//! Passwords: argon2id, computed apart from the runtime's threads and few at a time.

use std::sync::OnceLock;

use argon2::password_hash::{PasswordHasher, PasswordVerifier, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rand::RngCore;
use tokio::sync::Semaphore;

use crate::AccountError;

/// Characters of a password at least.
pub const MIN_PASSWORD: usize = 12;
/// Bytes of a password at most: whoever sends more is not typing.
const MAX_PASSWORD_BYTES: usize = 512;
/// Hashes computed at once by this process: each takes 19 MiB and a core for a while.
const MAX_AT_ONCE: usize = 2;

static TURNS: Semaphore = Semaphore::const_new(MAX_AT_ONCE);

/// What a hash costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Cost {
    /// 19 MiB and two passes, as OWASP advises.
    Full,
    /// As little as there is, for tests that need many accounts.
    Least,
}

impl Cost {
    fn hasher(self) -> Argon2<'static> {
        let params = match self {
            Cost::Full => Params::new(19 * 1024, 2, 1, None),
            Cost::Least => Params::new(8, 1, 1, None),
        };
        Argon2::new(Algorithm::Argon2id, Version::V0x13, params.unwrap_or_default())
    }
}

/// Bytes nobody can guess, as text for URLs.
pub(crate) fn random_text(bytes: usize) -> String {
    let mut random = vec![0_u8; bytes];
    rand::rng().fill_bytes(&mut random);
    URL_SAFE_NO_PAD.encode(random)
}

/// A password for somebody who will be told it once: 120 bits.
pub fn random_password() -> String {
    random_text(15)
}

/// Refuses what is too short, too long, or the login itself.
pub(crate) fn check(login: &str, password: &str) -> Result<(), AccountError> {
    let refuse = |why: &str| Err(AccountError::invalid("password", why));
    if password.len() > MAX_PASSWORD_BYTES {
        return refuse("must not be longer than 512 bytes");
    }
    if password.chars().count() < MIN_PASSWORD {
        return refuse("must have at least 12 characters");
    }
    if password.to_lowercase().contains(&login.to_lowercase()) {
        return refuse("must not contain the login");
    }
    Ok(())
}

fn hash_now(password: &str, cost: Cost) -> Result<String, AccountError> {
    let mut salt = [0_u8; 16];
    rand::rng().fill_bytes(&mut salt);
    let hash = cost.hasher().hash_password_with_salt(password.as_bytes(), &salt);
    let hash = hash.map_err(|error| AccountError::Hash(error.to_string()))?;
    Ok(hash.to_string())
}

fn is_right(password: &str, stored: &str) -> bool {
    // The stored text names its own cost.
    let Ok(stored) = PasswordHash::new(stored) else {
        return false;
    };
    Cost::Full.hasher().verify_password(password.as_bytes(), &stored).is_ok()
}

/// A hash that no password has, so that an unknown login takes as long as a known one.
fn nobodys() -> &'static str {
    static NOBODYS: OnceLock<String> = OnceLock::new();
    NOBODYS.get_or_init(|| hash_now(&random_text(32), Cost::Full).unwrap_or_default())
}

async fn apart<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, AccountError> {
    let stopped = |error: &dyn std::fmt::Display| AccountError::Hash(error.to_string());
    let _turn = TURNS.acquire().await.map_err(|error| stopped(&error))?;
    tokio::task::spawn_blocking(work).await.map_err(|error| stopped(&error))
}

/// The hash of a new password.
pub(crate) async fn hash(password: &str, cost: Cost) -> Result<String, AccountError> {
    let password = password.to_owned();
    apart(move || hash_now(&password, cost)).await?
}

/// Whether a password is the one of this hash; nobody's hash when there is none.
pub(crate) async fn matches(password: &str, stored: Option<String>) -> Result<bool, AccountError> {
    if password.len() > MAX_PASSWORD_BYTES {
        return Ok(false);
    }
    let password = password.to_owned();
    apart(move || {
        // The same work for nobody's hash: time does not tell which logins exist.
        let is_somebody = stored.is_some();
        is_right(&password, stored.as_deref().unwrap_or(nobodys())) & is_somebody
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_that_is_short_long_or_the_login_is_refused() {
        for bad in ["", "elevenchars", "ops-ops-ops-ops", &"x".repeat(513)] {
            assert!(check("ops", bad).is_err(), "{bad}");
        }
        assert!(check("ops", "电站账单付款前要看一遍才行").is_ok());
        assert!(check("ops", &random_password()).is_ok());
    }

    #[tokio::test]
    async fn a_hash_is_argon2id_with_a_salt_of_its_own_and_only_its_password_matches() {
        let first = hash("correct horse battery", Cost::Least).await.unwrap();
        let second = hash("correct horse battery", Cost::Least).await.unwrap();
        assert!(first.starts_with("$argon2id$v=19$"), "{first}");
        assert_ne!(first, second);
        assert!(matches("correct horse battery", Some(first.clone())).await.unwrap());
        assert!(!matches("correct horse batterz", Some(first)).await.unwrap());
        assert!(!matches("correct horse battery", Some("no hash".into())).await.unwrap());
        assert!(!matches("correct horse battery", None).await.unwrap());
    }

    #[test]
    fn the_cost_that_ships_is_what_owasp_advises() {
        let hash = hash_now("correct horse battery", Cost::Full).unwrap();
        assert!(hash.contains("m=19456,t=2,p=1"), "{hash}");
    }
}
