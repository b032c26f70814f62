//! Share of jobs that ended within a time, by policy.

use super::super::table::Row;
use crate::plots::style::{FAMILY, INK, LARGE, MIDDLE, PALE, SIZE, SMALL, colour, legend, number};
use plotters::prelude::*;

/// Points of a curve: more than the plot has pixels are not seen.
const POINTS: usize = 600;

pub(super) fn draw(rows: &[Row<'_>]) -> anyhow::Result<String> {
    let curves: Vec<Vec<f64>> = rows.iter().map(sorted).collect();
    let all = || curves.iter().flatten().copied();
    // Whole decades, so that the axis begins and ends at a label; at least one.
    let low = 10_f64.powf(all().fold(f64::INFINITY, f64::min).max(0.01).log10().floor());
    let high = 10_f64.powf(all().fold(0.0, f64::max).max(low * 1.01).log10().ceil());
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("Completion times", (FAMILY, LARGE).into_font().color(&INK))
            .margin(16)
            .margin_right(40)
            .x_label_area_size(54)
            .y_label_area_size(64)
            .build_cartesian_2d((low..high).log_scale(), 0.0..100.0)?;
        chart
            .configure_mesh()
            .x_desc("completion time, seconds")
            .y_desc("jobs that ended within it, %")
            .axis_desc_style((FAMILY, MIDDLE).into_font().color(&INK))
            .label_style((FAMILY, SMALL).into_font().color(&INK))
            .x_label_formatter(&|seconds| number(*seconds))
            .y_label_formatter(&|percent| number(*percent))
            .axis_style(INK)
            .bold_line_style(PALE)
            .light_line_style(TRANSPARENT)
            .draw()?;
        for (at, (row, curve)) in rows.iter().zip(&curves).enumerate() {
            let line = colour(at).stroke_width(2);
            chart
                .draw_series(LineSeries::new(points(curve), line))?
                .label(row.label.clone())
                .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 24, y)], line.stroke_width(3)));
        }
        legend(&mut chart, SeriesLabelPosition::LowerRight)?;
        root.present()?;
    }
    Ok(svg)
}

/// Completion times of all seeds, ascending.
fn sorted(row: &Row<'_>) -> Vec<f64> {
    let mut all: Vec<f64> = row.there().flat_map(|report| report.jct_s.iter().copied()).collect();
    all.sort_by(f64::total_cmp);
    all
}

/// Time and per cent of jobs, from 0 % to 100 %.
fn points(sorted: &[f64]) -> Vec<(f64, f64)> {
    let (Some(&first), count) = (sorted.first(), sorted.len()) else { return Vec::new() };
    let steps = count.min(POINTS);
    let at = |step: usize| (sorted[(step * count).div_ceil(steps) - 1], 100.0 * step as f64 / steps as f64);
    std::iter::once((first, 0.0)).chain((1..=steps).map(at)).map(|(time, percent)| (time.max(0.01), percent)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_goes_from_none_to_all() {
        assert_eq!(points(&[1.0, 2.0]), [(1.0, 0.0), (1.0, 50.0), (2.0, 100.0)]);
        let many: Vec<f64> = (1..=10_000).map(f64::from).collect();
        let curve = points(&many);
        assert_eq!((curve.len(), curve[POINTS]), (POINTS + 1, (10_000.0, 100.0)));
        assert_eq!(points(&[]), []);
    }
}
