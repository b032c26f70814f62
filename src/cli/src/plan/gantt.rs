//! A plan as a Gantt chart: a band for each rack, its containers upwards, time to the right.

mod axis;
mod bars;
mod names;

use crate::output;
use crate::plots::style::{FAMILY, INK, PALE, SIZE, SMALL, number};
use axis::Axis;
use bars::Corners;
use hintd_model::units::{RackPath, Timestamp};
use hintd_policy::plan::{Plan, Slice, Stage};
use plotters::prelude::*;
use std::collections::BTreeMap;

/// A part of a band: from when to when, of which containers, whose.
#[derive(Debug, Clone, Copy, PartialEq)]
struct Block<'p> {
    rack: usize,
    start_s: f64,
    end_s: f64,
    /// Containers, from and to.
    from: u32,
    to: u32,
    job: usize,
    stage: Stage,
    /// What it is a part of.
    slice: &'p Slice,
}

/// Width, pixels: more than other plots have, so that more bars have room for their jobs' names.
const WIDTH: u32 = 1_280;
/// Height of a rack's band, pixels, at least; the chart grows with its racks.
const BAND: u32 = 30;

/// The chart as SVG; times are shown by a clock that is so many seconds ahead of UTC.
pub(super) fn draw(plan: &Plan, zone_offset_s: i64) -> anyhow::Result<String> {
    let racks = plan.racks.len().max(1);
    let height = SIZE.1.max(120 + BAND * u32::try_from(racks).unwrap_or(1_000).min(1_000));
    let blocks = blocks(plan);
    let axis = Axis::new(plan, &blocks, zone_offset_s);
    let mut bars: Vec<(Block<'_>, Corners)> = Vec::with_capacity(blocks.len());
    let mut bands: Vec<(i32, i32)> = Vec::with_capacity(racks);
    let mut svg = String::new();
    {
        let root = SVGBackend::with_string(&mut svg, (WIDTH, height)).into_drawing_area();
        root.fill(&WHITE)?;
        let root = root.titled(&title(plan), (FAMILY, SMALL).into_font().color(&INK))?;
        let mut chart = ChartBuilder::on(&root)
            .caption(assumptions(plan), (FAMILY, SMALL).into_font().color(&INK))
            .margin(16)
            .margin_right(48) // half of the words at the last tick
            .x_label_area_size(54)
            .y_label_area_size(110)
            .build_cartesian_2d(axis, 0.0..racks as f64)?;
        chart
            .configure_mesh()
            .x_desc(axis.name())
            .axis_desc_style((FAMILY, SMALL).into_font().color(&INK))
            .label_style((FAMILY, SMALL).into_font().color(&INK))
            .y_labels(0)
            .axis_style(INK)
            .bold_line_style(PALE)
            .light_line_style(TRANSPARENT)
            .draw()?;
        let height_of = |rack: usize| chart.backend_coord(&(0.0, rack as f64)).1;
        bands.extend((0..racks).map(|rack| (height_of(rack + 1), height_of(rack))));
        for block in blocks {
            let containers = f64::from(plan.racks[block.rack].containers.max(1));
            let y = |container: u32| block.rack as f64 + 0.04 + 0.92 * f64::from(container) / containers;
            let first = chart.backend_coord(&(block.start_s, y(block.to)));
            let last = chart.backend_coord(&(block.end_s, y(block.from)));
            bars.push((block, bars::visible(first, last)));
        }
        let names = (FAMILY, SMALL).into_font().color(&INK);
        chart.draw_series(plan.racks.iter().enumerate().map(|(at, row)| {
            let beside = EmptyElement::at((0.0, at as f64 + 0.5));
            beside + Text::new(legal(row.rack.as_str()), (-100, -8), names.clone())
        }))?;
        root.present()?;
    }
    // The library draws no words that are seen only when a bar is pointed at.
    let end = svg.rfind("</svg>").ok_or_else(|| anyhow::anyhow!("the chart has no end"))?;
    let mut drawn: String = bars.iter().map(|bar| bars::bar(plan, &axis, bar)).collect();
    drawn.push_str(&names::names(plan, &bars, &bands, i32::try_from(WIDTH)?));
    svg.insert_str(end, &drawn);
    Ok(svg)
}

/// The plan in a line.
fn title(plan: &Plan) -> String {
    let (circuit, between) = plan.circuit_bytes();
    let share = 100.0 * circuit.as_f64() / between.as_f64().max(1.0);
    format!(
        "{}: {} jobs, makespan {} s, {share:.1} % of shuffle between racks on circuits; maps pale, reduces full, grey: not heavy",
        legal(&plan.policy),
        plan.jobs.len(),
        number(plan.makespan().as_secs_f64()),
    )
}

fn legal(text: &str) -> String {
    text.chars().map(bars::legal).collect()
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

/// Every slice in containers of its own: those that are free when it starts, the lowest first.
fn blocks(plan: &Plan) -> Vec<Block<'_>> {
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
    let mut held: Vec<Vec<(Timestamp, u32, u32)>> = vec![Vec::new(); plan.racks.len()];
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
            let since_s = |at: Timestamp| at.since(plan.from).as_secs_f64();
            let (start_s, end_s) = (since_s(slice.start), since_s(slice.end));
            blocks.push(Block { rack, start_s, end_s, from, to: from + taken, job, stage, slice });
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
    use hintd_model::units::Micros;
    use hintd_policy::plan::{Forecast, sample};

    #[test]
    fn no_two_blocks_overlap_and_all_containers_are_drawn() {
        for seed in 0..20 {
            let plan = sample::plan(seed);
            let blocks = blocks(&plan);
            let area = |block: &Block<'_>| (block.end_s - block.start_s) * f64::from(block.to - block.from);
            let slices = plan.jobs.iter().flat_map(|job| job.maps.slices.iter().chain(&job.reduces.slices));
            let wanted: f64 =
                slices.map(|slice| slice.end.since(slice.start).as_secs_f64() * f64::from(slice.containers)).sum();
            assert!((blocks.iter().map(area).sum::<f64>() - wanted).abs() < 1e-6);
            for (at, one) in blocks.iter().enumerate() {
                let apart = |other: &&Block<'_>| {
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
        let svg = draw(&plan, 0).unwrap();
        assert!(svg.starts_with("<svg") && svg.contains("seconds") && svg.contains("makespan"), "{svg}");
        assert!(
            plan.racks.iter().all(|row| svg.contains(row.rack.as_str())) && svg.contains("assumes uplinks"),
            "{svg}"
        );
    }

    /// The plan with a run that is expected to end so much later: bars are narrow beside that.
    fn with_end(plan: &Plan, seconds: u64) -> Plan {
        let mut plan = plan.clone();
        let end = plan.from.plus(Micros::from_secs(seconds));
        plan.jobs[0].forecast = Some(Forecast { maps_end: plan.from, shuffled: plan.from, end });
        plan
    }

    /// Tooltips, with what XML escapes.
    fn tooltips(svg: &str) -> Vec<&str> {
        svg.split("<title>").skip(1).map(|rest| rest.split("</title>").next().unwrap()).collect()
    }

    #[test]
    fn bars_have_their_jobs_names_and_every_bar_tells_all_of_itself_by_the_clock() {
        let mut plan = sample::plan(1);
        let by = 1_795_385_400_000_000; // 2026-11-22 22:10:00 UTC
        let later = |at: &mut Timestamp| at.0 = at.0 - plan.from.0 + by;
        for job in &mut plan.jobs {
            [&mut job.arrival, &mut job.start, &mut job.end].into_iter().for_each(later);
            let slices = job.maps.slices.iter_mut().chain(&mut job.reduces.slices);
            slices.for_each(|slice| [&mut slice.start, &mut slice.end].into_iter().for_each(later));
            job.job.key = format!("<b>&{}", job.job.key).into();
        }
        plan.from = Timestamp(by);
        let svg = draw(&plan, 3_600).unwrap();
        let bars = blocks(&plan).len();
        let told = tooltips(&svg);
        assert_eq!((told.len(), svg.matches("</title></rect>").count()), (bars, bars));
        let (job, slice) = (&plan.jobs[0], &plan.jobs[0].maps.slices[0]);
        let name = format!("&lt;b&gt;&amp;job0, run 0, {}", if job.heavy { "heavy" } else { "not heavy" });
        let place = format!("maps in {}: {} tasks in {} containers", slice.rack, slice.tasks, slice.containers);
        let start = slice.start.calendar(3_600);
        let time = format!("2026-11-22 23:{:02}:{:02} to ", start.minute, start.second);
        let of = |words: &&&str| words.starts_with(&name) && words.contains(&place) && words.contains(&time);
        assert!(told.iter().find(of).is_some_and(|words| words.ends_with(" UTC+01:00")), "{name} {time}: {told:?}");
        let texts: Vec<&str> = svg.split("<text").skip(1).collect();
        let narrow = with_end(&plan, 86_400);
        assert!(draw(&narrow, 0).unwrap().contains(">&lt;b&gt;&amp;job"), "beside bars that are too narrow");
        assert!(texts.iter().filter(|text| text.contains(">&lt;b&gt;&amp;job")).count() > 3, "{svg}");
        assert!(svg.contains("time from 2026-11-22 on, UTC+01:00") && texts.iter().any(|text| text.contains("23:1")));
        assert!(!svg.contains("<b>"), "{svg}");
    }

    #[test]
    fn of_a_long_plan_bars_can_be_seen_and_its_axis_is_in_hours() {
        let plan = with_end(&sample::plan(1), 86_400);
        let svg = draw(&plan, 0).unwrap();
        assert!(svg.contains("hours"), "{svg}");
        let widths = svg.split("<rect").skip(1).map(|rect| rect.split_once(" width=\"").unwrap().1);
        let widths: Vec<f64> = widths.map(|rest| rest.split('"').next().unwrap().parse().unwrap()).collect();
        assert!(widths.len() > 5 && widths.iter().all(|width| *width >= 1.0), "{widths:?}");
    }

    #[test]
    fn no_bar_runs_past_the_axis_where_the_forecast_is_earlier_than_the_slices() {
        let mut plan = sample::plan(1);
        let slices_end_s = blocks(&plan).iter().map(|block| block.end_s).fold(1.0, f64::max);
        let of = |plan: &Plan| Axis::new(plan, &blocks(plan), 0).end_s;
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
        let svg = draw(&plan, 0).unwrap();
        assert!(svg.contains("makespan 1 s"), "{svg}");
        let number = |tag: &str, name: &str| -> Option<f64> {
            let value = tag.split_once(&format!(" {name}=\""))?.1.split('"').next()?;
            value.parse().ok()
        };
        for rect in svg.split("<rect").skip(1) {
            let (x, width) = number(rect, "x").zip(number(rect, "width")).unwrap();
            assert!(width > 0.0 && x + width <= f64::from(WIDTH), "{rect}");
        }
    }
}
