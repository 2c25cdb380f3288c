//! The way from a sandbox without a network to the proxy outside: a port of the sandbox's own
//! loopback, whose connections are passed on to a socket in the file system.
//!
//! Effects: the network, processes.

use std::io;
use std::net::{Ipv4Addr, Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, ExitStatus};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

/// The port at which programs in a sandbox find the proxy.
pub(crate) const PROXY_PORT: u16 = 3128;
/// The most connections at once. Further ones are closed.
const MAX_CONNECTIONS: usize = 256;

/// Listens for connections to the proxy.
pub(super) struct Forwarder {
    listener: TcpListener,
    socket: PathBuf,
}

impl Forwarder {
    /// Begins to listen. Connections will be passed on to `socket`.
    pub(super) fn listen(socket: PathBuf) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, PROXY_PORT))?;
        Ok(Self { listener, socket })
    }

    /// Runs `command` to its end, and passes connections on meanwhile.
    pub(super) fn beside(self, command: &mut Command) -> io::Result<ExitStatus> {
        let mut child = command.spawn()?;
        thread::spawn(move || self.accept());
        child.wait()
    }

    /// Accepts connections until this process ends.
    fn accept(self) {
        let open = Arc::new(AtomicUsize::new(0));
        for inner in self.listener.incoming().flatten() {
            if open.fetch_add(1, Ordering::SeqCst) >= MAX_CONNECTIONS {
                open.fetch_sub(1, Ordering::SeqCst);
                continue;
            }
            let (socket, open) = (self.socket.clone(), Arc::clone(&open));
            thread::spawn(move || {
                if let Ok(outer) = UnixStream::connect(socket) {
                    // Fails if one of both sides breaks off.
                    let _ = join(&inner, &outer);
                }
                open.fetch_sub(1, Ordering::SeqCst);
            });
        }
    }
}

/// Copies in both directions until both have ended.
fn join(inner: &TcpStream, outer: &UnixStream) -> io::Result<()> {
    let (mut from_inner, mut to_outer) = (inner.try_clone()?, outer.try_clone()?);
    let up = thread::spawn(move || {
        let _ = io::copy(&mut from_inner, &mut to_outer);
        to_outer.shutdown(Shutdown::Write)
    });
    let (mut from_outer, mut to_inner) = (outer.try_clone()?, inner.try_clone()?);
    let _ = io::copy(&mut from_outer, &mut to_inner);
    let _ = inner.shutdown(Shutdown::Write);
    let _ = up.join();
    Ok(())
}
