//! lock_release
