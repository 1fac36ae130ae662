//! How far long work has come, for a person who watches; nothing in a pipe.

use std::io::IsTerminal;
use std::time::Duration;

use indicatif::{ProgressBar, ProgressState, ProgressStyle};

use super::Session;

/// How often it is drawn.
const DRAWN_EVERY: Duration = Duration::from_millis(100);

/// A line on stderr that is taken away at the end.
#[derive(Debug)]
pub(super) struct Watch(ProgressBar);

impl Watch {
    /// What goes on, how long, how many `unit` were counted, and how many commits were made.
    /// Hidden unless stderr is a terminal and nobody asked for silence.
    pub(super) fn new(session: &Session, what: String, unit: Option<&str>) -> Watch {
        if session.globals.quiet || !std::io::stderr().is_terminal() {
            return Watch(ProgressBar::hidden());
        }
        let bar = ProgressBar::no_length();
        let counted = unit.map(|unit| format!(" \u{b7} {{human_pos}} {unit}")).unwrap_or_default();
        let template =
            format!("{{spinner}} {{msg}} \u{b7} {{elapsed}}{counted} \u{b7} {{commits}} commits");
        let pulse = session.pulse.clone();
        let style = ProgressStyle::with_template(&template).map(|style| {
            style.with_key("commits", move |_: &ProgressState, out: &mut dyn std::fmt::Write| {
                // A line that cannot be drawn is drawn again in a moment.
                let _ = write!(out, "{}", pulse.commits());
            })
        });
        bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_spinner()));
        bar.set_message(what);
        bar.enable_steady_tick(DRAWN_EVERY);
        Watch(bar)
    }

    /// Says what goes on now.
    pub(super) fn say(&self, what: String) {
        self.0.set_message(what);
    }

    /// What counts: one call a unit.
    pub(super) fn counter(&self) -> impl Fn() + Send + 'static {
        let bar = self.0.clone();
        move || bar.inc(1)
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.0.finish_and_clear();
    }
}
