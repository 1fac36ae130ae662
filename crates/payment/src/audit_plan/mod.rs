//! audit_plan
