//! Adapters to other processes: the only crate that speaks HTTP as a client.
//!
//! The program installs rustls' ring provider first thing
//! (`rustls::crypto::ring::default_provider().install_default()`); no client can be made without.

mod error;
mod partner_inbox;
mod review_centre;
mod secrets;
mod signed;

pub use error::RemoteError;
pub use partner_inbox::{HttpPartnerInbox, MAX_PARTNER_TIME};
pub use review_centre::{
    HttpReviewCentre, MAX_ANSWER_BYTES, MAX_CONNECT_TIME, MAX_REVIEW_CENTRE_TIME,
};
pub use secrets::{EnvironmentAndFiles, Secrets};
pub use signed::{MAX_SIGNED_ANSWER_BYTES, MAX_SIGNED_TIME, SignedAnswer, SignedClient};
