//! `hintctl network show`.

use super::super::connect::DaemonArgs;
use super::super::failure::Failure;
use super::super::output::{self, Output};
use super::rate;
use hintd_client::wire::v1;

/// Names in a line of text; --json has all.
const NAMES_SHOWN: usize = 10;

pub(super) fn run(daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let answer = daemon.ask(async |mut admin| admin.network(v1::NetworkRequest {}).await)?;
    output.sorted_answer(&answer, text)
}

fn text(answer: &v1::NetworkResponse) -> String {
    let v1::NetworkResponse { source, file, hosts, switches, links, .. } = answer;
    let from = match (source.as_str(), file.as_str()) {
        ("file", file) => format!("of {file}"),
        ("feed", _) => "told by a feed or a controller".to_owned(),
        _ => "none is known: hosts are as far apart as their racks say, and no link limits anything".to_owned(),
    };
    let mut lines = vec![output::pairs(&[
        ("network", from),
        ("size", format!("{hosts} hosts, {switches} switches, {links} links")),
    ])];
    if !answer.tiers.is_empty() {
        let rows = answer.tiers.iter().map(|tier| {
            let rate = |bits: u64| output::rate(bits as f64);
            [tier.tier.clone(), tier.switches.to_string(), rate(tier.down_bits_per_s), rate(tier.up_bits_per_s)]
        });
        lines.push(format!("\n{}", output::table(["tier", "switches", "to hosts", "to core"], 1, rows)));
    }
    if !answer.racks.is_empty() {
        let rows = answer.racks.iter().map(|rack| {
            let nic = if rack.hosts == 0 { "-".to_owned() } else { rate(rack.nic_bits_per_s) };
            [rack.switch.clone(), uplinks(&rack.uplinks), rack.hosts.to_string(), nic]
        });
        lines.push(format!("\n{}", output::table(["rack", "links up", "hosts", "slowest host link"], 2, rows)));
    }
    let lists = [
        ("hosts without a place", &answer.hosts_without_place),
        ("hosts that YARN does not know", &answer.hosts_unknown),
        ("racks that the file leaves out, without limits", &answer.racks_left_out),
        ("racks of the file without a host", &answer.racks_unused),
        ("hosts left out, for they are called as a switch is", &answer.hosts_left_out),
        ("hosts that the file names twice", &answer.hosts_twice),
        ("patterns of the file that mean nothing", &answer.patterns_unused),
        ("switches on a rack's switch, for no switch of tier core is declared", &answer.racks_on_racks),
    ];
    let lists: Vec<_> =
        lists.iter().filter(|(_, names)| !names.is_empty()).map(|(what, names)| listed(what, names)).collect();
    if !lists.is_empty() {
        lines.push(format!("\n{}", lists.join("\n")));
    }
    if !answer.trouble.is_empty() {
        lines.push(format!(
            "\nNOTICE: with the nodes of now the file makes no network, the one before stays: {}",
            answer.trouble
        ));
    }
    if !answer.refused.is_empty() {
        lines.push(format!("\nNOTICE: what is on disk is refused, what was read before stays: {}", answer.refused));
    }
    lines.join("\n")
}

fn uplinks(uplinks: &[v1::NetworkUplink]) -> String {
    let each = uplinks.iter().map(|uplink| format!("{} {}", uplink.to, rate(uplink.bits_per_s)));
    let line = each.collect::<Vec<_>>().join(", ");
    if line.is_empty() { "-".to_owned() } else { line }
}

fn listed(what: &str, names: &[String]) -> String {
    let shown = names.iter().take(NAMES_SHOWN).cloned().collect::<Vec<_>>().join(" ");
    let more = names.len().saturating_sub(NAMES_SHOWN);
    let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{} {what}: {shown}{rest}", names.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_network_reads_by_rack_with_what_is_amiss() {
        let uplink = v1::NetworkUplink { link: "l".into(), to: "core".into(), bits_per_s: Some(10_000_000_000) };
        let rack = v1::NetworkRack {
            switch: "/rack1".into(),
            hosts: 2,
            nic_bits_per_s: None,
            uplinks: vec![uplink.clone(), v1::NetworkUplink { bits_per_s: None, ..uplink }],
        };
        let answer = v1::NetworkResponse {
            source: "file".into(),
            file: "/etc/hintd/network.toml".into(),
            racks: vec![rack],
            hosts_unknown: (0..12).map(|at| format!("n{at}")).collect(),
            trouble: "an island".into(),
            hosts_left_out: vec!["core".into()],
            refused: "no such file".into(),
            ..v1::NetworkResponse::default()
        };
        let said = text(&answer);
        for words in [
            "of /etc/hintd/network.toml",
            "core 10 Gbit/s, core unlimited",
            "12 hosts that YARN does not know: n0",
            "n9 and 2 more",
            "the one before stays: an island",
            "1 hosts left out, for they are called as a switch is: core",
            "what was read before stays: no such file",
        ] {
            assert!(said.contains(words), "{words} is not in\n{said}");
        }
        let none = text(&v1::NetworkResponse { source: "none".into(), ..v1::NetworkResponse::default() });
        assert!(none.contains("none is known"), "{none}");
    }
}
