//! Repeating a call that the daemon could not take: with jitter, and never past the caller's patience.

use super::error::{Cause, ClientError, innermost};
use crate::status::RETRY_AFTER;
use std::future::Future;
use std::time::{Duration, Instant};
use tonic::Status;

/// Pause before the first repeat; each further one is twice as long.
pub(super) const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// No pause is longer.
pub(super) const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Calls until an answer comes, a refusal that a repeat won't change, or `until`. A call gets the time that is left,
/// and is given up when that is over: the error says what the last try came to that ended, if any did.
pub(super) async fn until<T, F>(until: Instant, mut call: impl FnMut(Duration) -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, Status>>,
{
    let began = Instant::now();
    if until <= began {
        return Err(ClientError::NoTime);
    }
    let mut pause = FIRST_PAUSE;
    let (mut cause, mut last) = (Cause::Deadline, "the time was over".to_owned());
    loop {
        let left = until.saturating_duration_since(Instant::now());
        let Ok(answer) = tokio::time::timeout(left, call(left)).await else {
            return Err(ClientError::OutOfTime { waited: began.elapsed(), cause, last });
        };
        let status = match answer {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        cause = Cause::of(&status);
        if !cause.may_pass() {
            return Err(status.into());
        }
        let wait = jittered(pause.max(asked_for(&status)));
        last = if cause == Cause::Overload { status.message().to_owned() } else { innermost(&status) };
        if Instant::now() + wait >= until {
            return Err(ClientError::OutOfTime { waited: began.elapsed(), cause, last });
        }
        tokio::time::sleep(wait).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// The delay that the daemon asked for.
fn asked_for(status: &Status) -> Duration {
    let after = status.metadata().get(RETRY_AFTER).and_then(|value| value.to_str().ok());
    Duration::from_millis(after.and_then(|value| value.parse().ok()).unwrap_or(0)).min(LONGEST_PAUSE)
}

/// Between once and one and a half times as long, so that clients refused together do not return together.
pub(super) fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + rand::random::<f64>() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::status::REASON;
    use tonic::Code;

    fn busy(message: &str) -> Status {
        let mut status = Status::unavailable(message);
        status.metadata_mut().insert(REASON, "unavailable".parse().unwrap());
        status
    }

    #[tokio::test]
    async fn unavailable_and_broken_connections_are_tried_again_and_other_refusals_are_not() {
        let mut calls = 0;
        let found: Result<i32, _> = until(Instant::now() + Duration::from_secs(30), |_| {
            calls += 1;
            let answer = match calls {
                1 => Err(busy("busy")),
                2 => Err(Status::from_error(Box::new(std::io::Error::other("reset")))),
                _ => Ok(7),
            };
            async move { answer }
        })
        .await;
        assert_eq!((found.unwrap(), calls), (7, 3));
        let mut calls = 0;
        let found: Result<(), _> = until(Instant::now() + Duration::from_secs(30), |_| {
            calls += 1;
            async { Err(Status::not_found("policy")) }
        })
        .await;
        assert!(matches!(found, Err(ClientError::Refused { code: Code::NotFound, .. })));
        assert_eq!(calls, 1);
    }

    #[tokio::test]
    async fn patience_ends_with_the_last_word_of_the_daemon() {
        let mut status = busy("full");
        status.metadata_mut().insert(RETRY_AFTER, "60000".parse().unwrap());
        let calls = until(Instant::now() + LONGEST_PAUSE * 9 / 10, |_| {
            let status = status.clone();
            async move { Err(status) }
        });
        let found: Result<(), _> = tokio::time::timeout(Duration::ZERO, calls).await.expect("it does not wait in vain");
        let Err(ClientError::OutOfTime { last, cause, .. }) = found else { panic!("{found:?}") };
        assert_eq!((last.as_str(), cause), ("full", Cause::Overload));
    }

    #[tokio::test]
    async fn time_that_ends_within_a_repeat_ends_with_the_word_of_the_try_before() {
        let mut calls = 0;
        let found: Result<(), _> = until(Instant::now() + Duration::from_secs(2), |_| {
            calls += 1;
            let first = calls == 1;
            async move { if first { Err(busy("full")) } else { std::future::pending().await } }
        })
        .await;
        let Err(ClientError::OutOfTime { last, cause, .. }) = found else { panic!("{found:?}") };
        assert_eq!((calls, last.as_str(), cause), (2, "full", Cause::Overload));
    }

    #[tokio::test]
    async fn no_time_at_all_is_the_callers_mistake_and_no_call_is_made() {
        let found: Result<(), _> = until(Instant::now(), |_| async { unreachable!() }).await;
        assert_eq!(found.unwrap_err().to_string(), "a deadline of 0 leaves no time for an answer");
    }

    #[tokio::test]
    async fn a_call_that_never_returns_is_given_up_in_time() {
        let began = Instant::now();
        let found: Result<(), _> = until(began + Duration::from_millis(500), |_| std::future::pending()).await;
        assert!(matches!(found, Err(ClientError::OutOfTime { cause: Cause::Deadline, .. })));
        assert!(began.elapsed() < Duration::from_secs(30));
    }
}
