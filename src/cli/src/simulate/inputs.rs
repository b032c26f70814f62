//! Cluster and trace, from files or by name.

use super::super::failure::Failure;
use super::super::files;
use super::ContainerArgs;
use hintd_model::cluster::Resource;
use hintd_model::cluster::document::{CLUSTER_FORMAT, ClusterDocument, Syntax};
use hintd_simulator::shape::{self, Joined, of_document};
use hintd_simulator::yarn::SimCluster;
use hintd_simulator::{
    ClusterShape, DelaysFile, FlowGrain, JobModel, SHAPE_FORMAT, SHIPPED_DELAYS, Shipped, TraceError, TraceFacts,
    TraceOptions, TraceReader, maybe_gzip, shipped,
};
use serde::Deserialize;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

/// A cluster to simulate.
pub(crate) struct Cluster {
    /// The name or file.
    pub(crate) name: String,
    pub(crate) cluster: SimCluster,
    pub(crate) grain: FlowGrain,
    pub(crate) users: Option<u32>,
}

impl Cluster {
    /// Of all nodes.
    pub(crate) fn containers(&self) -> u64 {
        self.cluster.containers.iter().map(|&of_node| u64::from(of_node)).sum()
    }
}

/// The shipped cluster of that name, or the one in that file.
pub(crate) fn cluster(name: &str, container: ContainerArgs, joined: Joined) -> Result<Cluster, Failure> {
    let path = Path::new(name);
    match Shipped::find(name) {
        Some(found) => {
            let shape = found.shape().map_err(|problem| Failure::work(format!("{name}: {problem}")))?;
            of_shape(name, path, &shape)
        }
        None if path.is_file() => from_file(name, path, container, joined),
        None => Err(unknown(name)),
    }
}

fn from_file(name: &str, path: &Path, container: ContainerArgs, joined: Joined) -> Result<Cluster, Failure> {
    #[derive(Deserialize)]
    struct Format {
        format: Option<String>,
    }
    let syntax = Syntax::of_file(name)
        .ok_or_else(|| Failure::in_file(path, "the name must end in .json or .toml, which says how it is written"))?;
    let text = files::read_text(path)?;
    let in_file = |problem| Failure::in_file(path, problem);
    let format = syntax.read::<Format>(&text).map_err(in_file)?.format.unwrap_or_default();
    match format.as_str() {
        SHAPE_FORMAT => of_shape(name, path, &syntax.read(&text).map_err(in_file)?),
        CLUSTER_FORMAT => {
            let document: ClusterDocument = syntax.read(&text).map_err(in_file)?;
            let size = Resource::new(container.container_memory_mb, container.container_vcores);
            let cluster = of_document(&document, size, joined).map_err(|problems| files::problems(path, &problems))?;
            Ok(Cluster { name: name.to_owned(), cluster, grain: FlowGrain::Racks, users: None })
        }
        other => {
            let message = format!("format: is \"{other}\", neither \"{SHAPE_FORMAT}\" nor \"{CLUSTER_FORMAT}\"");
            Err(Failure::in_file(path, message))
        }
    }
}

fn of_shape(name: &str, path: &Path, shape: &ClusterShape) -> Result<Cluster, Failure> {
    let cluster = shape.to_cluster().map_err(|problems| files::problems(path, &problems))?;
    Ok(Cluster { name: name.to_owned(), cluster, grain: shape.grain(), users: shape.users })
}

/// The shipped delays of that name, or those in that file.
pub(crate) fn delays(name: &str) -> Result<DelaysFile, Failure> {
    let shipped = SHIPPED_DELAYS.iter().find(|(shipped, _)| *shipped == name);
    let path = Path::new(name);
    let text = match shipped {
        Some((_, text)) => (*text).to_owned(),
        None if path.is_file() => files::read_text(path)?,
        None => {
            let known: Vec<&str> = SHIPPED_DELAYS.iter().map(|(name, _)| *name).collect();
            let message = format!("delays \"{name}\" are neither a file nor shipped; shipped are {}", known.join(", "));
            return Err(Failure::Input(message));
        }
    };
    DelaysFile::read(&text).map_err(|error| Failure::in_file(path, error))
}

fn unknown(name: &str) -> Failure {
    let known: Vec<&str> = shipped().iter().map(|cluster| cluster.name).collect();
    let meant = shape::nearest(name).map(|near| format!("did you mean \"{near}\"? ")).unwrap_or_default();
    let message = format!("cluster \"{name}\" is neither a file nor shipped; {meant}shipped are {}", known.join(", "));
    Failure::Input(message)
}

/// A trace that was read once, from beginning to end.
pub(crate) struct Trace {
    pub(crate) path: PathBuf,
    pub(crate) options: TraceOptions,
    pub(crate) facts: TraceFacts,
}

impl Trace {
    /// Reads the trace through, so that what is wrong with its last line is said before hours of simulation.
    pub(crate) fn open(path: &Path, options: TraceOptions, model: &JobModel) -> Result<Self, Failure> {
        // It is read once more for each run: what can be read only once would leave them without jobs, or waiting.
        if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
            let message = format!("{}: not a file; a simulation reads its trace once for each run", path.display());
            return Err(Failure::Input(message));
        }
        let facts = TraceFacts::read(unpacked(path)?, options, model).map_err(|error| in_trace(path, error))?;
        Ok(Self { path: path.to_owned(), options, facts })
    }

    /// Its jobs, read anew.
    pub(crate) fn jobs(&self) -> Result<TraceReader<Box<dyn BufRead + Send>>, Failure> {
        Ok(TraceReader::new(unpacked(&self.path)?, self.options))
    }

    /// What the reader let pass.
    pub(crate) fn warning(&self) -> Option<String> {
        skipped(&self.path, &self.facts)
    }
}

/// How many lines were skipped, and why the first was.
pub(crate) fn skipped(path: &Path, facts: &TraceFacts) -> Option<String> {
    let first = facts.first_skipped.as_ref()?;
    let lines =
        if facts.skipped == 1 { "1 bad line was".to_owned() } else { format!("{} bad lines were", facts.skipped) };
    Some(format!("{}: {lines} skipped; the first: {first}", path.display()))
}

/// A trace file, unpacked where it is packed.
pub(crate) fn unpacked(path: &Path) -> Result<Box<dyn BufRead + Send>, Failure> {
    let file = File::open(path).map_err(|error| Failure::in_file(path, error))?;
    maybe_gzip(BufReader::new(file)).map_err(|error| in_trace(path, error))
}

/// What is wrong with a trace file.
pub(crate) fn in_trace(path: &Path, error: TraceError) -> Failure {
    Failure::in_file(path, format!("{:#}", anyhow::Error::from(error)))
}
