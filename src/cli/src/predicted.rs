//! Predicted performance, as people read it.

use super::output;
use hintd_client::wire::v1;

/// A row for each host with containers, with the confidence of its hint, and for each that they could have gone to instead.
pub fn text(predicted: &v1::PredictedPerformance, hints: &[v1::Hint]) -> String {
    let v1::PredictedPerformance { curve, root_host, root_group, groups } = predicted;
    let root = match root_group.as_str() {
        "" => "where the application runs already".to_owned(),
        group => format!("of group {group}"),
    };
    let rows = groups.iter().flat_map(|group| {
        let places = group.placed.iter().chain(&group.alternatives);
        places.map(|place| row(&group.group, place, hints)).collect::<Vec<_>>()
    });
    let table = output::table(["group", "host", "round trip", "", "containers", "performance", "confidence"], 4, rows);
    let none = groups.iter().filter(|group| !group.placed.is_empty() && group.alternatives.is_empty());
    let none: Vec<&str> = none.map(|group| group.group.as_str()).collect();
    let none = match none.join(", ") {
        names if names.is_empty() => String::new(),
        names => format!("\nno other host had room beside these: {names}"),
    };
    format!("predicted performance by curve {curve}, of the best there is; root on {root_host}, {root}\n{table}{none}")
}

fn row(group: &str, place: &v1::PredictedPlace, hints: &[v1::Hint]) -> [String; 7] {
    let (containers, hint) = match place.count {
        0 => ("or else".to_owned(), None),
        count => (count.to_string(), hints.iter().find(|hint| hint.group == group && hint.host == place.host)),
    };
    let performance = format!("{:.1} %", place.performance * 100.0);
    let confidence = hint.map_or_else(String::new, |hint| format!("{:.2}", hint.confidence));
    let rtt = format!("{} µs", place.rtt_us);
    [group.to_owned(), place.host.clone(), rtt, basis(place), containers, performance, confidence]
}

fn basis(place: &v1::PredictedPlace) -> String {
    let age = place.age_ms.map_or_else(|| "an unknown time".to_owned(), |ms| output::seconds(ms as f64 / 1e3));
    let basis = match place.basis.as_str() {
        "hosts" => format!("measured {age} before"),
        "racks" => format!("between their racks, measured {age} before"),
        "same_host" => "same host, not measured".to_owned(),
        "same_rack" => "same rack, not measured".to_owned(),
        "beyond" => "another rack, not measured".to_owned(),
        other => other.to_owned(),
    };
    match place.slowdown {
        Some(times) => format!("{basis}, × {} for DataNodes report it as slow", output::digits(times)),
        None => basis,
    }
}

/// A row for each move that the application was told of.
pub fn moves_text(moves: &[v1::ProposedMove]) -> String {
    let rows = moves.iter().map(|told| {
        let advice = told.advice.clone().unwrap_or_default();
        let because = match (advice.performance, advice.to_performance) {
            (Some(now), Some(then)) => format!("performance {:.1} % to {:.1} %", now * 100.0, then * 100.0),
            _ => format!("chain {}", advice.chain),
        };
        let gain = format!("{} %", output::digits(advice.gain * 100.0));
        let followed = if told.followed { "followed" } else { "not followed yet" };
        [advice.container_id, told.from_host.clone(), advice.to_host, because, followed.to_owned(), gain]
    });
    let table = output::table(["container", "from", "to", "because of", "", "gain"], 5, rows);
    format!("moves that the application was told of lately\n{table}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn place(host: &str, count: u32, basis: &str, age_ms: Option<u64>) -> v1::PredictedPlace {
        v1::PredictedPlace {
            host: host.into(),
            count,
            performance: 0.926,
            rtt_us: 50,
            basis: basis.into(),
            age_ms,
            slowdown: None,
        }
    }

    #[test]
    fn each_host_has_a_row_with_where_its_latency_comes_from_and_alternatives_stand_beside() {
        let workers = v1::PredictedGroup {
            group: "worker".into(),
            placed: vec![place("n1", 3, "hosts", Some(2_000)), place("n2", 1, "same_rack", None)],
            alternatives: vec![place("n3", 0, "racks", Some(4_000)), place("n4", 0, "beyond", None)],
        };
        let full = v1::PredictedGroup {
            group: "ps".into(),
            placed: vec![place("n9", 1, "same_host", None)],
            ..Default::default()
        };
        let predicted = v1::PredictedPerformance {
            curve: "memcached".into(),
            root_host: "n9".into(),
            root_group: "ps".into(),
            groups: vec![workers, full],
        };
        let hint = |host: &str, confidence| v1::Hint {
            group: "worker".into(),
            host: host.into(),
            confidence,
            ..v1::Hint::default()
        };
        let hints = [hint("n1", 0.871), hint("n2", 0.45), hint("n3", 0.33)];
        let said = text(&predicted, &hints);
        let row = |host: &str| said.lines().find(|line| line.split_whitespace().nth(1) == Some(host)).unwrap();
        assert!(row("n1").trim_end().ends_with("0.87") && row("n2").trim_end().ends_with("0.45"), "{said}");
        assert!(!said.contains("0.33"), "no hint is of an alternative\n{said}");
        for words in [
            "by curve memcached",
            "root on n9, of group ps",
            "measured 2 s before",
            "between their racks, measured 4 s before",
            "same rack, not measured",
            "another rack, not measured",
            "same host, not measured",
            "92.6 %",
            "or else",
            "no other host had room beside these: ps",
        ] {
            assert!(said.contains(words), "{words} is not in\n{said}");
        }
        let ran = v1::PredictedPerformance { root_host: "n9".into(), ..v1::PredictedPerformance::default() };
        assert!(text(&ran, &[]).contains("root on n9, where the application runs already"));
    }
}
