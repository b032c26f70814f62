//! Use of links over time: a panel for each tier, a line for each policy, of the first seed.

use super::super::table::Row;
use crate::plots::style::{FAMILY, INK, LARGE, MIDDLE, PALE, SIZE, SMALL, colour, number, text};
use hintd_simulator::TierUse;
use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Points of a line: more than the plot has pixels are not seen.
const POINTS: usize = 240;
/// Height of a panel, pixels.
const PANEL: u32 = 260;
/// Height of the title, which stands above all panels, and of each line of the legend below it.
const TITLE: u32 = 40;
const LEGEND: u32 = 24;
/// Width of a legend's line, and of the blank after a label.
const MARK: i32 = 24;
/// What a letter is wide at most, about.
const LETTER: i32 = 8;

pub(super) fn draw(rows: &[Row<'_>]) -> anyhow::Result<String> {
    let mut tiers: Vec<&str> = Vec::new();
    let reports = rows.iter().filter_map(|row| row.there().next());
    for tier in reports.flat_map(|report| &report.tiers) {
        if !tiers.contains(&tier.tier.as_str()) {
            tiers.push(&tier.tier);
        }
    }
    let mut svg = String::new();
    {
        let lines = legend_lines(rows);
        let head = TITLE + LEGEND * lines.len() as u32;
        let size = (SIZE.0, head + PANEL * tiers.len() as u32);
        let root = SVGBackend::with_string(&mut svg, size).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, body) = root.split_vertically(head);
        draw_head(&head, rows, &lines)?;
        for (panel, tier) in body.split_evenly((tiers.len(), 1)).iter().zip(&tiers) {
            draw_tier(panel, rows, tier)?;
        }
        root.present()?;
    }
    Ok(svg)
}

/// Width of a legend's entry.
fn width(row: &Row<'_>) -> i32 {
    2 * MARK + 8 + LETTER * row.label.chars().count() as i32
}

/// Which rows each line of the legend names: as many as find room.
fn legend_lines(rows: &[Row<'_>]) -> Vec<std::ops::Range<usize>> {
    let mut lines = Vec::new();
    let (mut first, mut used) = (0, 0);
    for (at, row) in rows.iter().enumerate() {
        if at > first && used + width(row) > SIZE.0 as i32 {
            lines.push(first..at);
            (first, used) = (at, 0);
        }
        used += width(row);
    }
    lines.push(first..rows.len());
    lines
}

/// The title, and below it which colour is whose.
fn draw_head(
    head: &DrawingArea<SVGBackend<'_>, Shift>,
    rows: &[Row<'_>],
    lines: &[std::ops::Range<usize>],
) -> anyhow::Result<()> {
    let middle = SIZE.0 as i32 / 2;
    let title = text(LARGE, HPos::Center, VPos::Center);
    head.draw(&Text::new("Use of links over time, mean of the tier", (middle, 18), title))?;
    for (line, named) in lines.iter().enumerate() {
        let y = (TITLE + LEGEND * line as u32) as i32 + 6;
        let mut x = middle - rows[named.clone()].iter().map(width).sum::<i32>() / 2;
        for at in named.clone() {
            head.draw(&PathElement::new([(x, y), (x + MARK, y)], colour(at).stroke_width(3)))?;
            let label = text(SMALL, HPos::Left, VPos::Center);
            head.draw(&Text::new(rows[at].label.clone(), (x + MARK + 8, y), label))?;
            x += width(&rows[at]);
        }
    }
    Ok(())
}

fn draw_tier(panel: &DrawingArea<SVGBackend<'_>, Shift>, rows: &[Row<'_>], tier: &str) -> anyhow::Result<()> {
    let of_row = |row: &Row<'_>| {
        let report = row.there().next()?;
        report.tiers.iter().find(|known| known.tier == tier).map(points)
    };
    let lines: Vec<Option<Vec<(f64, f64)>>> = rows.iter().map(of_row).collect();
    let end_h = lines.iter().flatten().flatten().map(|point| point.0).fold(0.0, f64::max);
    // Short traces are told in minutes.
    let (unit, per_hour) = if end_h > 0.0 && end_h < 2.0 { ("minutes", 60.0) } else { ("hours", 1.0) };
    let end = if end_h > 0.0 { end_h * per_hour } else { 1.0 };
    let mut chart = ChartBuilder::on(panel)
        .margin(12)
        .margin_right(40)
        .x_label_area_size(48)
        .y_label_area_size(70)
        .build_cartesian_2d(0.0..end, 0.0..100.0)?;
    chart
        .configure_mesh()
        .x_desc(format!("{unit} since the first submission"))
        .y_desc(format!("{tier} links, %"))
        .axis_desc_style((FAMILY, MIDDLE).into_font().color(&INK))
        .label_style((FAMILY, SMALL).into_font().color(&INK))
        .x_label_formatter(&|time| number(*time))
        .y_label_formatter(&|percent| number(*percent))
        .y_labels(6)
        .axis_style(INK)
        .bold_line_style(PALE)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (at, line) in lines.into_iter().enumerate() {
        let line = line.unwrap_or_default().into_iter().map(|(hours, percent)| (hours * per_hour, percent));
        chart.draw_series(LineSeries::new(line, colour(at).stroke_width(2)))?;
    }
    Ok(())
}

/// Hours and per cent, as means over as many samples as one point stands for.
fn points(tier: &TierUse) -> Vec<(f64, f64)> {
    let each = tier.mean.len().div_ceil(POINTS).max(1);
    let point = |(at, samples): (usize, &[f64])| {
        let mean = samples.iter().sum::<f64>() / samples.len() as f64;
        let middle_s = (at * each) as f64 * tier.step_s + samples.len() as f64 * tier.step_s / 2.0;
        (middle_s / 3600.0, 100.0 * mean)
    };
    tier.mean.chunks(each).enumerate().map(point).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_legend_that_is_too_wide_goes_on_below() {
        let row = |label: &str| Row { label: label.to_owned(), reports: vec![] };
        let rows: Vec<Row<'_>> = (0..12).map(|at| row(&format!("shufflewatcher-{at}"))).collect();
        let lines = legend_lines(&rows);
        assert!(lines.len() > 1 && lines.iter().cloned().flatten().eq(0..12), "{lines:?}");
        assert!(lines.iter().all(|line| rows[line.clone()].iter().map(width).sum::<i32>() <= SIZE.0 as i32));
        assert_eq!(legend_lines(&rows[..1]).len(), 1);
    }

    #[test]
    fn samples_are_drawn_in_the_middle_of_their_time() {
        let tier = TierUse { tier: "rack".to_owned(), step_s: 3600.0, mean: vec![0.5, 1.0], max: vec![1.0, 1.0] };
        assert_eq!(points(&tier), [(0.5, 50.0), (1.5, 100.0)]);
        let long = TierUse { mean: vec![0.25; 10_000], ..tier };
        assert!(points(&long).len() <= POINTS);
        assert!(points(&long).iter().all(|point| (point.1 - 25.0).abs() < 1e-9));
    }
}
