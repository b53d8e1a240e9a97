//! A bounded load on a real axum server: loopback, HTTP/1.1, keep-alive, one thread each for the
//! server and for its clients.

use std::net::SocketAddr;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use axum::Router;
use cpu_time::ThreadTime;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{mpsc as async_mpsc, oneshot};

const CONNECTIONS: usize = 32;
const SPAN: Duration = Duration::from_millis(400);
const REQUEST: &[u8] = b"GET / HTTP/1.1\r\nhost: shop\r\nuser-agent: load\r\naccept: */*\r\n\r\n";

thread_local! {
    /// What the thread's CPU time is counted from.
    static BEGINNING: ThreadTime = ThreadTime::now();
}

/// What a second of load showed.
#[derive(Clone, Copy)]
pub struct Load {
    pub per_second: f64,
    pub server_us_per_request: f64,
    pub refused: f64,
}

/// A server on a thread of its own, which tells the CPU time it has used.
pub struct Server {
    address: SocketAddr,
    ask: async_mpsc::Sender<oneshot::Sender<Duration>>,
}

impl Server {
    pub fn start(router: Router) -> Self {
        let (told, hear) = mpsc::channel();
        let (ask, mut asked) = async_mpsc::channel::<oneshot::Sender<Duration>>(1);
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build();
            runtime
                .expect("a runtime can be built")
                .block_on(async move {
                    let listener = TcpListener::bind("127.0.0.1:0")
                        .await
                        .expect("loopback has a port");
                    told.send(listener.local_addr().expect("it is bound"))
                        .expect("someone waits");
                    tokio::spawn(async move {
                        while let Some(answer) = asked.recv().await {
                            let _ = answer.send(BEGINNING.with(ThreadTime::elapsed));
                        }
                    });
                    let service = router.into_make_service_with_connect_info::<SocketAddr>();
                    axum::serve(listener, service)
                        .await
                        .expect("the server runs");
                });
        });
        Self {
            address: hear.recv().expect("the server starts"),
            ask,
        }
    }

    async fn cpu(&self) -> Duration {
        let (answer, told) = oneshot::channel();
        self.ask.send(answer).await.expect("the server runs");
        told.await.expect("the server answers")
    }

    /// Keeps every connection busy for the span.
    pub fn load(&self) -> Load {
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build();
        runtime.expect("a runtime can be built").block_on(async {
            let before = self.cpu().await;
            let start = Instant::now();
            let clients: Vec<_> = (0..CONNECTIONS)
                .map(|_| tokio::spawn(client(self.address, start + SPAN)))
                .collect();
            let (mut answered, mut refused) = (0u64, 0u64);
            for client in clients {
                let (all, limited) = client.await.expect("a client ran");
                answered += all;
                refused += limited;
            }
            let took = start.elapsed().as_secs_f64();
            let cpu = self.cpu().await - before;
            Load {
                per_second: answered as f64 / took,
                server_us_per_request: cpu.as_secs_f64() * 1e6 / answered as f64,
                refused: refused as f64 / answered as f64,
            }
        })
    }
}

async fn client(server: SocketAddr, until: Instant) -> (u64, u64) {
    let mut stream = TcpStream::connect(server)
        .await
        .expect("the server listens");
    stream.set_nodelay(true).expect("a socket option");
    let mut buffer = Vec::with_capacity(4096);
    let (mut answered, mut refused) = (0, 0);
    while Instant::now() < until {
        stream.write_all(REQUEST).await.expect("the server reads");
        buffer.clear();
        let (status_is_ok, length) = loop {
            let read = stream
                .read_buf(&mut buffer)
                .await
                .expect("the server writes");
            assert!(read > 0, "the server keeps the connection");
            if let Some(parsed) = parse(&buffer) {
                break parsed;
            }
        };
        while buffer.len() < length {
            stream
                .read_buf(&mut buffer)
                .await
                .expect("the server writes");
        }
        answered += 1;
        refused += u64::from(!status_is_ok);
    }
    (answered, refused)
}

/// Whether the status is 200, and how long head and body are together; `None` before the head ends.
fn parse(buffer: &[u8]) -> Option<(bool, usize)> {
    let head = buffer.windows(4).position(|four| four == b"\r\n\r\n")? + 4;
    let ok = buffer.starts_with(b"HTTP/1.1 200");
    let text = std::str::from_utf8(&buffer[..head]).expect("heads here are ASCII");
    let body = text
        .lines()
        .find_map(|line| line.strip_prefix("content-length: "))
        .map_or(0, |length| {
            length.trim().parse::<usize>().expect("a number")
        });
    Some((ok, head + body))
}
