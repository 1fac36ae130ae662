//! How state looks: six looks, the same everywhere, told apart without colour.

use counterfoil_payment::order_view::{Answer, StageState};

/// A look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Look {
    /// ●
    Done,
    /// ◐
    Running,
    /// ■
    Waiting,
    /// ◆
    Trouble,
    /// ○
    Unknown,
    /// ◌
    NotYet,
}

impl Look {
    /// Its class in the style sheet.
    pub(super) fn class(self) -> &'static str {
        match self {
            Look::Done => "ok",
            Look::Running => "run",
            Look::Waiting => "wait",
            Look::Trouble => "bad",
            Look::Unknown => "unknown",
            Look::NotYet => "idle",
        }
    }

    /// Its word: 中文, English.
    pub(super) fn words(self) -> (&'static str, &'static str) {
        match self {
            Look::Done => ("完成", "done"),
            Look::Running => ("进行中", "running"),
            Look::Waiting => ("等待", "waiting"),
            Look::Trouble => ("停住", "trouble"),
            Look::Unknown => ("未知", "unknown"),
            Look::NotYet => ("未到", "not yet"),
        }
    }
}

impl From<StageState> for Look {
    fn from(state: StageState) -> Look {
        match state {
            StageState::Done => Look::Done,
            StageState::Running => Look::Running,
            StageState::Waiting => Look::Waiting,
            StageState::Trouble => Look::Trouble,
            StageState::Unknown => Look::Unknown,
            StageState::NotYet => Look::NotYet,
        }
    }
}

impl From<Answer> for Look {
    fn from(answer: Answer) -> Look {
        match answer {
            Answer::Yes => Look::Done,
            Answer::No => Look::Trouble,
            Answer::NotYet => Look::NotYet,
        }
    }
}
