//! What one application may take, so that its flood stands in nobody's way but its own: requests in a second, requests under
//! way, lines of log.

use super::super::in_flight::{InFlight, RequestPermit};
use super::super::line_quota::{Line, LineQuota};
use super::super::rates::Rates;
use super::Daemon;
use hintd_engine::Refusal;
use hintd_model::units::{ApplicationId, Micros};
use std::net::IpAddr;
use std::time::Instant;

/// By application.
#[derive(Debug, Default)]
pub(in crate::runtime) struct Quotas {
    rates: Rates,
    lines: LineQuota,
    in_flight: InFlight,
}

impl Daemon {
    /// Takes a request of an application into account.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] for one that asks more often than it may.
    pub fn admit(&self, application: ApplicationId) -> Result<(), Refusal> {
        let most = self.settings().requests_per_s;
        self.0.quotas.rates.take(application, most, Instant::now()).map_err(|retry_after| {
            let message = format!("{application} asks more often than limits.requests_per_s allows, {most}");
            Refusal::Unavailable { message, retry_after }
        })
    }

    /// Takes one of the requests that an application may have under way.
    ///
    /// # Errors
    /// [`Refusal::Unavailable`] for one that has as many.
    pub fn enter(&self, application: ApplicationId) -> Result<RequestPermit, Refusal> {
        let most = self.settings().requests_at_once;
        self.0.quotas.in_flight.enter(application, most).ok_or_else(|| {
            let message =
                format!("{application} has as many requests under way as limits.requests_at_once allows, {most}");
            Refusal::Unavailable { message, retry_after: Micros::from_millis(50) }
        })
    }

    /// Whether the log is to tell of a request; `None`: one that names no application, and one of the admin socket.
    #[must_use]
    pub fn request_line(&self, application: Option<ApplicationId>, peer: Option<IpAddr>) -> Line {
        let most = self.settings().log_lines_per_s;
        let line = self.0.quotas.lines.take((application, peer), most, Instant::now());
        if !line.is_due() {
            self.metrics().line_left_out();
        }
        line
    }

    /// Gives back what a request took of an application's requests that was not the application's own.
    pub fn give_back(&self, application: ApplicationId) {
        self.0.quotas.rates.give_back(application, self.settings().requests_per_s);
    }
}
