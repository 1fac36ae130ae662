//! The operator console over real sockets: who gets in, who may what, what is shown, what is done.

mod acts;
mod driver;
mod entry;
mod hostile;
mod house;
mod pages;
mod roles;
mod walk;
