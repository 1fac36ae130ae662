//! Keys that are a contract: task codes and lock keys.

use std::fmt;

use md5::{Digest, Md5};

use crate::{BillMonth, LockId};

/// `PREFIX:` and the lower-case hexadecimal MD5 of a business key. MD5 makes a stable code here;
/// it protects nothing.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct TaskCode(String);

impl TaskCode {
    /// The code of a task with this business key.
    pub fn of(prefix: &str, business_key: &str) -> TaskCode {
        let digest = Md5::digest(business_key.as_bytes());
        let mut code = String::with_capacity(prefix.len() + 33);
        code.push_str(prefix);
        code.push(':');
        for byte in digest {
            code.push_str(&format!("{byte:02x}"));
        }
        TaskCode(code)
    }

    /// A code as it stands in a row or was typed by a person.
    pub fn stored(code: impl Into<String>) -> TaskCode {
        TaskCode(code.into())
    }

    /// The code.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TaskCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// The key that a held lock occupies: one bill, one holder.
pub fn lock_key(station_id: &str, month: &BillMonth) -> String {
    format!("{station_id}:{month}")
}

/// The key of a lock once released; it frees the bill's key and keeps the history.
pub fn released_lock_key(station_id: &str, month: &BillMonth, lock: LockId) -> String {
    format!("{station_id}:{month}:RELEASED:{lock}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_task_code_is_the_prefix_and_the_md5_of_its_business_key() {
        let code = TaskCode::of("RIPLA", "LOCK_ACTIVATE:123456789");
        assert_eq!(code.as_str(), "RIPLA:e2f3729a9930dff9b4214538a97460b9");
    }

    #[test]
    fn a_released_lock_frees_the_key_of_its_bill() {
        let month: BillMonth = "202609".parse().unwrap();
        assert_eq!(lock_key("S1", &month), "S1:202609");
        assert_eq!(released_lock_key("S1", &month, LockId(7)), "S1:202609:RELEASED:7");
    }
}
