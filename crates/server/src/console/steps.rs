//! What a verdict says may be done, as the console's own pages: the domain names commands.

use counterfoil_payment::order_view::Step;

use super::parts::escaped;
use super::texts::{Lang, label_of_step};

/// Where a command is done in the console.
fn path_of(command: &str) -> Option<String> {
    let words: Vec<&str> = command.strip_prefix("counterfoil ")?.split(' ').collect();
    let word = |at: usize| words.get(at).copied().unwrap_or_default();
    let order = |room: &str| Some(format!("/console/orders/{}/{room}", escaped(word(2))));
    match (word(0), word(1)) {
        ("task", "rerun") => Some(format!("/console/tasks/{}/rerun", escaped(word(2)))),
        ("task", "trace") => Some(format!("/console/tasks/{}", escaped(word(2)))),
        ("job", "run") => Some(match task_in(command) {
            Some(task) => format!("/console/tasks/{}/rerun", escaped(task)),
            None => format!("/console/jobs/{}", escaped(word(2))),
        }),
        ("order", "cancel") => order("cancel"),
        ("order", "repair-publish") => order("repair"),
        ("order", "record-payment") => order("payment"),
        ("order", "timeline") => Some("#timeline".to_owned()),
        ("push-batch", "list") => Some(format!("/console/batches?order={}", escaped(word(3)))),
        ("session", "create") if word(2) == "--revise" => {
            Some(format!("/console/orders/{}/revise", escaped(word(3))))
        }
        ("session", "remove" | "submit") => Some(format!("/console/sessions/{}", escaped(word(2)))),
        ("review", "list") => Some("/console/reviews".to_owned()),
        ("check", _) => Some("/console/rules".to_owned()),
        _ => None,
    }
}

/// The task that a round's parameter selects.
fn task_in(command: &str) -> Option<&str> {
    let (_, rest) = command.split_once("\"taskCode\":\"")?;
    Some(rest.split_once('"')?.0)
}

/// A step for people.
pub(super) struct Shown {
    /// What it does.
    pub(super) label: String,
    /// Where it is done; `None` = by the command.
    pub(super) path: Option<String>,
    /// The command, where the console has no page for it.
    pub(super) command: Option<String>,
}

/// The same with a capital letter.
pub(super) fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// A verdict's step.
pub(super) fn shown(lang: Lang, step: &Step) -> Shown {
    let command = step.command.as_deref().unwrap_or_default();
    let path = path_of(command);
    let words = command.strip_prefix("counterfoil ").unwrap_or_default();
    Shown {
        label: capital(&label_of_step(lang, &step.what, words)),
        command: step.command.clone().filter(|_| path.is_none()),
        path,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_of_a_verdict_leads_to_its_page() {
        let table = [
            (
                "counterfoil task rerun RIPSB:1 --dry-run --reason WHY --user ID",
                Some("/console/tasks/RIPSB%3A1/rerun"),
            ),
            ("counterfoil task trace RIPSB:1", Some("/console/tasks/RIPSB%3A1")),
            ("counterfoil job run theHandler", Some("/console/jobs/theHandler")),
            (
                "counterfoil job run theHandler --param '{\"taskCode\":\"RIPRC:9\"}'",
                Some("/console/tasks/RIPRC%3A9/rerun"),
            ),
            ("counterfoil order cancel 7 --reason WHY --user ID", Some("/console/orders/7/cancel")),
            ("counterfoil order timeline 7", Some("#timeline")),
            ("counterfoil push-batch list --order 7", Some("/console/batches?order=7")),
            ("counterfoil check", Some("/console/rules")),
            ("counterfoil session create --revise 7 --user ID", Some("/console/orders/7/revise")),
            ("counterfoil session submit 9 --user ID", Some("/console/sessions/9")),
            ("counterfoil session create --user ID", None),
            ("", None),
        ];
        for (command, expected) in table {
            assert_eq!(path_of(command).as_deref(), expected, "{command}");
        }
    }
}
