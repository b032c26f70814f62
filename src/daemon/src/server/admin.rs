//! The `Admin` service, on the Unix socket only: what operators ask.

use super::convert::{self, PathsNow, resource_to_wire};
use super::deadline::in_time;
use super::explain;
use super::listing;
use super::placement::hints;
use super::status_report::status_report;
use super::while_awaited::while_awaited;
use crate::runtime::Daemon;
use crate::runtime::clock::Clock;
use crate::runtime::options::Settings;
use crate::runtime::registries::FeedRegistries;
use hintd_client::wire::v1;
use hintd_client::wire::v1::admin_server::Admin;
use hintd_engine::{AttemptHeld, Generation, LinkUse, Proof, Refusal, link_uses, what_if_network};
use hintd_model::cluster::document::{ClusterDocument, Syntax};
use hintd_model::cluster::{NamedResource, Resource};
use hintd_model::solve::nearest;
use hintd_model::units::{Bytes, NodeIdx, Timestamp};
use hintd_policy::Policy;
use hintd_policy::container::{self, CalibrateInput};
use std::sync::Arc;
use tokio::sync::Semaphore;
use tokio_stream::Stream;
use tonic::{Request, Response, Status, Streaming};

/// The service.
#[derive(Debug, Clone)]
pub struct AdminService {
    daemon: Daemon,
    /// Places for what takes a core for a while: the engine and placers need theirs.
    heavy: Arc<Semaphore>,
    /// Places for lists, which are short work beside it and are not to wait for it.
    lists: Arc<Semaphore>,
}

/// Link tables and what-ifs of the network worked out at one time; others wait, as long as their callers do.
const HEAVY_MAX: usize = 2;

/// The same of lists.
const LISTS_MAX: usize = 2;

/// Bytes of one piece of a snapshot.
const CHUNK: usize = 256 * 1024;

impl AdminService {
    /// The service of a daemon.
    #[must_use]
    pub fn new(daemon: Daemon) -> Self {
        let places = |most| Arc::new(Semaphore::new(most));
        Self { daemon, heavy: places(HEAVY_MAX), lists: places(LISTS_MAX) }
    }

    /// Does work that is too long for a thread that serves sockets. A caller that goes away leaves it to its end, in
    /// the place that it has.
    async fn heavy<T: Send + 'static>(
        &self,
        what: &'static str,
        work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        Self::beside(Arc::clone(&self.heavy), what, work).await
    }

    /// The same for a list of what there is.
    async fn list<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
        Self::beside(Arc::clone(&self.lists), "the list", |_| Ok(work())).await
    }

    async fn beside<T: Send + 'static>(
        places: Arc<Semaphore>,
        what: &'static str,
        work: impl FnOnce(&mut dyn FnMut() -> bool) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<T, Refusal> {
        let place = places.acquire_owned().await.expect("the semaphore is never closed");
        while_awaited(place, what, work).await
    }
}

#[tonic::async_trait]
impl Admin for AdminService {
    async fn status(&self, request: Request<v1::StatusRequest>) -> Result<Response<v1::StatusResponse>, Status> {
        Ok(Response::new(in_time(&self.daemon, request.metadata(), status_report(&self.daemon)).await?))
    }

    async fn nodes(&self, request: Request<v1::NodesRequest>) -> Result<Response<v1::NodesResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let daemon = self.daemon.clone();
        let found = async {
            let heard = daemon.last_heard().await?;
            let (generation, now) = (daemon.generation(), daemon.clock().now());
            self.list(move || nodes(&generation, &heard, &wire, now)).await
        };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn chains(&self, request: Request<v1::ChainsRequest>) -> Result<Response<v1::ChainsResponse>, Status> {
        let generation = self.daemon.generation();
        let owned = !self.daemon.settings().engine.chains.is_empty();
        let found = self.heavy("looking at the chains", move |_| Ok(convert::chains(&generation, owned)));
        Ok(Response::new(in_time(&self.daemon, request.metadata(), found).await?))
    }

    async fn circuits(&self, request: Request<v1::CircuitsRequest>) -> Result<Response<v1::CircuitsResponse>, Status> {
        let view = in_time(&self.daemon, request.metadata(), self.daemon.circuits()).await?;
        Ok(Response::new(convert::circuits_view(view.as_ref(), self.daemon.clock().now())))
    }

    async fn links(&self, request: Request<v1::LinksRequest>) -> Result<Response<v1::LinksResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let (generation, registries) = (self.daemon.generation(), Arc::clone(self.daemon.registries()));
        let clock = self.daemon.clock();
        let found = self.heavy("looking at the links", move |_| links(&generation, (&*registries, clock), &wire));
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn list_policies(
        &self,
        _: Request<v1::ListPoliciesRequest>,
    ) -> Result<Response<v1::ListPoliciesResponse>, Status> {
        let settings = self.daemon.settings();
        let policies = &settings.policies;
        let views = policies.built.iter();
        let views = views.map(|(name, policy)| policy_view(&self.daemon, &settings, name, policy)).collect();
        let default_policy = policies.default.to_owned();
        Ok(Response::new(v1::ListPoliciesResponse { policies: views, default_policy }))
    }

    async fn reload(&self, request: Request<v1::ReloadRequest>) -> Result<Response<v1::ReloadResponse>, Status> {
        let daemon = self.daemon.clone();
        // A task of its own: a caller that goes away must not leave half of the settings in force.
        let reload = tokio::spawn(async move { daemon.reload().await });
        let reload = async { reload.await.unwrap_or_else(|_| Err(failed("the reload ended in a panic"))) };
        let reloaded = in_time(&self.daemon, request.metadata(), reload).await?;
        Ok(Response::new(v1::ReloadResponse {
            config_generation: reloaded.settings.generation,
            changed: reloaded.changed,
            needs_restart: reloaded.needs_restart,
            reverted: reloaded.reverted,
            notices: reloaded.settings.notices().iter().map(ToString::to_string).collect(),
        }))
    }

    async fn what_if(&self, request: Request<v1::RequestHintsRequest>) -> Result<Response<v1::HintSet>, Status> {
        Ok(Response::new(hints(&self.daemon, request, true).await?.hints))
    }

    async fn what_if_network(
        &self,
        request: Request<v1::WhatIfNetworkRequest>,
    ) -> Result<Response<v1::WhatIfNetworkResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let (generation, settings) = (self.daemon.generation(), self.daemon.settings());
        let found = async {
            let drain = convert::drain(&wire)?;
            let work = move |stop: &mut dyn FnMut() -> bool| {
                let found = what_if_network(&generation, &drain, &settings.engine.routes, stop)
                    .map_err(|refusal| with_nearest(refusal, &generation))?;
                Ok(convert::network_what_if(&found, generation.snapshot.version.0))
            };
            self.heavy("the what-if", work).await
        };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn replay(&self, request: Request<v1::ReplayRequest>) -> Result<Response<v1::ReplayResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let replayed = async {
            let work = explain::replay_of(&self.daemon, &wire.decision_id, wire.policy).await?;
            self.heavy("the replay", work).await
        };
        Ok(Response::new(in_time(&self.daemon, &metadata, replayed).await?))
    }

    async fn submit_plan(
        &self,
        request: Request<Streaming<v1::SubmitPlanRequest>>,
    ) -> Result<Response<v1::PlanView>, Status> {
        let (metadata, _, mut pieces) = request.into_parts();
        let daemon = self.daemon.clone();
        let kept = async {
            let SubmittedPlan { name, replace, json } = whole_plan(&mut pieces).await?;
            let (looking, called) = (daemon.clone(), name.clone());
            let examined = self.heavy("checking the plan", move |_| looking.validate_plan(&called, &json)).await?;
            daemon.keep_plan(&name, examined, replace, "operator").await
        };
        let kept = in_time(&self.daemon, &metadata, kept).await?;
        Ok(Response::new(convert::plan_view(&kept, self.daemon.clock().now())))
    }

    async fn list_plans(
        &self,
        request: Request<v1::ListPlansRequest>,
    ) -> Result<Response<v1::ListPlansResponse>, Status> {
        let plans = in_time(&self.daemon, request.metadata(), self.daemon.plans()).await?;
        let now = self.daemon.clock().now();
        let plans = plans.iter().map(|plan| convert::plan_view(plan, now)).collect();
        Ok(Response::new(v1::ListPlansResponse { plans }))
    }

    type FetchPlanStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::PlanChunk, Status>> + Send>>;

    async fn fetch_plan(
        &self,
        request: Request<v1::FetchPlanRequest>,
    ) -> Result<Response<Self::FetchPlanStream>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let json = async {
            let kept = self.daemon.plan(&wire.name).await?;
            self.heavy("writing the plan", move |_| Ok(kept.plan.to_json().into_bytes())).await
        };
        let json = in_time(&self.daemon, &metadata, json).await?;
        let chunks: Vec<_> =
            json.chunks(CHUNK).map(|piece| Ok(v1::PlanChunk { json: piece.to_vec(), forecast: None })).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }

    type MakePlanStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::PlanChunk, Status>> + Send>>;

    async fn make_plan(&self, request: Request<v1::MakePlanRequest>) -> Result<Response<Self::MakePlanStream>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let made = async {
            let (horizon, objective) = convert::make_ask(&wire)?;
            let policy = (!wire.policy.is_empty()).then_some(wire.policy.as_str());
            let place = Arc::clone(&self.heavy).acquire_owned().await.expect("the semaphore is never closed");
            let made = self.daemon.make_plan(horizon, policy, objective).await;
            drop(place);
            made
        };
        let made = in_time(&self.daemon, &metadata, made).await?;
        let json = made.plan.to_json().into_bytes();
        let mut chunks: Vec<v1::PlanChunk> =
            json.chunks(CHUNK).map(|piece| v1::PlanChunk { json: piece.to_vec(), forecast: None }).collect();
        if let Some(first) = chunks.first_mut() {
            first.forecast = Some(convert::plan_forecast(&made.keys, &made.errors));
        }
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks.into_iter().map(Ok)))))
    }

    async fn activate_plan(&self, request: Request<v1::ActivatePlanRequest>) -> Result<Response<v1::PlanView>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let activated = self.daemon.activate_plan(&wire.name, wire.replace);
        let activated = in_time(&self.daemon, &metadata, activated).await?;
        Ok(Response::new(convert::plan_view(&activated, self.daemon.clock().now())))
    }

    async fn roll_back_plan(
        &self,
        request: Request<v1::RollBackPlanRequest>,
    ) -> Result<Response<v1::RollBackPlanResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let (from, to) = in_time(&self.daemon, &metadata, self.daemon.roll_back_plan(wire.to_none)).await?;
        let name = |plan: Option<Arc<str>>| plan.map(|plan| plan.to_string()).unwrap_or_default();
        Ok(Response::new(v1::RollBackPlanResponse { from: name(from), to: name(to) }))
    }

    async fn remove_plan(
        &self,
        request: Request<v1::RemovePlanRequest>,
    ) -> Result<Response<v1::RemovePlanResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        in_time(&self.daemon, &metadata, self.daemon.remove_plan(&wire.name)).await?;
        Ok(Response::new(v1::RemovePlanResponse {}))
    }

    async fn calibrate(
        &self,
        request: Request<v1::CalibrateRequest>,
    ) -> Result<Response<v1::CalibrateResponse>, Status> {
        Ok(Response::new(calibrate(&self.daemon.generation(), &request.into_inner())))
    }

    async fn explain(&self, request: Request<v1::ExplainRequest>) -> Result<Response<v1::ExplainResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let explained = explain::explain(&self.daemon, &wire.decision_id, &Proof::Trusted);
        Ok(in_time(&self.daemon, &metadata, explained).await?)
    }

    async fn list_attempts(
        &self,
        request: Request<v1::ListAttemptsRequest>,
    ) -> Result<Response<v1::ListAttemptsResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let found = async {
            let held = self.daemon.attempts_held().await?;
            let total = u32::try_from(held.len()).unwrap_or(u32::MAX);
            let now = self.daemon.clock().now();
            let view = move |held: &AttemptHeld| convert::attempt_view(held, now);
            let views = move || held.iter().take(limit(wire.limit)).map(view).collect();
            Ok(v1::ListAttemptsResponse { attempts: self.list(views).await?, total })
        };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn list_decisions(
        &self,
        request: Request<v1::ListDecisionsRequest>,
    ) -> Result<Response<v1::ListDecisionsResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let found = async { self.list(listing::decisions(&self.daemon, wire).await?).await };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn list_leases(
        &self,
        request: Request<v1::ListLeasesRequest>,
    ) -> Result<Response<v1::ListLeasesResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let found = async { self.list(listing::leases(&self.daemon, wire).await?).await };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn list_applications(
        &self,
        request: Request<v1::ListApplicationsRequest>,
    ) -> Result<Response<v1::ListApplicationsResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let found = async {
            let mut found = self.list(listing::applications(&self.daemon, wire).await?).await?;
            listing::add_followed(&self.daemon, &mut found).await?;
            Ok(found)
        };
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn log_level(&self, request: Request<v1::LogLevelRequest>) -> Result<Response<v1::LogLevelResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let set = (!wire.set.is_empty()).then_some(&*wire.set);
        let (level, before) = in_time(&self.daemon, &metadata, async { self.daemon.log_level(set) }).await?;
        Ok(Response::new(v1::LogLevelResponse { level, before }))
    }

    async fn end_attempt(
        &self,
        request: Request<v1::EndAttemptRequest>,
    ) -> Result<Response<v1::EndAttemptResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let ended = async {
            let attempt = convert::attempt(&wire.application_id, wire.attempt)?;
            self.daemon.end_attempt(attempt).await?;
            tracing::info!(%attempt, "an operator ended it: its leases are given back");
            Ok(())
        };
        in_time(&self.daemon, &metadata, ended).await?;
        Ok(Response::new(v1::EndAttemptResponse {}))
    }

    async fn list_holdout(
        &self,
        request: Request<v1::ListHoldoutRequest>,
    ) -> Result<Response<v1::ListHoldoutResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let found = async {
            let queues = self.daemon.engine_report().await?.worth.queues;
            Ok((queues, self.daemon.worth_of_keys().await?))
        };
        let (queues, keys) = in_time(&self.daemon, &metadata, found).await?;
        let settings = self.daemon.settings();
        let view = |view| convert::compared_view(view, &settings.engine.worth);
        let total = u32::try_from(keys.len()).unwrap_or(u32::MAX);
        let keys = keys.iter().filter(|key| key.stopped.is_some() || !wire.stopped_only);
        Ok(Response::new(v1::ListHoldoutResponse {
            queues: queues.iter().map(view).collect(),
            keys: keys.take(limit(wire.limit)).map(view).collect(),
            total,
        }))
    }

    async fn allow_key(&self, request: Request<v1::AllowKeyRequest>) -> Result<Response<v1::AllowKeyResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let allowed = async {
            self.daemon.allow_key(wire.key.clone()).await?;
            tracing::info!(key = %wire.key, "an operator lets a recurring key have hints again");
            Ok(())
        };
        in_time(&self.daemon, &metadata, allowed).await?;
        Ok(Response::new(v1::AllowKeyResponse {}))
    }

    async fn network(&self, request: Request<v1::NetworkRequest>) -> Result<Response<v1::NetworkResponse>, Status> {
        let daemon = self.daemon.clone();
        let found = self.heavy("looking at the network", move |_| Ok(convert::network_view(daemon.network_in_force())));
        Ok(Response::new(in_time(&self.daemon, request.metadata(), found).await?))
    }

    async fn open_page(&self, _: Request<v1::OpenPageRequest>) -> Result<Response<v1::OpenPageResponse>, Status> {
        let access = self.daemon.page().map_err(|refusal| super::status::status(&refusal))?;
        let (url, valid) = access.invite();
        let millis = |span: std::time::Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
        let session_ms = millis(access.options().session_time);
        Ok(Response::new(v1::OpenPageResponse { url, valid_ms: millis(valid), session_ms }))
    }

    async fn racks(&self, request: Request<v1::RacksRequest>) -> Result<Response<v1::RacksResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let daemon = self.daemon.clone();
        let found = self.heavy("comparing racks", move |_| Ok(convert::racks(&daemon.rack_audit(), wire.differences)));
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn latency(&self, request: Request<v1::LatencyRequest>) -> Result<Response<v1::LatencyResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let (generation, now) = (self.daemon.generation(), self.daemon.clock().now());
        let (settings, agents) =
            (self.daemon.settings().engine.latency(), self.daemon.registries().agents().count(now));
        let found = self.heavy("looking at the latency", move |_| {
            convert::latency(&generation.snapshot, (&settings, agents), &wire, now)
        });
        Ok(Response::new(in_time(&self.daemon, &metadata, found).await?))
    }

    async fn diff_network(
        &self,
        request: Request<v1::DiffNetworkRequest>,
    ) -> Result<Response<v1::DiffNetworkResponse>, Status> {
        let (metadata, _, wire) = request.into_parts();
        let daemon = self.daemon.clone();
        let found = self.heavy("comparing the network", move |_| {
            let text = std::str::from_utf8(&wire.text).map_err(|error| Refusal::Invalid {
                field: "text".to_owned(),
                message: format!("is not UTF-8: {error}"),
            })?;
            daemon.diff_network(text, wire.json)
        });
        let differences = in_time(&self.daemon, &metadata, found).await?;
        let file = self.daemon.settings().network.as_ref().map(|source| source.path.display().to_string());
        Ok(Response::new(v1::DiffNetworkResponse {
            differences: differences.into_iter().map(convert::network_difference).collect(),
            file: file.unwrap_or_default(),
        }))
    }

    type SnapshotStream = std::pin::Pin<Box<dyn Stream<Item = Result<v1::SnapshotChunk, Status>> + Send>>;

    async fn snapshot(&self, request: Request<v1::SnapshotRequest>) -> Result<Response<Self::SnapshotStream>, Status> {
        let generation = self.daemon.generation();
        // Some tens of megabytes of text for a large cluster: not on a thread that serves sockets.
        let json = tokio::task::spawn_blocking(move || cluster_file(&generation));
        let json = async {
            let json = json.await.map_err(|_| failed("writing the snapshot ended in a panic"))?;
            json.map_err(|error| failed(&error))
        };
        let json = in_time(&self.daemon, request.metadata(), json).await?;
        let chunks: Vec<_> = json.chunks(CHUNK).map(|piece| Ok(v1::SnapshotChunk { json: piece.to_vec() })).collect();
        Ok(Response::new(Box::pin(tokio_stream::iter(chunks))))
    }
}

/// Bytes of a plan as it is submitted: some 20 times what 1,000 jobs on 20 racks take.
const PLAN_BYTES: usize = 128 << 20;

/// A plan as an operator submits it.
struct SubmittedPlan {
    name: String,
    /// Whether it replaces another of its name.
    replace: bool,
    /// Its text.
    json: Vec<u8>,
}

/// Gathers a submitted plan from its pieces; the first one names it.
async fn whole_plan(pieces: &mut Streaming<v1::SubmitPlanRequest>) -> Result<SubmittedPlan, Refusal> {
    let invalid = |field: &str, message: String| Refusal::Invalid { field: field.to_owned(), message };
    let (mut first, mut json) = (None, Vec::new());
    loop {
        let piece = pieces.message().await.map_err(|error| invalid("plan", error.message().to_owned()))?;
        let Some(piece) = piece else { break };
        json.extend_from_slice(&piece.json);
        if json.len() > PLAN_BYTES {
            return Err(invalid("plan", format!("more than {PLAN_BYTES} bytes")));
        }
        first.get_or_insert((piece.name, piece.replace));
    }
    let (name, replace) = first.ok_or_else(|| invalid("name", "a plan needs a name".to_owned()))?;
    Ok(SubmittedPlan { name, replace, json })
}

pub(super) fn node_view(generation: &Generation, node: NodeIdx, age_ms: Option<u64>) -> v1::NodeView {
    let snapshot = &generation.snapshot;
    let statics = &snapshot.statics;
    let wire = |row: &Resource| Some(resource_to_wire(&NamedResource::from_row(row, &snapshot.kinds)));
    let bits = statics.labels[node.at()].0;
    let labels = statics.label_names.iter().enumerate().filter(|(bit, _)| bits & (1 << bit) != 0);
    v1::NodeView {
        host: snapshot.host(node).to_string(),
        rack: statics.racks[snapshot.rack(node).at()].to_string(),
        state: snapshot.state[node.at()].as_str().to_owned(),
        total: wire(&statics.total[node.at()]),
        used: wire(&snapshot.occupied[node.at()]),
        leased: wire(&generation.leases.leased(node)),
        containers: snapshot.containers[node.at()],
        labels: labels.map(|(_, name)| name.to_string()).collect(),
        age_ms,
        machine_class: statics.class_names[statics.class[node.at()].at()].to_string(),
    }
}

/// Registered nodes by name, and when each was heard of.
fn nodes(
    generation: &Generation,
    heard: &[Option<Timestamp>],
    wire: &v1::NodesRequest,
    now: Timestamp,
) -> v1::NodesResponse {
    let statics = &generation.snapshot.statics;
    let mut found: Vec<NodeIdx> = statics
        .indexes()
        .take(generation.snapshot.nodes())
        .filter(|node| statics.host[node.at()].as_str().contains(&wire.host_contains))
        .collect();
    found.sort_by(|a, b| statics.host[a.at()].cmp(&statics.host[b.at()]));
    let total = u32::try_from(found.len()).unwrap_or(u32::MAX);
    found.truncate(limit(wire.limit));
    let view = |node: NodeIdx| {
        let heard = heard.get(node.at()).copied().flatten();
        node_view(generation, node, heard.map(|heard| now.since(heard).as_millis()))
    };
    let nodes = found.into_iter().map(view).collect();
    v1::NodesResponse { nodes, total }
}

fn links(
    generation: &Generation,
    (registries, clock): (&FeedRegistries, Clock),
    wire: &v1::LinksRequest,
) -> Result<v1::LinksResponse, Refusal> {
    let mut links = link_uses(generation);
    let paths = PathsNow::of(generation, &registries.links_down());
    let view =
        |link: &LinkUse| convert::link_view(link, (&registries.link_told(&link.link), clock), &paths, wire.users);
    if !wire.link.is_empty() {
        let found = links.iter().find(|link| link.link.as_str() == wire.link);
        let Some(found) = found else {
            let near = nearest(&wire.link, links.iter().map(|link| link.link.as_str()));
            let nearest = near.map(str::to_owned);
            return Err(Refusal::Unknown { what: "link", name: wire.link.clone(), nearest });
        };
        let links = vec![view(found)];
        return Ok(v1::LinksResponse { links, total: 1 });
    }
    links.retain(|link| !wire.down_only || !link.up);
    links.sort_by(|a, b| a.link.cmp(&b.link));
    let total = u32::try_from(links.len()).unwrap_or(u32::MAX);
    links.truncate(limit(wire.limit));
    Ok(v1::LinksResponse { links: links.iter().map(view).collect(), total })
}

/// Names the link or switch that an unknown one may have been meant to be.
fn with_nearest(refusal: Refusal, generation: &Generation) -> Refusal {
    let Some(network) = generation.snapshot.topology.network.as_deref() else { return refusal };
    match refusal {
        Refusal::Unknown { what: what @ "link", name, nearest: None } => {
            let near = nearest(&name, network.links().map(|(_, link)| link.name.as_str())).map(str::to_owned);
            Refusal::Unknown { what, name, nearest: near }
        }
        other => other,
    }
}

pub(super) fn policy_view(
    daemon: &Daemon,
    settings: &Settings,
    name: &str,
    policy: &Arc<dyn Policy>,
) -> v1::PolicyView {
    let capabilities = [
        (policy.as_place().is_some(), "place"),
        (policy.as_dispatch().is_some(), "dispatch"),
        (policy.as_route().is_some(), "route"),
        (policy.as_rebalance().is_some(), "rebalance"),
        (policy.as_plan().is_some(), "plan"),
        (policy.as_place_data().is_some(), "place_data"),
    ];
    let queues = settings.queues.iter().filter(|(_, queue)| queue.policy == Some(name));
    let frameworks = settings.policies.frameworks.iter().filter(|(_, chosen)| **chosen == name);
    v1::PolicyView {
        name: name.to_owned(),
        summary: policy.summary().to_owned(),
        capabilities: capabilities.into_iter().filter(|(has, _)| *has).map(|(_, word)| word.to_owned()).collect(),
        params_toml: policy.params_toml(),
        queues: queues.map(|(queue, _)| queue.clone()).collect(),
        frameworks: frameworks.map(|(framework, _)| framework.clone()).collect(),
        training: policy.as_learn().map(|learner| convert::training(learner.lesson(), daemon.training_of(name))),
        classes: policy.as_learn().map(|learner| convert::classes(learner, &daemon.generation().snapshot)),
    }
}

fn failed(message: &str) -> Refusal {
    let retry_after = hintd_model::units::Micros::from_secs(1);
    Refusal::Unavailable { message: message.to_owned(), retry_after }
}

/// 0 means all.
fn limit(limit: u32) -> usize {
    if limit == 0 { usize::MAX } else { limit as usize }
}

fn calibrate(generation: &Generation, wire: &v1::CalibrateRequest) -> v1::CalibrateResponse {
    let given = |bytes: u64| (bytes > 0).then_some(Bytes(bytes));
    let input = CalibrateInput {
        input_bytes: given(wire.input_bytes),
        exchanged_bytes: given(wire.exchanged_bytes),
        containers: u64::from(wire.containers.max(1)),
    };
    let found = container::calibrate(&generation.snapshot, &input);
    v1::CalibrateResponse {
        togetherness: found.weights.togetherness,
        locality: found.weights.locality,
        balance: found.weights.balance,
        because: found.because,
    }
}

/// The generation as a cluster file that reads back as it.
fn cluster_file(generation: &Generation) -> Result<Vec<u8>, String> {
    let document = ClusterDocument::from_snapshot(&generation.snapshot, &generation.leases);
    Syntax::Json.write(&document).map(String::into_bytes).map_err(|problem| problem.to_string())
}
