//! An SDN controller: it watches the routes of running flows, applies rules one after another, looks
//! after each whether packets would loop, and acknowledges.

use super::event::EmulationEvent;
use super::shared::Shared;
use hintd_client::ClientError;
use hintd_client::wire::v1;
use std::sync::Arc;
use tokio_stream::StreamExt as _;

/// The name that it watches under.
pub(crate) const WATCHER: &str = "emulated-controller";

/// Watches running flows as the one that installs their routes, until the daemon ends it.
///
/// # Errors
/// The daemon's refusal of the watch.
pub(super) async fn start(shared: &Arc<Shared>) -> Result<impl Future<Output = ()> + use<>, ClientError> {
    let request =
        v1::WatchRequest { watcher: WATCHER.to_owned(), flows: true, installs: true, ..v1::WatchRequest::default() };
    let mut updates = shared.client.watch(request).await?;
    let shared = Arc::clone(shared);
    Ok(async move {
        while let Some(Ok(update)) = updates.next().await {
            let number = update.number;
            let took = shared.since_told(&update);
            let wrong = {
                let mut tables = shared.tables();
                let mut wrong = tables.apply(&update);
                if update.cause == "link_down" && tables.on(&update.subject) > 0 {
                    wrong.push(format!(
                        "{} routes stay on {}, which is down",
                        tables.on(&update.subject),
                        update.subject
                    ));
                }
                wrong
            };
            shared.install(&update);
            shared.tally().violations.extend(wrong);
            shared.tell(EmulationEvent::FlowRoutes { update: Box::new(update), took });
            if let Err(error) = shared.client.acknowledge(WATCHER, number, Vec::new()).await {
                shared.tally().violations.push(format!("flow update {number} can't be acknowledged: {error}"));
            }
        }
    })
}
