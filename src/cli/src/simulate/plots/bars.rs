//! A bar for each policy: the median over its seeds, lowest and highest as whiskers.

use super::super::super::output::digits;
use super::super::table::{Row, Value};
use crate::plots::style::{FAMILY, INK, LARGE, MIDDLE, SIZE, SMALL, ceiling, colour, legend, mesh, number, text, tint};
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// What bars show.
pub(super) struct Bars {
    title: &'static str,
    value: Value,
    /// What the axis may count in: one unit's share of the value and its words, largest first.
    units: &'static [(f64, &'static str)],
    /// A part of the value that is drawn darker, and the names of that part and the rest.
    part: Option<(Value, [&'static str; 2])>,
}

/// Jobs ÷ makespan.
pub(super) const THROUGHPUT: Bars = Bars {
    title: "Throughput",
    value: |report| report.throughput_jobs_per_hour,
    units: &[(1.0, "jobs per hour")],
    part: None,
};

/// Bytes that crossed racks.
pub(super) const CROSS_RACK: Bars = Bars {
    title: "Traffic between racks",
    value: |report| report.cross_rack_bytes as f64,
    units: &[
        (1e12, "TB across racks"),
        (1e9, "GB across racks"),
        (1e6, "MB across racks"),
        (1.0, "bytes across racks"),
    ],
    part: Some((|report| report.cross_rack_shuffle_bytes as f64, ["shuffle", "map input"])),
};

/// Time in congestion.
pub(super) const CONGESTION: Bars = Bars {
    title: "Congestion, summed over racks",
    value: |report| report.congested_s,
    units: &[(3600.0, "rack-hours congested"), (60.0, "rack-minutes congested"), (1.0, "rack-seconds congested")],
    part: None,
};

/// Half a bar, of the distance between two.
const HALF: f64 = 0.3;

pub(super) fn draw(rows: &[Row<'_>], bars: &Bars) -> anyhow::Result<String> {
    let raw: Vec<Spread> = rows.iter().map(|row| spread(row, bars.value)).collect();
    let (one, axis) = bars.unit(raw.iter().map(|value| value.median).fold(0.0, f64::max));
    let in_unit = |raw: &Spread| Spread { median: raw.median / one, low: raw.low / one, high: raw.high / one };
    let values: Vec<Spread> = raw.iter().map(in_unit).collect();
    let top = ceiling(values.iter().map(|value| value.high).fold(0.0, f64::max) * 1.08);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption(bars.title, (FAMILY, LARGE).into_font().color(&INK))
            .margin(16)
            .x_label_area_size(40)
            .y_label_area_size(76)
            .build_cartesian_2d(-0.5..rows.len() as f64 - 0.5, 0.0..top)?;
        mesh(&mut chart, axis)?;
        for (at, (row, &Spread { median, low, high })) in rows.iter().zip(&values).enumerate() {
            let x = at as f64;
            let fill = |shade: f64| tint(colour(at), shade).filled();
            let bar = |from: f64, to: f64, shade: f64| Rectangle::new([(x - HALF, from), (x + HALF, to)], fill(shade));
            if let Some((part, _)) = bars.part {
                let part = (spread(row, part).median / one).min(median);
                chart.draw_series([bar(0.0, part, 1.0), bar(part, median, 0.45)])?;
            } else {
                chart.draw_series([bar(0.0, median, 1.0)])?;
            }
            if high > low {
                let ink = INK.stroke_width(2);
                let line = |ends: [(f64, f64); 2]| PathElement::new(ends.to_vec(), ink);
                let cap = 0.06;
                chart.draw_series([
                    line([(x, low), (x, high)]),
                    line([(x - cap, low), (x + cap, low)]),
                    line([(x - cap, high), (x + cap, high)]),
                ])?;
            }
            let above = text(SMALL, HPos::Center, VPos::Bottom);
            let words = label(median, values[0].median, at);
            chart.draw_series([EmptyElement::at((x, high.max(median))) + Text::new(words, (0, -6), above)])?;
            let below = text(MIDDLE, HPos::Center, VPos::Top);
            chart.draw_series([EmptyElement::at((x, 0.0)) + Text::new(row.label.clone(), (0, 10), below)])?;
        }
        if let Some((_, names)) = bars.part {
            for (name, shade) in names.into_iter().zip([1.0, 0.45]) {
                chart
                    .draw_series(std::iter::empty::<Rectangle<(f64, f64)>>())?
                    .label(name)
                    .legend(move |(x, y)| Rectangle::new([(x, y - 6), (x + 18, y + 6)], tint(INK, shade).filled()));
            }
            legend(&mut chart, SeriesLabelPosition::UpperRight)?;
        }
        root.present()?;
    }
    Ok(svg)
}

impl Bars {
    /// The largest unit of which there is one, else the smallest; of nothing the largest.
    fn unit(&self, value: f64) -> (f64, &'static str) {
        let there = |&&(one, _): &&(f64, &str)| value >= one || value <= 0.0;
        *self.units.iter().find(there).or(self.units.last()).expect("every plot has a unit")
    }
}

/// The value to three digits, and its ratio to the first policy's.
fn label(value: f64, first: f64, at: usize) -> String {
    let said = if value < 100.0 { digits(value) } else { number(value) };
    if at == 0 || first <= 0.0 { said } else { format!("{said} (x {:.2})", value / first) }
}

/// A figure over the seeds.
#[derive(Debug, Clone, Copy)]
struct Spread {
    median: f64,
    low: f64,
    high: f64,
}

fn spread(row: &Row<'_>, value: Value) -> Spread {
    let all = || row.there().map(value);
    let median = row.median(value).unwrap_or(0.0);
    Spread { median, low: all().fold(median, f64::min), high: all().fold(median, f64::max) }
}
