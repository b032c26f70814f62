//! SVG plots of a comparison: axes with units, one colour for each policy, no fonts of our own.
//!
//! # Code map
//! - `cdf`: completion times. `bars`: one bar for each policy. `tiers`: use of links over time. Sizes, colours and texts
//!   are `cli/plots`'.

mod bars;
mod cdf;
mod tiers;

use super::super::failure::Failure;
use super::super::files;
use super::table::Row;
use crate::plots::provenance::Provenance;
use std::path::Path;

/// Draws all plots into `folder`.
///
/// # Errors
/// [`Failure::Work`] where a file can't be written.
pub(super) fn write(folder: &Path, rows: &[Row<'_>], provenance: &Provenance) -> Result<(), Failure> {
    for (name, svg) in all(rows)? {
        files::write_text(&folder.join(name), &provenance.sign(&svg)?)?;
    }
    Ok(())
}

/// File name and content of each plot that there are figures for.
fn all(rows: &[Row<'_>]) -> anyhow::Result<Vec<(&'static str, String)>> {
    let mut plots = Vec::new();
    if rows.iter().any(|row| row.there().any(|report| !report.jct_s.is_empty())) {
        plots.push(("completion-times.svg", cdf::draw(rows)?));
        plots.push(("throughput.svg", bars::draw(rows, &bars::THROUGHPUT)?));
        plots.push(("cross-rack.svg", bars::draw(rows, &bars::CROSS_RACK)?));
        plots.push(("congestion.svg", bars::draw(rows, &bars::CONGESTION)?));
    }
    if rows.iter().any(|row| row.there().any(|report| !report.tiers.is_empty())) {
        plots.push(("link-use.svg", tiers::draw(rows)?));
    }
    Ok(plots)
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use hintd_simulator::{Authority, ClassReport, RunReport, TierUse};

    /// A report with figures that differ by policy and seed.
    pub(in crate::simulate) fn report(policy: &str, seed: u64, slower: f64) -> RunReport {
        let wave = |step: u64| 0.5 + 0.4 * ((step + 7 * seed) as f64 / 40.0).sin() / slower;
        let tier = |tier: &str, scale: f64| TierUse {
            tier: tier.to_owned(),
            step_s: 60.0,
            mean: (0..600).map(|step| wave(step) * scale).collect(),
            max: (0..600).map(|step| (wave(step) * scale * 1.5).min(1.0)).collect(),
        };
        RunReport {
            hints: None,
            circuits: None,
            by_job: Vec::new(),
            rack_bytes: Vec::new(),
            policy: policy.to_owned(),
            authority: Authority::Policy,
            seed,
            jobs: 2_000,
            never_fit: vec![],
            never_fit_count: 0,
            unfinished: 0,
            makespan_s: 36_000.0 * slower,
            throughput_jobs_per_hour: 1_200.0 / slower + 10.0 * seed as f64,
            mean_jct_s: 90.0 * slower,
            median_jct_s: 30.0 * slower,
            p95_jct_s: 900.0 * slower,
            cross_rack_bytes: (4.3e13 * slower) as u64,
            cross_rack_shuffle_bytes: (3.1e13 * slower) as u64,
            shuffle_bytes: 40_000_000_000_000,
            maps_by_locality: [700, 200, 100],
            congested_s: 5_000.0 * slower + 100.0 * seed as f64,
            congestions: 312,
            map_progress_at_first_reduce: 0.2,
            nodes_over_traffic_threshold: 0.1,
            classes: [ClassReport::default(); 3],
            container_s: [1.0, 2.0, 3.0],
            tiers: vec![tier("host", 0.6), tier("rack", 1.0)],
            events: 1,
            offers: 1,
            wall_s: 1.0,
            peak_rss_bytes: 1,
            jct_s: (0..2_000).map(|job| 2.0 + slower * (f64::from(job) / 180.0).exp()).collect(),
        }
    }

    fn plots(policies: &[(&str, f64)]) -> Vec<(&'static str, String)> {
        let reports: Vec<Vec<RunReport>> = policies
            .iter()
            .map(|&(policy, slower)| (1..=3).map(|seed| report(policy, seed, slower)).collect())
            .collect();
        let row = |reports: &'_ Vec<RunReport>| (reports[0].policy.clone(), reports.clone());
        let owned: Vec<_> = reports.iter().map(row).collect();
        let rows: Vec<Row<'_>> = owned
            .iter()
            .map(|(label, reports)| Row { label: label.clone(), reports: reports.iter().map(Some).collect() })
            .collect();
        let plots = all(&rows).unwrap();
        if let Some(folder) = std::env::var_os("HINTD_PLOTS") {
            write(Path::new(&folder), &rows, &Provenance::of([])).unwrap();
        }
        plots
    }

    #[test]
    fn every_plot_names_its_axes_with_units_and_every_policy() {
        let plots = plots(&[("fair", 1.0), ("delay", 0.9), ("shufflewatcher", 0.8), ("nas", 0.6)]);
        let names: Vec<_> = plots.iter().map(|(name, _)| *name).collect();
        let expected = ["completion-times.svg", "throughput.svg", "cross-rack.svg", "congestion.svg", "link-use.svg"];
        assert_eq!(names, expected);
        for ((name, svg), unit) in plots.iter().zip([
            "completion time, seconds",
            "jobs per hour",
            "TB across racks",
            "rack-hours congested",
            "hours since the first submission",
        ]) {
            assert!(svg.starts_with("<svg") && svg.trim_end().ends_with("</svg>"), "{name}");
            for word in [unit, "fair", "delay", "shufflewatcher", "nas"] {
                assert!(svg.contains(word), "{name} lacks \"{word}\"");
            }
            assert!(!svg.contains("NaN") && !svg.contains("inf\""), "{name}");
            assert!(svg.len() < 300_000, "{name}: {} bytes", svg.len());
        }
    }

    #[test]
    fn a_comparison_without_figures_has_no_plots_and_one_of_nothing_but_zeros_has() {
        assert!(all(&[Row { label: "fair".to_owned(), reports: vec![None] }]).unwrap().is_empty());
        let mut idle = report("fair", 1, 1.0);
        (idle.cross_rack_bytes, idle.cross_rack_shuffle_bytes, idle.congested_s) = (0, 0, 0.0);
        idle.throughput_jobs_per_hour = 0.0;
        idle.jct_s = vec![3.0];
        idle.tiers.iter_mut().for_each(|tier| tier.mean = vec![0.0]);
        let rows = [Row { label: "fair".to_owned(), reports: vec![Some(&idle)] }];
        let drawn = all(&rows).unwrap();
        assert_eq!(drawn.len(), 5);
        assert!(drawn.iter().all(|(_, svg)| !svg.contains("NaN")));
    }
}
