//! Selection sessions (选单会话): opening, choosing bills, judging them, showing what is chosen.

pub mod add;
mod candidate;
pub mod edit;
pub mod open;
pub mod qualify;
pub mod show;
