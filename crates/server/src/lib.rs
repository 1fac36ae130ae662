//! Counterfoil's server side: what the binary and the tests share.

pub mod api;
pub mod review_centre;
