//! Latency as operators see it.

use hintd_client::wire::v1;
use hintd_engine::Refusal;
use hintd_model::cluster::Snapshot;
use hintd_model::network::latency::slow_peers::{SlowPeer, SlowPeersState, Slowdown};
use hintd_model::network::latency::{HostRow, LatencySettings};
use hintd_model::solve::nearest;
use hintd_model::units::{NodeIdx, RackIdx, Timestamp};

/// What was measured and still counts: by rack, or of one host.
///
/// # Errors
/// [`Refusal::Unknown`] host.
pub(crate) fn latency(
    snapshot: &Snapshot,
    (settings, agents): (&LatencySettings, usize),
    wire: &v1::LatencyRequest,
    now: Timestamp,
) -> Result<v1::LatencyResponse, Refusal> {
    let table = &snapshot.latency;
    let counts = |at: Timestamp| now.since(at) <= table.max_age();
    let limit = if wire.limit == 0 { usize::MAX } else { wire.limit as usize };
    let paths = table.host_rows().filter(|row| counts(row.at)).count();
    let mut answer = v1::LatencyResponse {
        paths: u32::try_from(paths).unwrap_or(u32::MAX),
        agents: u32::try_from(agents).unwrap_or(u32::MAX),
        quantile: settings.quantile,
        max_age_ms: table.max_age().as_millis(),
        ..v1::LatencyResponse::default()
    };
    if wire.host.is_empty() {
        let rack = |rack: RackIdx| snapshot.statics.racks[rack.at()].to_string();
        for row in table.rack_rows().filter(|row| counts(row.at)) {
            let (a, b) = (rack(row.a), rack(row.b));
            let (a, b) = if a <= b { (a, b) } else { (b, a) };
            let age_ms = now.since(row.at).as_millis();
            answer.racks.push(v1::RackLatency { a, b, rtt_us: row.rtt.0, median_us: row.median.0, age_ms });
        }
        answer.racks.sort_by(|x, y| (&x.a, &x.b).cmp(&(&y.a, &y.b)));
        answer.total = u32::try_from(answer.racks.len()).unwrap_or(u32::MAX);
        answer.racks.truncate(limit);
    } else {
        let statics = &snapshot.statics;
        let node = statics.find(&wire.host).ok_or_else(|| Refusal::Unknown {
            what: "host",
            name: wire.host.clone(),
            nearest: nearest(&wire.host, statics.host.iter().map(|known| known.as_str())).map(str::to_owned),
        })?;
        answer.hosts = table
            .host_rows()
            .filter(|row| (row.from == node || row.to == node) && counts(row.at))
            .map(|row| host_row(snapshot, &row, now))
            .collect();
        answer.hosts.sort_by(|x, y| (&x.from, &x.to, x.path).cmp(&(&y.from, &y.to, y.path)));
        answer.total = u32::try_from(answer.hosts.len()).unwrap_or(u32::MAX);
        answer.hosts.truncate(limit);
    }
    answer.slow_peers = slow_peers(snapshot, &wire.host, now);
    let told = table.slow_peers();
    answer.slow_peers_state = told.state.as_str().to_owned();
    answer.slow_peers_age_ms = (told.state != SlowPeersState::Unknown).then(|| now.since(told.told_at).as_millis());
    Ok(answer)
}

/// Reports that count, all or those that name a host.
fn slow_peers(snapshot: &Snapshot, host: &str, now: Timestamp) -> Vec<v1::SlowPeerReport> {
    let peers = snapshot.latency.slow_peers();
    let only = snapshot.statics.find(host);
    let report = |row: &SlowPeer| v1::SlowPeerReport {
        slow: snapshot.host(row.slow).to_string(),
        reporter: snapshot.host(row.reporter).to_string(),
        reported_ms: row.packet.map(|packet| packet.reported.0 as f64 / 1e3),
        median_ms: row.packet.map(|packet| packet.median.0 as f64 / 1e3),
        slowdown: peers.slowdown(row.slow, row.reporter, now).factor(),
        slowdown_of_host: peers.of_host(row.slow, now).map(Slowdown::factor),
        age_ms: now.since(row.since).as_millis(),
    };
    let rows = peers.rows(now).iter().filter(|row| only.is_none_or(|host| [row.slow, row.reporter].contains(&host)));
    let mut reports: Vec<v1::SlowPeerReport> = rows.map(report).collect();
    reports.sort_by(|x, y| (&x.slow, &x.reporter).cmp(&(&y.slow, &y.reporter)));
    reports
}

fn host_row(snapshot: &Snapshot, row: &HostRow, now: Timestamp) -> v1::HostLatency {
    let host = |node: NodeIdx| snapshot.host(node).to_string();
    v1::HostLatency {
        from: host(row.from),
        to: host(row.to),
        to_rack: snapshot.statics.racks[snapshot.rack(row.to).at()].to_string(),
        path: row.path.into(),
        rtt_us: row.rtt.0,
        median_us: row.median.0,
        age_ms: now.since(row.at).as_millis(),
    }
}
