//! Plans of recurring jobs: what operators do with them, in front of the engine's thread.

use super::super::command::{Command, PlanCall, PlanProgress, RolledBack};
use super::Daemon;
use super::search::policies;
use hintd_engine::plans::homes::DataHomes;
use hintd_engine::plans::replicas::{ReplicaPlan, ReplicaRequest};
use hintd_engine::plans::{KeptPlan, check_name, validate_plan};
use hintd_engine::{PlanView, Refusal};
use hintd_model::units::Micros;
use hintd_policy::plan::Plan;
use std::sync::Arc;

impl Daemon {
    /// Keeps a plan, where it makes sense on this cluster now. Takes a thread for as long as checking takes: not to be
    /// called where sockets are served.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for name or text; [`Refusal::MissingFeed`] before any node has reported;
    /// [`Refusal::Plan`] with what is wrong with it.
    pub fn validate_plan(&self, name: &str, json: &[u8]) -> Result<hintd_engine::ValidatedPlan, Refusal> {
        check_name(name)?;
        let invalid = |message: String| Refusal::Invalid { field: "plan".to_owned(), message };
        let text = std::str::from_utf8(json).map_err(|error| invalid(error.to_string()))?;
        let plan = Plan::from_json(text).map_err(|error| invalid(error.to_string()))?;
        validate_plan(name, Arc::new(plan), &self.generation().snapshot, self.clock().now())
    }

    /// Keeps a plan that was looked at.
    ///
    /// # Errors
    /// [`Refusal::Plan`]; [`Refusal::Unavailable`].
    pub async fn keep_plan(
        &self,
        name: &str,
        examined: hintd_engine::ValidatedPlan,
        replace: bool,
        origin: &'static str,
    ) -> Result<PlanView, Refusal> {
        let name = name.to_owned();
        let call = |reply| Command::Plans(PlanCall::Keep { name, examined, replace, origin, reply });
        self.0.engine_handle.ask(call).await?
    }

    /// Puts a kept plan in force.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`]; [`Refusal::Unavailable`].
    pub async fn activate_plan(&self, name: &str, replace: bool) -> Result<PlanView, Refusal> {
        let name = name.to_owned();
        self.0.engine_handle.ask(|reply| Command::Plans(PlanCall::Activate { name, replace, reply })).await?
    }

    /// Puts the plan before the one in force in force again, or none.
    ///
    /// # Errors
    /// [`Refusal::Plan`] where none is in force; [`Refusal::Unavailable`].
    pub async fn roll_back_plan(&self, to_none: bool) -> Result<RolledBack, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Plans(PlanCall::RollBack { to_none, reply })).await?
    }

    /// Forgets a plan that is not in force.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`]; [`Refusal::Unavailable`].
    pub async fn remove_plan(&self, name: &str) -> Result<(), Refusal> {
        let name = name.to_owned();
        self.0.engine_handle.ask(|reply| Command::Plans(PlanCall::Remove { name, reply })).await?
    }

    /// All kept plans, by name.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn plans(&self) -> Result<Vec<PlanView>, Refusal> {
        self.0.engine_handle.ask(|reply| Command::Plans(PlanCall::List(reply))).await
    }

    /// A kept plan.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] with the nearest name; [`Refusal::Unavailable`].
    pub async fn plan(&self, name: &str) -> Result<Arc<KeptPlan>, Refusal> {
        let all = self.plans().await?;
        let found = all.iter().find(|view| *view.kept.name == *name).map(|view| Arc::clone(&view.kept));
        found.ok_or_else(|| no_such_plan(name, &all))
    }

    /// A kept plan, and how far its jobs are by each policy that follows it.
    ///
    /// # Errors
    /// As [`Self::plan`].
    pub async fn plan_progress(&self, name: &str) -> Result<PlanProgress, Refusal> {
        let ask = |reply| Command::Plans(PlanCall::Progress { name: name.to_owned(), reply });
        match self.0.engine_handle.ask(ask).await? {
            Some(found) => Ok(found),
            None => Err(no_such_plan(name, &self.plans().await?)),
        }
    }

    /// Where replicas of new data should go, as `told` puts it. Choosing homes takes a moment where there are many racks, and
    /// so do thousands of blocks: not on a thread that serves sockets.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a reader that is neither planned nor known; [`Refusal::Unavailable`] beyond
    /// `REPLICA_QUESTIONS_MAX` questions at a time, those whose askers are gone among them.
    pub async fn replicas<T: Send + 'static>(
        &self,
        ask: ReplicaRequest,
        told: impl FnOnce(&ReplicaPlan) -> T + Send + 'static,
    ) -> Result<T, Refusal> {
        let unavailable = |message: String| Refusal::Unavailable { message, retry_after: Micros::from_secs(1) };
        let place = Arc::clone(&self.0.replica_places).try_acquire_owned();
        let place =
            place.map_err(|_| unavailable(format!("{REPLICA_QUESTIONS_MAX} questions for replicas are under way")))?;
        let daemon = self.clone();
        let found = tokio::task::spawn_blocking(move || {
            let _place = place;
            daemon.advise_replicas(&ask).map(|found| told(&found))
        });
        found.await.unwrap_or_else(|_| Err(unavailable("the advice ended in a panic".to_owned())))
    }

    fn advise_replicas(&self, ask: &ReplicaRequest) -> Result<ReplicaPlan, Refusal> {
        let settings = self.settings();
        let policy_of = |name: &str| settings.policies.built.get(name);
        let policies = (&**policies(&settings, settings.general_policy()).0, policy_of);
        let found = DataHomes::advise(&self.0.data_homes, &self.generation(), ask, policies, self.clock().now())?;
        self.metrics().replicas_advised(found.reason.as_str());
        Ok(found)
    }
}

/// Questions for replicas at one time: a NameNode has four under way, and there are 64 threads for work that blocks.
pub(in crate::runtime) const REPLICA_QUESTIONS_MAX: usize = 16;

fn no_such_plan(name: &str, all: &[PlanView]) -> Refusal {
    let nearest = hintd_model::solve::nearest(name, all.iter().map(|view| &*view.kept.name)).map(str::to_owned);
    Refusal::Unknown { what: "plan", name: name.to_owned(), nearest }
}
