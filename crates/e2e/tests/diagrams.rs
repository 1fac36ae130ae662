//! ARCHITECTURE.md draws the state machines as the code has them. Copy what this test prints.

use std::path::Path;

use counterfoil_payment::states::MACHINES;

/// Each machine's column and its diagram, in the order of the page.
fn diagrams() -> Vec<(&'static str, String)> {
    let [plan, node] = counterfoil_review::states::diagrams();
    let mut all = vec![("fi_async_task.task_status", counterfoil_task::diagram())];
    for machine in MACHINES {
        all.push((machine.name, machine.diagram()));
    }
    all.push(("review_business_plan.status", plan));
    all.push(("review_business_node.status", node));
    all
}

/// A machine as the page draws it: the column as heading, the diagram in a fence.
fn section(column: &str, diagram: &str) -> String {
    format!("### `{column}`\n\n```mermaid\n{diagram}```\n")
}

#[test]
fn architecture_shows_every_state_machine_as_the_code_has_it() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ARCHITECTURE.md");
    let page = std::fs::read_to_string(&path)
        .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let diagrams = diagrams();
    for (column, diagram) in &diagrams {
        let section = section(column, diagram);
        assert!(page.contains(&section), "ARCHITECTURE.md must hold this:\n\n{section}");
    }
    let drawn = page.matches("stateDiagram-v2").count();
    assert_eq!(
        drawn,
        diagrams.len(),
        "ARCHITECTURE.md draws a machine that the code does not have"
    );
}
