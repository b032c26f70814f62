//! A plan as a Gantt chart: a band for each rack, its containers upwards, time to the right.

use crate::cli::output;
use crate::cli::plots::style::{FAMILY, INK, PALE, SIZE, SMALL, colour, number, tint};
use crate::policy::plan::{Plan, Stage};
use crate::units::RackPath;
use plotters::prelude::*;
use std::collections::BTreeMap;

/// A part of a band: from when to when, of which containers, whose.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Block {
    rack: usize,
    start_s: f64,
    end_s: f64,
    /// Containers, from and to.
    from: u32,
    to: u32,
    job: usize,
    stage: Stage,
}

/// Height of a rack's band, pixels, at least; the chart grows with its racks.
const BAND: u32 = 22;
/// So many of the narrowest bars beside each other are as wide as the chart: of a day's plan most are shorter than that.
const LEAST: f64 = 500.0;
/// A longer axis is in hours.
const HOURS_FROM_S: f64 = 7_200.0;
/// What is drawn of jobs that are not heavy.
const LIGHT: RGBColor = RGBColor(0x99, 0x99, 0x99);

/// The chart as SVG.
pub(super) fn draw(plan: &Plan) -> anyhow::Result<String> {
    let racks = plan.racks.len().max(1);
    let height = SIZE.1.max(120 + BAND * u32::try_from(racks).unwrap_or(1_000).min(1_000));
    let makespan_s = plan.makespan().as_secs_f64();
    let blocks = blocks(plan);
    let end_s = axis_end_s(makespan_s, &blocks);
    let (per_unit, unit) = if end_s > HOURS_FROM_S { (3_600.0, "hours") } else { (1.0, "seconds") };
    let (circuit, shuffle) = plan.circuit_bytes();
    let share = 100.0 * circuit.as_f64() / shuffle.as_f64().max(1.0);
    let title = format!(
        "{}: {} jobs, makespan {} s, {share:.1} % of shuffle on circuits; maps pale, reduces full, grey: not heavy",
        plan.policy,
        plan.jobs.len(),
        number(makespan_s),
    );
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (SIZE.0, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(&title, (FAMILY, SMALL).into_font().color(&INK))?;
        let mut chart = ChartBuilder::on(&root)
            .caption(assumptions(plan), (FAMILY, SMALL).into_font().color(&INK))
            .margin(16)
            .x_label_area_size(54)
            .y_label_area_size(110)
            .build_cartesian_2d(0.0..end_s / per_unit, 0.0..racks as f64)?;
        chart
            .configure_mesh()
            .x_desc(format!("time from the plan's beginning, {unit}"))
            .axis_desc_style((FAMILY, SMALL).into_font().color(&INK))
            .label_style((FAMILY, SMALL).into_font().color(&INK))
            .x_label_formatter(&|time| number(*time))
            .y_labels(0)
            .axis_style(INK)
            .bold_line_style(PALE)
            .light_line_style(TRANSPARENT)
            .draw()?;
        chart.draw_series(blocks.iter().map(|block| {
            let containers = f64::from(plan.racks[block.rack].containers.max(1));
            let y = |container: u32| block.rack as f64 + 0.04 + 0.92 * f64::from(container) / containers;
            let full = if plan.jobs[block.job].heavy { colour(block.job) } else { LIGHT };
            let fill = if block.stage == Stage::Map { tint(full, 0.5) } else { full };
            let shown_s = block.end_s.max(block.start_s + end_s / LEAST);
            let x = |seconds: f64| seconds / per_unit;
            Rectangle::new([(x(block.start_s), y(block.from)), (x(shown_s), y(block.to))], fill.filled())
        }))?;
        let names = (FAMILY, SMALL).into_font().color(&INK);
        chart.draw_series(plan.racks.iter().enumerate().map(|(at, row)| {
            let beside = EmptyElement::at((0.0, at as f64 + 0.5));
            beside + Text::new(row.rack.to_string(), (-100, -8), names.clone())
        }))?;
        root.present()?;
    }
    Ok(svg)
}

/// What the plan takes for granted.
fn assumptions(plan: &Plan) -> String {
    let of = &plan.assumptions;
    let mut words = vec![format!("assumes uplinks of {} Gbit/s", number(of.uplink.as_f64() / 1e9))];
    if let Some(circuit) = of.circuit {
        let elephants = output::bytes(of.elephant.as_f64());
        words.push(format!("circuits of {} Gbit/s for {elephants} and more", number(circuit.as_f64() / 1e9)));
    }
    words.push(format!("{} % more containers", number(100.0 * of.over_provisioning)));
    if let Some(error) = of.prediction_error {
        words.push(format!("sizes off by {} %", number((1_000.0 * error).round() / 10.0)));
    }
    words.join(", ")
}

/// Where the axis ends, seconds: with the makespan, which is the forecast's, or with the last slice if that is later.
fn axis_end_s(makespan_s: f64, blocks: &[Block]) -> f64 {
    blocks.iter().map(|block| block.end_s).fold(makespan_s.max(1.0), f64::max)
}

/// Every slice in containers of its own: those that are free when it starts, the lowest first.
fn blocks(plan: &Plan) -> Vec<Block> {
    let rack_at: BTreeMap<&RackPath, usize> = plan.racks.iter().enumerate().map(|(at, row)| (&row.rack, at)).collect();
    let mut slices: Vec<_> = plan
        .jobs
        .iter()
        .enumerate()
        .flat_map(|(job, of)| Stage::BOTH.map(move |stage| (job, of, stage)))
        .flat_map(|(job, of, stage)| of.stage(stage).slices.iter().map(move |slice| (slice.start, job, stage, slice)))
        .filter(|(.., slice)| slice.tasks > 0 && slice.end > slice.start)
        .collect();
    slices.sort_by_key(|&(start, job, stage, _)| (start, job, stage));
    let mut free: Vec<Vec<(u32, u32)>> = plan.racks.iter().map(|row| vec![(0, row.containers)]).collect();
    let mut held: Vec<Vec<(crate::units::Timestamp, u32, u32)>> = vec![Vec::new(); plan.racks.len()];
    let mut blocks = Vec::new();
    for (start, job, stage, slice) in slices {
        let Some(&rack) = rack_at.get(&slice.rack) else { continue };
        for (_, from, to) in held[rack].extract_if(.., |part| part.0 <= start) {
            free[rack].push((from, to));
        }
        join(&mut free[rack]);
        let mut left = slice.containers;
        while left > 0 && !free[rack].is_empty() {
            let (from, to) = free[rack][0];
            let taken = left.min(to - from);
            left -= taken;
            if from + taken == to {
                free[rack].remove(0);
            } else {
                free[rack][0].0 += taken;
            }
            held[rack].push((slice.end, from, from + taken));
            let since_s = |at: crate::units::Timestamp| at.since(plan.from).as_secs_f64();
            let (start_s, end_s) = (since_s(slice.start), since_s(slice.end));
            blocks.push(Block { rack, start_s, end_s, from, to: from + taken, job, stage });
        }
    }
    blocks
}

/// Neighbours become one.
fn join(free: &mut Vec<(u32, u32)>) {
    free.sort_unstable();
    let mut joined: Vec<(u32, u32)> = Vec::with_capacity(free.len());
    for &(from, to) in free.iter() {
        match joined.last_mut().filter(|last| last.1 == from) {
            Some(last) => last.1 = to,
            None => joined.push((from, to)),
        }
    }
    *free = joined;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy::plan::{Forecast, sample};
    use crate::units::Micros;

    #[test]
    fn no_two_blocks_overlap_and_all_containers_are_drawn() {
        for seed in 0..20 {
            let plan = sample::plan(seed);
            let blocks = blocks(&plan);
            let area = |block: &Block| (block.end_s - block.start_s) * f64::from(block.to - block.from);
            let slices = plan.jobs.iter().flat_map(|job| job.maps.slices.iter().chain(&job.reduces.slices));
            let wanted: f64 =
                slices.map(|slice| slice.end.since(slice.start).as_secs_f64() * f64::from(slice.containers)).sum();
            assert!((blocks.iter().map(area).sum::<f64>() - wanted).abs() < 1e-6);
            for (at, one) in blocks.iter().enumerate() {
                let apart = |other: &&Block| {
                    one.rack == other.rack
                        && one.start_s < other.end_s
                        && other.start_s < one.end_s
                        && one.from < other.to
                        && other.from < one.to
                };
                assert_eq!(blocks[at + 1..].iter().find(apart), None, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_chart_names_its_racks_its_axis_and_its_forecast() {
        let plan = sample::plan(1);
        let svg = draw(&plan).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("seconds") && svg.contains("makespan"), "{svg}");
        assert!(
            plan.racks.iter().all(|row| svg.contains(row.rack.as_str())) && svg.contains("assumes uplinks"),
            "{svg}"
        );
    }

    #[test]
    fn of_a_long_plan_bars_can_be_seen_and_its_axis_is_in_hours() {
        let mut plan = sample::plan(1);
        let end = plan.from.plus(Micros::from_secs(86_400));
        plan.jobs[0].forecast = Some(Forecast { maps_end: plan.from, shuffled: plan.from, end });
        let svg = draw(&plan).unwrap();
        assert!(svg.contains("hours"), "{svg}");
        let widths = svg.split("<rect").skip(1).map(|rect| rect.split_once(" width=\"").unwrap().1);
        let widths: Vec<f64> = widths.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
        assert!(widths.len() > 5 && widths.iter().all(|width| *width >= 1.0), "{widths:?}");
    }

    #[test]
    fn no_bar_runs_past_the_axis_where_the_forecast_is_earlier_than_the_slices() {
        let mut plan = sample::plan(1);
        let slices_end_s = axis_end_s(0.0, &blocks(&plan));
        let of = |plan: &Plan| axis_end_s(plan.makespan().as_secs_f64(), &blocks(plan));
        assert!(slices_end_s > 2.0 && of(&plan) >= slices_end_s);
        let early = plan.from.plus(Micros::from_secs(1));
        for job in &mut plan.jobs {
            job.forecast = Some(Forecast { maps_end: early, shuffled: early, end: early });
        }
        assert_eq!((plan.makespan(), of(&plan)), (Micros::from_secs(1), slices_end_s));
        let late = plan.from.plus(Micros::from_secs(1_000_000));
        plan.jobs[0].forecast = Some(Forecast { maps_end: early, shuffled: early, end: late });
        assert_eq!(of(&plan), 1_000_000.0, "and a later forecast has its room");
        // The title has the forecast, and every bar a width within the chart.
        plan.jobs[0].forecast = Some(Forecast { maps_end: early, shuffled: early, end: early });
        let svg = draw(&plan).unwrap();
        assert!(svg.contains("makespan 1 s"), "{svg}");
        let number = |tag: &str, name: &str| -> Option<f64> {
            let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
            value.parse().ok()
        };
        for rect in svg.split("<rect").skip(1) {
            let (x, width) = number(rect, "x").zip(number(rect, "width")).unwrap();
            assert!(width > 0.0 && x + width <= f64::from(SIZE.0), "{rect}");
        }
    }
}
