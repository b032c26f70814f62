//! Round trips that something else has measured: lines of values, as Pingmesh has them, or an answer of Prometheus.

use crate::csv;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Names of columns.
const FROM: [&str; 4] = ["from", "source", "src", "from_host"];
const TO: [&str; 5] = ["to", "destination", "dst", "target", "to_host"];
const RTT: [(&str, f64); 3] = [("rtt_us", 1.0), ("rtt_ms", 1e3), ("rtt_s", 1e6)];
const COUNT: [&str; 1] = ["count"];
const PATH: [&str; 1] = ["path"];
const TIME: [&str; 2] = ["time", "timestamp"];

/// Of a file without any.
const NONE: &str = "there are no measurements";

/// Round trips of one line.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Row {
    /// Where it stood: `line 7`, `result 3`.
    pub(super) at: String,
    pub(super) from: String,
    pub(super) to: String,
    pub(super) path: u32,
    pub(super) rtt_us: u64,
    pub(super) count: u64,
    /// Milliseconds since 1970; 0: now.
    pub(super) measured_at_ms: u64,
}

/// Which columns are what.
struct Columns {
    from: usize,
    to: usize,
    rtt: (usize, f64),
    count: Option<usize>,
    path: Option<usize>,
    time: Option<usize>,
}

/// Lines under a header.
///
/// # Errors
/// All lines that are no measurements, each with what is wrong.
pub(super) fn of_csv(text: &str) -> Result<Vec<Row>, Vec<String>> {
    let mut rows = csv::rows(text);
    let Some((line, header)) = rows.next() else { return Err(vec![NONE.to_owned()]) };
    let columns = columns(header).map_err(|why| vec![format!("line {line}: {why}")])?;
    sorted(rows.map(|(line, row)| (format!("line {line}"), row)).map(|(at, row)| csv_row(at, row, &columns)))
}

/// Measurements, or all that is wrong with the others.
fn sorted(rows: impl Iterator<Item = Result<Row, String>>) -> Result<Vec<Row>, Vec<String>> {
    let (mut all, mut wrong) = (Vec::new(), Vec::new());
    for row in rows {
        match row {
            Ok(row) => all.push(row),
            Err(why) => wrong.push(why),
        }
    }
    match (wrong.is_empty(), all.is_empty()) {
        (true, false) => Ok(all),
        (true, true) => Err(vec![NONE.to_owned()]),
        (false, _) => Err(wrong),
    }
}

fn columns(header: &str) -> Result<Columns, String> {
    let names = csv::fields(header);
    let rtt = RTT.iter().find_map(|(name, unit)| Some((csv::column(&names, &[name])?, *unit)));
    let (Some(from), Some(to), Some(rtt)) = (csv::column(&names, &FROM), csv::column(&names, &TO), rtt) else {
        let rtts: Vec<&str> = RTT.iter().map(|(name, _)| *name).collect();
        return Err(format!(
            "\"{header}\" is no header: it has to name a column {}, a column {} and a column {}",
            FROM.join(" or "),
            TO.join(" or "),
            rtts.join(" or ")
        ));
    };
    let column = |names_of: &[&str]| csv::column(&names, names_of);
    Ok(Columns { from, to, rtt, count: column(&COUNT), path: column(&PATH), time: column(&TIME) })
}

fn csv_row(at: String, row: &str, columns: &Columns) -> Result<Row, String> {
    let fields = csv::fields(row);
    let said = |why: String| format!("{at}: {why}");
    let field = |column: usize, what: &str| match fields.get(column) {
        Some(field) if !field.is_empty() => Ok(*field),
        _ => Err(said(format!("\"{row}\" has no {what}"))),
    };
    let whole = |column: Option<usize>, what: &str, default: u64| match column {
        None => Ok(default),
        Some(column) => {
            let text = field(column, what)?;
            text.parse::<u64>().map_err(|_| said(format!("a {what} of \"{text}\" is no whole number")))
        }
    };
    let path = whole(columns.path, "path", 0)?;
    Ok(Row {
        from: field(columns.from, "host that measured")?.to_owned(),
        to: field(columns.to, "host that was measured")?.to_owned(),
        path: u32::try_from(path).map_err(|_| said(format!("a path of {path} is not within 0 to 3")))?,
        rtt_us: rtt_us(field(columns.rtt.0, "round trip")?, columns.rtt.1).map_err(said)?,
        count: whole(columns.count, "count", 1)?,
        measured_at_ms: match columns.time {
            Some(column) => time_ms(field(column, "time")?).map_err(said)?,
            None => 0,
        },
        at: at.clone(),
    })
}

/// A round trip in whole microseconds; what hintd would refuse, with its value.
fn rtt_us(text: &str, unit: f64) -> Result<u64, String> {
    let number = text.parse::<f64>().map_err(|_| format!("a round trip of \"{text}\" is no number"))?;
    let believed = hintd_model::network::latency::believed(number * unit);
    believed.map(u64::from).map_err(|error| error.to_string())
}

/// Seconds since 1970 in milliseconds.
fn time_ms(text: &str) -> Result<u64, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (1.0..1e11).contains(seconds));
    seconds
        .map(|seconds| (seconds * 1e3) as u64)
        .ok_or_else(|| format!("a time of \"{text}\" is no seconds since 1970"))
}

/// What to read of Prometheus's answers.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Labels<'a> {
    /// The label with the host that measured.
    pub(super) from: &'a str,
    /// That with the host that was measured.
    pub(super) to: &'a str,
    /// What one of the value is, µs.
    pub(super) unit_us: f64,
}

/// An answer of `/api/v1/query` or `/api/v1/query_range`.
#[derive(Debug, Deserialize)]
struct PrometheusAnswer {
    status: String,
    #[serde(default)]
    error: String,
    data: Option<PrometheusData>,
}

#[derive(Debug, Deserialize)]
struct PrometheusData {
    result: Vec<Series>,
}

#[derive(Debug, Deserialize)]
struct Series {
    metric: BTreeMap<String, String>,
    value: Option<(f64, String)>,
    #[serde(default)]
    values: Vec<(f64, String)>,
}

impl Series {
    /// Times and values.
    fn all(&self) -> impl Iterator<Item = &(f64, String)> {
        self.value.iter().chain(&self.values)
    }
}

/// The series of an answer, a row for each value; and how many values are no number, by which Prometheus says that there is
/// none: probes of a dead host export it.
///
/// # Errors
/// All series that are no measurements, each with what is wrong.
pub(super) fn of_prometheus(text: &str, labels: &Labels<'_>) -> Result<(Vec<Row>, u64), Vec<String>> {
    let answer: PrometheusAnswer = serde_json::from_str(text)
        .map_err(|error| vec![format!("this is no answer of Prometheus's /api/v1/query: {error}")])?;
    let Some(data) = answer.data.filter(|_| answer.status == "success") else {
        return Err(vec![format!("Prometheus answers {}: {}", answer.status, answer.error)]);
    };
    let no_value = data.result.iter().flat_map(Series::all).filter(|(_, value)| !has_value(value)).count() as u64;
    let series = (1..).zip(&data.result).flat_map(|(number, series)| series_rows(number, series, labels));
    let rows = sorted(series).map_err(|wrong| match no_value {
        1.. if wrong == [NONE] => vec![format!("{NONE}, and {no_value} values that are no number, such as NaN")],
        _ => wrong,
    });
    Ok((rows?, no_value))
}

/// What is neither NaN nor infinite; what can't be read at all is looked at with its row.
fn has_value(value: &str) -> bool {
    value.parse::<f64>().map_or(true, f64::is_finite)
}

fn series_rows(number: usize, series: &Series, labels: &Labels<'_>) -> Vec<Result<Row, String>> {
    let host = |label: &str| {
        let found = series.metric.get(label).filter(|host| !host.is_empty());
        found.map(|host| without_port(host).to_owned()).ok_or_else(|| format!("result {number} has no label {label}"))
    };
    let (from, to) = match (host(labels.from), host(labels.to)) {
        (Ok(from), Ok(to)) => (from, to),
        (Err(why), _) | (_, Err(why)) => return vec![Err(why)],
    };
    let row = |(time, value): &(f64, String)| {
        let said = |why: String| format!("result {number}, {from} to {to}: {why}");
        Ok(Row {
            at: format!("result {number}"),
            from: from.clone(),
            to: to.clone(),
            path: 0,
            rtt_us: rtt_us(value, labels.unit_us).map_err(said)?,
            count: 1,
            measured_at_ms: time_ms(&time.to_string()).map_err(said)?,
        })
    };
    series.all().filter(|(_, value)| has_value(value)).map(row).collect()
}

/// `instance` mostly has the port of whoever was asked.
fn without_port(host: &str) -> &str {
    match host.rsplit_once(':') {
        Some((name, port)) if !name.contains(':') && port.bytes().all(|digit| digit.is_ascii_digit()) => name,
        _ => host,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(at: &str, from: &str, to: &str, rtt_us: u64) -> Row {
        let (from, to) = (from.to_owned(), to.to_owned());
        Row { at: at.to_owned(), from, to, path: 0, rtt_us, count: 1, measured_at_ms: 0 }
    }

    #[test]
    fn columns_are_told_apart_by_their_names_and_times_are_seconds() {
        let text =
            "# Pingmesh\nsrc,dst,rtt_ms,count,path,timestamp\nn1,n2,0.25,3,1,1700000000.5\n\nn2,n1,1,1,0,1700000001\n";
        let first = Row { path: 1, count: 3, measured_at_ms: 1_700_000_000_500, ..row("line 3", "n1", "n2", 250) };
        let second = Row { measured_at_ms: 1_700_000_001_000, ..row("line 5", "n2", "n1", 1_000) };
        assert_eq!(of_csv(text), Ok(vec![first, second]));
        assert_eq!(of_csv("rtt_us,to,from\n40,b,a\n"), Ok(vec![row("line 2", "a", "b", 40)]));
    }

    #[test]
    fn every_line_that_is_no_measurement_is_named_with_its_value() {
        let text = "from,to,rtt_us,time\na,b,x,1\na,b,-4,1\na,b,7e7,1\na,,5,1\na,b,5,never\na,b,5,1e9\n";
        let expected = [
            "line 2: a round trip of \"x\" is no number",
            "line 3: a round trip of -4 µs is not above 0",
            "line 4: a round trip of 70000000 µs is not believed: at most 60000000 µs",
            "line 5: \"a,,5,1\" has no host that was measured",
            "line 6: a time of \"never\" is no seconds since 1970",
        ];
        assert_eq!(of_csv(text).unwrap_err(), expected);
        let said = of_csv("a,b,5\n").unwrap_err();
        assert!(
            said[0].starts_with("line 1: \"a,b,5\" is no header: it has to name a column from or source"),
            "{said:?}"
        );
        assert_eq!(of_csv("from,to,rtt_us\n").unwrap_err(), ["there are no measurements"]);
    }

    #[test]
    fn answers_of_prometheus_are_read_by_labels_without_ports() {
        let labels = Labels { from: "instance", to: "target", unit_us: 1e6 };
        let text = r#"{"status":"success","data":{"resultType":"vector","result":[
            {"metric":{"__name__":"ping_rtt_seconds","instance":"n1:9115","target":"n2"},"value":[1700000000.25,"0.000125"]},
            {"metric":{"instance":"n2:9115","target":"n1"},"values":[[1700000000,"0.0001"],[1700000015,"0.0002"]]}]}}"#;
        let at = |measured_at_ms, row: Row| Row { measured_at_ms, ..row };
        let expected = vec![
            at(1_700_000_000_250, row("result 1", "n1", "n2", 125)),
            at(1_700_000_000_000, row("result 2", "n2", "n1", 100)),
            at(1_700_000_015_000, row("result 2", "n2", "n1", 200)),
        ];
        assert_eq!(of_prometheus(text, &labels), Ok((expected.clone(), 0)));
        let other = Labels { to: "peer", ..labels.clone() };
        assert_eq!(of_prometheus(text, &other).unwrap_err()[0], "result 1 has no label peer");
        let none = text.replace("0.000125", "NaN").replace("0.0002", "+Inf");
        assert_eq!(
            of_prometheus(&none, &labels),
            Ok((vec![expected[1].clone()], 2)),
            "NaN says that there is no value"
        );
        let none = none.replace("0.0001", "-Inf");
        assert_eq!(
            of_prometheus(&none, &labels).unwrap_err(),
            ["there are no measurements, and 3 values that are no number, such as NaN"]
        );
        let wrong = text.replace("0.000125", "much");
        assert_eq!(
            of_prometheus(&wrong, &labels).unwrap_err(),
            ["result 1, n1 to n2: a round trip of \"much\" is no number"]
        );
        let failed = r#"{"status":"error","errorType":"bad_data","error":"parse error"}"#;
        assert_eq!(of_prometheus(failed, &labels).unwrap_err(), ["Prometheus answers error: parse error"]);
        assert!(of_prometheus("no", &labels).unwrap_err()[0].starts_with("this is no answer of Prometheus's"));
        assert_eq!(without_port("2001:db8::1"), "2001:db8::1");
    }
}
