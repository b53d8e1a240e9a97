//! gRPC with messages of plain bytes, so that no protobuf compiler is needed: a tonic server that
//! answers as its path says, and calls of all four kinds.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::task::{Context, Poll};

use bytes::{Buf, BufMut};
use futures_util::future::BoxFuture;
use futures_util::stream::{self, BoxStream, StreamExt};
use http::uri::PathAndQuery;
use tonic::body::Body;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::{Code, Request, Response, Status, Streaming};
use tower::Service;

pub type Bytes = Vec<u8>;

/// Messages are bytes.
#[derive(Clone, Copy, Default)]
pub struct Raw;

impl Codec for Raw {
    type Encode = Bytes;
    type Decode = Bytes;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self
    }

    fn decoder(&mut self) -> Self {
        Self
    }
}

impl Encoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn encode(&mut self, item: Bytes, out: &mut EncodeBuf<'_>) -> Result<(), Status> {
        out.put_slice(&item);
        Ok(())
    }
}

impl Decoder for Raw {
    type Item = Bytes;
    type Error = Status;

    fn decode(&mut self, buf: &mut DecodeBuf<'_>) -> Result<Option<Bytes>, Status> {
        Ok(Some(buf.copy_to_bytes(buf.remaining()).to_vec()))
    }
}

/// Answers `/raw.Raw/<messages>/<code>`: so many messages, then that status. Without a message the
/// status stands in the headers, unless it is OK.
#[derive(Clone, Copy)]
pub struct Scripted;

impl tonic::server::NamedService for Scripted {
    const NAME: &'static str = "raw.Raw";
}

impl Service<http::Request<Body>> for Scripted {
    type Response = http::Response<Body>;
    type Error = Infallible;
    type Future = BoxFuture<'static, Result<Self::Response, Infallible>>;

    fn poll_ready(&mut self, _cx: &mut Context<'_>) -> Poll<Result<(), Infallible>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, request: http::Request<Body>) -> Self::Future {
        let script = script(request.uri().path());
        Box::pin(async move {
            let mut grpc = tonic::server::Grpc::new(Raw);
            Ok(grpc.streaming(Play(script), request).await)
        })
    }
}

#[derive(Clone, Copy)]
struct Play((usize, Code));

fn script(path: &str) -> (usize, Code) {
    let mut parts = path.rsplit('/').map(|part| part.parse::<i32>());
    let mut next = || parts.next().and_then(Result::ok).unwrap_or_default();
    let code = Code::from_i32(next());
    (usize::try_from(next()).unwrap_or_default(), code)
}

impl tonic::server::StreamingService<Bytes> for Play {
    type Response = Bytes;
    type ResponseStream = BoxStream<'static, Result<Bytes, Status>>;
    type Future = BoxFuture<'static, Result<Response<Self::ResponseStream>, Status>>;

    fn call(&mut self, _request: Request<Streaming<Bytes>>) -> Self::Future {
        let (messages, code) = self.0;
        Box::pin(async move {
            let status = Status::new(code, "as scripted");
            if messages == 0 && code != Code::Ok {
                return Err(status);
            }
            let end = (code != Code::Ok).then_some(Err(status));
            let messages = stream::iter((0..messages).map(|n| Ok(vec![n as u8])));
            Ok(Response::new(messages.chain(stream::iter(end)).boxed()))
        })
    }
}

/// Serves `Scripted` under `layer` on a port of the loopback device.
pub async fn serve<L, B>(layer: L) -> SocketAddr
where
    L: tower::Layer<tonic::service::Routes> + Clone + Send + Sync + 'static,
    L::Service: Service<http::Request<Body>, Response = http::Response<B>, Error = Infallible>
        + Clone
        + Send
        + Sync
        + 'static,
    <L::Service as Service<http::Request<Body>>>::Future: Send,
    B: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    B::Error: Into<tower::BoxError> + Send,
{
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await;
    let listener = listener.expect("a free port");
    let address = listener.local_addr().expect("a bound socket");
    let incoming = tonic::transport::server::TcpIncoming::from(listener);
    let server = tonic::transport::Server::builder()
        .accept_http1(true)
        .layer(layer)
        .add_service(Scripted)
        .serve_with_incoming(incoming);
    tokio::spawn(server);
    address
}

pub fn channel(address: SocketAddr) -> tonic::transport::Channel {
    let endpoint = tonic::transport::Endpoint::from_shared(format!("http://{address}"));
    endpoint.expect("a valid address").connect_lazy()
}

/// The four kinds of call.
#[derive(Clone, Copy, Debug)]
pub enum Kind {
    Unary,
    ClientStream,
    ServerStream,
    Bidirectional,
}

pub const KINDS: [Kind; 4] = [
    Kind::Unary,
    Kind::ClientStream,
    Kind::ServerStream,
    Kind::Bidirectional,
];

/// Calls `/raw.Raw/<messages>/<code>` and reads all it answers: how many messages, or the status.
pub async fn call<S>(
    service: S,
    kind: Kind,
    (messages, code): (usize, Code),
) -> Result<usize, Status>
where
    S: tonic::client::GrpcService<Body>,
    S::ResponseBody: http_body::Body<Data = bytes::Bytes> + Send + 'static,
    <S::ResponseBody as http_body::Body>::Error: Into<tower::BoxError>,
    S::Error: Into<tower::BoxError>,
{
    let path = format!("/raw.Raw/{messages}/{}", code as i32);
    let path = PathAndQuery::try_from(path).expect("a valid path");
    let mut grpc = tonic::client::Grpc::new(service);
    let ready = grpc.ready().await;
    ready.map_err(|error| Status::from_error(error.into()))?;
    let one = || Request::new(b"hello".to_vec());
    let many = || Request::new(stream::iter([b"hello".to_vec(), b"again".to_vec()]));
    let mut messages = match kind {
        Kind::Unary => return grpc.unary(one(), path, Raw).await.map(|_| 1),
        Kind::ClientStream => return grpc.client_streaming(many(), path, Raw).await.map(|_| 1),
        Kind::ServerStream => grpc.server_streaming(one(), path, Raw).await?.into_inner(),
        Kind::Bidirectional => grpc.streaming(many(), path, Raw).await?.into_inner(),
    };
    let mut count = 0;
    while messages.message().await?.is_some() {
        count += 1;
    }
    Ok(count)
}
