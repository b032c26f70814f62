//! Hints or none: what an ApplicationMaster calls, and what it sends to YARN in either case.

use super::Client;
use super::breaker::Entry;
use super::error::{Cause, ClientError, in_words};
use super::secret::Hidden;
use crate::wire::{v1, yarn};
use std::fmt;
use std::time::{Duration, Instant};
use tonic::Code;

/// What a request came to. Neither is an error: an application runs on both.
#[derive(Debug, Clone, PartialEq)]
pub enum Advice {
    /// The daemon answered.
    Hinted(Box<Hinted>),
    /// It did not, or not in time: YARN places the containers as it would without.
    Unhinted(Unhinted),
}

/// An answer.
#[derive(Clone, PartialEq)]
pub struct Hinted {
    /// The hints, and the table for YARN.
    pub hints: v1::HintSet,
    /// Of the attempt, for following and releasing.
    pub token: String,
}

impl fmt::Debug for Hinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let token = Hidden(self.token.is_empty());
        f.debug_struct("Hinted").field("hints", &self.hints).field("token", &token).finish()
    }
}

/// No answer, and why.
#[derive(Debug, Clone, PartialEq)]
pub struct Unhinted {
    /// What stood in the way.
    pub because: Cause,
    /// In words, for the log.
    pub message: String,
    /// Whether the daemon was asked at all; false: the client leaves it alone for a while, after failures in a row.
    pub asked: bool,
    /// The daemon's code, where it refused.
    pub code: Option<Code>,
    /// The field that is wrong, where the daemon names one.
    pub field: Option<String>,
    /// The table for YARN without hints: see [`default_asks`].
    pub asks: Vec<yarn::ResourceRequestProto>,
}

impl Advice {
    /// The table to send to YARN.
    #[must_use]
    pub fn asks(&self) -> &[yarn::ResourceRequestProto] {
        match self {
            Self::Hinted(hinted) => &hinted.hints.asks,
            Self::Unhinted(unhinted) => &unhinted.asks,
        }
    }

    /// The answer, if there is one.
    #[must_use]
    pub fn hinted(&self) -> Option<&Hinted> {
        match self {
            Self::Hinted(hinted) => Some(&**hinted),
            Self::Unhinted(_) => None,
        }
    }

    /// Why there is none.
    #[must_use]
    pub const fn unhinted(&self) -> Option<&Unhinted> {
        match self {
            Self::Hinted(_) => None,
            Self::Unhinted(unhinted) => Some(unhinted),
        }
    }
}

impl fmt::Display for Unhinted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let why = match self.because {
            Cause::Deadline => "no answer came in time",
            Cause::Overload => "the daemon takes no requests now",
            Cause::Unreachable => "no daemon could be reached",
            Cause::Refused => "the daemon refused",
        };
        write!(f, "no hints, for {why}: {}", self.message)
    }
}

impl Client {
    /// Hints, or why there are none; never an error that would stop an application, and never later than `deadline`
    /// from now, all tries together.
    ///
    /// Tries are repeated while the daemon is overloaded or can't be reached, under one request id, so that they
    /// lease once; a request without an id gets one. After failures in a row
    /// ([`BreakerOptions`](super::BreakerOptions)) the daemon is left alone for a while, and this returns at once.
    pub async fn hints_or_none(&self, mut request: v1::RequestHintsRequest, deadline: Duration) -> Advice {
        let asks = default_asks(&request);
        if request.request_id.is_empty() {
            request.request_id = format!("{}-{:016x}", request.application_id, rand::random::<u64>());
        }
        if deadline.is_zero() {
            return Advice::Unhinted(Unhinted { asked: false, ..Unhinted::after(ClientError::NoTime, asks) });
        }
        let pass = match self.breaker.enter(Instant::now()) {
            Entry::Go(pass) => pass,
            Entry::Rest(left, because) => {
                let message = format!("the last calls failed; the daemon is not asked for another {}", in_words(left));
                return Advice::Unhinted(Unhinted { because, message, asked: false, code: None, field: None, asks });
            }
        };
        let error = match self.request_hints(request, deadline).await {
            Ok(v1::RequestHintsResponse { hints: Some(hints), token, .. }) => {
                pass.heard();
                return Advice::Hinted(Box::new(Hinted { hints, token }));
            }
            Ok(_) => {
                let message = "an answer without hints".to_owned();
                ClientError::Refused { code: Code::Internal, message, field: None, why: None }
            }
            Err(error) => error,
        };
        match &error {
            // Who says that time is up is there.
            ClientError::Refused { .. } | ClientError::OutOfTime { cause: Cause::Overload, .. } => pass.heard(),
            other => pass.missed(other.cause(), Instant::now(), rand::random()),
        }
        Advice::Unhinted(Unhinted::after(error, asks))
    }
}

impl Unhinted {
    fn after(error: ClientError, asks: Vec<yarn::ResourceRequestProto>) -> Self {
        let (because, message) = (error.cause(), error.to_string());
        let (code, field) = match error {
            ClientError::Refused { code, field, .. } => (Some(code), field),
            _ => (None, None),
        };
        Self { because, message, asked: true, code, field, asks }
    }
}

/// The table that a request sends to YARN without hints: its own rows as they came, and one `*` row for each scheduler
/// key of its groups that has none, which asks for the group's containers anywhere.
#[must_use]
pub fn default_asks(request: &v1::RequestHintsRequest) -> Vec<yarn::ResourceRequestProto> {
    let key = |ask: &yarn::ResourceRequestProto| {
        (ask.priority.as_ref().map_or(0, yarn::PriorityProto::priority), ask.allocation_request_id())
    };
    let mut asks = request.asks.clone();
    let own = asks.len();
    for group in &request.groups {
        let wanted = (group.priority, group.allocation_request_id.unwrap_or(-1));
        if asks[..own].iter().any(|ask| key(ask) == wanted) {
            continue;
        }
        let count = i32::try_from(group.count).unwrap_or(i32::MAX);
        let same = |ask: &&mut yarn::ResourceRequestProto| key(ask) == wanted && ask.capability == group.resource;
        if let Some(row) = asks[own..].iter_mut().find(same) {
            row.num_containers = Some(row.num_containers().saturating_add(count));
            continue;
        }
        asks.push(yarn::ResourceRequestProto {
            priority: Some(yarn::PriorityProto { priority: Some(group.priority) }),
            resource_name: Some("*".to_owned()),
            capability: group.resource.clone(),
            num_containers: Some(count),
            relax_locality: Some(true),
            node_label_expression: Some(group.node_label_expression.clone()).filter(|label| !label.is_empty()),
            execution_type_request: None,
            allocation_request_id: Some(wanted.1),
        });
    }
    asks
}

#[cfg(test)]
mod tests {
    use super::*;

    fn group(name: &str, priority: i32, count: u32, memory: i64) -> v1::TaskGroup {
        let resource = yarn::ResourceProto { memory: Some(memory), virtual_cores: Some(1), ..Default::default() };
        v1::TaskGroup { name: name.into(), priority, count, resource: Some(resource), ..Default::default() }
    }

    fn rows(asks: &[yarn::ResourceRequestProto]) -> Vec<(i32, String, i32)> {
        let row = |ask: &yarn::ResourceRequestProto| {
            let priority = ask.priority.as_ref().unwrap().priority();
            (priority, ask.resource_name().to_owned(), ask.num_containers())
        };
        asks.iter().map(row).collect()
    }

    #[test]
    fn without_hints_the_callers_own_rows_go_as_they_came_and_groups_without_rows_go_anywhere() {
        let own = |name: &str, count| yarn::ResourceRequestProto {
            priority: Some(yarn::PriorityProto { priority: Some(20) }),
            resource_name: Some(name.into()),
            num_containers: Some(count),
            ..Default::default()
        };
        let request = v1::RequestHintsRequest {
            asks: vec![own("h1", 1), own("*", 3)],
            groups: vec![group("map", 20, 3, 1_024), group("reduce", 10, 2, 2_048), group("more", 10, 5, 2_048)],
            ..Default::default()
        };
        let asks = default_asks(&request);
        assert_eq!(asks[..2], request.asks[..]);
        let star = || "*".to_owned();
        assert_eq!(rows(&asks), [(20, "h1".to_owned(), 1), (20, star(), 3), (10, star(), 7)]);
        assert_eq!(asks[2].capability, request.groups[1].resource);
        assert_eq!((asks[2].allocation_request_id(), asks[2].relax_locality()), (-1, true));
    }
}
