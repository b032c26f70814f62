//! Where jobs' names stand: in a bar that has room for it, else beside one where nothing else is.

use super::Block;
use super::bars::{Corners, escaped, fill, hex};
use crate::plots::style::{FAMILY, INK};
use hintd_policy::plan::Plan;
use plotters::style::RGBColor;
use std::collections::{BTreeMap, BTreeSet};

/// Letters of names, pixels: their height, and what one takes of a line (a wide one of a usual font).
const LETTER: (i32, f64) = (11, 6.6);
/// Fewer letters of a name tell nobody anything.
const LETTERS_MIN: usize = 5;
/// Beside a bar so many letters at most, the longest that has room; more are left out in their middle.
const BESIDE: [usize; 3] = [32, 14, 7];
/// Between a bar's edge and its name, pixels.
const GAP: i32 = 3;

/// Names of the jobs of these bars as SVG, for each rack where its job's name has room; nothing is written over another
/// bar or name, nor beyond its rack's band (upper and lower edge) and the `edge` on the right.
pub(super) fn names(plan: &Plan, bars: &[(Block<'_>, Corners)], bands: &[(i32, i32)], edge: i32) -> String {
    let mut racks: BTreeMap<usize, Vec<&(Block<'_>, Corners)>> = BTreeMap::new();
    for bar in bars {
        racks.entry(bar.0.rack).or_default().push(bar);
    }
    let of_rack = |(rack, bars): (&usize, &Vec<_>)| of_rack(plan, bars, Room { band: bands[*rack], edge });
    racks.iter().map(of_rack).collect()
}

/// Where names may stand.
#[derive(Debug, Clone, Copy)]
struct Room {
    band: (i32, i32),
    edge: i32,
}

fn of_rack(plan: &Plan, bars: &[&(Block<'_>, Corners)], room: Room) -> String {
    let mut taken: Vec<Corners> = bars.iter().map(|(_, corners)| *corners).collect();
    let mut named: BTreeSet<usize> = BTreeSet::new();
    let mut svg = String::new();
    for way in [Way::Within, Way::Beside, Way::Ends] {
        for (block, corners) in bars {
            if named.contains(&block.job) {
                continue;
            }
            let key = &plan.jobs[block.job].job.key;
            let found = match way {
                Way::Within => within(key, *corners, key.chars().count()),
                Way::Beside => beside(key, *corners, &taken, room),
                Way::Ends => within(key, *corners, LETTERS_MIN),
            };
            let Some((name, place)) = found else { continue };
            let white = way != Way::Beside && dark(fill(plan, block));
            svg.push_str(&text(&name, place, if white { RGBColor(0xff, 0xff, 0xff) } else { INK }));
            named.insert(block.job);
            if way == Way::Beside {
                taken.push(place);
            }
        }
    }
    svg
}

/// Where a name is tried, the best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// All of it in its bar.
    Within,
    /// On the right of it.
    Beside,
    /// What fits of it in its bar.
    Ends,
}

/// In the bar, if that has room for so many letters of it.
fn within(key: &str, bar: Corners, least: usize) -> Option<(String, Corners)> {
    let Corners { left, top, right, bottom } = bar;
    let room = (f64::from(right - left - 2 * GAP) / LETTER.1).max(0.0) as usize;
    if bottom - top <= LETTER.0 || room < least.min(key.chars().count()) {
        return None;
    }
    Some((cut(key, room), Corners { left: left + GAP, ..bar }))
}

/// Beside the bar, as high as it is or up to a line above that.
fn beside(key: &str, bar: Corners, taken: &[Corners], room: Room) -> Option<(String, Corners)> {
    let (left, half) = (bar.right + GAP, LETTER.0 / 2 + 1);
    let middle = i32::midpoint(bar.top, bar.bottom).min(room.band.1 - half);
    let heights = [middle, middle - half, middle - 2 * half];
    let tries = BESIDE.iter().flat_map(|letters| heights.map(|middle| (cut(key, *letters), middle)));
    let mut places = tries.map(|(name, middle)| {
        let right = left + (name.chars().count() as f64 * LETTER.1).ceil() as i32;
        (name, Corners { left, top: middle - half, right, bottom: middle + half })
    });
    places.find(|(_, place)| {
        place.right <= room.edge && place.top >= room.band.0 && !taken.iter().any(|other| overlap(*place, *other))
    })
}

const fn overlap(one: Corners, other: Corners) -> bool {
    one.left < other.right && other.left < one.right && one.top < other.bottom && other.top < one.bottom
}

/// The name, or its ends where it has more letters than that.
fn cut(key: &str, room: usize) -> String {
    let letters: Vec<char> = key.chars().collect();
    if letters.len() <= room {
        return key.to_owned();
    }
    let (first, last) = (room / 2, room - 1 - room / 2);
    [&letters[..first], &['…'], &letters[letters.len() - last..]].concat().into_iter().collect()
}

fn text(name: &str, place: Corners, ink: RGBColor) -> String {
    let Corners { left, top, bottom, .. } = place;
    format!(
        "<text x=\"{left}\" y=\"{}\" dy=\"0.35em\" font-family=\"{FAMILY}\" font-size=\"{}\" fill=\"{}\" \
         pointer-events=\"none\">{}</text>\n",
        i32::midpoint(top, bottom),
        LETTER.0,
        hex(ink),
        escaped(name),
    )
}

/// White is read on it better than ink: by luma (ITU-R BT.601).
fn dark(RGBColor(red, green, blue): RGBColor) -> bool {
    299 * u32::from(red) + 587 * u32::from(green) + 114 * u32::from(blue) < 128_000
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plots::style::{colour, tint};

    const LONG: &str = "mapreduce:ada:nightly-join";

    const fn corners(left: i32, top: i32, right: i32, bottom: i32) -> Corners {
        Corners { left, top, right, bottom }
    }

    #[test]
    fn names_are_whole_or_lose_their_middle_or_are_left_out() {
        let within = |key, width, least| within(key, corners(100, 0, 100 + width, 20), least).map(|(name, _)| name);
        assert_eq!(within("etl-#", 40, 5).as_deref(), Some("etl-#"));
        assert_eq!(within("größe-é", 60, 7).as_deref(), Some("größe-é"));
        assert_eq!(within(LONG, 86, LETTERS_MIN).as_deref(), Some("mapred…-join"));
        assert_eq!(
            (within(LONG, 6 + 32, LETTERS_MIN), within(LONG, 86, LONG.len()), within("abc", 2, 5)),
            (None, None, None)
        );
        assert_eq!(super::within("etl", corners(0, 0, 100, 11), 3), None, "as high as the bar");
    }

    #[test]
    fn a_name_stands_beside_its_bar_only_where_nothing_else_is() {
        let bar = corners(100, 50, 104, 60);
        let wide = (6.6_f64 * 4.0).ceil() as i32;
        let (band, edge) = ((30, 63), 500);
        let beside = |key: &str, taken: &[Corners], room| beside(key, bar, taken, room);
        let place = |taken: &[Corners], room| beside("join", taken, room).map(|(_, place)| place);
        assert_eq!(place(&[bar], Room { band, edge }), Some(corners(107, 49, 107 + wide, 61)));
        let other = corners(110, 58, 120, 70);
        assert_eq!(place(&[bar, other], Room { band, edge }), Some(corners(107, 43, 107 + wide, 55)), "higher");
        assert_eq!(place(&[bar, other], Room { band: (44, 63), edge }), None, "that is another rack's band");
        assert_eq!(
            place(&[bar], Room { band: (30, 59), edge }),
            Some(corners(107, 47, 107 + wide, 59)),
            "within its band"
        );
        assert_eq!(place(&[bar, corners(110, 30, 120, 70)], Room { band, edge }), None);
        assert_eq!(place(&[bar], Room { band, edge: 107 + wide - 1 }), None);
        let cut = |edge| beside(LONG, &[bar], Room { band, edge }).map(|(name, _)| name);
        assert_eq!([cut(500).unwrap(), cut(210).unwrap(), cut(160).unwrap()], [LONG, "mapredu…y-join", "map…oin"]);
        assert_eq!(cut(150), None);
    }

    #[test]
    fn names_are_white_on_dark_bars_and_ink_on_pale_ones() {
        assert!(dark(colour(0)) && dark(INK) && !dark(tint(colour(0), 0.5)) && !dark(colour(4)));
    }
}
