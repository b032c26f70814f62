//! What an application was told about its receivers' turn, in words.

use super::output;
use super::printable::one_line;
use hintd::findings::count;
use hintd_client::wire::v1;
use std::time::Duration;

/// One line: what holds now, and what it cost so far.
pub(super) fn turn_text(turn: &v1::ShuffleTurnView) -> String {
    let now = match (turn.at_most, &*turn.reason) {
        (Some(0), _) => format!("held behind {} with fewer bytes left", count(turn.before.into(), "heavy shuffle")),
        (Some(most), _) => format!("its turn: up to {most} containers"),
        (None, "silent") => "asks for no turn any more".to_owned(),
        (None, _) => "not held".to_owned(),
    };
    let [last, waited] =
        [turn.last_ms, turn.waited_ms].map(|ms| output::seconds(Duration::from_millis(ms).as_secs_f64()));
    let held = match turn.held {
        0 => format!("never held in {}", count(turn.answers, "answer")),
        held => format!("held for {waited}, by {held} of {}", count(turn.answers, "answer")),
    };
    // Of who is not held the shuffle is that of its last turn.
    let shuffle = turn.at_most.map(|_| shuffle_text(turn)).unwrap_or_default();
    format!("{now}{shuffle}; {held}, the last {last} ago")
}

/// What is still to come, and where.
fn shuffle_text(turn: &v1::ShuffleTurnView) -> String {
    let lane = match &*turn.rack {
        "" => "all uplinks".to_owned(),
        rack => format!("access links of {}", one_line(rack)),
    };
    let [left, all] = [turn.left_bytes, turn.shuffle_bytes].map(|bytes| output::bytes(bytes as f64));
    format!(
        "; {left} of {all} still to come on {lane} (by {}); {} of {} receivers have theirs",
        who(&one_line(&turn.bytes_from)),
        turn.received,
        turn.receivers,
    )
}

/// The same in a column of a list.
pub(super) fn turn_cell(turn: &v1::ShuffleTurnView) -> String {
    let waited = match turn.held {
        0 => String::new(),
        _ => format!(", held for {}", output::age(turn.waited_ms)),
    };
    match turn.at_most {
        Some(0) => format!("behind {}{waited}", turn.before),
        Some(most) => format!("up to {most}{waited}"),
        None if turn.reason == "silent" => format!("silent{waited}"),
        None => format!("free{waited}"),
    }
}

/// Who knew the bytes.
fn who(from: &str) -> &str {
    match from {
        "caller" => "the caller",
        "application_master" => "its ApplicationMaster",
        "history" => "earlier runs",
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_says_what_holds_now_and_how_long_it_waited() {
        let turn = v1::ShuffleTurnView {
            reason: "held".to_owned(),
            at_most: Some(0),
            before: 2,
            shuffle_bytes: 40_000_000_000,
            left_bytes: 10_000_000_000,
            bytes_from: "history".to_owned(),
            receivers: 8,
            received: 6,
            last_ms: 1_000,
            answers: 9,
            held: 4,
            waited_ms: 12_000,
            ..v1::ShuffleTurnView::default()
        };
        assert_eq!(
            turn_text(&turn),
            "held behind 2 heavy shuffles with fewer bytes left; 10 GB of 40 GB still to come on all uplinks (by earlier runs); 6 of 8 \
             receivers have theirs; held for 12 s, by 4 of 9 answers, the last 1 s ago"
        );
        let turn = v1::ShuffleTurnView { at_most: Some(20), rack: "/r1".to_owned(), ..turn };
        assert!(
            turn_text(&turn)
                .starts_with("its turn: up to 20 containers; 10 GB of 40 GB still to come on access links of /r1 (")
        );
        assert_eq!(turn_cell(&turn), "up to 20, held for 12 s");
        let turn = v1::ShuffleTurnView { at_most: None, held: 0, ..turn };
        assert!(turn_text(&turn).starts_with("not held; "));
        assert!(turn_text(&turn).ends_with("; never held in 9 answers, the last 1 s ago"), "{}", turn_text(&turn));
        assert_eq!(turn_cell(&turn), "free");
        let silent = v1::ShuffleTurnView { reason: "silent".to_owned(), ..turn };
        assert_eq!(turn_text(&silent), "asks for no turn any more; never held in 9 answers, the last 1 s ago");
    }
}
