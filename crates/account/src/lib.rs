//! People: accounts with a role each, their passwords, their sessions, and what they did.
//!
//! An account's id is the person's id everywhere else ([`UserId`]): whoever submitted an order is
//! the same number that the review centre keeps from deciding on it. This crate knows nothing of
//! HTTP, orders or tasks; it answers who somebody is and what he may do. Source: surface.md
//! "People".
//!
//! [`UserId`]: counterfoil_protocol::UserId

pub mod audit;
pub mod people;
pub mod role;
pub mod session;
pub mod sign_in;

mod error;
mod password;
mod throttle;

pub use error::AccountError;
pub use password::{Cost, MIN_PASSWORD, random_password};
pub use people::Account;
pub use role::{Permission, Role};

/// This crate's tables.
pub const MIGRATIONS: &[counterfoil_db::Migration] = &[counterfoil_db::Migration {
    number: 501,
    name: "account",
    ddl: include_str!("schema/0501_account.sql"),
}];

/// A text cut to as many characters as its column holds; NUL, which PostgreSQL refuses, is left
/// out.
pub(crate) fn cut(text: &str, most: usize) -> String {
    text.chars().filter(|letter| *letter != '\0').take(most).collect()
}
