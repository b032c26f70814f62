//! What every call passes on its way in and out: it counts as in flight, its connection has a permit, its message and its answer
//! are bounded, and what the codec says becomes the table's.
//!
//! One layer, as each would need a box for its future. Calls of `Placement`, which applications wait for, go to their service
//! past the router, whose boxes and maps of path parameters they would pay for; the router knows the service all the same.

use super::bounds::MessageBounds;
use super::closing::Calls;
use super::codec;
use super::connection_permits::ConnectionPermit;
use super::placement::PlacementService;
use super::status::status;
use hintd_client::wire::v1::placement_server::{PlacementServer, SERVICE_NAME};
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tonic::body::Body;
use tonic::codegen::http::{Request, Response};
use tower::{Layer, Service};

/// The layer of a listener.
#[derive(Debug, Clone)]
pub(super) struct Front(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    calls: Calls,
    bounds: MessageBounds,
    /// Where the listener has it.
    placement: Option<PlacementServer<PlacementService>>,
}

impl Front {
    pub(super) fn new(
        calls: Calls,
        bounds: MessageBounds,
        placement: Option<PlacementServer<PlacementService>>,
    ) -> Self {
        Self(Arc::new(Parts { calls, bounds, placement }))
    }
}

impl Parts {
    /// The service of a call that needs no router.
    fn placement(&self, path: &str) -> Option<PlacementServer<PlacementService>> {
        let method = path.strip_prefix('/')?.strip_prefix(SERVICE_NAME)?;
        self.placement.clone().filter(|_| method.starts_with('/'))
    }
}

impl<S> Layer<S> for Front {
    type Service = FrontService<S>;

    fn layer(&self, inner: S) -> Self::Service {
        FrontService { inner, front: self.clone() }
    }
}

/// The service that [`Front`] makes.
#[derive(Debug, Clone)]
pub(super) struct FrontService<S> {
    inner: S,
    front: Front,
}

impl<S> Service<Request<Body>> for FrontService<S>
where
    S: Service<Request<Body>, Response = Response<Body>>,
    S::Future: Send + 'static,
    S::Error: Send + 'static,
{
    type Response = Response<Body>;
    type Error = S::Error;
    type Future = Pin<Box<dyn Future<Output = Result<Response<Body>, S::Error>> + Send>>;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        self.inner.poll_ready(context)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        let front = &self.front.0;
        let in_flight = front.calls.begin();
        // Calls on the admin socket carry no permit.
        if let Some(Err(refusal)) = request.extensions().get::<ConnectionPermit>().map(ConnectionPermit::check) {
            return Box::pin(async move {
                let _in_flight = in_flight;
                Ok(status(&refusal).into_http())
            });
        }
        let (request, bounds) = front.bounds.bound(request);
        let answer = match front.placement(request.uri().path()) {
            Some(mut placement) => Ok(placement.call(request)),
            None => Err(self.inner.call(request)),
        };
        Box::pin(async move {
            let _in_flight = in_flight;
            let mut response = match answer {
                Ok(placement) => {
                    let Ok(response) = placement.await;
                    response
                }
                Err(routed) => routed.await?,
            };
            codec::remap(&mut response);
            Ok(bounds.bound(response).await)
        })
    }
}
