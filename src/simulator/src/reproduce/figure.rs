//! Entries that belong to one chapter of a paper and differ in what they measure.

use super::{Experiment, Outcome, ReproduceError, Row, RunContext, Scale};

/// What the figures of a chapter have in common.
pub struct Chapter {
    pub(super) paper: &'static str,
    pub(super) settings: fn(Scale) -> Vec<(String, String)>,
}

/// One of the chapter's figures, or some that belong together.
pub struct Figure {
    pub(super) chapter: &'static Chapter,
    pub(super) name: &'static str,
    pub(super) figure: &'static str,
    /// About how long it takes at full scale, seconds.
    pub(super) full_s: u64,
    /// Of its name and the context.
    pub(super) rows: fn(&'static str, &RunContext<'_>) -> Result<Vec<Row>, ReproduceError>,
}

impl std::fmt::Debug for Figure {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

impl Experiment for Figure {
    fn name(&self) -> &'static str {
        self.name
    }

    fn paper(&self) -> &'static str {
        self.chapter.paper
    }

    fn figure(&self) -> &'static str {
        self.figure
    }

    fn settings(&self, scale: Scale) -> Vec<(String, String)> {
        (self.chapter.settings)(scale)
    }

    fn expected_s(&self, scale: Scale) -> u64 {
        match scale {
            Scale::Quick => 30,
            Scale::Full => self.full_s,
        }
    }

    fn run(&self, context: &RunContext<'_>) -> Result<Outcome, ReproduceError> {
        Ok(Outcome { rows: (self.rows)(self.name, context)? })
    }
}
