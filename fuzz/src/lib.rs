//! Everything that reads bytes from outside, a function each: what is refused is refused with words, what is taken is
//! written and read back the same. Fuzz targets call these, and so does tests/fuzz.rs, on stable and for seconds.

pub mod seeds;

use hintd::config::Config;
use hintd::feed::{FeedRegistries, FeedStream, blocks, datasets, events, heartbeats, latency, link_stats, topology};
use hintd::hadoop::job_progress::{JobTasks, TaskCounts};
use hintd::hadoop::name_node::web_hdfs;
use hintd::hadoop::{applications, history_server, job_progress, resource_manager, scheduler};
use hintd::rest_client::Address;
use hintd::runtime::RequestLimits;
use hintd::runtime::options::LatencyBounds;
use hintd::runtime::registries::RegistryLimits;
use hintd::sdn::model::Dpid;
use hintd::sdn::names::Names;
use hintd::sdn::ryu;
use hintd::server::convert;
use hintd_client::wire::v1;
use hintd_engine::journal::Table;
use hintd_engine::{Engine, EngineSettings, Rows};
use hintd_model::cluster::document::{ClusterDocument, RequestDocument, Syntax};
use hintd_model::cluster::{Model, SizeRules, Snapshot, Source};
use hintd_model::network::chains::{BoxLoads, Chains, ChainsDocument, unmet};
use hintd_model::network::racks::{KnownHosts, NetworkFile};
use hintd_model::network::{Network, NetworkDocument, check, summary};
use hintd_model::units::{ApplicationId, Micros, Timestamp};
use hintd_policy::plan::{Facts, Plan, check as check_plan, diff};
use hintd_simulator::{ClusterShape, FlowsDocument, SwimReader, TraceOptions, TraceReader, maybe_gzip, write_json};
use prost::Message;
use std::str::from_utf8;
use std::sync::OnceLock;

/// The moment at which everything is read.
pub const NOW: Timestamp = Timestamp(1_700_000_000_000_000);

/// A reader of bytes from outside.
pub type Target = fn(&[u8]);

/// All of them, by name.
pub const TARGETS: [(&str, Target); 20] = [
    ("configuration", configuration),
    ("cluster_file", cluster_file),
    ("request_file", request_file),
    ("network_file", network_file),
    ("chains_file", chains_file),
    ("shape_file", shape_file),
    ("script_file", script_file),
    ("swim_trace", swim_trace),
    ("json_trace", json_trace),
    ("flows_file", flows_file),
    ("plan_file", plan_file),
    ("resource_manager_answers", resource_manager_answers),
    ("name_node_answers", name_node_answers),
    ("history_server_answers", history_server_answers),
    ("application_master_answers", application_master_answers),
    ("ryu_answers", ryu_answers),
    ("request_message", request_message),
    ("follow_messages", follow_messages),
    ("feed_messages", feed_messages),
    ("journal_rows", journal_rows),
];

/// `hintd.toml`: any text is a configuration or a list of problems.
pub fn configuration(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    if let Err(problems) = Config::from_text(text, "fuzz.toml") {
        assert!(!problems.to_string().is_empty(), "a refusal says why");
    }
}

/// `hintd.cluster/1`: a document that is taken reads back as the same snapshot.
pub fn cluster_file(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    for syntax in [Syntax::Json, Syntax::Toml] {
        let Ok(document) = syntax.read::<ClusterDocument>(text) else { continue };
        let Ok((snapshot, leases)) = document.to_snapshot(NOW) else { continue };
        let written = ClusterDocument::from_snapshot(&snapshot, &leases);
        let (again, leases) = written.to_snapshot(NOW).expect("what was written is read");
        assert_eq!(ClusterDocument::from_snapshot(&again, &leases), written);
    }
}

/// `hintd.request/1`: a request that is taken is written and read as the same request.
pub fn request_file(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    for syntax in [Syntax::Json, Syntax::Toml] {
        let Ok(document) = syntax.read::<RequestDocument>(text) else { continue };
        let Ok(request) = document.to_request() else { continue };
        let again = RequestDocument::from_request(&request).to_request().expect("what was written is read");
        assert_eq!(again, request);
    }
}

/// Network documents: read past what is wrong, checked, and written back.
pub fn network_file(bytes: &[u8]) {
    racks_file(bytes);
    let Ok(value) = serde_json::from_slice(bytes) else { return };
    let (document, _) = NetworkDocument::from_value(&value);
    let Ok(network) = Network::from_document(&document) else { return };
    let _ = (check(&network), summary(&network));
    let written = network.to_document();
    let again = Network::from_document(&written).expect("what was written is read");
    assert_eq!(again.to_document(), written);
}

/// A network by rack: it makes a network without hosts, or says what is wrong.
fn racks_file(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    for read in [NetworkFile::read_toml(text), NetworkFile::read_json(text)] {
        match read {
            Ok(file) => drop(file.expand(&KnownHosts::default())),
            Err(problems) => assert!(!problems.is_empty() && problems.iter().all(|one| !one.message.is_empty())),
        }
    }
}

/// Chains: a declaration is taken or refused with words, alone and on a network, and written as it was read.
pub fn chains_file(bytes: &[u8]) {
    static NETWORK: OnceLock<Network> = OnceLock::new();
    let Ok(text) = from_utf8(bytes) else { return };
    let network = NETWORK.get_or_init(seeds::small_network);
    for syntax in [Syntax::Json, Syntax::Toml] {
        let Ok(document) = syntax.read::<ChainsDocument>(text) else { continue };
        for on in [None, Some(network)] {
            match Chains::new(&document, on) {
                Ok(chains) => drop(unmet(&chains, network, &BoxLoads::new(&chains))),
                Err(problems) => assert!(problems.iter().all(|problem| !problem.to_string().is_empty())),
            }
        }
        let written = syntax.write(&document).expect("what was read is written");
        assert_eq!(syntax.read::<ChainsDocument>(&written).expect("what was written is read"), document);
    }
}

/// `hintd.shape/1`: a shape without problems can be built, and has the nodes it says.
pub fn shape_file(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    for syntax in [Syntax::Json, Syntax::Toml] {
        let Ok(shape) = syntax.read::<ClusterShape>(text) else { continue };
        let problems = shape.problems();
        if shape.nodes() > 2_000 {
            continue; // as good as a small one, and slow
        }
        match shape.to_cluster() {
            Ok(cluster) => assert!(problems.is_empty() && cluster.snapshot.nodes() == shape.nodes()),
            Err(found) => assert!(!found.is_empty(), "a refusal says why"),
        }
    }
}

/// `hintd.script/1`: every entry is of the cluster, or the refusal says which is not.
pub fn script_file(bytes: &[u8]) {
    static CLUSTER: OnceLock<Snapshot> = OnceLock::new();
    let Ok(text) = from_utf8(bytes) else { return };
    match hintd_cli::simulate::script::Script::from_text(text, CLUSTER.get_or_init(seeds::small_cluster)) {
        Ok(script) => script.into_settings(&mut hintd_simulator::SimSettings::default()),
        Err(message) => assert!(!message.is_empty(), "a refusal says why"),
    }
}

/// SWIM traces, plain or gzip: every row is a job or refused by number; skipping goes on to the end.
pub fn swim_trace(bytes: &[u8]) {
    let Ok(reader) = maybe_gzip(bytes) else { return };
    let strict = SwimReader::new(reader).take(10_000).take_while(Result::is_ok).count();
    let Ok(reader) = maybe_gzip(bytes) else { return };
    let lenient = SwimReader::new(reader).skip_bad().take(10_000).take_while(Result::is_ok).count();
    assert!(lenient >= strict, "{lenient} jobs with bad lines skipped, {strict} before the first");
}

/// Traces of whichever format: jobs that are read are written as JSON lines and read back.
pub fn json_trace(bytes: &[u8]) {
    let Ok(reader) = maybe_gzip(bytes) else { return };
    let jobs: Vec<_> = TraceReader::new(reader, TraceOptions::default()).take(1_000).map_while(Result::ok).collect();
    if jobs.is_empty() {
        return; // a file without a job is no trace
    }
    let mut written = Vec::new();
    write_json(&jobs, &mut written).expect("memory takes what is written to it");
    let again = TraceReader::new(written.as_slice(), TraceOptions::default());
    let again: Vec<_> = again.collect::<Result<_, _>>().expect("what was written is read");
    assert_eq!(again, jobs);
}

/// Flows files: what is taken ends, every flow once.
pub fn flows_file(bytes: &[u8]) {
    let Ok(document) = serde_json::from_slice::<FlowsDocument>(bytes) else { return };
    let Ok(result) = document.run() else { return };
    assert_eq!(result.completions.len(), document.flows.len());
    assert!(result.completions.iter().all(|flow| flow.completion_s.is_finite()));
}

/// `hintd.plan/1`: a plan that is taken is written and read as the same plan; what the checker finds, it says in words, and
/// a plan that it finds right can be described.
pub fn plan_file(bytes: &[u8]) {
    let Ok(text) = from_utf8(bytes) else { return };
    let plan = match Plan::from_json(text) {
        Ok(plan) => plan,
        Err(error) => return assert!(!error.to_string().is_empty(), "a refusal says why"),
    };
    let again = Plan::from_json(&plan.to_json()).expect("what was written is read");
    assert_eq!(again, plan);
    assert!(diff(&again, &plan).is_empty());
    let facts = Facts { now: Some(NOW), policies: Some(vec!["jobpacker"]), ..Facts::default() };
    let defects = check_plan(&plan, &facts);
    assert!(defects.iter().all(|defect| !defect.to_string().is_empty()), "a defect is said in words");
    if check_plan(&plan, &Facts::default()).is_empty() {
        let _ = (plan.makespan(), plan.mean_completion(), plan.circuit_bytes());
    }
}

/// What a ResourceManager answers: nodes, its scheduler, applications and their containers.
pub fn resource_manager_answers(bytes: &[u8]) {
    let _ = (resource_manager::info(bytes), resource_manager::nodes(bytes));
    let _ = (applications::live(bytes), applications::alone(bytes), applications::containers(bytes));
    let most = scheduler::maximum(bytes);
    if let Ok(mut seen) = scheduler::conf(bytes) {
        seen.effective(most.unwrap_or_default());
        let in_force = SizeRules::default();
        let _ = (seen.rules(&in_force), seen.differences(&in_force));
    }
    if let Ok(text) = from_utf8(bytes) {
        let _ = applications::is_unknown(404, text);
    }
}

/// What a NameNode answers over WebHDFS: refusals, listings, blocks.
pub fn name_node_answers(bytes: &[u8]) {
    let _ = (web_hdfs::is_status(bytes), web_hdfs::listing(bytes), web_hdfs::file_blocks(bytes));
    let _ = web_hdfs::located_blocks(bytes);
    let Ok(text) = from_utf8(bytes) else { return };
    let _ = web_hdfs::refused(text);
    // Names that it lists become parts of the next question.
    let asked = web_hdfs::list_status(text, "ann");
    assert!(asked.is_ascii() && !asked.contains(|c: char| c.is_ascii_control() || c == ' '), "{asked:?} is no URL");
}

/// What a JobHistoryServer answers: jobs, their counters, times and configuration, as a run that is remembered.
pub fn history_server_answers(bytes: &[u8]) {
    let (counted, times) = (history_server::counted(bytes), history_server::times(bytes));
    let conf = history_server::conf(bytes).unwrap_or_default();
    for job in history_server::jobs(bytes).map(|list| list.rows).unwrap_or_default() {
        let times = times.as_ref().ok().copied().flatten();
        let _ = history_server::run(&job, &conf, counted.as_ref().copied().unwrap_or_default(), times);
        assert!(!history_server::key(&job.user, &job.name).is_empty());
    }
}

/// What an ApplicationMaster answers of its job, and where a proxy sends us: no number that can't be comes of it.
pub fn application_master_answers(bytes: &[u8]) {
    let application = ApplicationId { cluster_timestamp: 1_795_440_036_575, sequence: 2 };
    let counted = job_progress::counted(bytes, application).unwrap_or_default();
    let of = |total, completed| TaskCounts { total, completed };
    let tasks = job_progress::job_tasks(bytes, application);
    let tasks = tasks.unwrap_or(JobTasks { maps: of(8, 8), reduces: of(3, 0) });
    assert!(tasks.maps.completed <= tasks.maps.total && tasks.reduces.completed <= tasks.reduces.total);
    let received = job_progress::received(bytes, tasks).ok();
    if let Some(shuffle) = job_progress::shuffle(tasks, counted, received) {
        assert!(shuffle.received <= shuffle.receivers && shuffle.receivers > 0);
    }
    let Ok(text) = from_utf8(bytes) else { return };
    let proxy = Address { authority: "rm1:8088".to_owned(), tls: false };
    if let Some(path) = job_progress::redirected(text, &proxy, application) {
        assert!(path.starts_with("/proxy/") && path.is_ascii() && !path.contains(' '), "{path:?} is no path");
    }
}

/// What Ryu answers and calls, and a hosts file: each is read or refused.
pub fn ryu_answers(bytes: &[u8]) {
    let _ = (ryu::switches(bytes), ryu::links(bytes), ryu::hosts(bytes));
    let switch = Dpid(1);
    let _ = (ryu::ports(switch, bytes), ryu::counts(switch, bytes));
    if let Ok(found) = ryu::entries(switch, bytes) {
        let _ = hintd::sdn::table::InstalledEntries::new(found);
    }
    let Ok(text) = from_utf8(bytes) else { return };
    let _ = ryu::call(text);
    Names::default().hosts_file(text);
}

/// `RequestHints`: any message is a request or refused with its field.
pub fn request_message(bytes: &[u8]) {
    let Ok(message) = v1::RequestHintsRequest::decode(bytes) else { return };
    let again = v1::RequestHintsRequest::decode(message.encode_to_vec().as_slice()).expect("it was just written");
    let _ = convert::request(&message, &RequestLimits::default());
    assert_eq!(convert::digest(again), convert::digest(message), "a repeat is known as one");
}

/// Follow upwards: who follows is known or refused, and so is every event; those that are taken do an engine no harm.
pub fn follow_messages(bytes: &[u8]) {
    let (mut engine, _) = Engine::new(EngineSettings::default(), SizeRules::default(), Rows::new(), NOW)
        .expect("an empty journal can be read");
    let mut rest = bytes;
    while let Some(message) = item::<v1::FollowRequest>(&mut rest) {
        if let Some(start) = &message.start {
            let _ = convert::attempt(&start.application_id, start.attempt);
        }
        for event in message.events {
            if let Ok(event) = events::task_event(event, NOW) {
                let _ = engine.event(event, NOW);
            }
        }
    }
    engine.tick(NOW);
    engine.publish(NOW);
}

/// The next item: two bytes of length, then a message that takes what it can use of them.
fn item<M: Message + Default>(bytes: &mut &[u8]) -> Option<M> {
    let (length, rest) = bytes.split_first_chunk::<2>()?;
    let length = usize::from(u16::from_le_bytes(*length)).min(rest.len());
    let (body, rest) = rest.split_at(length);
    *bytes = rest;
    M::decode(body).ok()
}

/// What one agent may say.
const LATENCY: LatencyBounds = LatencyBounds { items_per_s: 1_000, max_age: Micros::from_secs(60) };

/// Feeds: items of all seven in any order; each is taken or refused, and the model publishes whatever they said.
pub fn feed_messages(bytes: &[u8]) {
    let registries = FeedRegistries::new(RegistryLimits::default());
    let mut streams = Source::ALL.map(FeedStream::new);
    let mut model = Model::default();
    let mut rest = bytes;
    while let Some((&kind, after)) = rest.split_first() {
        rest = after;
        let [nodes, hdfs, sdn, counters, pings, tasks] = &mut streams;
        // A refusal is an answer like any other.
        let _ = match kind % 8 {
            0 => item(&mut rest).map(|item| heartbeats::ingest(&registries, nodes, item)),
            1 => item(&mut rest).map(|item| blocks::ingest(&registries, hdfs, item)),
            2 => item(&mut rest).map(|item| datasets::ingest(&registries, hdfs, item)),
            3 => item(&mut rest).map(|item| topology::ingest(&registries, sdn, item)),
            4 => item(&mut rest).map(|item| link_stats::ingest(&registries, counters, item)),
            5 => item(&mut rest).map(|item| latency::ingest(&registries, pings, item, LATENCY, NOW)),
            6 => item(&mut rest).map(|item| events::ingest(&registries, tasks, item, NOW).map(|_| ())),
            _ => {
                registries.drain(&mut |change| model.apply(change, NOW).map(|_| ()));
                let _ = model.publish(NOW);
                None
            }
        };
    }
    registries.drain(&mut |change| model.apply(change, NOW).map(|_| ()));
    let snapshot = model.publish(NOW);
    assert!(snapshot.statics.indexes().all(|node| snapshot.statics.find(snapshot.host(node).as_str()) == Some(node)));
}

/// Rows of a journal: an engine, or the row that can't be read; what the engine writes anew can be read again.
pub fn journal_rows(bytes: &[u8]) {
    let rows = seeds::rows(bytes);
    let Ok((mut engine, counts)) = Engine::new(EngineSettings::default(), SizeRules::default(), rows, NOW) else {
        return;
    };
    assert_eq!(engine.leases().count(), counts.leases);
    engine.tick(NOW);
    let _ = engine.publish(NOW);
    let written = engine.take_effects().journal;
    assert!(!written.is_empty(), "every start is noted");
    assert!(engine.leases().all(|lease| lease.expires > NOW));
    assert!(Table::ALL.iter().all(|table| !table.name().is_empty()));
}
