//! `hintctl circuits`: which circuits an optical switch should have, which it has, and demand without one.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use hintd_client::wire::v1;

/// Shown after the command's help.
pub const HELP: &str = "Examples:\n  hintctl circuits\n  \
    hintctl --json circuits | jq '.wanted.unserved[] | select(.reason != \"outweighed\")'\n  \
    hintctl watch --circuits                             each configuration as it is wanted\n\n\
    What is expected is estimated from task events of applications that follow; what is set is what the switch's\n\
    controller says (docs/plans.md).";

/// `hintctl circuits`.
///
/// # Errors
/// [`Failure`] where no daemon answers.
pub fn run(daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = daemon.ask(async |mut admin| admin.circuits(v1::CircuitsRequest {}).await)?;
    output.sorted_answer(&answer, text)
}

fn text(answer: &v1::CircuitsResponse) -> String {
    let Some(wanted) = &answer.wanted else {
        return "the network has no optical switch: no circuits are wanted".to_owned();
    };
    let bad = answer.ports.iter().filter(|port| port.state != "works").count();
    let wants = match wanted.version {
        0 => "nothing yet: a controller is to say first what is set".to_owned(),
        version => format!("version {version}, by {}: {} circuits", wanted.cause, wanted.circuits.len()),
    };
    let reported = answer.reported.as_ref().map_or_else(
        || "nothing: no controller has said what is set".to_owned(),
        |reported| report_text(answer, wanted, reported),
    );
    let mut lines = vec![output::pairs(&[
        ("switch", format!("{}, {} ports, {bad} of them not working", wanted.switch, answer.ports.len())),
        ("wanted", wants),
        ("reported", reported),
        ("chosen", format!("every {} ms; a change takes {} ms", answer.interval_ms, answer.pause_ms)),
        ("elephants", format!("from {}", output::bytes(answer.elephant_bytes as f64))),
        ("racks", format!("{} without a port", answer.racks_without_port)),
    ])];
    if !wanted.circuits.is_empty() || not_wanted(answer, wanted).next().is_some() {
        lines.push(format!("\n{}", circuits_table(answer, wanted)));
    }
    if wanted.unserved_pairs > 0 {
        lines.push(format!("\n{}", unserved_table(wanted)));
    }
    if bad > 0 {
        let bad = answer.ports.iter().filter(|port| port.state != "works");
        let rows = bad.map(|port| [port.port.clone(), port.rack.clone(), port.state.clone(), port.reason.clone()]);
        lines.push(format!("\n{}", output::table(["port", "rack", "state", "why"], 4, rows)));
    }
    lines.join("\n")
}

fn report_text(answer: &v1::CircuitsResponse, wanted: &v1::WantedCircuits, reported: &v1::CircuitsReport) -> String {
    let which = match wanted.version.saturating_sub(reported.version) {
        0 => "this version".to_owned(),
        1 => "a version behind".to_owned(),
        behind => format!("{behind} versions behind"),
    };
    let is = match (answer.attended, answer.set) {
        (false, _) => "its stream has ended since, and nobody sets circuits",
        (true, true) if wanted.circuits.is_empty() => "none is wanted",
        (true, true) => "all of it is set",
        (true, false) => "not all of it is set",
    };
    let ago = output::digits(reported.age_ms as f64 / 1_000.0);
    let replaced = match reported.replaced {
        0 => String::new(),
        1 => "; a later Watch of its name took the place of one that was open".to_owned(),
        times => {
            format!("; {times} times a later Watch of its name took the place of one that was open: are there two?")
        }
    };
    format!("by \"{}\" {ago} s ago, {which}: {is}{replaced}", reported.watcher)
}

/// Circuits that are set, and why they are though nobody wants them.
fn not_wanted<'a>(
    answer: &'a v1::CircuitsResponse,
    wanted: &'a v1::WantedCircuits,
) -> impl Iterator<Item = (&'a v1::SetCircuit, &'static str)> {
    let is_wanted = |set: &v1::SetCircuit| {
        wanted.circuits.iter().any(|circuit| (&circuit.input, &circuit.output) == (&set.input, &set.output))
    };
    let stuck = |port: &str| answer.ports.iter().any(|view| view.port == port && view.state == "stuck");
    let set = answer.reported.iter().flat_map(|reported| &reported.set);
    set.filter(move |set| !is_wanted(set)).map(move |set| {
        let why = if stuck(&set.input) || stuck(&set.output) { "stuck" } else { "not wanted" };
        (set, why)
    })
}

fn circuits_table(answer: &v1::CircuitsResponse, wanted: &v1::WantedCircuits) -> String {
    let yes = if answer.attended { "yes" } else { "was" };
    let rows = wanted.circuits.iter().map(|circuit| {
        let demand = circuit.demand.clone().unwrap_or_default();
        let set = answer.reported.iter().flat_map(|reported| &reported.set);
        let is = set.into_iter().any(|set| (&set.input, &set.output) == (&circuit.input, &circuit.output));
        [
            circuit.input.clone(),
            circuit.output.clone(),
            format!("{} to {}", demand.from_rack, demand.to_rack),
            if is { yes } else { "no" }.to_owned(),
            demand.reason,
            demand.jobs.to_string(),
            output::bytes(demand.expected_bytes as f64),
        ]
    });
    let rack = |port: &str| answer.ports.iter().find(|view| view.port == port).map_or("(gone)", |view| &view.rack);
    let others = not_wanted(answer, wanted).map(|(set, why)| {
        let racks = format!("{} to {}", rack(&set.input), rack(&set.output));
        let none = String::new;
        [set.input.clone(), set.output.clone(), racks, yes.to_owned(), why.to_owned(), none(), none()]
    });
    output::table(["input", "output", "racks", "set", "why", "jobs", "expected"], 5, rows.chain(others))
}

fn unserved_table(wanted: &v1::WantedCircuits) -> String {
    let rows = wanted.unserved.iter().map(|pair| {
        [
            format!("{} to {}", pair.from_rack, pair.to_rack),
            pair.reason.clone(),
            pair.jobs.to_string(),
            output::bytes(pair.expected_bytes as f64),
        ]
    });
    let table = output::table(["without a circuit", "why", "jobs", "expected"], 2, rows);
    let (shown, all) = (wanted.unserved.len(), wanted.unserved_pairs);
    let bytes = output::bytes(wanted.unserved_bytes as f64);
    format!("{table}\n{shown} of {all} pairs of racks, {bytes} in all")
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};

    fn demand(expected_bytes: u64, reason: &str) -> v1::RackDemand {
        let (from_rack, to_rack) = ("/r1".to_owned(), "/r2".to_owned());
        v1::RackDemand { from_rack, to_rack, expected_bytes, jobs: 2, since_ms: 7, reason: reason.to_owned() }
    }

    fn answer() -> v1::CircuitsResponse {
        let circuit = |input: &str, output: &str, expected, reason| v1::Circuit {
            input: input.into(),
            output: output.into(),
            demand: Some(demand(expected, reason)),
        };
        let port = |port: &str, state: &str| v1::OpticalPortView {
            port: port.into(),
            rack: "/r3".into(),
            state: state.into(),
            reason: "no light".into(),
        };
        v1::CircuitsResponse {
            wanted: Some(v1::WantedCircuits {
                version: 4,
                switch: "optical".into(),
                circuits: vec![circuit("p1", "p2", 5_000_000_000, "demand"), circuit("p2", "p1", 0, "kept")],
                unserved: vec![demand(2_000_000_000, "port_failed")],
                unserved_pairs: 3,
                unserved_bytes: 4_000_000_000,
                cause: "ports".into(),
                chosen_at_ms: 9,
            }),
            interval_ms: 1_000,
            pause_ms: 10,
            elephant_bytes: 1_125_000_000,
            reported: Some(v1::CircuitsReport {
                watcher: "ocs".into(),
                age_ms: 1_500,
                version: 3,
                set: vec![v1::SetCircuit { input: "p1".into(), output: "p2".into() }],
                replaced: 0,
            }),
            ports: vec![port("p1", "works"), port("p2", "works"), port("p3", "failed")],
            racks_without_port: 1,
            set: false,
            attended: true,
        }
    }

    #[test]
    fn people_read_what_is_wanted_what_is_set_and_what_goes_without() {
        let text = text(&answer());
        let has = |words: &str| assert!(text.contains(words), "no {words:?} in\n{text}");
        has("version 4, by ports: 2 circuits");
        has("by \"ocs\" 1.5 s ago, a version behind: not all of it is set\n");
        has("1 of 3 pairs of racks, 4 GB in all");
        has("port_failed");
        let rows: Vec<&str> = text.lines().filter(|line| line.starts_with('p')).collect();
        assert!(rows[0].contains("yes") && rows[1].contains("no") && rows[1].contains("kept"), "{rows:?}");
        assert!(rows.iter().any(|row| row.starts_with("p3") && row.contains("no light")), "{rows:?}");
        assert!(super::text(&v1::CircuitsResponse::default()).contains("no optical switch"));
    }

    #[test]
    fn people_read_what_is_set_and_not_wanted_and_that_a_controller_is_gone() {
        let mut answer = answer();
        answer.attended = false;
        answer.ports[2].state = "stuck".into();
        let reported = answer.reported.as_mut().unwrap();
        let set = |input: &str, output: &str| v1::SetCircuit { input: input.into(), output: output.into() };
        reported.set = vec![set("p1", "p3"), set("p2", "p4")];
        reported.replaced = 3;
        let text = text(&answer);
        assert!(
            text.contains("a version behind: its stream has ended since, and nobody sets circuits; 3 times"),
            "{text}"
        );
        assert!(
            text.contains("a later Watch of its name took the place of one that was open: are there two?"),
            "{text}"
        );
        let row = |port: &str, why: &str| {
            let mut rows = text.lines().filter(|line| line.starts_with(port));
            assert!(rows.any(|row| row.contains(why)), "no {why:?} of {port} in\n{text}");
        };
        row("p1", "stuck");
        row("p2", "not wanted");
        row("p2", "was");
        answer.wanted = Some(v1::WantedCircuits { version: 0, cause: "learning".into(), ..Default::default() });
        assert!(super::text(&answer).contains("nothing yet"), "{}", super::text(&answer));
    }

    #[test]
    fn scripts_read_the_same() {
        let found = json!(answer());
        assert_eq!(found["wanted"]["circuits"][0]["demand"]["expected_bytes"], json!(5_000_000_000_u64));
        assert_eq!((&found["reported"]["version"], &found["set"]), (&json!(3), &json!(false)));
        assert_eq!(found["reported"]["replaced"], 0);
        assert_eq!(json!(v1::CircuitsResponse::default())["wanted"], Value::Null);
    }
}
