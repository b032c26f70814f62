//! Input of groups: paths to blocks and replicas.

use crate::history::JobHistory;
use crate::refusal::Refusal;
use hintd_model::cluster::{Dataset, HintRequest, Snapshot, Source, dataset};
use hintd_policy::problem::{EdgeProblem, InputBlock, InputBlocks};
use std::sync::Arc;

use super::nearest::nearest;
use super::sources::Sources;

/// Inputs of a request's groups; each list of paths is looked up once.
#[derive(Debug)]
pub(crate) struct Inputs<'a> {
    snapshot: &'a Snapshot,
    request: &'a HintRequest,
    edges: &'a [EdgeProblem],
    history: Option<&'a JobHistory>,
    sources: &'a Sources,
    done: Vec<(&'a [Arc<str>], Arc<InputBlocks>)>,
    none: Arc<InputBlocks>,
    /// What was looked up and found.
    pub(crate) read: Vec<Arc<Dataset>>,
    /// Some paths' blocks or replicas are not known.
    pub(crate) unknown: bool,
    /// A NameNode is asked for paths when they are named: one without blocks may still get some.
    pub(crate) on_demand: bool,
    /// Some paths were taken from the history.
    pub(crate) from_history: bool,
}

impl<'a> Inputs<'a> {
    pub(crate) fn new(
        snapshot: &'a Snapshot,
        request: &'a HintRequest,
        edges: &'a [EdgeProblem],
        history: Option<&'a JobHistory>,
        sources: &'a Sources,
    ) -> Self {
        let none = Arc::default();
        let (done, read) = (Vec::new(), Vec::new());
        Self {
            snapshot,
            request,
            edges,
            history,
            sources,
            done,
            none,
            read,
            unknown: false,
            on_demand: false,
            from_history: false,
        }
    }

    /// The paths of a group: its own, else the application's if it is one that reads input, else what
    /// the recurring job's history says.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a path that the datasets feed does not name.
    pub(crate) fn of(&mut self, at: usize) -> Result<Arc<InputBlocks>, Refusal> {
        let group = &self.request.groups[at];
        let asked =
            !self.request.input_paths.is_empty() || self.request.groups.iter().any(|g| !g.input_paths.is_empty());
        let own = (&group.input_paths[..], format!("groups[{at}].input_paths"));
        let (paths, field) = if !group.input_paths.is_empty() {
            own
        } else if asked {
            (self.shared(at, &self.request.input_paths), "input_paths".into())
        } else if let Some(job) = self.history {
            let known = job.groups.get(&group.name).map_or(&[][..], |known| &known.input_paths);
            let paths = if known.is_empty() { self.shared(at, &job.input_paths) } else { known };
            return Ok(self.remembered(paths));
        } else {
            return Ok(Arc::clone(&self.none));
        };
        self.blocks_of(paths, &field)
    }

    /// The application's paths, for a group that reads them: one that gets nothing from another group, for what
    /// those read is what the others wrote. Where every group gets something, the first one reads the input.
    fn shared(&self, at: usize, paths: &'a [Arc<str>]) -> &'a [Arc<str>] {
        let receives = |group: usize| {
            self.sources.receives[group] || self.edges.iter().any(|edge| edge.to.at() == group && edge.from != edge.to)
        };
        let all_receive = (0..self.request.groups.len()).all(receives);
        if !receives(at) || (all_receive && at == 0) { paths } else { &[] }
    }

    fn blocks_of(&mut self, paths: &'a [Arc<str>], field: &str) -> Result<Arc<InputBlocks>, Refusal> {
        if paths.is_empty() {
            return Ok(Arc::clone(&self.none));
        }
        if let Some((_, known)) = self.done.iter().find(|(known, _)| *known == paths) {
            return Ok(Arc::clone(known));
        }
        // A feed that never spoke can't be asked whether a path exists: then locality is unknown, not wrong.
        let spoke =
            !self.on_demand && (self.snapshot.heard.at(Source::Blocks).is_some() || !self.snapshot.datasets.is_empty());
        let mut blocks = Vec::new();
        for path in paths {
            let found = dataset::below(&self.snapshot.datasets, path);
            if found.is_empty() && spoke {
                let known = self.snapshot.datasets.keys().map(|known| &**known);
                let nearest = nearest(path, sorted(known).into_iter());
                return Err(Refusal::Unknown { what: "path", name: path.to_string(), nearest });
            }
            self.unknown |= found.is_empty();
            self.read.extend(found.iter().map(|dataset| Arc::clone(dataset)));
            let found = found.iter().flat_map(|dataset| &dataset.blocks);
            blocks.extend(found.map(|block| InputBlock { bytes: block.bytes, nodes: block.replicas.clone() }));
        }
        let mut sum: u64 = 0;
        for block in &blocks {
            sum = sum.checked_add(block.bytes.0).ok_or_else(|| Refusal::Invalid {
                field: field.to_owned(),
                message: "the paths' blocks together are more than 2^64 bytes".to_owned(),
            })?;
        }
        let input = Arc::new(InputBlocks::new(blocks));
        self.unknown |= !input.is_empty() && input.replicas == 0;
        self.done.push((paths, Arc::clone(&input)));
        Ok(input)
    }

    /// Paths that only the history names may have gone since: then there is no locality, and no error.
    fn remembered(&mut self, paths: &'a [Arc<str>]) -> Arc<InputBlocks> {
        if paths.is_empty() {
            return Arc::clone(&self.none);
        }
        if let Ok(input) = self.blocks_of(paths, "input_paths") {
            self.from_history = true;
            return input;
        }
        self.unknown = true;
        Arc::clone(&self.none)
    }
}

fn sorted<'n>(names: impl Iterator<Item = &'n str>) -> Vec<&'n str> {
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names
}
