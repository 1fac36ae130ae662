//! What two rows under one key come to: pure. First match wins.

use super::projection::Local;
use crate::wire::ManifestRow;

/// A finding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Finding {
    /// Nothing is to be done.
    Equal,
    /// The centre's revision is 0: it can only be reported.
    RevisionZero,
    /// At the centre only.
    Missing,
    /// At the hall only.
    Extra,
    /// The hall's revision is higher.
    LocalAhead,
    /// One is a tombstone, the other is not.
    Tombstone,
    /// The hall's revision is lower.
    Stale,
    /// One revision, two contents; or a stored hash that is not its content's.
    HashConflict,
}

impl Finding {
    /// The stable code.
    pub fn code(self) -> &'static str {
        match self {
            Finding::Equal => "EQUAL",
            Finding::RevisionZero => "DIFF_REVISION_ZERO",
            Finding::Missing => "MISSING",
            Finding::Extra => "EXTRA_ROW",
            Finding::LocalAhead => "LOCAL_AHEAD",
            Finding::Tombstone => "TOMBSTONE",
            Finding::Stale => "STALE",
            Finding::HashConflict => "HASH_CONFLICT",
        }
    }
}

/// The centre's side of a comparison.
#[derive(Debug, Clone, Copy)]
pub struct Remote<'a> {
    /// Its revision.
    pub revision: i64,
    /// Its hash.
    pub hash: &'a str,
    /// Whether it is a tombstone.
    pub is_deleted: bool,
}

impl<'a> From<&'a ManifestRow> for Remote<'a> {
    fn from(row: &'a ManifestRow) -> Remote<'a> {
        Remote { revision: row.revision, hash: &row.content_hash, is_deleted: row.is_deleted }
    }
}

/// Compares what the two sides have under one key; at least one has something.
pub fn compare(remote: Option<Remote<'_>>, local: Option<&Local>) -> Finding {
    let Some(remote) = remote else { return Finding::Extra };
    if let Some(local) = local
        && local.revision == remote.revision
        && local.is_deleted == remote.is_deleted
        && local.hash == remote.hash
        && local.stored_hash == remote.hash
    {
        return Finding::Equal;
    }
    if remote.revision == 0 {
        return Finding::RevisionZero;
    }
    let Some(local) = local else { return Finding::Missing };
    if local.revision > remote.revision {
        Finding::LocalAhead
    } else if local.is_deleted != remote.is_deleted {
        Finding::Tombstone
    } else if local.revision < remote.revision {
        Finding::Stale
    } else {
        Finding::HashConflict
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn local(revision: i64, hash: &str, is_deleted: bool) -> Local {
        Local {
            uuid: String::new(),
            revision,
            stored_hash: hash.into(),
            hash: hash.into(),
            is_deleted,
            version: 0,
            created: None,
        }
    }

    #[test]
    fn the_first_match_wins() {
        let remote = |revision, is_deleted| Some(Remote { revision, hash: "a", is_deleted });
        let table = [
            (remote(3, false), Some(local(3, "a", false)), Finding::Equal),
            (remote(0, false), Some(local(0, "a", false)), Finding::Equal),
            (remote(0, false), Some(local(0, "b", false)), Finding::RevisionZero),
            (remote(0, false), None, Finding::RevisionZero),
            (remote(0, false), Some(local(5, "b", true)), Finding::RevisionZero),
            (remote(3, false), None, Finding::Missing),
            (None, Some(local(3, "a", false)), Finding::Extra),
            (remote(3, false), Some(local(4, "a", true)), Finding::LocalAhead),
            (remote(3, true), Some(local(3, "a", false)), Finding::Tombstone),
            (remote(3, true), Some(local(2, "a", false)), Finding::Tombstone),
            (remote(3, false), Some(local(2, "a", false)), Finding::Stale),
            (remote(3, false), Some(local(3, "b", false)), Finding::HashConflict),
        ];
        for (remote, local, finding) in table {
            assert_eq!(compare(remote, local.as_ref()), finding, "{remote:?} {local:?}");
        }
        let lying = Local { stored_hash: "x".into(), ..local(3, "a", false) };
        assert_eq!(compare(remote(3, false), Some(&lying)), Finding::HashConflict);
    }
}
