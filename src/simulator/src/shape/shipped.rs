//! The papers' clusters, in the library by name.

use super::ClusterShape;
use hintd_model::cluster::document::{DocumentProblem, Syntax};

/// A cluster that is shipped.
#[derive(Debug, Clone, Copy)]
pub struct Shipped {
    /// Its name: the file's in `config/clusters`, without `.toml`.
    pub name: &'static str,
    /// The file: sources of its numbers first, then the shape.
    pub text: &'static str,
}

const SHIPPED: [Shipped; 10] = [
    Shipped { name: "nas", text: include_str!("../../../../config/clusters/nas.toml") },
    Shipped { name: "nas-40", text: include_str!("../../../../config/clusters/nas-40.toml") },
    Shipped { name: "nas-40-2to1", text: include_str!("../../../../config/clusters/nas-40-2to1.toml") },
    Shipped { name: "nas-40-10to1", text: include_str!("../../../../config/clusters/nas-40-10to1.toml") },
    Shipped { name: "jobpacker", text: include_str!("../../../../config/clusters/jobpacker.toml") },
    Shipped { name: "jobpacker-packets", text: include_str!("../../../../config/clusters/jobpacker-packets.toml") },
    Shipped { name: "container", text: include_str!("../../../../config/clusters/container.toml") },
    Shipped { name: "cross-layer-30", text: include_str!("../../../../config/clusters/cross-layer-30.toml") },
    Shipped { name: "scale-out", text: include_str!("../../../../config/clusters/scale-out.toml") },
    Shipped { name: "scale-up-out", text: include_str!("../../../../config/clusters/scale-up-out.toml") },
];

/// Every cluster that is shipped.
#[must_use]
pub fn shipped() -> &'static [Shipped] {
    &SHIPPED
}

/// The name that `name` was probably meant to be, whatever its case.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    hintd_model::solve::nearest(&name.to_lowercase(), SHIPPED.iter().map(|cluster| cluster.name))
}

impl Shipped {
    /// The cluster of that name.
    #[must_use]
    pub fn find(name: &str) -> Option<&'static Self> {
        SHIPPED.iter().find(|cluster| cluster.name == name)
    }

    /// Its shape.
    ///
    /// # Errors
    /// None, as a test holds for every file.
    pub fn shape(&self) -> Result<ClusterShape, DocumentProblem> {
        Syntax::Toml.read(self.text)
    }
}
