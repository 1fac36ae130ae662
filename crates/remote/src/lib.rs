//! Adapters to other processes: the only crate that speaks HTTP as a client.
//!
//! The program installs rustls' ring provider first thing
//! (`rustls::crypto::ring::default_provider().install_default()`); no client can be made without.

mod answer_centre;
mod answer_queue;
mod creation_guard;
mod decision_receiver;
mod error;
mod http_treasury;
pub mod iso20022;
mod notice_queue;
mod partner_inbox;
mod review_centre;
mod secrets;
mod service_halls;
mod signed;
mod xxl_admin;

pub use answer_centre::HttpFormCentre;
pub use answer_queue::{HeardDelivery, RabbitAddress, RabbitCarrier, RabbitEar, Said};
pub use creation_guard::RedisGuard;
pub use decision_receiver::HttpDecisionReceiver;
pub use error::RemoteError;
pub use http_treasury::{HTTP_TREASURY, HttpTreasury, MAX_TREASURY_TIME};
pub use notice_queue::{Heard, KafkaAddress, KafkaEar, KafkaPost};
pub use partner_inbox::{HttpPartnerInbox, MAX_PARTNER_TIME};
pub use review_centre::{
    HttpReviewCentre, MAX_ANSWER_BYTES, MAX_CONNECT_TIME, MAX_REVIEW_CENTRE_TIME,
};
pub use secrets::{EnvironmentAndFiles, Secrets};
pub use service_halls::HttpServiceHalls;
pub use signed::{MAX_SIGNED_ANSWER_BYTES, MAX_SIGNED_TIME, SignedAnswer, SignedClient};
pub use xxl_admin::{MAX_ADMIN_TIME, TOKEN_HEADER, TriggerResult, Untaken, XxlAdmins};
