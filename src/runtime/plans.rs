//! Plans of recurring jobs: what operators do with them, on the engine's thread and in front of it.

use super::command::{Command, PlanCall, Reply, RolledBack};
use super::daemon::Daemon;
use super::writer::{Writer, store_failed};
use crate::engine::plans::replicas::{ReplicasAsk, ReplicasFound, replicas};
use crate::engine::plans::{KeptPlan, check_name, examine};
use crate::engine::{PlanView, Refusal};
use crate::policy::plan::Plan;
use crate::units::Timestamp;
use std::sync::Arc;

impl Writer {
    /// Does something with plans. What changes anything is answered when it is durable.
    pub(super) fn plans(&mut self, call: PlanCall, now: Timestamp) {
        if !matches!(call, PlanCall::List(_) | PlanCall::Runs(_)) && !self.settling.healthy() {
            return call.refuse(&store_failed());
        }
        match call {
            PlanCall::Keep { name, examined, replace, origin, reply } => {
                let kept = self.engine.keep_plan(&name, examined, (replace, origin), now);
                if kept.is_ok() {
                    tracing::info!(plan = %name, origin, "a plan was kept");
                }
                self.answer_plan(&name, kept, reply, now);
            }
            PlanCall::Activate { name, replace, reply } => {
                let activated = self.engine.activate_plan(&name, replace, now);
                if activated.is_ok() {
                    tracing::info!(plan = %name, "a plan is in force");
                }
                self.answer_plan(&name, activated, reply, now);
            }
            PlanCall::RollBack { to_none, reply } => {
                let before = self.shared.generation.load().plan.as_ref().map(|plan| Arc::clone(&plan.name));
                let rolled = self.engine.roll_back_plan(to_none, now).map(|to| (before, to));
                if let Ok((from, to)) = &rolled {
                    tracing::info!(?from, ?to, "a plan was rolled back");
                }
                self.settle_plan(rolled, reply);
            }
            PlanCall::Remove(name, reply) => {
                let removed = self.engine.remove_plan(&name);
                self.settle_plan(removed, reply);
            }
            PlanCall::List(reply) => drop(reply.send(self.engine.plans(now))),
            PlanCall::Runs(reply) => drop(reply.send(self.engine.runs())),
        }
    }

    fn answer_plan(
        &mut self,
        name: &str,
        done: Result<(), Refusal>,
        reply: Reply<Result<PlanView, Refusal>>,
        now: Timestamp,
    ) {
        let view = |engine: &mut crate::engine::Engine| {
            let found = engine.plans(now).into_iter().find(|view| *view.kept.name == *name);
            found.expect("it was just kept or put in force")
        };
        let done = done.map(|()| view(&mut self.engine));
        self.settle_plan(done, reply);
    }

    fn settle_plan<T: Send + 'static>(&mut self, done: Result<T, Refusal>, reply: Reply<Result<T, Refusal>>) {
        // Taken first: publishing sends off whatever is there, and the answer is to wait for this change's own batch.
        let effects = self.engine.take_effects();
        self.publish(); // whoever hears of it finds it so
        self.settle(effects, None, Box::new(move |result| drop(reply.send(result.and(done)))));
    }
}

impl PlanCall {
    /// Nobody's disk takes it.
    fn refuse(self, refusal: &Refusal) {
        match self {
            Self::Keep { reply, .. } | Self::Activate { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::RollBack { reply, .. } => drop(reply.send(Err(refusal.clone()))),
            Self::Remove(_, reply) => drop(reply.send(Err(refusal.clone()))),
            Self::List(_) | Self::Runs(_) => {} // they change nothing
        }
    }
}

impl Daemon {
    /// Keeps a plan, where it makes sense on this cluster now. Takes a thread for as long as checking takes: not to be
    /// called where sockets are served.
    ///
    /// # Errors
    /// [`Refusal::Invalid`] for name or text; [`Refusal::MissingFeed`] before any node has reported;
    /// [`Refusal::Plan`] with what is wrong with it.
    pub fn examine_plan(&self, name: &str, json: &[u8]) -> Result<crate::engine::Examined, Refusal> {
        check_name(name)?;
        let invalid = |message: String| Refusal::Invalid { field: "plan".to_owned(), message };
        let text = std::str::from_utf8(json).map_err(|error| invalid(error.to_string()))?;
        let plan = Plan::from_json(text).map_err(|error| invalid(error.to_string()))?;
        examine(name, Arc::new(plan), &self.generation().snapshot, self.clock().now())
    }

    /// Keeps a plan that was looked at.
    ///
    /// # Errors
    /// [`Refusal::Plan`]; [`Refusal::Unavailable`].
    pub async fn keep_plan(
        &self,
        name: &str,
        examined: crate::engine::Examined,
        replace: bool,
        origin: &'static str,
    ) -> Result<PlanView, Refusal> {
        let name = name.to_owned();
        let call = |reply| Command::Plans(PlanCall::Keep { name, examined, replace, origin, reply });
        self.0.door.ask(call).await?
    }

    /// Puts a kept plan in force.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`]; [`Refusal::Unavailable`].
    pub async fn activate_plan(&self, name: &str, replace: bool) -> Result<PlanView, Refusal> {
        let name = name.to_owned();
        self.0.door.ask(|reply| Command::Plans(PlanCall::Activate { name, replace, reply })).await?
    }

    /// Puts the plan before the one in force in force again, or none.
    ///
    /// # Errors
    /// [`Refusal::Plan`] where none is in force; [`Refusal::Unavailable`].
    pub async fn roll_back_plan(&self, to_none: bool) -> Result<RolledBack, Refusal> {
        self.0.door.ask(|reply| Command::Plans(PlanCall::RollBack { to_none, reply })).await?
    }

    /// Forgets a plan that is not in force.
    ///
    /// # Errors
    /// [`Refusal::Unknown`]; [`Refusal::Plan`]; [`Refusal::Unavailable`].
    pub async fn remove_plan(&self, name: &str) -> Result<(), Refusal> {
        let name = name.to_owned();
        self.0.door.ask(|reply| Command::Plans(PlanCall::Remove(name, reply))).await?
    }

    /// All kept plans, by name.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] when the daemon shuts down.
    pub async fn plans(&self) -> Result<Vec<PlanView>, Refusal> {
        self.0.door.ask(|reply| Command::Plans(PlanCall::List(reply))).await
    }

    /// A kept plan.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] with the nearest name; [`Refusal::Unavailable`].
    pub async fn plan(&self, name: &str) -> Result<Arc<KeptPlan>, Refusal> {
        let all = self.plans().await?;
        let found = all.iter().find(|view| *view.kept.name == *name).map(|view| Arc::clone(&view.kept));
        found.ok_or_else(|| {
            let nearest = crate::solve::nearest(name, all.iter().map(|view| &*view.kept.name)).map(str::to_owned);
            Refusal::Unknown { what: "plan", name: name.to_owned(), nearest }
        })
    }

    /// Where replicas of new data should go.
    ///
    /// # Errors
    /// [`Refusal::Unknown`] for a reader that is not planned.
    pub fn replicas(&self, ask: &ReplicasAsk) -> Result<ReplicasFound, Refusal> {
        let settings = self.settings();
        replicas(&self.generation(), ask, |name| settings.policies.built.get(name), self.clock().now())
    }
}
