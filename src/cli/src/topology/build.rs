//! `hintctl topology build`: networks of a kind, generated.

use crate::failure::Failure;
use crate::files;
use crate::new_file::ReplaceArg;
use crate::output::Output;
use clap::{Args, Subcommand};
use hintd_model::network::build::{
    self, BCubeSpec, BuildError, BuiltNetwork, FatTreeSpec, HybridSpec, JellyfishSpec, TreeSpec, Vl2Spec,
};
use hintd_model::network::{NetworkSummary, summary};
use hintd_model::units::BitsPerSec;
use serde::Serialize;
use std::path::PathBuf;

/// Which shape.
#[derive(Debug, Subcommand)]
pub enum Kind {
    /// Racks under core switches, or under aggregation switches by pod
    #[command(after_help = "Examples:\n  hintctl topology build tree --racks 5 --hosts-per-rack 8 --cores 2 \
        --oversubscription 5 -o net.json\n  hintctl topology build tree --racks 40 --racks-per-pod 10 \
        --aggregations-per-pod 2 --cores 4 -o net.toml")]
    Tree(TreeArgs),
    /// k-port switches: k^3/4 hosts, full bisection
    #[command(after_help = "Examples:\n  hintctl topology build fat-tree --ports 8 -o net.json\n  \
        hintctl topology build fat-tree --ports 16 --hosts 1000 -o net.json")]
    FatTree(FatTreeArgs),
    /// A random regular graph of switches, r ports of each to others
    #[command(after_help = "Examples:\n  hintctl topology build jellyfish --switches 200 --ports 15 --to-switches 10 \
        -o net.json\n  hintctl topology build jellyfish --hosts 1000 --ports 15 --to-switches 10 --seed 7 -o net.json")]
    Jellyfish(JellyfishArgs),
    /// Racks under pairs of aggregation switches, all of those under intermediate switches
    #[command(after_help = "Examples:\n  hintctl topology build vl2 --aggregation-ports 8 --intermediate-ports 8 \
        -o net.json\n  hintctl topology build vl2 --hosts-per-rack 10 --host-gbps 1 --gbps 10 -o net.toml")]
    Vl2(Vl2Args),
    /// Servers that forward, between levels of small switches: n^(k+1) servers
    #[command(
        name = "bcube",
        after_help = "Each server is a host and a relay, an edge switch that stands for its \
        forwarding.\n\nExamples:\n  hintctl topology build bcube --ports 8 --levels 1 -o net.json\n  \
        hintctl topology build bcube --ports 4 --levels 2 --gbps 1 -o net.json"
    )]
    BCube(BCubeArgs),
    /// A tree and one optical switch with a port for each rack
    #[command(after_help = "The optical links are down: a port without a circuit is dark.\n\nExamples:\n  \
        hintctl topology build hybrid --racks 20 --hosts-per-rack 30 --cores 1 --oversubscription 10 \
        --optical-gbps 100 -o net.json\n  hintctl topology build hybrid --racks 4 -o net.toml")]
    Hybrid(HybridArgs),
}

/// Where a network goes.
#[derive(Debug, Args)]
struct Target {
    /// Where to write it, .json or .toml
    #[arg(short, long, value_name = "FILE")]
    output: PathBuf,
    #[command(flatten)]
    replace: ReplaceArg,
}

/// Shape of a tree.
#[derive(Debug, Args)]
pub struct TreeArgs {
    /// Racks, one edge switch each
    #[arg(long, default_value_t = 4)]
    racks: usize,
    /// Hosts of each rack
    #[arg(long, default_value_t = 10, conflicts_with = "hosts")]
    hosts_per_rack: usize,
    /// Hosts of the whole tree, a multiple of the racks
    #[arg(long)]
    hosts: Option<usize>,
    /// Core switches
    #[arg(long, default_value_t = 2)]
    cores: usize,
    /// Racks of each pod: builds three levels
    #[arg(long)]
    racks_per_pod: Option<usize>,
    /// Aggregation switches of each pod
    #[arg(long, default_value_t = 1, requires = "racks_per_pod")]
    aggregations_per_pod: usize,
    /// Capacity of a host's link, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    host_gbps: f64,
    /// Capacity of a rack's hosts divided by that of its uplinks
    #[arg(long, default_value_t = 5.0)]
    oversubscription: f64,
    #[command(flatten)]
    target: Target,
}

/// Shape of a fat-tree.
#[derive(Debug, Args)]
pub struct FatTreeArgs {
    /// Ports of each switch, an even number
    #[arg(long, short = 'k', default_value_t = 4)]
    ports: usize,
    /// Keep only the first HOSTS hosts and the switches between them
    #[arg(long)]
    hosts: Option<usize>,
    /// Capacity of every link, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    gbps: f64,
    #[command(flatten)]
    target: Target,
}

/// Shape of a jellyfish.
#[derive(Debug, Args)]
pub struct JellyfishArgs {
    /// Switches; as many as --hosts need, or 20, if not given
    #[arg(long)]
    switches: Option<usize>,
    /// Ports of each switch
    #[arg(long, short = 'k', default_value_t = 15)]
    ports: usize,
    /// Ports of each switch that lead to other switches
    #[arg(long, short = 'r', default_value_t = 10)]
    to_switches: usize,
    /// Keep only the first HOSTS hosts
    #[arg(long)]
    hosts: Option<usize>,
    /// Seed of the random graph
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Capacity of every link, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    gbps: f64,
    #[command(flatten)]
    target: Target,
}

/// Shape of a VL2.
#[derive(Debug, Args)]
pub struct Vl2Args {
    /// Ports of each aggregation switch, an even number
    #[arg(long, default_value_t = 4)]
    aggregation_ports: usize,
    /// Ports of each intermediate switch, an even number
    #[arg(long, default_value_t = 4)]
    intermediate_ports: usize,
    /// Hosts of each rack
    #[arg(long, default_value_t = 20)]
    hosts_per_rack: usize,
    /// Capacity of a host's link, Gbit/s
    #[arg(long, default_value_t = 1.0)]
    host_gbps: f64,
    /// Capacity of every link between switches, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    gbps: f64,
    #[command(flatten)]
    target: Target,
}

/// Shape of a BCube.
#[derive(Debug, Args)]
pub struct BCubeArgs {
    /// Ports of each switch
    #[arg(long, short = 'n', default_value_t = 4)]
    ports: usize,
    /// Levels of switches above level 0
    #[arg(long, short = 'k', default_value_t = 1)]
    levels: usize,
    /// Capacity of each port, Gbit/s
    #[arg(long, default_value_t = 10.0)]
    gbps: f64,
    #[command(flatten)]
    target: Target,
}

/// Shape of a hybrid network.
#[derive(Debug, Args)]
pub struct HybridArgs {
    #[command(flatten)]
    tree: TreeArgs,
    /// Capacity of each rack's optical port, Gbit/s
    #[arg(long, default_value_t = 100.0)]
    optical_gbps: f64,
}

#[derive(Serialize)]
struct Built {
    hosts: usize,
    switches: usize,
    links: usize,
    file: PathBuf,
}

/// Builds the network, writes it and says what it has.
///
/// # Errors
/// [`Failure`] for shapes that can't be built and files that can't be written.
pub(super) fn run(kind: Kind, output: Output) -> Result<(), Failure> {
    match kind {
        Kind::Tree(args) => {
            let spec = args.spec()?;
            write(build::tree(&spec), args.target, output)
        }
        Kind::FatTree(args) => {
            let bits_per_s = gigabits("--gbps", args.gbps)?;
            let spec = FatTreeSpec { k: args.ports, hosts: args.hosts, bits_per_s };
            write(build::fat_tree(&spec), args.target, output)
        }
        Kind::Jellyfish(args) => {
            let spec = args.spec()?;
            write_named(build::jellyfish(&spec), &format!("{spec}, "), args.target, output)
        }
        Kind::Vl2(args) => {
            let spec = Vl2Spec {
                aggregation_ports: args.aggregation_ports,
                intermediate_ports: args.intermediate_ports,
                hosts_per_rack: args.hosts_per_rack,
                host_bits_per_s: gigabits("--host-gbps", args.host_gbps)?,
                switch_bits_per_s: gigabits("--gbps", args.gbps)?,
            };
            write(build::vl2(&spec), args.target, output)
        }
        Kind::BCube(args) => {
            let bits_per_s = gigabits("--gbps", args.gbps)?;
            let spec = BCubeSpec { ports: args.ports, levels: args.levels, bits_per_s };
            write(build::bcube(&spec), args.target, output)
        }
        Kind::Hybrid(args) => {
            let optical_bits_per_s = gigabits("--optical-gbps", args.optical_gbps)?;
            let spec = HybridSpec { tree: args.tree.spec()?, optical_bits_per_s };
            write(build::hybrid(&spec), args.tree.target, output)
        }
    }
}

impl JellyfishArgs {
    fn spec(&self) -> Result<JellyfishSpec, Failure> {
        let per_switch = self.ports.saturating_sub(self.to_switches).max(1);
        let enough = self.hosts.map_or(20, |hosts| hosts.div_ceil(per_switch));
        Ok(JellyfishSpec {
            switches: self.switches.unwrap_or(enough),
            ports: self.ports,
            to_switches: self.to_switches,
            hosts: self.hosts,
            bits_per_s: gigabits("--gbps", self.gbps)?,
            seed: self.seed,
        })
    }
}

impl TreeArgs {
    fn spec(&self) -> Result<TreeSpec, Failure> {
        let hosts_per_rack = match self.hosts {
            Some(hosts) if self.racks > 0 && hosts.is_multiple_of(self.racks) => hosts / self.racks,
            Some(hosts) => {
                return Err(Failure::Input(format!(
                    "--hosts: {hosts} hosts do not divide evenly into {} racks",
                    self.racks
                )));
            }
            None => self.hosts_per_rack,
        };
        if !(self.oversubscription.is_finite() && self.oversubscription > 0.0) {
            return Err(Failure::Input(format!("--oversubscription: {} is not above 0", self.oversubscription)));
        }
        let spec = TreeSpec {
            racks: self.racks,
            hosts_per_rack,
            racks_per_pod: self.racks_per_pod,
            aggregations_per_pod: self.aggregations_per_pod,
            cores: self.cores,
            host_bits_per_s: gigabits("--host-gbps", self.host_gbps)?,
            ..TreeSpec::default()
        };
        Ok(spec.with_edge_oversubscription(self.oversubscription))
    }
}

fn gigabits(flag: &str, gigabits: f64) -> Result<BitsPerSec, Failure> {
    if !(gigabits.is_finite() && gigabits > 0.0) {
        return Err(Failure::Input(format!("{flag}: {gigabits} is not above 0")));
    }
    Ok(BitsPerSec((gigabits * 1e9).round() as u64))
}

fn write(built: Result<BuiltNetwork, BuildError>, target: Target, output: Output) -> Result<(), Failure> {
    write_named(built, "", target, output)
}

/// Writes the network; `title` comes before its counts, for people only.
fn write_named(
    built: Result<BuiltNetwork, BuildError>,
    title: &str,
    Target { output: file, replace }: Target,
    output: Output,
) -> Result<(), Failure> {
    let network = built.map_err(|error| Failure::Input(error.to_string()))?.network;
    replace.write(&file, &files::text_for(&file, &network.to_document())?)?;
    let NetworkSummary { hosts, switches, links, .. } = summary(&network);
    let name = file.display().to_string();
    let built = Built { hosts, switches, links, file };
    output.result(&built, || format!("{name}: {title}{hosts} hosts, {switches} switches, {links} links"))
}
