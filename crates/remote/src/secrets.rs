//! Where secrets are kept. Tables and configuration name the place; only this reads it.

use std::io::Read;

/// Bytes of a secret.
const MAX_SECRET_BYTES: u64 = 4096;

/// Reads secrets by reference.
pub trait Secrets: Send + Sync {
    /// The secret, or why there is none; the reason never holds it.
    fn read(&self, reference: &str) -> Result<String, String>;
}

/// `env:NAME` and `file:PATH`.
#[derive(Debug, Clone, Copy, Default)]
pub struct EnvironmentAndFiles;

impl Secrets for EnvironmentAndFiles {
    fn read(&self, reference: &str) -> Result<String, String> {
        match reference.split_once(':') {
            Some(("env", name)) => {
                std::env::var(name).map_err(|_| format!("{name} is not in the environment"))
            }
            Some(("file", path)) => {
                let wrong = |error: std::io::Error| format!("{path} cannot be read: {error}");
                let mut text = String::new();
                let file = std::fs::File::open(path).map_err(wrong)?;
                file.take(MAX_SECRET_BYTES).read_to_string(&mut text).map_err(wrong)?;
                Ok(text)
            }
            // The reference itself may be a secret that was written in the wrong place.
            _ => Err("its reference must be env:NAME or file:PATH".into()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_secret_comes_from_the_environment_or_a_file_and_is_never_told() {
        let read = |reference: &str| EnvironmentAndFiles.read(reference);
        assert!(read("env:PATH").is_ok_and(|text| !text.is_empty()));
        assert!(read("file:/etc/hostname").is_ok());
        assert!(read("env:NO_SUCH_NAME").is_err_and(|why| why.contains("NO_SUCH_NAME")));
        assert!(read("file:/no/such").is_err());
        assert!(read("whsec_c2VjcmV0").is_err_and(|why| !why.contains("c2VjcmV0")));
    }
}
