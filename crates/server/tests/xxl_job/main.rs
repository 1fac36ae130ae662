//! The service as an XXL-Job executor, called over real HTTP; its admin is a small one that writes
//! down what it is told. Against a real admin: `cargo run -p counterfoil-e2e --bin xxl_admin`.

mod admin;
mod house;
mod knock;

mod blocking;
mod protocol;
mod results;
mod stopping;
