//! Which class of machines a decision of `scale_up_out` is for, in a line: by which predicted ends, and how sure that is.

use super::output;
use hintd_client::wire::v1;

/// The line; `None`: the policy tells no classes apart.
pub(super) fn text(set: &v1::HintSet) -> Option<String> {
    let parts = &set.terms.as_ref()?.parts;
    let part = |name: &str| parts.get(name).copied();
    if let Some(machines) = part("scale_up_machines") {
        let which = if machines == 0.0 { "no node is" } else { "every node is" };
        return Some(format!("class: none chosen, for {which} of the scale-up class: placed as fair does"));
    }
    let (chosen, decision) = (part("scale_up")?, part("decision_value")?);
    let ends = [part("scale_up_end_s")?, part("scale_out_end_s")?].map(output::seconds);
    let class = if chosen > 0.0 { "scale-up" } else { "scale-out" };
    let size = if decision > 0.0 { "small" } else { "large" };
    let [up, out] = ends;
    Some(format!(
        "class: {class} machines; predicted end {up} on scale-up and {out} on scale-out machines; decision value {}: a {size} job; confidence: {}",
        output::digits(decision),
        confidence(part("held_out_jobs"), part("held_out_wrong").unwrap_or_default())
    ))
}

fn confidence(jobs: Option<f64>, wrong: f64) -> String {
    match jobs {
        None => "not measured, by the stated time model".to_owned(),
        Some(0.0) => "not measured, learnt from finished jobs of which none were held out".to_owned(),
        Some(jobs) => {
            format!("the classifier is wrong on {wrong} of {jobs} jobs held out ({:.1} %)", wrong / jobs * 100.0)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(parts: &[(&str, f64)]) -> Option<String> {
        let parts = parts.iter().map(|(name, value)| ((*name).to_owned(), *value)).collect();
        text(&v1::HintSet { terms: Some(v1::Terms { parts, ..v1::Terms::default() }), ..v1::HintSet::default() })
    }

    #[test]
    fn a_class_is_told_with_both_ends_and_how_sure_it_is() {
        let judged = [("decision_value", 0.8), ("scale_up_end_s", 12.0), ("scale_out_end_s", 20.0), ("scale_up", 1.0)];
        let line = said(&judged).unwrap();
        assert_eq!(
            line,
            "class: scale-up machines; predicted end 12 s on scale-up and 20 s on scale-out machines; decision value 0.8: a small job; confidence: not measured, by the stated time model"
        );
        let held_out =
            |jobs, wrong| said(&[&judged[..], &[("held_out_jobs", jobs), ("held_out_wrong", wrong)]].concat());
        let sure = held_out(80.0, 3.0).unwrap();
        assert!(sure.ends_with("confidence: the classifier is wrong on 3 of 80 jobs held out (3.8 %)"), "{sure}");
        assert!(held_out(0.0, 0.0).unwrap().ends_with("of which none were held out"));
        let mut large = judged;
        (large[0].1, large[3].1) = (-1.5, 0.0);
        let line = said(&large).unwrap();
        assert!(line.starts_with("class: scale-out machines;") && line.contains("-1.5: a large job"), "{line}");
    }

    #[test]
    fn where_there_are_no_two_classes_that_is_said_and_of_other_policies_nothing() {
        let none = said(&[("scale_up_machines", 0.0)]).unwrap();
        assert!(none.contains("no node is of the scale-up class: placed as fair does"), "{none}");
        assert_eq!((said(&[("busiest_link_s", 1.0)]), text(&v1::HintSet::default())), (None, None));
    }
}
