//! submit_build
