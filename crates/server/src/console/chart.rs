//! Bars over time as SVG in the page: no script, no text inside the picture, and a table that says
//! the same.

use counterfoil_db::Instant;
use maud::{Markup, html};

use super::parts;
use super::texts::Lang;

/// What ended in one stretch of time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Bar {
    /// When it began.
    pub(super) from: Instant,
    /// What went well.
    pub(super) good: i64,
    /// What did not.
    pub(super) bad: i64,
}

const HEIGHT: i64 = 120;
const STEP: i64 = 20;
const GAP: i64 = 4;

/// The height of a part, at least a line where there is anything at all.
fn scaled(part: i64, most: i64) -> i64 {
    if part <= 0 || most <= 0 { 0 } else { (part * HEIGHT / most).max(2) }
}

/// Bars in their order. The greatest fills the height.
pub(super) fn bars(lang: Lang, title: &str, bars: &[Bar]) -> Markup {
    let most = bars.iter().map(|bar| bar.good + bar.bad).max().unwrap_or(0);
    let width = i64::try_from(bars.len()).unwrap_or(0) * STEP;
    let shown = |index: usize, bar: &Bar| {
        let left = i64::try_from(index).unwrap_or(0) * STEP + GAP / 2;
        let (good, bad) = (scaled(bar.good, most), scaled(bar.bad, most));
        html! {
            g {
                title {
                    (parts::local(bar.from)) ": " (lang.succeeded()) " " (bar.good) ", "
                    (lang.failed_tasks()) " " (bar.bad)
                }
                rect class="hit" x=(left - GAP / 2) y="0" width=(STEP) height=(HEIGHT + 4) {}
                rect class="good" x=(left) y=(HEIGHT + 4 - good) width=(STEP - GAP) height=(good) {}
                rect class="bad" x=(left) y=((HEIGHT + 4 - good - bad).max(0))
                    width=(STEP - GAP) height=(bad) {}
            }
        }
    };
    html! {
        figure class="chart" {
            svg viewBox={ "0 0 " (width) " " (HEIGHT + 4) } role="img" aria-label=(title)
                preserveAspectRatio="none" {
                line class="base" x1="0" x2=(width) y1=(HEIGHT + 4) y2=(HEIGHT + 4) {}
                @for (index, bar) in bars.iter().enumerate() { (shown(index, bar)) }
            }
            figcaption {
                @if let (Some(first), Some(last)) = (bars.first(), bars.last()) {
                    (parts::time(first.from)) " — " (parts::time(last.from))
                    " · " (lang.pick("最高", "most")) " " (parts::number(most))
                }
            }
            details id="chart-figures" {
                summary { (lang.pick("数字", "Figures")) }
                table {
                    thead { tr {
                        th { (lang.since()) }
                        th class="num" { (lang.succeeded()) }
                        th class="num" { (lang.failed_tasks()) }
                    } }
                    tbody {
                        @for bar in bars.iter().filter(|bar| bar.good + bar.bad > 0) {
                            tr {
                                td { (parts::time(bar.from)) }
                                td class="num" { (parts::number(bar.good)) }
                                td class="num" { (parts::number(bar.bad)) }
                            }
                        }
                    }
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_greatest_bar_fills_the_height_and_the_smallest_is_still_seen() {
        assert_eq!(scaled(1_000_000, 1_000_000), HEIGHT);
        assert_eq!(scaled(1, 1_000_000), 2);
        assert_eq!(scaled(0, 5), 0);
        assert_eq!(scaled(0, 0), 0);
    }
}
