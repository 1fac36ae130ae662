//! lock_activation
