//! Bars as SVG: each tells what it is when it is pointed at.

use super::Block;
use super::axis::Axis;
use crate::plots::style::{colour, tint};
use hintd_policy::plan::{Plan, Stage};
use plotters::style::RGBColor;

/// What is drawn of jobs that are not heavy.
const LIGHT: RGBColor = RGBColor(0x99, 0x99, 0x99);
/// Least width, pixels: of a day's plan most bars are shorter than that.
const LEAST: i32 = 2;
/// The rectangle of a bar or of a name, pixels from the upper left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Corners {
    pub(super) left: i32,
    pub(super) top: i32,
    pub(super) right: i32,
    pub(super) bottom: i32,
}

/// The bar with what it tells of itself.
pub(super) fn bar(plan: &Plan, axis: &Axis, (block, corners): &(Block<'_>, Corners)) -> String {
    let Corners { left, top, right, bottom } = corners;
    format!(
        "<rect x=\"{left}\" y=\"{top}\" width=\"{}\" height=\"{}\" fill=\"{}\"><title>{}</title></rect>\n",
        right - left,
        bottom - top,
        hex(fill(plan, block)),
        escaped(&tooltip(plan, axis, block)),
    )
}

/// Corners as they are drawn: what is too small to be seen is made larger.
pub(super) fn visible((left, top): (i32, i32), (right, bottom): (i32, i32)) -> Corners {
    Corners { left, top, right: right.max(left + LEAST), bottom: bottom.max(top + 1) }
}

pub(super) fn fill(plan: &Plan, block: &Block<'_>) -> RGBColor {
    let full = if plan.jobs[block.job].heavy { colour(block.job) } else { LIGHT };
    if block.stage == Stage::Map { tint(full, 0.5) } else { full }
}

fn tooltip(plan: &Plan, axis: &Axis, block: &Block<'_>) -> String {
    let (job, slice) = (&plan.jobs[block.job], block.slice);
    let stage = match block.stage {
        Stage::Map => "maps",
        Stage::Reduce => "reduces",
    };
    let heavy = if job.heavy { "heavy" } else { "not heavy" };
    format!(
        "{}, run {}, {heavy}\n{stage} in {}: {} tasks in {} containers\n{}",
        job.job.key,
        job.job.run,
        slice.rack,
        slice.tasks,
        slice.containers,
        axis.span(slice.start, slice.end),
    )
}

/// As XML has it: what stands for something else, and what may not be there at all.
pub(super) fn escaped(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '&' => escaped.push_str("&amp;"),
            '"' => escaped.push_str("&quot;"),
            letter => escaped.push(legal(letter)),
        }
    }
    escaped
}

/// The letter, or what stands for one that no XML may hold.
pub(super) fn legal(letter: char) -> char {
    match letter {
        '\n' => letter,
        '\u{fffe}' | '\u{ffff}' => char::REPLACEMENT_CHARACTER,
        letter if letter.is_control() => char::REPLACEMENT_CHARACTER,
        letter => letter,
    }
}

pub(super) fn hex(RGBColor(red, green, blue): RGBColor) -> String {
    format!("#{red:02X}{green:02X}{blue:02X}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_may_not_hold_is_not_there() {
        assert_eq!(escaped("a<b>&\"\u{1b}\u{ffff}é"), "a&lt;b&gt;&amp;&quot;\u{fffd}\u{fffd}é");
    }
}
