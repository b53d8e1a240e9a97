//! Calls a service the way every table does: readied, called, polled once by a waker that does
//! nothing. Every service tried here answers at its first poll.

use std::future::Future;
use std::pin::pin;
use std::task::{Context, Poll, Waker};

use tower_service::Service;

#[inline]
pub fn call_once<S: Service<Request>, Request>(
    service: &mut S,
    request: Request,
) -> Result<S::Response, S::Error> {
    let mut cx = Context::from_waker(Waker::noop());
    match service.poll_ready(&mut cx) {
        Poll::Ready(Ok(())) => {}
        Poll::Ready(Err(error)) => return Err(error),
        Poll::Pending => panic!("a service of these tables is always ready"),
    }
    poll_once(service.call(request))
}

#[inline]
pub fn poll_once<F: Future>(future: F) -> F::Output {
    let mut cx = Context::from_waker(Waker::noop());
    match pin!(future).poll(&mut cx) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("a call of these tables ends at once"),
    }
}
