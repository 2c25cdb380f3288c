//! The proxy through which commands of a sandbox reach the hosts they are allowed to.
//!
//! It listens at a socket in the file system, which is put into the sandbox. A name is resolved
//! once, and the connection goes to one of these addresses, so that a name cannot become another
//! address between the check and the connection. Addresses that are not public are refused unless a
//! pattern names the address itself. Each request is a hop of its own: a redirect leads back here.
//!
//! Effects: the clock, the local disk (writes), the network.

mod request;

use crate::network::{AllowedHosts, is_public};
use request::{ProxyRequest, RequestError};
use std::collections::BTreeSet;
use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpStream, UnixListener, UnixStream, lookup_host};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::timeout;

/// The largest head of a request.
const MAX_HEAD_BYTES: usize = 16 * 1024;
/// The time in which a request must be complete.
const HEAD_TIME: Duration = Duration::from_secs(30);
/// The time in which a host must answer a connection.
const CONNECT_TIME: Duration = Duration::from_secs(30);
/// The most connections at once.
const MAX_CONNECTIONS: usize = 256;
/// The most refused hosts that are remembered.
const MAX_REFUSED: usize = 100;

/// A proxy that runs until it is dropped.
#[derive(Debug)]
pub(crate) struct Proxy {
    socket: PathBuf,
    refused: Arc<Refused>,
    _serving: JoinSet<()>,
}

/// The hosts that were asked for and refused.
#[derive(Debug, Default)]
struct Refused(Mutex<BTreeSet<String>>);

/// Why the proxy does not connect.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
enum Refusal {
    #[error("{host} is not among the hosts that commands may reach")]
    NotAllowed { host: String },
    #[error("{host} has no public address")]
    NotPublic { host: String },
    #[error("{host} cannot be resolved or does not answer")]
    Unreachable { host: String },
    #[error(transparent)]
    Request(#[from] RequestError),
}

impl Proxy {
    /// Starts a proxy at `socket`, which must not exist.
    pub(crate) fn start(socket: PathBuf, allowed: AllowedHosts) -> io::Result<Self> {
        let listener = UnixListener::bind(&socket)?;
        let refused = Arc::new(Refused::default());
        let mut serving = JoinSet::new();
        serving.spawn(serve(listener, Arc::new(allowed), Arc::clone(&refused)));
        Ok(Self {
            socket,
            refused,
            _serving: serving,
        })
    }

    /// Returns the hosts that were refused since the last call.
    pub(crate) fn take_refused(&self) -> BTreeSet<String> {
        std::mem::take(&mut *self.refused.lock())
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        // Fails if somebody else removed it.
        let _ = std::fs::remove_file(&self.socket);
    }
}

impl Refused {
    fn lock(&self) -> std::sync::MutexGuard<'_, BTreeSet<String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn add(&self, host: &str) {
        let mut hosts = self.lock();
        if hosts.len() < MAX_REFUSED {
            hosts.insert(host.to_owned());
        }
    }
}

/// Accepts connections; each is served by a task that ends with this one.
async fn serve(listener: UnixListener, allowed: Arc<AllowedHosts>, refused: Arc<Refused>) {
    let places = Arc::new(Semaphore::new(MAX_CONNECTIONS));
    let mut connections = JoinSet::new();
    loop {
        let Ok(place) = Arc::clone(&places).acquire_owned().await else {
            return;
        };
        let inner = tokio::select! {
            accepted = listener.accept() => match accepted {
                Ok((inner, _)) => inner,
                // Too many open files, for example.
                Err(_) => {
                    tokio::time::sleep(Duration::from_millis(100)).await;
                    continue;
                }
            },
            Some(_) = connections.join_next() => continue,
        };
        let (allowed, refused) = (Arc::clone(&allowed), Arc::clone(&refused));
        connections.spawn(async move {
            let _place = place;
            // Fails if one of both sides breaks off.
            let _ = answer(inner, &allowed, &refused).await;
        });
    }
}

/// Serves one connection: reads a request, connects, and copies in both directions.
async fn answer(
    mut inner: UnixStream,
    allowed: &AllowedHosts,
    refused: &Refused,
) -> io::Result<()> {
    let begun = match timeout(HEAD_TIME, begin(&mut inner, allowed, refused)).await {
        Ok(begun) => begun?,
        Err(_) => return Ok(()),
    };
    let (mut outer, request) = match begun {
        Ok(begun) => begun,
        Err(refusal) => return inner.write_all(refusal_answer(&refusal).as_bytes()).await,
    };
    match request.forwarded() {
        Some(head) => outer.write_all(&head).await?,
        None => {
            inner
                .write_all(b"HTTP/1.1 200 Connection established\r\n\r\n")
                .await?
        }
    }
    outer.write_all(&request.body).await?;
    copy_bidirectional(&mut inner, &mut outer).await?;
    Ok(())
}

/// Reads a request and connects to its host, if that is allowed.
async fn begin(
    inner: &mut UnixStream,
    allowed: &AllowedHosts,
    refused: &Refused,
) -> io::Result<Result<(TcpStream, ProxyRequest), Refusal>> {
    let request = match read_request(inner).await? {
        Ok(request) => request,
        Err(error) => return Ok(Err(error.into())),
    };
    let connected = connect(&request, allowed).await;
    if let Err(Refusal::NotAllowed { host } | Refusal::NotPublic { host }) = &connected {
        refused.add(host);
    }
    Ok(connected.map(|outer| (outer, request)))
}

async fn read_request(inner: &mut UnixStream) -> io::Result<Result<ProxyRequest, RequestError>> {
    let mut bytes = Vec::new();
    loop {
        if let Some(request) = ProxyRequest::parse(&bytes) {
            return Ok(request);
        }
        if bytes.len() >= MAX_HEAD_BYTES {
            return Ok(Err(RequestError::TooLong));
        }
        if inner.read_buf(&mut bytes).await? == 0 {
            return Ok(Err(RequestError::Incomplete));
        }
    }
}

async fn connect(request: &ProxyRequest, allowed: &AllowedHosts) -> Result<TcpStream, Refusal> {
    let host = || match request.port {
        443 | 80 => request.host.clone(),
        port => format!("{}:{port}", request.host),
    };
    if !allowed.allow(&request.host, request.port) {
        return Err(Refusal::NotAllowed { host: host() });
    }
    let unreachable = || Refusal::Unreachable { host: host() };
    let resolving = lookup_host((request.host.as_str(), request.port));
    let resolved = timeout(CONNECT_TIME, resolving)
        .await
        .map_err(|_| unreachable())?
        .map_err(|_| unreachable())?;
    let addresses: Vec<SocketAddr> = resolved
        .filter(|to| is_public(to.ip()) || allowed.name_address(to.ip(), request.port))
        .collect();
    if addresses.is_empty() {
        return Err(Refusal::NotPublic { host: host() });
    }
    let connecting = TcpStream::connect(addresses.as_slice());
    timeout(CONNECT_TIME, connecting)
        .await
        .map_err(|_| unreachable())?
        .map_err(|_| unreachable())
}

fn refusal_answer(refusal: &Refusal) -> String {
    let status = match refusal {
        Refusal::NotAllowed { .. } | Refusal::NotPublic { .. } => "403 Forbidden",
        Refusal::Unreachable { .. } => "502 Bad Gateway",
        Refusal::Request(_) => "400 Bad Request",
    };
    let text = format!("stead: {refusal}\n");
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{text}",
        text.len()
    )
}

#[cfg(test)]
mod tests;
