//! Memory, latency and rates over time: three panels of one picture.

use super::SoakArgs;
use super::windows::Window;
use crate::plots::style::{FAMILY, INK, LARGE, MIDDLE, PALE, SIZE, SMALL, ceiling, colour, number, text};
use plotters::coord::Shift;
use plotters::coord::ranged1d::ValueFormatter;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Height of a panel, pixels.
const PANEL: u32 = 250;
/// Height of the title.
const HEAD: u32 = 40;
const MIB: f64 = 1_048_576.0;
/// A latency axis ends at a decade, and begins at this one at the latest.
const LEAST_MS: f64 = 0.1;

type Area<'s> = DrawingArea<SVGBackend<'s>, Shift>;
/// A line's name and its points, minutes and value.
type Line = (&'static str, Vec<(f64, f64)>);

/// The picture as SVG.
///
/// # Errors
/// Where the backend can't draw.
pub(super) fn draw(settings: &SoakArgs, windows: &[Window]) -> anyhow::Result<String> {
    let minutes = windows.last().map_or(1.0, |window| window.at_s / 60.0);
    let line = |name: &'static str, value: &dyn Fn(&Window) -> Option<f64>| -> Line {
        (name, windows.iter().filter_map(|window| Some((window.at_s / 60.0, value(window)?))).collect())
    };
    let memory = [line("resident", &|window| window.resident_bytes.map(|bytes| bytes as f64 / MIB))];
    let latency = [
        line("p50", &|window| (window.answered > 0).then_some(window.p50_ms)),
        line("p99", &|window| (window.answered > 0).then_some(window.p99_ms)),
        line("longest", &|window| (window.answered > 0).then_some(window.max_ms)),
    ];
    let rates = [
        line("requests answered", &|window| Some(window.answered as f64 / window.seconds)),
        line("heartbeats", &|window| Some(window.heartbeats as f64 / window.seconds)),
        line("refused", &|window| Some((window.refused.values().sum::<u64>() + window.unsent) as f64 / window.seconds)),
    ];
    let title = format!(
        "{} requests and {} heartbeats a second, {} nodes",
        number(settings.requests),
        number(settings.heartbeats),
        number(f64::from(settings.nodes))
    );
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, HEAD + 3 * PANEL)).into_drawing_area();
        root.fill(&WHITE)?;
        let (head, body) = root.split_vertically(HEAD);
        head.draw(&Text::new(title, (SIZE.0 as i32 / 2, 22), text(LARGE, HPos::Center, VPos::Center)))?;
        let panels = body.split_evenly((3, 1));
        linear(&panels[0], minutes, "memory, MiB", &memory)?;
        logarithmic(&panels[1], minutes, "latency, ms", &latency)?;
        linear(&panels[2], minutes, "a second", &rates)?;
        root.present()?;
    }
    Ok(svg)
}

fn most(lines: &[Line]) -> f64 {
    lines.iter().flat_map(|(_, points)| points).map(|point| point.1).fold(0.0, f64::max)
}

fn linear(panel: &Area<'_>, minutes: f64, what: &str, lines: &[Line]) -> anyhow::Result<()> {
    let mut builder = ChartBuilder::on(panel);
    let chart = area(&mut builder).build_cartesian_2d(0.0..minutes, 0.0..ceiling(most(lines) * 1.05))?;
    finish(chart, what, lines, SeriesLabelPosition::MiddleRight)
}

fn logarithmic(panel: &Area<'_>, minutes: f64, what: &str, lines: &[Line]) -> anyhow::Result<()> {
    let all = || lines.iter().flat_map(|(_, points)| points).map(|point| point.1);
    let low = 10_f64.powf(all().fold(f64::INFINITY, f64::min).clamp(LEAST_MS, 1e3).log10().floor());
    let high = 10_f64.powf(most(lines).max(low * 1.01).log10().ceil());
    let mut builder = ChartBuilder::on(panel);
    let chart = area(&mut builder).build_cartesian_2d(0.0..minutes, (low..high).log_scale())?;
    finish(chart, what, lines, SeriesLabelPosition::UpperRight)
}

fn area<'c, 'a, 'b, 's>(
    builder: &'c mut ChartBuilder<'a, 'b, SVGBackend<'s>>,
) -> &'c mut ChartBuilder<'a, 'b, SVGBackend<'s>> {
    builder.margin(10).margin_right(40).x_label_area_size(46).y_label_area_size(74)
}

/// Axes, lines and legend.
fn finish<'a, 's: 'a, Y>(
    mut chart: ChartContext<'a, SVGBackend<'s>, Cartesian2d<plotters::coord::types::RangedCoordf64, Y>>,
    what: &str,
    lines: &[Line],
    legend: SeriesLabelPosition,
) -> anyhow::Result<()>
where
    Y: Ranged<ValueType = f64> + ValueFormatter<f64>,
{
    chart
        .configure_mesh()
        .x_desc("minutes")
        .y_desc(what)
        .axis_desc_style((FAMILY, MIDDLE).into_font().color(&INK))
        .label_style((FAMILY, SMALL).into_font().color(&INK))
        .x_label_formatter(&|minutes| number(*minutes))
        .y_label_formatter(&|value| number(*value))
        .y_labels(6)
        .axis_style(INK)
        .bold_line_style(PALE)
        .light_line_style(TRANSPARENT)
        .draw()?;
    for (at, (name, points)) in lines.iter().enumerate() {
        let style = colour(at).stroke_width(2);
        chart
            .draw_series(LineSeries::new(points.iter().map(|&(x, y)| (x, y.max(f64::MIN_POSITIVE))), style))?
            .label(*name)
            .legend(move |(x, y)| PathElement::new(vec![(x, y), (x + 24, y)], style.stroke_width(3)));
    }
    chart
        .configure_series_labels()
        .position(legend)
        .legend_area_size(30)
        .margin(10)
        .label_font((FAMILY, SMALL).into_font().color(&INK))
        .background_style(WHITE.mix(0.9))
        .border_style(PALE)
        .draw()?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Line {
        #[command(flatten)]
        args: SoakArgs,
    }

    #[test]
    fn the_picture_names_its_axes_with_units_and_every_line() {
        let settings = Line::parse_from(["soak"]).args;
        let window = |at: u32| Window {
            at_s: f64::from(at) * 10.0,
            seconds: 10.0,
            answered: 10_000,
            p50_ms: 1.0,
            p99_ms: 9.0,
            max_ms: 60.0,
            heartbeats: 50_000,
            resident_bytes: Some(200 << 20),
            ..Window::default()
        };
        let svg = draw(&settings, &(1..=360).map(window).collect::<Vec<_>>()).unwrap();
        for word in
            ["memory, MiB", "latency, ms", "minutes", "p50", "p99", "longest", "resident", "heartbeats", "1,000"]
        {
            assert!(svg.contains(word), "it lacks \"{word}\"");
        }
        assert!(svg.starts_with("<svg") && !svg.contains("NaN") && !svg.contains("inf\""));
        let empty = draw(&settings, &[Window { seconds: 10.0, at_s: 10.0, ..Window::default() }]).unwrap();
        assert!(!empty.contains("NaN"), "nothing answered, and nobody told of memory");
    }
}
