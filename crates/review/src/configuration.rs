//! What a review of some type consists of: the nodes, their order, their reviewers.

use std::collections::BTreeSet;

use counterfoil_db::{Db, Read, Tx, sql, transact};
use counterfoil_protocol::UserId;

use crate::ReviewError;

/// The type that payment orders are reviewed under.
pub const RESIDENT_INCOME_PAYMENT_REVIEW: &str = "RESIDENT_INCOME_PAYMENT_REVIEW";
/// The node of operations manager A (运营经理 A).
pub const OPERATION_MANAGER_A: &str = "OPERATION_MANAGER_A";
/// The node of operations manager B (运营经理 B).
pub const OPERATION_MANAGER_B: &str = "OPERATION_MANAGER_B";
/// Where the links begin: the submission. It is the `node_code` of `review_config`.
pub const SUBMIT: &str = "SUBMIT";
/// Where the links end.
pub const DONE: &str = "DONE";

/// Nodes of one review at most.
pub const MAX_NODES: usize = 32;
/// Reviewers of one node at most.
pub const MAX_REVIEWERS: usize = 200;

/// One node, in the order of the links.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ConfiguredNode {
    pub(crate) code: String,
    pub(crate) name: String,
    pub(crate) role: String,
    /// Who decides it whatever the request says.
    pub(crate) users: BTreeSet<UserId>,
}

/// Installs the shipped configuration: submit → operations manager A → operations manager B →
/// done. Answers whether it did; a configuration that is there, changed or deleted by whomever, is
/// left alone. Call it after the migrations.
pub async fn install_default(db: &Db) -> Result<bool, ReviewError> {
    transact!(install_once(db))
}

async fn install_once(db: &Db) -> Result<bool, ReviewError> {
    let mut tx = db.begin().await?;
    if !insert_config_unless_known(&mut tx).await? {
        tx.rollback().await?;
        return Ok(false);
    }
    let nodes = [(OPERATION_MANAGER_A, "运营经理A审核"), (OPERATION_MANAGER_B, "运营经理B审核")];
    for (sort, (code, name)) in (1_i64..).zip(nodes) {
        let node = sql!(
            "{insert_ignore} INTO review_config_node (type, node_code, node_name, sort, role)
             VALUES (:type_name, :code, :name, :sort, :code) {or_ignore}",
            type_name = RESIDENT_INCOME_PAYMENT_REVIEW,
            code = code,
            name = name,
            sort = sort,
        );
        tx.execute(node).await?;
    }
    let links = [
        (SUBMIT, OPERATION_MANAGER_A),
        (OPERATION_MANAGER_A, OPERATION_MANAGER_B),
        (OPERATION_MANAGER_B, DONE),
    ];
    for (sort, (from, to)) in (1_i64..).zip(links) {
        let link = sql!(
            "{insert_ignore} INTO review_config_link (type, from_node_code, to_node_code, sort)
             VALUES (:type_name, :from_code, :to_code, :sort) {or_ignore}",
            type_name = RESIDENT_INCOME_PAYMENT_REVIEW,
            from_code = from,
            to_code = to,
            sort = sort,
        );
        tx.execute(link).await?;
    }
    tx.commit("review.configuration").await?;
    Ok(true)
}

/// The unique (type, node_code) decides who installs; answers whether it was us.
async fn insert_config_unless_known(tx: &mut Tx) -> Result<bool, ReviewError> {
    let known = sql!(
        "SELECT COUNT(*) AS known FROM review_config WHERE type = :type_name",
        type_name = RESIDENT_INCOME_PAYMENT_REVIEW,
    );
    if tx.count(known).await? > 0 {
        return Ok(false);
    }
    let config = sql!(
        "{insert_ignore} INTO review_config (type, node_code, node_name, sort, role)
         VALUES (:type_name, :code, :name, 1, '') {or_ignore}",
        type_name = RESIDENT_INCOME_PAYMENT_REVIEW,
        code = SUBMIT,
        name = "提交",
    );
    Ok(tx.execute(config).await? == 1)
}

/// Reads the nodes of a type in the order of its links.
pub(crate) async fn read(
    from: &impl Read,
    type_name: &str,
) -> Result<Vec<ConfiguredNode>, ReviewError> {
    let defect = |why: String| ReviewError::NotConfigured { type_name: type_name.to_owned(), why };
    let config = sql!(
        "SELECT node_code FROM review_config WHERE type = :type_name AND deleted = 0
         ORDER BY sort, id LIMIT 1",
        type_name = type_name,
    );
    let Some(config) = from.row(config).await? else {
        return Err(defect("there is no such type in review_config".into()));
    };
    let links = sql!(
        "SELECT from_node_code, to_node_code FROM review_config_link
         WHERE type = :type_name AND deleted = 0 ORDER BY sort, id LIMIT :limit",
        type_name = type_name,
        limit = LINKS_READ,
    );
    let mut arrows = Vec::new();
    for row in from.rows(links).await? {
        arrows.push((row.text("from_node_code")?, row.text("to_node_code")?));
    }
    let codes = chain(&config.text("node_code")?, &arrows).map_err(defect)?;
    let mut nodes = Vec::new();
    for code in codes {
        let node = read_node(from, type_name, &code).await?;
        nodes.push(node.ok_or_else(|| defect(format!("a link leads to the unknown node {code}")))?);
    }
    Ok(nodes)
}

/// One more than a chain of [`MAX_NODES`] has, so that too many are noticed.
const LINKS_READ: i32 = 34;

async fn read_node(
    from: &impl Read,
    type_name: &str,
    code: &str,
) -> Result<Option<ConfiguredNode>, ReviewError> {
    let node = sql!(
        "SELECT node_name, role FROM review_config_node
         WHERE type = :type_name AND node_code = :code AND deleted = 0",
        type_name = type_name,
        code = code,
    );
    let Some(node) = from.row(node).await? else {
        return Ok(None);
    };
    let users = sql!(
        "SELECT user_id FROM review_config_node_user
         WHERE type = :type_name AND node_code = :code AND deleted = 0
         ORDER BY id LIMIT :limit",
        type_name = type_name,
        code = code,
        limit = i64::try_from(MAX_REVIEWERS).unwrap_or(i64::MAX),
    );
    let mut reviewers = BTreeSet::new();
    for row in from.rows(users).await? {
        reviewers.insert(UserId(row.int("user_id")?));
    }
    Ok(Some(ConfiguredNode {
        code: code.to_owned(),
        name: node.text("node_name")?,
        role: node.text("role")?,
        users: reviewers,
    }))
}

/// The nodes from `start` to [`DONE`], or what is wrong with the links.
fn chain(start: &str, links: &[(String, String)]) -> Result<Vec<String>, String> {
    let mut codes: Vec<String> = Vec::new();
    let mut at = start;
    loop {
        let mut next = links.iter().filter(|(from, _)| from == at).map(|(_, to)| to.as_str());
        let to = next.next().ok_or_else(|| format!("no link leads on from {at}"))?;
        if next.next().is_some() {
            return Err(format!("more than one link leads on from {at}"));
        }
        if to == DONE {
            break;
        }
        if to == start || codes.iter().any(|code| code == to) {
            return Err(format!("the links lead back to {to}"));
        }
        if codes.len() == MAX_NODES {
            return Err(format!("there are more than {MAX_NODES} nodes"));
        }
        codes.push(to.to_owned());
        at = to;
    }
    if codes.is_empty() {
        Err("there is no node between submission and end".into())
    } else {
        Ok(codes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_are_a_chain_or_say_why_they_are_none() {
        // (links, the chain or a part of the complaint)
        type Case = (
            &'static [(&'static str, &'static str)],
            Result<&'static [&'static str], &'static str>,
        );
        let table: &[Case] = &[
            (&[("SUBMIT", "A"), ("A", "B"), ("B", "DONE")], Ok(&["A", "B"])),
            (&[("B", "DONE"), ("A", "B"), ("SUBMIT", "A")], Ok(&["A", "B"])),
            (&[("SUBMIT", "A"), ("A", "DONE"), ("X", "Y")], Ok(&["A"])),
            (&[], Err("no link leads on from SUBMIT")),
            (&[("SUBMIT", "A")], Err("no link leads on from A")),
            (&[("SUBMIT", "DONE")], Err("no node between")),
            (&[("SUBMIT", "A"), ("A", "B"), ("B", "A")], Err("back to A")),
            (&[("SUBMIT", "A"), ("A", "SUBMIT")], Err("back to SUBMIT")),
            (&[("SUBMIT", "A"), ("SUBMIT", "B"), ("A", "DONE")], Err("more than one link")),
        ];
        for (links, expected) in table {
            let links: Vec<(String, String)> =
                links.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
            match (chain(SUBMIT, &links), expected) {
                (Ok(codes), Ok(expected)) => assert_eq!(codes, *expected),
                (Err(why), Err(part)) => assert!(why.contains(part), "{links:?}: {why}"),
                (got, _) => panic!("{links:?}: {got:?}"),
            }
        }
    }
}
