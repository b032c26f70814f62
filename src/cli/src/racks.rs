//! `hintctl racks`: who believes what of hosts' racks.

use super::connect::DaemonArgs;
use super::failure::Failure;
use super::output::{self, Output};
use super::view::PlainViewArgs;
use clap::Args;
use hintd_client::wire::v1;

/// What to list.
#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  hintctl racks\n  hintctl racks --all\n  hintctl --json racks | jq -r '.hosts[] | select(.differs) | .host'\n\n\
    YARN's rack is what NodeManagers and the ResourceManager tell; HDFS's what the NameNode's answers say of hosts that hold\n\
    blocks of paths that were asked for; the network's that of the switch that a host hangs on.\n\
    Exit code 0: they agree; 1: they differ; 2: no daemon answers."
)]
pub struct RacksArgs {
    /// Only hosts of which two contradict each other: what is shown without --json anyway
    #[arg(long)]
    differences: bool,
    /// All hosts
    #[arg(long, conflicts_with = "differences")]
    all: bool,
    #[command(flatten)]
    view: PlainViewArgs,
}

/// Runs the command.
///
/// # Errors
/// [`Failure`] where no daemon answers, and where racks differ.
pub fn run(args: &RacksArgs, daemon: &DaemonArgs, output: Output) -> Result<(), Failure> {
    let output = args.view.output(output)?;
    // 1 is for racks that differ.
    let trouble = |failure: Failure| Failure::Input(failure.to_string());
    // Scripts get what they got before there was --all.
    let differences = args.differences || !(args.all || output.is_json());
    let request = v1::RacksRequest { differences };
    let answer = daemon.ask(async |mut admin| admin.racks(request).await).map_err(trouble)?;
    output.sorted_answer(&answer, text).map_err(trouble)?;
    match answer.differing {
        0 => Ok(()),
        1 => Err(Failure::work("racks of 1 host differ")),
        count => Err(Failure::work(format!("racks of {count} hosts differ"))),
    }
}

fn text(answer: &v1::RacksResponse) -> String {
    let shown = |rack: &str| if rack.is_empty() { "-".to_owned() } else { rack.to_owned() };
    let rows = answer.hosts.iter().map(|host| {
        let v1::HostRacks { host, yarn, hdfs, network, differs } = host;
        let differs = if *differs { "differs" } else { "" };
        [host.clone(), shown(yarn), shown(hdfs), shown(network), differs.to_owned()]
    });
    let table = output::table(["host", "YARN", "HDFS", "network", ""], 5, rows);
    let counts = [(answer.yarn_hosts, "YARN"), (answer.hdfs_hosts, "HDFS"), (answer.network_hosts, "the network")];
    let counts = counts.map(|(count, who)| format!("{count} by {who}")).join(", ");
    let differ = match answer.differing {
        0 => "no host differs".to_owned(),
        1 => "1 host differs".to_owned(),
        count => format!("{count} hosts differ"),
    };
    let sum = format!("racks are known of {counts}; {differ}");
    if answer.hosts.is_empty() { sum } else { format!("{table}\n{sum}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn racks_read_side_by_side() {
        let host = v1::HostRacks {
            host: "n1".into(),
            yarn: "/a".into(),
            network: "/b".into(),
            differs: true,
            ..Default::default()
        };
        let answer = v1::RacksResponse {
            hosts: vec![host],
            differing: 1,
            yarn_hosts: 4,
            network_hosts: 3,
            ..Default::default()
        };
        let said = text(&answer);
        for words in
            ["n1    /a    -     /b", "differs", "known of 4 by YARN, 0 by HDFS, 3 by the network; 1 host differs"]
        {
            assert!(said.contains(words), "{words} is not in\n{said}");
        }
        assert!(text(&v1::RacksResponse::default()).starts_with("racks are known of 0"));
    }
}
