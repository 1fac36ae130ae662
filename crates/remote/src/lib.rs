//! Adapters to other processes: the only crate that speaks HTTP as a client.
//!
//! The program installs rustls' ring provider first thing
//! (`rustls::crypto::ring::default_provider().install_default()`); no client can be made without.

mod error;
mod http_treasury;
pub mod iso20022;
mod review_centre;

pub use error::RemoteError;
pub use http_treasury::{HTTP_TREASURY, HttpTreasury, MAX_TREASURY_TIME};
pub use review_centre::{
    HttpReviewCentre, MAX_ANSWER_BYTES, MAX_CONNECT_TIME, MAX_REVIEW_CENTRE_TIME,
};
