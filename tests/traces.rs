//! Real traces, where they are: `../shared/data/swim`, or `swim` below `HINTD_DATA`.

use hintd_simulator::{JobModel, SwimReader, maybe_gzip};
use std::io::BufReader;
use std::path::PathBuf;

/// The folder, or nothing and a line that says so.
fn swim() -> Option<PathBuf> {
    let data = std::env::var_os("HINTD_DATA")
        .map_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../shared/data"), PathBuf::from);
    let folder = data.join("swim");
    if folder.is_dir() {
        return Some(folder);
    }
    // Past the test harness, which keeps a passing test's output to itself.
    use std::io::Write as _;
    let _ =
        writeln!(std::io::stderr(), "SKIPPED: no real traces at {} (HINTD_DATA names another place)", folder.display());
    None
}

/// (jobs, maps under the one job model) of a file.
fn count(folder: &std::path::Path, file: &str) -> (u64, u64) {
    let model = JobModel::default();
    let file = std::fs::File::open(folder.join(file)).expect("the folder holds the trace");
    let reader = maybe_gzip(BufReader::new(file)).expect("its first bytes can be read");
    let jobs = SwimReader::new(reader).map(|job| model.maps(job.expect("a real trace is well-formed").input));
    jobs.fold((0, 0), |(jobs, maps), of_job| (jobs + 1, maps + of_job))
}

#[test]
fn the_real_swim_traces_are_read_whole() {
    let Some(folder) = swim() else { return };
    assert_eq!(count(&folder, "FB-2009_samples_24_times_1hr_0.tsv.gz").0, 5_894);
    let (jobs, maps) = count(&folder, "FB-2010_samples_24_times_1hr_0.tsv.gz");
    assert_eq!((jobs, maps / 100_000), (24_442, 80), "8.1 million maps: the count of the evaluation");
    assert_eq!(count(&folder, "FB-2010_samples_24_times_1hr_withInputPaths_0.tsv.gz").0, 25_428);
}
