//! `hintctl fit`: a performance curve of policy `nomora` from measured latency and performance.

use super::csv;
use super::failure::Failure;
use super::files;
use super::output::{self, Output};
use clap::Args;
use hintd_policy::Params as _;
use hintd_policy::nomora::NomoraParams;
use hintd_policy::nomora::fit::{Fit, Measurement, fit};
use serde::Serialize;
use std::path::{Path, PathBuf};

/// Bad lines that are named.
const NAMED: usize = 20;

/// Columns by name.
const LATENCY: [&str; 2] = ["latency_us", "rtt_us"];
const PERFORMANCE: &str = "performance";

/// Which measurements.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl fit memcached.csv\n  hintctl fit memcached.csv --name cache --best 210000 > cache.toml\n  \
    hintctl --json fit memcached.csv | jq .error\n\n\
    A line for each measurement: two-way latency in µs and performance, such as requests a second, in any unit of which more is better.\n\
    Without a header these are the first two columns; with one, the columns latency_us (or rtt_us) and performance. Empty lines and lines\n\
    that begin with # are passed over. Of all curves that policy nomora could read and that never grow, the result is the nearest by squares\n\
    (docs/policies.md, nomora). The result goes into hintd.toml, where the table [policies.nomora.curves] may stand once: beside\n\
    other curves the line of this one goes below theirs, and where [policies.nomora] has curves = { … } it goes between the braces.\n\
    Exit code 2 for a line that is no measurement: each is named, and nothing is fitted."
)]
pub struct FitArgs {
    /// The measurements; /dev/stdin: standard input
    file: PathBuf,
    /// The curve's name in the configuration
    #[arg(long, default_value = "fitted", value_name = "NAME")]
    name: String,
    /// The performance that counts as 1 [default: the most that the curve has]
    #[arg(long, value_name = "PERFORMANCE", value_parser = best)]
    best: Option<f64>,
}

#[derive(Serialize)]
struct Fitted<'a> {
    name: &'a str,
    points: &'a [(f64, f64)],
    best: f64,
    measurements: usize,
    beyond: usize,
    error: FitErrors,
    toml: String,
}

#[derive(Serialize)]
struct FitErrors {
    rms: f64,
    worst: f64,
    worst_line: usize,
}

fn best(text: &str) -> Result<f64, String> {
    let best = text.parse::<f64>().ok().filter(|best| *best > 0.0 && best.is_finite());
    best.ok_or_else(|| "expected: a performance above 0".to_owned())
}

/// Runs the command.
///
/// # Errors
/// [`Failure::Input`] with the lines that are no measurements, or with what no curve can be fitted to.
pub fn run(args: &FitArgs, output: Output) -> Result<(), Failure> {
    let text = files::read_text(&args.file)?;
    let lines = measurements(&args.file, &text)?;
    let all: Vec<Measurement> = lines.iter().map(|(_, measurement)| *measurement).collect();
    let found = fit(&all, args.best).map_err(|error| Failure::in_file(&args.file, error))?;
    // As the daemon would read it.
    let points = found.points.iter().map(|&(latency, performance)| vec![latency, performance]).collect();
    let params = NomoraParams { curves: [(args.name.clone(), points)].into(), ..NomoraParams::default() };
    params.validate().map_err(|invalid| Failure::Input(format!("{}: {}", invalid.key, invalid.message)))?;
    let (toml, worst_line) = (toml_of(&args.name, &found), lines[found.worst_at].0);
    let Fit { points, best, rms, worst, beyond, .. } = &found;
    let error = FitErrors { rms: *rms, worst: *worst, worst_line };
    let measurements = all.len();
    let document =
        Fitted { name: &args.name, points, best: *best, measurements, beyond: *beyond, error, toml: toml.clone() };
    output.file(&document, &said(&document))
}

/// Ready to go into the configuration: no line of it is broken.
fn said(fitted: &Fitted<'_>) -> String {
    let Fitted { best, measurements, beyond, error, toml, .. } = fitted;
    let FitErrors { rms, worst, worst_line } = error;
    let percent = |share: f64| output::digits(share * 100.0);
    let beyond = match beyond {
        0 => String::new(),
        count => format!("\n# {count} of them are beyond 1000 µs, where a curve ends: they count there"),
    };
    format!(
        "# fitted to {measurements} measurements, {} counts as 1; off by {} % of that (root of the mean square), at most {} % (line {worst_line}){beyond}\n{toml}",
        output::digits(*best),
        percent(*rms),
        percent(*worst),
    )
}

fn toml_of(name: &str, found: &Fit) -> String {
    let key = toml::Value::String(name.to_owned());
    let points: Vec<String> =
        found.points.iter().map(|(latency, performance)| format!("[{latency}, {performance}]")).collect();
    format!("[policies.nomora.curves]\n{key} = [{}]", points.join(", "))
}

/// Measurements with their lines.
fn measurements(path: &Path, text: &str) -> Result<Vec<(usize, Measurement)>, Failure> {
    let mut rows = csv::rows(text).peekable();
    let columns = match rows.peek() {
        Some(&(line, first)) if is_header(first) => {
            let found = columns(first).map_err(|why| Failure::in_file(path, format!("line {line}: {why}")))?;
            rows.next();
            found
        }
        _ => [0, 1],
    };
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for (line, row) in rows {
        match measurement(row, columns) {
            Ok(of) => all.push((line, of)),
            Err(why) => wrong.push(format!("line {line}: {why}")),
        }
    }
    if wrong.is_empty() {
        return Ok(all);
    }
    let more = wrong.len().saturating_sub(NAMED);
    wrong.truncate(NAMED);
    wrong.extend((more > 0).then(|| format!("{more} further lines are no measurements")));
    Err(files::problems(path, &wrong))
}

/// Neither of the first two columns is a number.
fn is_header(row: &str) -> bool {
    csv::fields(row).iter().take(2).all(|field| field.parse::<f64>().is_err())
}

fn columns(header: &str) -> Result<[usize; 2], String> {
    let names = csv::fields(header);
    match (csv::column(&names, &LATENCY), csv::column(&names, &[PERFORMANCE])) {
        (Some(latency), Some(performance)) => Ok([latency, performance]),
        _ => Err(format!(
            "\"{header}\" is neither a measurement nor a header with columns {} and {PERFORMANCE}",
            LATENCY.join(" or ")
        )),
    }
}

fn measurement(row: &str, columns: [usize; 2]) -> Result<Measurement, String> {
    let fields = csv::fields(row);
    let number = |column: usize, what: &str| {
        let field =
            fields.get(column).ok_or_else(|| format!("\"{row}\" has no column {} for the {what}", column + 1))?;
        field.parse::<f64>().map_err(|_| format!("a {what} of \"{field}\" is no number"))
    };
    let of = Measurement { latency_us: number(columns[0], "latency")?, performance: number(columns[1], PERFORMANCE)? };
    of.refused().map_or(Ok(of), Err)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<Vec<(usize, Measurement)>, String> {
        measurements(Path::new("m.csv"), text).map_err(|error| error.to_string())
    }

    fn of(latency_us: f64, performance: f64) -> Measurement {
        Measurement { latency_us, performance }
    }

    #[test]
    fn columns_are_the_first_two_or_those_of_the_header() {
        let expected = vec![(3, of(10.0, 5e3)), (5, of(20.5, 4e3))];
        assert_eq!(read("# by hand\n\n10,5000\n# more\n 20.5 , 4e3 ,x\n").unwrap(), expected);
        let named = "\u{feff}run,Performance,\"RTT_us\"\n1,5000,10\n";
        assert_eq!(read(named).unwrap(), [(2, of(10.0, 5e3))]);
        assert_eq!(read("").unwrap(), []);
    }

    #[test]
    fn each_line_that_is_no_measurement_is_named_with_its_value() {
        let said = read("latency_us,performance\n10,abc\n-3,5\n20\n30,0\n40,nan\n50,9\n").unwrap_err();
        let expected = [
            "m.csv: line 2: a performance of \"abc\" is no number",
            "m.csv: line 3: a latency of -3 µs is not within 0 and 60000000",
            "m.csv: line 4: \"20\" has no column 2 for the performance",
            "m.csv: line 5: a performance of 0 is not above 0 and at most 1e15",
            "m.csv: line 6: a performance of NaN is not above 0 and at most 1e15",
        ];
        assert_eq!(said.lines().collect::<Vec<_>>(), expected);
        let said = read("when,what\n1,2\n").unwrap_err();
        assert!(said.contains("line 1: \"when,what\" is neither a measurement nor a header"), "{said}");
        let said = read(&"x,1\n".repeat(30)).unwrap_err();
        assert!(said.ends_with("10 further lines are no measurements") && said.lines().count() == 21, "{said}");
    }

    #[test]
    fn what_is_printed_is_read_by_the_daemon_as_it_was_fitted() {
        let all = [of(0.0, 200.0), of(100.0, 150.0), of(300.0, 25.0)];
        let found = fit(&all, None).unwrap();
        let text = toml_of("a \"name\"", &found);
        let config = hintd::config::Config::from_text(&text, "f").map(drop);
        assert!(config.is_ok(), "{text}: {:?}", config.err());
        assert!(text.contains("[[0, 1], [100, 0.75], [300, 0.125]]"), "{text}");
    }
}
