//! Repeating a call that the daemon could not take: with jitter, and never past the caller's patience.

use super::error::{ClientError, code};
use crate::server::status::RETRY_AFTER;
use std::future::Future;
use std::time::{Duration, Instant};
use tonic::{Code, Status};

/// Pause before the first repeat; each further one is twice as long.
const FIRST_PAUSE: Duration = Duration::from_millis(10);
/// No pause is longer.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Calls until an answer comes, a refusal that a repeat won't change, or `until`.
pub(super) async fn until<T, F>(until: Instant, mut call: impl FnMut() -> F) -> Result<T, ClientError>
where
    F: Future<Output = Result<T, Status>>,
{
    let began = Instant::now();
    let mut pause = FIRST_PAUSE;
    loop {
        let status = match call().await {
            Ok(answer) => return Ok(answer),
            Err(status) => status,
        };
        if code(&status) != Code::Unavailable {
            return Err(status.into());
        }
        let wait = jittered(pause.max(asked_for(&status)));
        if Instant::now() + wait >= until {
            return Err(ClientError::OutOfTime { waited: began.elapsed(), last: status.message().to_owned() });
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
fn jittered(pause: Duration) -> Duration {
    pause.mul_f64(1.0 + rand::random::<f64>() / 2.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn unavailable_is_tried_again_and_other_refusals_are_not() {
        let mut calls = 0;
        let found: Result<i32, _> = until(Instant::now() + Duration::from_secs(5), || {
            calls += 1;
            let answer = if calls < 3 { Err(Status::unavailable("busy")) } else { Ok(7) };
            async move { answer }
        })
        .await;
        assert_eq!((found.unwrap(), calls), (7, 3));
        let mut calls = 0;
        let found: Result<(), _> = until(Instant::now() + Duration::from_secs(5), || {
            calls += 1;
            async { Err(Status::not_found("policy")) }
        })
        .await;
        assert!(matches!(found, Err(ClientError::Refused { code: Code::NotFound, .. })));
        assert_eq!(calls, 1);
    }

    #[tokio::test]
    async fn patience_ends_with_the_last_word_of_the_daemon() {
        let mut status = Status::unavailable("full");
        status.metadata_mut().insert(RETRY_AFTER, "500".parse().unwrap());
        let began = Instant::now();
        let found: Result<(), _> = until(began + Duration::from_millis(100), || {
            let status = status.clone();
            async move { Err(status) }
        })
        .await;
        assert!(matches!(found, Err(ClientError::OutOfTime { last, .. }) if last == "full"));
        assert!(began.elapsed() < Duration::from_millis(400), "it did not wait in vain");
    }
}
