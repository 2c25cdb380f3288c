//! Test support: a TCP proxy that cuts or freezes a server connection.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A proxy between a store and its server. Dropping it closes all its connections.
pub(super) struct Proxy {
    url: String,
    faults: Arc<Faults>,
    _accepting: JoinSet<()>,
}

#[derive(Default)]
struct Faults {
    /// The number of responses that still pass before one is dropped with its connection; negative
    /// for all.
    answers_left: AtomicI64,
    was_cut: AtomicBool,
    /// Whether the connection freezes instead of being cut.
    freezes: AtomicBool,
    frozen: AtomicBool,
}

impl Proxy {
    /// Starts a proxy in front of the server at `url`.
    pub(super) async fn before(url: &str) -> Self {
        let authority = url.split("://").nth(1).unwrap().split('/').next().unwrap();
        let server: SocketAddr = authority.rsplit('@').next().unwrap().parse().unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = url.replace(
            &server.to_string(),
            &listener.local_addr().unwrap().to_string(),
        );
        let faults = Arc::new(Faults {
            answers_left: AtomicI64::new(-1),
            ..Faults::default()
        });
        let mut accepting = JoinSet::new();
        accepting.spawn(accept(listener, server, faults.clone()));
        Self {
            url,
            faults,
            _accepting: accepting,
        }
    }

    /// Returns the URL of the server through this proxy.
    pub(super) fn url(&self) -> &str {
        &self.url
    }

    /// Lets `answers` more pieces of responses pass, then drops one and closes its connection.
    pub(super) fn cut_after(&self, answers: i64) {
        self.faults.was_cut.store(false, Ordering::SeqCst);
        self.faults.answers_left.store(answers, Ordering::SeqCst);
    }

    /// Returns whether a connection was cut since this was requested, and stops cutting.
    pub(super) fn was_cut(&self) -> bool {
        self.faults.answers_left.store(-1, Ordering::SeqCst);
        self.faults.was_cut.load(Ordering::SeqCst)
    }

    /// Lets `answers` more pieces of responses pass. After them nothing is passed on, and nothing
    /// is closed.
    pub(super) fn freeze_after(&self, answers: i64) {
        self.faults.freezes.store(true, Ordering::SeqCst);
        self.faults.answers_left.store(answers, Ordering::SeqCst);
    }

    /// Returns whether the connection is frozen.
    pub(super) fn is_frozen(&self) -> bool {
        self.faults.frozen.load(Ordering::SeqCst)
    }
}

async fn accept(listener: TcpListener, server: SocketAddr, faults: Arc<Faults>) {
    let mut connections = JoinSet::new();
    loop {
        let (client, _) = listener.accept().await.unwrap();
        // A server that is down refuses the connection, so the client is closed.
        let Ok(server) = TcpStream::connect(server).await else {
            continue;
        };
        connections.spawn(pass(client, server, faults.clone()));
    }
}

async fn pass(mut client: TcpStream, mut server: TcpStream, faults: Arc<Faults>) {
    let mut asked = vec![0; 64 * 1024];
    let mut answered = vec![0; 64 * 1024];
    client.set_nodelay(true).unwrap();
    server.set_nodelay(true).unwrap();
    loop {
        tokio::select! {
            read = client.read(&mut asked) => match read {
                Ok(count) if count > 0 => {
                    if server.write_all(&asked[..count]).await.is_err() { return }
                }
                _ => return,
            },
            read = server.read(&mut answered) => match read {
                Ok(count) if count > 0 => {
                    if faults.answers_left.fetch_sub(1, Ordering::SeqCst) == 0 {
                        if faults.freezes.load(Ordering::SeqCst) {
                            faults.frozen.store(true, Ordering::SeqCst);
                            return std::future::pending().await;
                        }
                        faults.was_cut.store(true, Ordering::SeqCst);
                        return;
                    }
                    if client.write_all(&answered[..count]).await.is_err() { return }
                }
                _ => return,
            },
        }
    }
}
