//! A seeded generator of small traces that look like Facebook's of 2010, and the writer of SWIM's format.
//!
//! # What it resembles
//! The quantiles below were measured on SWIM's FB-2010 sample (24,442 jobs over a day); between two quantiles sizes
//! are log-uniform. Half the jobs read less than 10 MiB, 34 % shuffle nothing, and a per cent of the jobs holds most
//! bytes. A job's shuffle and output have its input's rank with probability 0.8 and 0.7, else a rank of their own
//! (measured rank correlations among jobs that shuffle: 0.79 and 0.71). Arrivals are exponential. With paths, 32 % of
//! the jobs read a path again: that of an earlier job drawn uniformly, so that popular paths grow more popular; they
//! read the same bytes. Not modelled: hours of the day, recurring jobs, sizes that differ between reads of one path.

use super::swim::SwimJob;
use hintd_model::units::{Bytes, Micros};
use rand::rngs::ChaCha8Rng;
use rand::{RngExt as _, SeedableRng as _};
use std::io::{self, Write};
use std::sync::Arc;

/// Rank and bytes; rank 0 is the smallest size.
type Quantiles = [(f64, f64)];

const INPUT: &Quantiles = &[
    (0.0, 24.0),
    (0.10, 533.0),
    (0.25, 15.8e3),
    (0.40, 906e3),
    (0.50, 10.4e6),
    (0.60, 71.2e6),
    (0.75, 1.74e9),
    (0.90, 30.6e9),
    (0.99, 1.11e12),
    (1.0, 11.7e12),
];
/// Of the jobs that shuffle.
const SHUFFLE: &Quantiles = &[
    (0.0, 18.0),
    (0.10, 49.0),
    (0.25, 1.13e3),
    (0.40, 18.8e3),
    (0.50, 502e3),
    (0.60, 10.9e6),
    (0.75, 172e6),
    (0.90, 2.66e9),
    (0.99, 429e9),
    (1.0, 29.8e12),
];
const OUTPUT: &Quantiles = &[
    (0.0, 8.0),
    (0.10, 246.0),
    (0.25, 1.5e3),
    (0.40, 31.1e3),
    (0.50, 81.4e3),
    (0.60, 771e3),
    (0.75, 22e6),
    (0.90, 1.28e9),
    (0.99, 137e9),
    (1.0, 85.1e12),
];
const NO_SHUFFLE: f64 = 0.3406;
const SHUFFLE_FOLLOWS_INPUT: f64 = 0.8;
const OUTPUT_FOLLOWS_INPUT: f64 = 0.7;
const REREAD: f64 = 0.325;

/// What to generate.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TraceShape {
    /// Jobs.
    pub jobs: u32,
    /// The mean of the last submit time; single traces differ, as arrivals are random.
    pub span: Micros,
    /// Whether jobs name input paths.
    pub paths: bool,
    /// Same seed, same bytes.
    pub seed: u64,
}

/// Draws a trace, in order of submit times, which are whole seconds as SWIM's are.
#[must_use]
pub fn generate(shape: &TraceShape) -> Vec<SwimJob> {
    let mut rng = ChaCha8Rng::seed_from_u64(shape.seed);
    let mean_gap_s = shape.span.as_secs_f64() / f64::from(shape.jobs.max(1));
    let mut submit_s = 0.0;
    let mut jobs: Vec<SwimJob> = Vec::with_capacity(shape.jobs as usize);
    let mut paths = 0_u32;
    for number in 0..shape.jobs {
        submit_s -= (1.0 - rng.random::<f64>()).ln() * mean_gap_s;
        let rank = rng.random::<f64>();
        let shuffles = !rng.random_bool(NO_SHUFFLE);
        let shuffle_rank = if rng.random_bool(SHUFFLE_FOLLOWS_INPUT) { rank } else { rng.random() };
        let output_rank = if rng.random_bool(OUTPUT_FOLLOWS_INPUT) { rank } else { rng.random() };
        let mut job = SwimJob {
            name: format!("job{number}").into(),
            submit: Micros::from_secs(submit_s as u64),
            input: size(INPUT, rank),
            shuffle: if shuffles { size(SHUFFLE, shuffle_rank) } else { Bytes::ZERO },
            output: size(OUTPUT, output_rank),
            input_path: None,
        };
        if shape.paths {
            if !jobs.is_empty() && rng.random_bool(REREAD) {
                let earlier = &jobs[rng.random_range(0..jobs.len())];
                job.input = earlier.input;
                job.input_path.clone_from(&earlier.input_path);
            } else {
                paths += 1;
                job.input_path = Some(Arc::from(format!("inputPath{paths}")));
            }
        }
        jobs.push(job);
    }
    jobs
}

/// Writes SWIM's rows: 9 columns if any job names an input path, else 6. Submit times are cut to whole seconds, which
/// is all that the format holds.
///
/// # Errors
/// Those of `out`.
pub fn write_swim(jobs: &[SwimJob], mut out: impl Write) -> io::Result<()> {
    let with_paths = jobs.iter().any(|job| job.input_path.is_some());
    let mut previous_s = 0;
    for job in jobs {
        let submit_s = job.submit.0 / 1_000_000;
        let gap_s = submit_s.saturating_sub(previous_s);
        previous_s = submit_s;
        let SwimJob { name, input, shuffle, output, .. } = job;
        write!(out, "{name}\t{submit_s}\t{gap_s}\t{}\t{}\t{}", input.0, shuffle.0, output.0)?;
        if with_paths {
            write!(out, "\t{}\t\t", job.input_path.as_deref().unwrap_or_default())?;
        }
        writeln!(out)?;
    }
    Ok(())
}

/// The size at `rank`: log-linear between the table's points.
fn size(table: &Quantiles, rank: f64) -> Bytes {
    let above = table.iter().position(|&(at, _)| at >= rank).unwrap_or(table.len() - 1).max(1);
    let ((from, low), (to, high)) = (table[above - 1], table[above]);
    let share = ((rank - from) / (to - from)).clamp(0.0, 1.0);
    Bytes((low.ln() + share * (high.ln() - low.ln())).exp().round() as u64)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::trace::swim::SwimReader;

    /// How `tests/data/swim-small.tsv` was made.
    const SMALL: TraceShape = TraceShape { jobs: 60, span: Micros::from_secs(600), paths: true, seed: 2010 };

    fn share(jobs: &[SwimJob], holds: impl Fn(&SwimJob) -> bool) -> f64 {
        jobs.iter().filter(|job| holds(job)).count() as f64 / jobs.len() as f64
    }

    #[test]
    fn the_committed_trace_comes_from_its_seed() {
        let mut bytes = Vec::new();
        write_swim(&generate(&SMALL), &mut bytes).unwrap();
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/data/swim-small.tsv");
        if std::env::var_os("HINTD_BLESS").is_some() {
            std::fs::write(path, &bytes).unwrap();
        }
        let committed = std::fs::read(path).unwrap();
        assert!(committed == bytes, "tests/data/swim-small.tsv differs: HINTD_BLESS=1 cargo test writes it anew");
        let read: Vec<_> = SwimReader::new(&committed[..]).collect::<Result<_, _>>().unwrap();
        assert_eq!(read, generate(&SMALL), "what was written reads back as it was");
    }

    #[test]
    fn a_generated_trace_has_the_classes_of_fb_2010() {
        let jobs = generate(&TraceShape { jobs: 20_000, span: Micros::from_secs(86_400), paths: false, seed: 7 });
        let near = |got: f64, wanted: f64| assert!((got - wanted).abs() < 0.015, "{got} instead of {wanted}");
        near(share(&jobs, |job| job.input.0 < 10 << 20), 0.50);
        near(share(&jobs, |job| job.shuffle == Bytes::ZERO), 0.34);
        near(share(&jobs, |job| job.shuffle.0 < 1 << 20), 0.687);
        near(share(&jobs, |job| job.shuffle.0 > 100 << 20), 0.187);
        let mut shuffles: Vec<u64> = jobs.iter().map(|job| job.shuffle.0).collect();
        shuffles.sort_unstable();
        let total: u64 = shuffles.iter().sum();
        let top: u64 = shuffles[shuffles.len() * 99 / 100..].iter().sum();
        assert!(top as f64 > 0.8 * total as f64, "the top per cent holds {top} of {total}");
        let last_s = jobs.last().unwrap().submit.as_secs_f64();
        assert!((last_s / 86_400.0 - 1.0).abs() < 0.05, "{last_s}");
    }

    #[test]
    fn paths_are_read_again_with_the_same_bytes() {
        let jobs = generate(&TraceShape { jobs: 2_000, span: Micros::from_secs(7_200), paths: true, seed: 7 });
        let mut first = std::collections::BTreeMap::new();
        let again = jobs
            .iter()
            .filter(|job| {
                let path = job.input_path.clone().unwrap();
                let seen = first.contains_key(&path);
                assert_eq!(*first.entry(path).or_insert(job.input), job.input);
                seen
            })
            .count();
        assert!((again as f64 / 2_000.0 - REREAD).abs() < 0.03, "{again}");
    }

    #[test]
    fn another_seed_gives_another_trace() {
        assert_ne!(generate(&SMALL), generate(&TraceShape { seed: 2011, ..SMALL }));
        assert!(generate(&TraceShape { jobs: 0, ..SMALL }).is_empty());
    }
}
