//! One link in full: how it is, who uses it, what it carried when it went down, and its last outage.

use super::super::{moments, output};
use super::state;
use super::words::{above_measured, is_measured, load_from, marked_load, no_users, unknown_rates};
use hintd::findings::outage;
use hintd_client::wire::v1;

/// `, DOWN for 50 s, since 04:35:20 UTC, as sdn.ryu said; before it carried 900 Mbit/s (90 %)`
fn state_in_words(link: &v1::LinkView) -> String {
    let Some(ms) = link.down_ms else { return state(link).to_owned() };
    let told = match outage::by_whom(&link.down_by, link.load_before.as_ref(), link.bits_per_s) {
        told if told.is_empty() => told,
        told => format!(", {told}"),
    };
    format!("{} for {}{told}", state(link), outage::lasting(ms, link.down_at_ms))
}

/// What was measured on it last before it went, each way.
fn load_before(link: &v1::LinkView) -> Vec<(&'static str, String)> {
    let Some(before) = &link.load_before else {
        return vec![("load before", "nothing was measured on it before it went".to_owned())];
    };
    let way = |from: &str, to: &str, rate: u64| {
        let share = output::digits(rate as f64 * 100.0 / link.bits_per_s.max(1) as f64);
        format!("{from} to {to}: {} ({share} %)", output::rate(rate as f64))
    };
    vec![
        ("load before", format!("measured {} before it went", output::age(before.before_ms))),
        ("", way(&link.a, &link.b, before.a_to_b_bits_per_s)),
        ("", way(&link.b, &link.a, before.b_to_a_bits_per_s)),
    ]
}

fn damped(link: &v1::LinkView) -> &'static str {
    if link.damped { "; new routes avoid it until it was quiet for a while (routes.flaps_hold)" } else { "" }
}

/// What of its load is of no flow, and what that is as a rule.
fn unknown_text(link: &v1::LinkView) -> Option<String> {
    unknown_rates(link).map(|rates| {
        format!(
            "unknown: {rates}, of no flow that hintd knows. Mostly files: maps that read blocks of other hosts, and replicas that \
             are written; else applications that do not ask for hints. hintctl decisions --sort followed shows whose containers \
             came elsewhere than hinted, hintctl explain ID what these read from other hosts (remote bytes: realised)."
        )
    })
}

/// What a user sends one way: `1.2 GB, ~1 Gbit/s !`
fn sends(bytes: u64, rate: u64, above_measured: bool) -> String {
    let told = match bytes {
        0 if rate == 0 => "-".to_owned(),
        0 => marked_load(v1::LoadSource::Modelled, rate),
        _ if rate == 0 => output::bytes(bytes as f64),
        _ => format!("{}, {}", output::bytes(bytes as f64), marked_load(v1::LoadSource::Modelled, rate)),
    };
    format!("{told}{}", if above_measured { " !" } else { "" })
}

/// All that is known of it.
pub(super) fn link_text(link: &v1::LinkView) -> String {
    let source = link.load_source();
    let direction = |from: &str, to: &str, rate: u64, modelled: u64, pairs: u64| {
        let share = output::digits(rate as f64 * 100.0 / link.bits_per_s.max(1) as f64);
        let wrong = match is_measured(link) && modelled > rate {
            true => format!(
                "; the model has {}, with flows that do not send now",
                marked_load(v1::LoadSource::Modelled, modelled)
            ),
            false => String::new(),
        };
        format!(
            "{from} to {to}: {} ({share} %), {}{wrong}",
            marked_load(source, rate),
            output::count(pairs, "task pair")
        )
    };
    let [down, back] = [link.a_to_b_modelled_bits_per_s, link.b_to_a_modelled_bits_per_s];
    let mut rows = vec![
        ("link", format!("{}, {}{}", link.id, state_in_words(link), damped(link))),
        ("capacity", format!("{} each way", output::rate(link.bits_per_s as f64))),
    ];
    if link.up {
        rows.extend([
            ("load", load_from(source, link.load_age_ms)),
            ("", direction(&link.a, &link.b, link.a_to_b_bits_per_s, down, link.a_to_b_task_pairs)),
            ("", direction(&link.b, &link.a, link.b_to_a_bits_per_s, back, link.b_to_a_task_pairs)),
        ]);
    } else {
        rows.extend(load_before(link));
    }
    let mut lines = vec![output::pairs(&rows)];
    if link.users_total > 0 {
        let is_above = link.users.iter().any(|user| above_measured(link, user).contains(&true));
        let rows = link.users.iter().map(|user| {
            let [down, back] = above_measured(link, user);
            let down = sends(user.a_to_b_bytes, user.a_to_b_bits_per_s, down);
            let back = sends(user.b_to_a_bytes, user.b_to_a_bits_per_s, back);
            [user.application_id.clone(), down, back]
        });
        let (down, back) = (format!("{} to {}", link.a, link.b), format!("{} to {}", link.b, link.a));
        lines.push(format!("\n{}", output::table(["user (modelled)", &down, &back], 1, rows)));
        lines.push(format!(
            "{} of {} users; bytes are those of their flows from beginning to end{}",
            link.users.len(),
            link.users_total,
            if is_above { "; ! above what is measured there: it does not send that now" } else { "" }
        ));
        lines.extend(unknown_text(link));
    } else if let Some(unknown) = unknown_text(link) {
        lines.push(unknown);
    } else if !link.users_reason.is_empty() {
        lines.push(format!("users: {}", no_users(&link.users_reason)));
    }
    lines.extend(link.carried.as_ref().map(carried_text));
    lines.extend(link.last_outage.as_ref().map(|outage| outage_text(outage, link.bits_per_s)));
    lines.join("\n")
}

/// `last outage: 50 s long, from 2026-11-28 04:35:20 UTC on, ended 2 min ago, as sdn.ryu said; when it went down: 12 routes over
/// it, of application_…`
fn outage_text(outage: &v1::LastOutage, capacity: u64) -> String {
    let v1::LastOutage { ended_ms, lasted_ms, said_by, carried, down_at_ms, load_before } = outage;
    let said = match outage::by_whom(said_by, load_before.as_ref(), capacity) {
        told if told.is_empty() => told,
        told => format!(", {told}"),
    };
    let from = if *down_at_ms > 0 { format!(", from {} on", moments::moment(*down_at_ms)) } else { String::new() };
    let carried = carried.as_ref().map_or_else(String::new, |carried| {
        let named: Vec<&str> = carried.applications.iter().map(|of| &*of.application_id).collect();
        let more = match (carried.applications_total as usize).saturating_sub(named.len()) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        let whose = if named.is_empty() { String::new() } else { format!(", of {}{more}", named.join(", ")) };
        format!("; when it went down: {}{whose}", carried_in_words(carried))
    });
    format!("last outage: {} long{from}, ended {} ago{said}{carried}", output::age(*lasted_ms), output::age(*ended_ms))
}

/// What it carried when it went down, and what became of that.
fn carried_text(carried: &v1::CarriedRoutes) -> String {
    let mut text = format!("when it went down: {}", carried_in_words(carried));
    if !carried.applications.is_empty() {
        let row = |of: &v1::CarriedApplication| [of.application_id.clone(), of.routes.to_string(), paths_now(of)];
        let rows = carried.applications.iter().map(row);
        text += &format!("\n\n{}", output::table(["application", "routes over it", "now"], 1, rows));
        text += &format!("\n{} of {} applications", carried.applications.len(), carried.applications_total);
    }
    text
}

/// `12 routes over it, 4 more that may have gone over it (…)`
fn carried_in_words(carried: &v1::CarriedRoutes) -> String {
    let mut parts = vec![format!("{} over it", routes(carried.routes))];
    if carried.routes_chained > 0 {
        parts.push(format!("{} through middleboxes over it", routes(carried.routes_chained)));
    }
    if carried.routes_uncertain > 0 {
        let why = "the network chose among several paths, which hintd does not see";
        parts.push(format!("{} that may have gone over it ({why})", routes(carried.routes_uncertain)));
    }
    match parts.as_slice() {
        [_] if carried.routes == 0 => "no route over it that hintd knows of".to_owned(),
        parts => parts.join(", "),
    }
}

fn routes(number: u64) -> String {
    output::count(number, "route")
}

fn paths_now(of: &v1::CarriedApplication) -> String {
    match (of.routes_whole, of.routes_cut) {
        (0, 0) => "sends no more".to_owned(),
        (whole, 0) => format!("{} with a path", routes(whole)),
        (whole, cut) => format!("{} without a path, {whole} with one", routes(cut)),
    }
}
