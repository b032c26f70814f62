//! Mean completion against YARN alone by cell and policy: a mark at the median, lowest and highest as whiskers.

use super::outcome::Outcome;
use crate::plots::style::{FAMILY, INK, LARGE, SIZE, SMALL, colour, legend, mesh, text};
use hintd_simulator::worth::Spread;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, VPos};

/// Letters that fit below the plot from end to end.
const LETTERS: usize = 88;

/// What is drawn in one colour.
struct Series {
    name: String,
    colour: RGBColor,
    /// By cell.
    points: Vec<Option<Spread>>,
}

/// The plot.
///
/// # Errors
/// None that a text can have.
pub(super) fn draw(outcome: &Outcome<'_>) -> anyhow::Result<String> {
    let labels: Vec<String> = outcome.cells.iter().map(|cell| cell.name.to_owned()).collect();
    drawn(&labels, &series(outcome))
}

fn series(outcome: &Outcome<'_>) -> Vec<Series> {
    let ratio = |row: Option<&hintd_simulator::worth::Row>| row.map(|row| row.mean);
    let of = |name: &str, colour, points| Series { name: name.to_owned(), colour, points };
    let cells = &outcome.cells;
    let mut all = vec![
        of(
            "YARN alone, other phases",
            RGBColor(0x88, 0x88, 0x88),
            cells.iter().map(|cell| ratio(cell.other_phases.as_ref())).collect(),
        ),
        of("no network", INK, cells.iter().map(|cell| ratio(cell.no_network.as_ref())).collect()),
    ];
    // Lies have a table; there are more of them than colors.
    for (at, hinted) in outcome.overall.iter().enumerate().filter(|(_, row)| row.lie.is_none()) {
        let points = cells.iter().map(|cell| ratio(cell.hinted[at].figures.as_ref())).collect();
        all.push(of(&hinted.name, colour(at), points));
    }
    all
}

fn drawn(cells: &[String], series: &[Series]) -> anyhow::Result<String> {
    let spreads = || series.iter().flat_map(|series| series.points.iter().flatten());
    let low = spreads().map(|spread| spread.min).fold(1.0, f64::min);
    let high = spreads().map(|spread| spread.max).fold(1.0, f64::max);
    let (bottom, top) = ((low - 0.08).max(0.0), high + 0.12 * (high - low).max(0.5));
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, SIZE).into_drawing_area();
        root.fill(&WHITE)?;
        let mut chart = ChartBuilder::on(&root)
            .caption("What hints are worth", (FAMILY, LARGE).into_font().color(&INK))
            .margin(16)
            .x_label_area_size(56)
            .y_label_area_size(76)
            .build_cartesian_2d(-0.5..cells.len() as f64 - 0.5, bottom..top)?;
        mesh(&mut chart, "mean completion / YARN alone's")?;
        let ends = [(-0.5, 1.0), (cells.len() as f64 - 0.5, 1.0)];
        chart.draw_series([PathElement::new(ends.to_vec(), INK.stroke_width(1))])?;
        let step = 0.7 / series.len().max(1) as f64;
        for (at, Series { name, colour, points }) in series.iter().enumerate() {
            let x = |cell: usize| cell as f64 + step * (at as f64 - (series.len() - 1) as f64 / 2.0);
            let there = || points.iter().enumerate().filter_map(|(cell, spread)| Some((x(cell), (*spread)?)));
            let style = colour.stroke_width(2);
            chart.draw_series(
                there().map(|(x, spread)| PathElement::new(vec![(x, spread.min), (x, spread.max)], style)),
            )?;
            let mark = there().map(|(x, spread)| Circle::new((x, spread.median), 5, colour.filled()));
            let colour = *colour;
            chart
                .draw_series(mark)?
                .label(name.clone())
                .legend(move |(x, y)| Circle::new((x + 9, y), 5, colour.filled()));
        }
        for (at, name) in cells.iter().enumerate() {
            let below = text(SMALL, HPos::Center, VPos::Top);
            let (place, load) = name.rsplit_once(", ").unwrap_or(("", name));
            // The load is what differs most; of the place so much as there is room for.
            let place: String = place.chars().take(LETTERS / cells.len().max(1)).collect();
            chart.draw_series([EmptyElement::at((at as f64, bottom))
                + Text::new(load.to_owned(), (0, 8), below.clone())
                + Text::new(place, (0, 26), below)])?;
        }
        legend(&mut chart, SeriesLabelPosition::UpperRight)?;
        root.present()?;
    }
    Ok(svg)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_cell_and_series_is_named_and_what_is_missing_is_left_out() {
        let one = Some(Spread { median: 0.8, min: 0.7, max: 0.9 });
        let of = |name: &str, at, points| Series { name: name.to_owned(), colour: colour(at), points };
        let series = [of("places by joint", 0, vec![one, None]), of("none", 1, vec![None, None])];
        let svg = drawn(&["a".to_owned(), "b".to_owned()], &series).unwrap();
        for words in ["places by joint", "none", "mean completion / YARN alone"] {
            assert!(svg.contains(words), "{words}");
        }
        assert!(!svg.contains("NaN") && !svg.contains("inf\""));
    }
}
