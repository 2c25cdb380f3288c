//! A proxy that loses the answers of a server.
//!
//! Effects: test support.

use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

/// A proxy in front of a server. Requests always arrive; answers can be lost together with the
/// connection, so that the client cannot know whether its request was executed.
#[derive(Debug)]
pub struct LossyProxy {
    address: SocketAddr,
    state: Arc<LossyProxyState>,
}

#[derive(Debug, Default)]
struct LossyProxyState {
    to_lose: AtomicUsize,
    lost: AtomicUsize,
    closed: AtomicBool,
}

impl LossyProxy {
    /// Creates a proxy to `server`, such as `127.0.0.1:6379`. Nothing is lost until [`Self::lose`]
    /// is called.
    pub fn to(server: &str) -> Self {
        let server: SocketAddr = server.parse().expect("an address and a port");
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).expect("a free port");
        let address = listener
            .local_addr()
            .expect("a bound socket has an address");
        let state = Arc::new(LossyProxyState::default());
        let shared = state.clone();
        std::thread::spawn(move || {
            for client in listener.incoming() {
                if shared.closed.load(Ordering::SeqCst) {
                    return;
                }
                // A server that is down closes the connection at once, as it does without a proxy.
                if let (Ok(client), Ok(server)) = (client, TcpStream::connect(server)) {
                    join(client, server, &shared);
                }
            }
        });
        Self { address, state }
    }

    /// Returns the address of the proxy.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Loses the next `count` answers. An answer is what the server sends first after this call.
    pub fn lose(&self, count: usize) {
        self.state.to_lose.store(count, Ordering::SeqCst);
    }

    /// Returns the number of lost answers.
    pub fn lost(&self) -> usize {
        self.state.lost.load(Ordering::SeqCst)
    }
}

impl Drop for LossyProxy {
    fn drop(&mut self) {
        self.state.closed.store(true, Ordering::SeqCst);
        // Wakes the thread that waits for clients.
        let _ = TcpStream::connect(self.address);
    }
}

fn join(client: TcpStream, server: TcpStream, state: &Arc<LossyProxyState>) {
    let clone = |stream: &TcpStream| stream.try_clone().expect("a second handle");
    let mut requests = clone(&client);
    let mut to_server = clone(&server);
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut requests, &mut to_server);
        let _ = to_server.shutdown(Shutdown::Both);
    });
    let state = state.clone();
    let mut answers = server;
    let mut to_client = client;
    std::thread::spawn(move || {
        let mut piece = vec![0; 64 * 1024];
        while let Ok(read @ 1..) = answers.read(&mut piece) {
            let lose = state
                .to_lose
                .fetch_update(Ordering::SeqCst, Ordering::SeqCst, |left| {
                    left.checked_sub(1)
                });
            if lose.is_ok() {
                state.lost.fetch_add(1, Ordering::SeqCst);
                break;
            }
            if to_client.write_all(&piece[..read]).is_err() {
                break;
            }
        }
        let _ = to_client.shutdown(Shutdown::Both);
        let _ = answers.shutdown(Shutdown::Both);
    });
}
