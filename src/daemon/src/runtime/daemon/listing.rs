//! Which attempts there are, as a ResourceManager lists them: nobody else's get tokens where one is asked.

use super::super::command::Command;
use super::Daemon;
use hintd_engine::{Proof, Refusal, Shown};
use hintd_model::units::AttemptId;
use std::pin::Pin;
use std::sync::Arc;

/// What [`Listing::look`] gives.
pub type Looking<'a> = Pin<Box<dyn Future<Output = Result<(), Refusal>> + Send + 'a>>;

/// Who knows which attempts run.
pub trait Listing: Send + Sync + 'static {
    /// Whether the last list had the attempt as the running one of its application.
    fn lists(&self, attempt: AttemptId) -> bool;

    /// Asks for one that the last list did not have.
    ///
    /// # Errors
    /// [`Refusal::NotListed`]; [`Refusal::Unavailable`] while nobody can say.
    fn look(&self, attempt: AttemptId) -> Looking<'_>;
}

impl Daemon {
    /// Gives tokens to attempts that are listed, and to no others. The first list set stays.
    pub fn set_listing(&self, listing: Arc<dyn Listing>) {
        let _ = self.0.listing.set(listing);
    }

    /// What a caller shows, and whether its attempt is listed. An attempt that has its token goes on by what it shows.
    ///
    /// # Errors
    /// As [`Listing::look`]; [`Refusal::NoToken`], [`Refusal::BadToken`].
    pub(in crate::runtime) async fn listed_proof(&self, attempt: AttemptId, proof: Proof) -> Result<Proof, Refusal> {
        let (Some(listing), Proof::Shown(shown)) = (self.0.listing.get(), &proof) else { return Ok(proof) };
        if !listing.lists(attempt) {
            if self.may_tell(attempt, proof.clone()).await? {
                return Ok(proof);
            }
            listing.look(attempt).await?;
        }
        Ok(Proof::Shown(Shown { listed: true, ..shown.clone() }))
    }

    /// Whether the attempt is known, where who shows `proof` may tell of it.
    ///
    /// # Errors
    /// [`Refusal::NoToken`], [`Refusal::BadToken`] for another's attempt.
    pub async fn may_tell(&self, attempt: AttemptId, proof: Proof) -> Result<bool, Refusal> {
        self.0.engine_handle.ask(|reply| Command::MayTell { attempt, proof, reply }).await?
    }
}
