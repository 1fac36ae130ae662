//! A kind of task: its names and limits.

/// The names and limits of one kind of task. A `const` beside its work.
#[derive(Debug, PartialEq, Eq)]
pub struct Kind {
    /// The XXL-Job handler that drives it.
    pub handler: &'static str,
    /// `task_type`.
    pub task_type: &'static str,
    /// What its task codes begin with.
    pub prefix: &'static str,
    /// The short name of its stage, for people and for switching kicks off.
    pub stage: &'static str,
    /// Tasks a round takes when the parameter names no number.
    pub default_round: u32,
    /// Tasks a round takes at most.
    pub max_round: u32,
}
