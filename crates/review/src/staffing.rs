//! Whether different people can be found for all nodes, since nobody decides twice.

use std::collections::{BTreeMap, BTreeSet};

use counterfoil_protocol::UserId;

/// The first node, by its index, for which nobody is left when each person decides one node at
/// most. A matching by augmenting paths: a node takes its reviewer from another node if that one
/// can do with somebody else.
pub(crate) fn understaffed(nodes: &[BTreeSet<UserId>]) -> Option<usize> {
    let mut taken = BTreeMap::new();
    (0..nodes.len()).find(|node| !place(*node, nodes, &mut taken, &mut BTreeSet::new()))
}

fn place(
    node: usize,
    nodes: &[BTreeSet<UserId>],
    taken: &mut BTreeMap<UserId, usize>,
    tried: &mut BTreeSet<UserId>,
) -> bool {
    for user in &nodes[node] {
        if !tried.insert(*user) {
            continue;
        }
        let holder = taken.get(user).copied();
        if holder.is_none_or(|other| place(other, nodes, taken, tried)) {
            taken.insert(*user, node);
            return true;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_node_needs_a_person_of_its_own() {
        // (the reviewers of each node, the node that nobody is left for)
        let table: &[(&[&[i64]], Option<usize>)] = &[
            (&[], None),
            (&[&[1]], None),
            (&[&[]], Some(0)),
            (&[&[1], &[2]], None),
            (&[&[1], &[1]], Some(1)),
            (&[&[1, 2], &[1]], None),
            (&[&[1], &[1, 2]], None),
            (&[&[1, 2], &[1, 2], &[1, 2]], Some(2)),
            (&[&[1, 2], &[2, 3], &[1]], None),
            (&[&[1], &[2], &[]], Some(2)),
        ];
        for (nodes, expected) in table {
            let sets: Vec<BTreeSet<UserId>> =
                nodes.iter().map(|users| users.iter().copied().map(UserId).collect()).collect();
            assert_eq!(understaffed(&sets), *expected, "{nodes:?}");
        }
    }
}
