//! What an id means: a decision, perhaps by the beginning of its id, an application, or one of its attempts; and why there is
//! nothing of it.

use super::failure::Failure;
use super::output;
use super::printable::one_line;
use super::view::not_empty;
use hintd_client::AdminClient;
use hintd_client::wire::v1;
use hintd_model::units::{ApplicationId, DecisionId};
use std::collections::BTreeSet;

/// Whose decisions are asked for.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Asked {
    pub(super) application: String,
    /// One of its attempts; 0: any.
    pub(super) attempt: u32,
}

/// The application that an id names, or one of its attempts: its own or an attempt's, as YARN's logs have it, a MapReduce job's or
/// a container's. `None`: it is a decision's.
///
/// # Errors
/// [`Failure::Input`] for what begins as such an id and is none.
pub(super) fn application_of(id: &str) -> Result<Option<Asked>, Failure> {
    if id.starts_with("application_") {
        id.parse::<ApplicationId>().map_err(|error| Failure::Input(one_line(&error.to_string()).into_owned()))?;
        return Ok(Some(Asked { application: id.to_owned(), attempt: 0 }));
    }
    if let Some(rest) = id.strip_prefix("job_") {
        let asked = Asked { application: format!("application_{rest}"), attempt: 0 };
        return of_application(asked).map(Some).ok_or_else(|| no_id(id, "a job's", "job_1700000000000_0003"));
    }
    if let Some(rest) = id.strip_prefix("container_") {
        let example = "container_1700000000000_0003_01_000002";
        return of_container(rest).map(Some).ok_or_else(|| no_id(id, "a container's", example));
    }
    let Some(rest) = id.strip_prefix("appattempt_") else { return Ok(None) };
    let parts =
        rest.rsplit_once('_').and_then(|(application, attempt)| Some((application, attempt.parse::<u32>().ok()?)));
    match parts.filter(|(application, attempt)| *attempt > 0 && application.contains('_')) {
        Some((application, attempt)) => Ok(Some(Asked { application: format!("application_{application}"), attempt })),
        None => Err(no_id(id, "an attempt's", "appattempt_1700000000000_0003_000001")),
    }
}

fn no_id(id: &str, whose: &str, example: &str) -> Failure {
    Failure::Input(format!("\"{}\" is not {whose} id, as in \"{example}\"", one_line(id)))
}

/// The same, if its application's id is one.
fn of_application(asked: Asked) -> Option<Asked> {
    asked.application.parse::<ApplicationId>().is_ok().then_some(asked)
}

/// The attempt that a container is of: `e17_` before the ResourceManager's start is left out where it never restarted.
fn of_container(rest: &str) -> Option<Asked> {
    let parts: Vec<&str> = rest.split('_').collect();
    let parts = match parts.as_slice() {
        [epoch, parts @ ..] if epoch.starts_with('e') => parts,
        parts => parts,
    };
    let [start, application, attempt, number] = parts else { return None };
    number.parse::<u64>().ok()?;
    let attempt = attempt.parse::<u32>().ok().filter(|attempt| *attempt > 0)?;
    of_application(Asked { application: format!("application_{start}_{application}"), attempt })
}

/// Digits of a decision's id: eight of the daemon's start, eight of a count, and sixteen that nobody can guess.
const DIGITS: usize = 32;
/// The first so many are no other decision's.
const DIGITS_OWN: usize = 16;
/// Fewer digits of its beginning are a slip.
const DIGITS_LEAST: usize = 4;
/// Ids named where several begin alike.
const NAMED: usize = 3;

/// The id of a decision, or its beginning, as the daemon writes it.
///
/// # Errors
/// [`Failure::Input`] for what is neither.
pub(super) fn decision_of(id: &str) -> Result<String, Failure> {
    let is_id = (DIGITS_LEAST..=DIGITS).contains(&id.len()) && id.bytes().all(|digit| digit.is_ascii_hexdigit());
    if is_id {
        return Ok(id.to_ascii_lowercase());
    }
    let what = if id.is_empty() { "the id is empty".to_owned() } else { format!("\"{}\" is no id", one_line(id)) };
    Err(Failure::Input(format!(
        "{what}: a decision's has 32 hexadecimal digits, of which the first {DIGITS_OWN} will do, as in \
         0000019a000000015c0e2f9b7d3a8146 (hintctl decisions -o wide); an application's is as in application_1700000000000_0007 \
         (hintctl applications)"
    )))
}

/// The id of the recorded decision that begins so; an id that is whole as it is.
///
/// # Errors
/// [`Failure::Input`] where none or several begin so.
pub(super) async fn whole_id(admin: &mut AdminClient, id: &str) -> Result<String, Failure> {
    if id.len() == DIGITS {
        return Ok(id.to_owned());
    }
    let list = match admin.list_decisions(v1::ListDecisionsRequest::default()).await {
        Ok(list) => list.into_inner(),
        // Of version 0.1.0, which lists nothing and whose ids are as long as a half of one.
        Err(_) if id.parse::<DecisionId>().is_ok() => return Ok(id.to_owned()),
        Err(status) => return Err(status.into()),
    };
    let begin_so = list.decisions.iter().map(|row| &*row.decision_id).filter(|known| known.starts_with(id));
    the_one(id, &begin_so.collect::<Vec<_>>(), &one_line(&list.kept))
}

fn the_one(id: &str, begin_so: &[&str], kept: &str) -> Result<String, Failure> {
    match begin_so {
        [only] => Ok((*only).to_owned()),
        // As version 0.1.0 wrote them.
        [] if id.parse::<DecisionId>().is_ok() => Ok(id.to_owned()),
        [] => Err(Failure::Input(format!("no recorded decision's id begins with {id}; {kept}"))),
        several => {
            let named = several.iter().take(NAMED).map(|id| one_line(id)).collect::<Vec<_>>().join(", ");
            let more = several.len().saturating_sub(NAMED);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            let tell_apart = format!("the first {DIGITS_OWN} digits tell them apart");
            Err(Failure::Input(format!(
                "the ids of {} decisions begin with {id}: {named}{more}; {tell_apart}",
                several.len()
            )))
        }
    }
}

/// The id of an application, of an option that narrows a list by it.
pub(super) fn application_id(text: &str) -> Result<String, String> {
    not_empty(text)?;
    text.parse::<ApplicationId>().map(|_| text.to_owned()).map_err(|error| error.to_string())
}

/// Its recorded decisions, newest first.
///
/// # Errors
/// [`Failure`] where the daemon refuses.
pub(super) async fn decisions_of(
    admin: &mut AdminClient,
    asked: &Asked,
    limit: u32,
) -> Result<v1::ListDecisionsResponse, Failure> {
    let Asked { application, attempt } = asked;
    let (application_id, attempt) = (application.clone(), *attempt);
    let request = v1::ListDecisionsRequest { application_id, attempt, limit, ..v1::ListDecisionsRequest::default() };
    let mut list = admin.list_decisions(request).await?.into_inner();
    // A daemon of before lists those of every attempt.
    if attempt > 0 && list.decisions.iter().any(|row| row.attempt != attempt) {
        list.decisions.retain(|row| row.attempt == attempt);
        list.total = list.decisions.len() as u64;
    }
    Ok(list)
}

/// Why there is nothing to explain: the attempt is not there, and which are; or no decision is recorded, or it never asked.
///
/// # Errors
/// [`Failure`] where the daemon does not say.
pub(super) async fn nothing_of(admin: &mut AdminClient, asked: &Asked, kept: &str) -> Result<Failure, Failure> {
    let id = one_line(&asked.application);
    let request = v1::ListApplicationsRequest { application_id: asked.application.clone(), ..Default::default() };
    let known = admin.list_applications(request).await?.into_inner().applications;
    let held = admin.list_attempts(v1::ListAttemptsRequest { limit: 0 }).await?.into_inner().attempts;
    let held = held.into_iter().filter(|row| row.application_id == asked.application).map(|row| row.attempt);
    let any = Asked { application: asked.application.clone(), attempt: 0 };
    let recorded = if asked.attempt > 0 { decisions_of(admin, &any, 0).await?.decisions } else { Vec::new() };
    let attempts: BTreeSet<u32> = held.chain(recorded.into_iter().map(|row| row.attempt)).collect();
    Ok(Failure::Input(nothing_text(&id, asked.attempt, (&attempts, known.first()), &one_line(kept))))
}

fn nothing_text(
    id: &str,
    attempt: u32,
    (attempts, known): (&BTreeSet<u32>, Option<&v1::ApplicationView>),
    kept: &str,
) -> String {
    let refused = known.filter(|row| !row.refused.is_empty()).map_or_else(String::new, |row| {
        let requests = if row.refused_requests == 1 { "request was" } else { "requests were" };
        format!(
            "; {} of its {requests} refused ({}), the last {} ago: the log and docs/operations.md (Common refusals) say more",
            row.refused_requests,
            one_line(&row.refused),
            output::age(row.asked_ms)
        )
    });
    if attempt == 0 || attempts.contains(&attempt) {
        let whose = if attempt == 0 { id.to_owned() } else { format!("attempt {attempt} of {id}") };
        return format!("no decision of {whose} is recorded{refused}; {kept}");
    }
    let numbers: Vec<String> = attempts.iter().map(ToString::to_string).collect();
    let there = match numbers.as_slice() {
        [] => "nor is any other of this application".to_owned(),
        [only] => format!("known is attempt {only}"),
        several => format!("known are attempts {}", several.join(", ")),
    };
    format!("no attempt {attempt} of {id} is known: {there}{refused}; {kept}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_attempt_stands_for_its_application() {
        let of = |id: &str| application_of(id).unwrap().map(|asked| (asked.application, asked.attempt));
        let application = || "application_1700000000000_0003".to_owned();
        assert_eq!(of("appattempt_1700000000000_0003_000001"), Some((application(), 1)));
        assert_eq!(of("application_1700000000000_0003"), Some((application(), 0)));
        assert_eq!(of("job_1700000000000_0003"), Some((application(), 0)));
        for container in ["container_1700000000000_0003_02_000007", "container_e17_1700000000000_0003_02_000007"] {
            assert_eq!(of(container), Some((application(), 2)), "{container}");
        }
        for wrong in ["job_", "job_17", "container_1_0003_01", "container_1_0003_00_1", "container_x_0003_01_1"] {
            let said = application_of(wrong).unwrap_err().to_string();
            assert!(
                said.starts_with(&format!("\"{wrong}\" is not ")) && said.contains("_1700000000000_0003"),
                "{said}"
            );
        }
        assert_eq!(of("0000019a000000015c0e2f9b7d3a8146"), None);
        let said = application_of("application_17").unwrap_err().to_string();
        assert_eq!(said, "\"application_17\" is not an application id, as in \"application_1700000000000_0001\"");
        assert!(application_id("application_1_0003").is_ok() && application_id("").unwrap_err().contains("empty"));
        assert!(application_id("foo").unwrap_err().starts_with("\"foo\" is not an application id"));
        for wrong in ["appattempt_1_0003", "appattempt_1_0003_x", "appattempt_1_0003_000000", "appattempt_"] {
            let said = application_of(wrong).unwrap_err().to_string();
            assert!(said.contains("is not an attempt's id, as in \"appattempt_"), "{said}");
        }
    }

    #[test]
    fn what_is_no_id_is_refused_by_its_name_and_how_ids_look_and_the_beginning_of_one_will_do() {
        assert_eq!(decision_of("0000019A").unwrap(), "0000019a");
        for (wrong, begin) in [("", "the id is empty: "), ("foo", "\"foo\" is no id: "), ("12", "\"12\" is no id: ")] {
            let said = decision_of(wrong).unwrap_err().to_string();
            assert!(said.starts_with(begin) && said.contains("application_1700000000000_0007"), "{said}");
            assert!(!said.contains("decision_id"), "names of the interface are nobody's: {said}");
        }
        assert!(decision_of(&"0".repeat(33)).is_err());
        let one =
            |id, begin_so: &[&str]| the_one(id, begin_so, "records go back 9 s").map_err(|error| error.to_string());
        assert_eq!(one("00aa", &["00aabb"]), Ok("00aabb".to_owned()));
        assert_eq!(one("00ab", &[]), Err("no recorded decision's id begins with 00ab; records go back 9 s".to_owned()));
        assert_eq!(one("0000019a00000001", &[]), Ok("0000019a00000001".to_owned()), "a whole id of 0.1.0");
        let several = one("00", &["001", "002", "003", "004"]).unwrap_err();
        assert_eq!(
            several,
            "the ids of 4 decisions begin with 00: 001, 002, 003 and 1 more; the first 16 digits tell them apart"
        );
    }

    #[test]
    fn an_attempt_that_is_not_there_is_said_and_which_are() {
        let said = |attempt, attempts: &[u32], known: Option<&v1::ApplicationView>| {
            nothing_text(
                "application_1_0003",
                attempt,
                (&attempts.iter().copied().collect(), known),
                "records go back 9 s",
            )
        };
        assert_eq!(
            said(9, &[1, 2], None),
            "no attempt 9 of application_1_0003 is known: known are attempts 1, 2; records go back 9 s"
        );
        assert!(said(9, &[1], None).contains("is known: known is attempt 1; "));
        assert!(said(9, &[], None).contains("nor is any other of this application; "));
        assert!(said(2, &[1, 2], None).starts_with("no decision of attempt 2 of application_1_0003 is recorded; "));
        let refused = v1::ApplicationView {
            refused: "invalid".into(),
            refused_requests: 3,
            asked_ms: 5_000,
            ..Default::default()
        };
        let said = said(0, &[], Some(&refused));
        assert!(said.contains("is recorded; 3 of its requests were refused (invalid), the last 5 s ago"), "{said}");
    }
}
