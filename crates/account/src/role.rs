//! Who may do what: one table.

use std::fmt;
use std::str::FromStr;

/// What an account is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Role {
    /// Looks.
    Viewer,
    /// Keeps orders moving.
    Operator,
    /// Decides on orders of others.
    Reviewer,
    /// Everything, accounts included. Still nobody decides on an order of his own.
    Admin,
}

use Role::{Admin, Operator, Reviewer, Viewer};

/// Something that not everybody may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Permission {
    /// Read every page.
    Look,
    /// See account numbers in full.
    SeeAccountNumbers,
    /// Prepare, cancel, rerun, push, redeliver, repair.
    Operate,
    /// Approve and reject.
    Decide,
    /// Accounts, and what people did.
    Administer,
}

impl Permission {
    /// All of them.
    pub const ALL: [Permission; 5] = [
        Permission::Look,
        Permission::SeeAccountNumbers,
        Permission::Operate,
        Permission::Decide,
        Permission::Administer,
    ];

    /// The roles that have it.
    pub fn roles(self) -> &'static [Role] {
        match self {
            Permission::Look => &[Viewer, Operator, Reviewer, Admin],
            // Operators put payees right; reviewers approve that money goes to them.
            Permission::SeeAccountNumbers => &[Operator, Reviewer, Admin],
            Permission::Operate => &[Operator, Admin],
            Permission::Decide => &[Reviewer, Admin],
            Permission::Administer => &[Admin],
        }
    }
}

impl Role {
    /// All of them, the least first.
    pub const ALL: [Role; 4] = [Viewer, Operator, Reviewer, Admin];

    /// Its name, stored and typed.
    pub fn as_str(self) -> &'static str {
        match self {
            Viewer => "viewer",
            Operator => "operator",
            Reviewer => "reviewer",
            Admin => "admin",
        }
    }

    /// Whether it has a permission.
    pub fn may(self, permission: Permission) -> bool {
        permission.roles().contains(&self)
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for Role {
    type Err = String;

    fn from_str(text: &str) -> Result<Role, String> {
        let found = Role::ALL.into_iter().find(|role| role.as_str() == text);
        found.ok_or_else(|| "must be viewer, operator, reviewer or admin".to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_role_may_look_and_only_an_admin_may_everything() {
        for role in Role::ALL {
            assert!(role.may(Permission::Look), "{role}");
            let all = Permission::ALL.into_iter().all(|permission| role.may(permission));
            assert_eq!(all, role == Admin, "{role}");
            assert_eq!(role.as_str().parse(), Ok(role));
        }
        assert!("root".parse::<Role>().is_err());
    }

    #[test]
    fn who_prepares_does_not_decide_by_role_already() {
        assert!(!Operator.may(Permission::Decide) && !Reviewer.may(Permission::Operate));
        assert!(!Viewer.may(Permission::SeeAccountNumbers));
    }
}
