//! One node in full: its state, its room, what is leased on it, and its links with their loads.

use super::super::failure::Failure;
use super::super::links::marked_load;
use super::super::output;
use super::super::printable::one_line_strings;
use hintd_client::AdminClient;
use hintd_client::wire::{v1, yarn};
use std::collections::BTreeSet;
use tonic::{Code, Status};

/// Leases shown of a node.
const LEASES_SHOWN: usize = 10;

/// What other calls tell of a node, or why they do not.
pub(super) struct Beside {
    leases: Result<Vec<v1::LeaseView>, Status>,
    links: Result<Vec<v1::LinkView>, Status>,
}

impl Beside {
    /// Its leases and its links, fit to be printed.
    pub(super) async fn of(admin: &mut AdminClient, host: &str) -> Self {
        let asked = v1::ListLeasesRequest { host: host.to_owned(), ..v1::ListLeasesRequest::default() };
        let leases = admin.list_leases(asked).await.map(|found| {
            let mut leases = found.into_inner().leases;
            leases.retain(|lease| lease.host == host);
            leases.iter().map(one_line_strings).collect()
        });
        let asked = v1::LinksRequest { users: 1, ..v1::LinksRequest::default() };
        let links = admin.links(asked).await.map(|found| {
            let mut links = found.into_inner().links;
            links.retain(|link| link.a == host || link.b == host);
            links.iter().map(one_line_strings).collect()
        });
        Self { leases, links }
    }
}

/// All that is known of it.
pub(super) fn node_text(node: &v1::NodeView, beside: &Beside) -> String {
    let heard = match node.age_ms {
        Some(ms) => format!("heard {} ago", output::age(ms)),
        None => "never heard".to_owned(),
    };
    let or_none = |text: &str| if text.is_empty() { "-".to_owned() } else { text.to_owned() };
    let pairs = output::pairs(&[
        ("node", format!("{}, {}, {heard}", node.host, node.state)),
        ("rack", or_none(&node.rack)),
        ("class", or_none(&node.machine_class)),
        ("labels", or_none(&node.labels.join(" "))),
        ("containers", node.containers.to_string()),
    ]);
    let leases = match &beside.leases {
        Ok(leases) => leases_text(node, leases),
        Err(why) => not_told("leases", why),
    };
    let links = match &beside.links {
        Ok(links) => links_text(node, links),
        Err(why) => not_told("links", why),
    };
    format!("{pairs}\n\n{}\n\n{leases}\n\n{links}", room_table(node))
}

fn not_told(what: &str, why: &Status) -> String {
    match why.code() {
        Code::Unimplemented => format!("{what}: this daemon does not list them"),
        _ => format!("{what} not known: {}", Failure::from(why.clone())),
    }
}

/// Memory, cores and whatever else the node has: all of it, what is used and leased, and what is left.
fn room_table(node: &v1::NodeView) -> String {
    let sizes = [&node.total, &node.used, &node.leased].map(|size| size.clone().unwrap_or_default());
    let of = |kind: &str, size: &yarn::ResourceProto| match kind {
        "memory, MB" => size.memory(),
        "vcores" => size.virtual_cores().into(),
        kind => size.resource_value_map.iter().find(|found| found.key == kind).map_or(0, |found| found.value()),
    };
    let others: BTreeSet<&str> =
        sizes.iter().flat_map(|size| &size.resource_value_map).map(|found| &*found.key).collect();
    let rows = ["memory, MB", "vcores"].into_iter().chain(others).map(|kind| {
        let [total, used, leased] = [0, 1, 2].map(|at| of(kind, &sizes[at]));
        let free = total.saturating_sub(used).saturating_sub(leased);
        [kind.to_owned(), total.to_string(), used.to_string(), leased.to_string(), free.to_string()]
    });
    output::table(["room", "total", "used", "leased", "free"], 1, rows)
}

fn leases_text(node: &v1::NodeView, leases: &[v1::LeaseView]) -> String {
    let rows = leases.iter().take(LEASES_SHOWN).map(|lease| {
        let size = lease.size.clone().unwrap_or_default();
        let ends = output::age(lease.expires_in_ms);
        let (whose, group) = (lease.application_id.clone(), lease.group.clone());
        [whose, lease.queue.clone(), group, lease.state.clone(), size.memory().to_string(), ends]
    });
    let table = output::table(["leased for", "queue", "group", "state", "MB", "ends in"], 4, rows);
    match leases.len().saturating_sub(LEASES_SHOWN) {
        _ if leases.is_empty() => "no lease on it".to_owned(),
        0 => table,
        more => format!("{table}\nand {more} more: hintctl leases --host {}", node.host),
    }
}

/// Its links, loads as they are seen from the node.
fn links_text(node: &v1::NodeView, links: &[v1::LinkView]) -> String {
    if links.is_empty() {
        return "no link to it is known".to_owned();
    }
    let rows = links.iter().map(|link| {
        let out = [link.a_to_b_bits_per_s, link.b_to_a_bits_per_s];
        let ([sends, takes], far) = if link.a == node.host { (out, &link.b) } else { ([out[1], out[0]], &link.a) };
        let load = |rate: u64| match link.up {
            true => {
                let share = output::percent(rate as f64 / link.bits_per_s.max(1) as f64);
                format!("{} ({share})", marked_load(link.load_source(), rate))
            }
            false => "-".to_owned(),
        };
        let state = if link.up { "up" } else { "DOWN" };
        let capacity = output::rate(link.bits_per_s as f64);
        [link.id.clone(), state.to_owned(), far.clone(), capacity, load(sends), load(takes)]
    });
    output::table(["link", "state", "to", "capacity", "it sends", "it receives"], 3, rows)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_node_says_its_state_its_room_whose_leases_it_has_and_what_its_links_carry() {
        let size = |memory, cores| yarn::ResourceProto {
            memory: Some(memory),
            virtual_cores: Some(cores),
            ..yarn::ResourceProto::default()
        };
        let node = v1::NodeView {
            host: "n1".into(),
            rack: "/r1".into(),
            state: "RUNNING".into(),
            total: Some(size(8_192, 8)),
            used: Some(size(2_048, 2)),
            leased: Some(size(1_024, 1)),
            containers: 2,
            age_ms: Some(1_200),
            ..v1::NodeView::default()
        };
        let lease =
            v1::LeaseView { application_id: "application_1_0001".into(), expires_in_ms: 30_000, ..Default::default() };
        let link = v1::LinkView {
            id: "l1".into(),
            a: "s1".into(),
            b: "n1".into(),
            up: true,
            bits_per_s: 1_000_000_000,
            a_to_b_bits_per_s: 100_000_000,
            b_to_a_bits_per_s: 250_000_000,
            load_source: v1::LoadSource::Measured.into(),
            ..v1::LinkView::default()
        };
        let down = v1::LinkView { id: "l2".into(), up: false, ..link.clone() };
        let words = |beside: &Beside| node_text(&node, beside).split_whitespace().collect::<Vec<_>>().join(" ");
        let said = words(&Beside { leases: Ok(vec![lease; 12]), links: Ok(vec![link, down]) });
        for part in [
            "node n1, RUNNING, heard 1.2 s ago rack /r1 class - labels - containers 2",
            "memory, MB 8192 2048 1024 5120 vcores 8 2 1 5",
            "application_1_0001 0 30 s",
            "and 2 more: hintctl leases --host n1",
            "l1 up s1 1 Gbit/s 250 Mbit/s (25 %) 100 Mbit/s (10 %)",
            "l2 DOWN s1 1 Gbit/s - -",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let none = words(&Beside { leases: Ok(vec![]), links: Ok(vec![]) });
        assert!(none.ends_with("no lease on it no link to it is known"), "{none}");
        let failed = Beside { leases: Err(Status::unimplemented("")), links: Err(Status::unavailable("it stops")) };
        let said = words(&failed);
        assert!(said.contains("leases: this daemon does not list them"), "{said}");
        assert!(said.ends_with("links not known: the daemon answers UNAVAILABLE: it stops"), "{said}");
    }
}
