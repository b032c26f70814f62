//! What hints are worth in production, to the wire.

use hintd_client::wire::v1;
use hintd_engine::WorthSettings;
use hintd_engine::worth::book::ComparedView;

/// A queue or a recurring key.
pub(in crate::server) fn compared_view(view: &ComparedView, settings: &WorthSettings) -> v1::ComparedView {
    v1::ComparedView {
        name: view.name.to_string(),
        holdout: view.share,
        hinted: view.hinted,
        held_out: view.held_out,
        ratio: view.ratio.map(|ratio| ratio.ratio),
        low: view.ratio.map(|ratio| ratio.low),
        high: view.ratio.map(|ratio| ratio.high),
        verdict: view.verdict.as_str().to_owned(),
        needed: settings.runs,
        stopped_at_ms: view.stopped.map(hintd_model::units::Timestamp::as_millis),
    }
}
