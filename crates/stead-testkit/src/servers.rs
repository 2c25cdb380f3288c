//! Real servers for tests of shared stores: those that `scripts/test.sh` starts for all tests, and
//! private ones that a test may stop, kill and freeze.
//!
//! ```no_run
//! use stead_testkit::servers::{ServerKind, TestServer, shared};
//!
//! let url = shared(ServerKind::Redis);
//! let mut own = TestServer::start(ServerKind::Redis);
//! own.kill();
//! own.start_again();
//! # drop(url);
//! ```
//!
//! Effects: test support.

use rustix::process::{Pid, Signal, kill_process};
use std::fs::File;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../scripts/servers.sh");
const STOP_DEADLINE: Duration = Duration::from_secs(20);

/// A kind of server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ServerKind {
    /// Redis.
    Redis,
    /// PostgreSQL.
    Postgres,
    /// MariaDB.
    Mysql,
}

impl ServerKind {
    /// Returns the name for `scripts/servers.sh`.
    fn name(self) -> &'static str {
        match self {
            Self::Redis => "redis",
            Self::Postgres => "postgres",
            Self::Mysql => "mysql",
        }
    }

    /// Returns the signal that ends the server. PostgreSQL waits on `SIGTERM` until every client
    /// has left.
    fn stop_signal(self) -> Signal {
        match self {
            Self::Redis | Self::Mysql => Signal::TERM,
            Self::Postgres => Signal::INT,
        }
    }
}

/// Returns the URL of the server that all tests share.
///
/// # Panics
///
/// If there is none. A test without its server fails; it is not skipped.
pub fn shared(kind: ServerKind) -> String {
    let variable = format!("STEAD_TEST_{}_URL", kind.name().to_uppercase());
    #[expect(
        clippy::disallowed_methods,
        reason = "the environment is how the test script speaks to the tests"
    )]
    let url = std::env::var(&variable);
    url.unwrap_or_else(|_| {
        panic!("{variable} is not set: run scripts/test.sh, or `scripts/servers.sh start DIR` and `source DIR/env`")
    })
}

/// A private server with its own port and data. Dropping it ends the server and removes the data.
#[derive(Debug)]
pub struct TestServer {
    kind: ServerKind,
    folder: TempDir,
    process: Option<Child>,
    url: String,
}

impl TestServer {
    /// Starts a new server and waits until it answers.
    pub fn start(kind: ServerKind) -> Self {
        let folder = TempDir::with_prefix("stead-").expect("a temporary folder");
        let mut server = Self {
            kind,
            folder,
            process: None,
            url: String::new(),
        };
        server.start_again();
        server
    }

    /// Returns the URL of the server, which stays the same.
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Restarts the server on the same port and data, after [`Self::stop`] or [`Self::kill`].
    /// Returns when it answers.
    pub fn start_again(&mut self) {
        assert!(self.process.is_none(), "{} still runs", self.kind.name());
        let name = self.kind.name();
        let log = File::create(self.file("log")).expect("a log");
        let process = Command::new(SCRIPT)
            .args(["run", name])
            .arg(self.folder.path())
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a second handle"))
            .stderr(log)
            .spawn()
            .expect("scripts/servers.sh can be run");
        // The script checks this file to see whether the server still runs.
        std::fs::write(self.file("pid"), process.id().to_string()).expect("a pid file");
        self.process = Some(process);
        let asked = Command::new(SCRIPT)
            .args(["url", name])
            .arg(self.folder.path())
            .output();
        let asked = asked.expect("scripts/servers.sh can be run");
        assert!(
            asked.status.success(),
            "{}",
            String::from_utf8_lossy(&asked.stderr)
        );
        self.url = String::from_utf8(asked.stdout)
            .expect("a URL")
            .trim()
            .to_owned();
    }

    /// Stops the server regularly.
    pub fn stop(&mut self) {
        let signal = self.kind.stop_signal();
        let Some(process) = &mut self.process else {
            return;
        };
        send(process.id(), signal);
        let end = Instant::now() + STOP_DEADLINE;
        while process
            .try_wait()
            .expect("a child can be waited for")
            .is_none()
        {
            if Instant::now() >= end {
                return self.kill();
            }
            std::thread::sleep(Duration::from_millis(5));
        }
        self.process = None;
    }

    /// Sends `SIGKILL` to all processes of the server.
    pub fn kill(&mut self) {
        self.signal_all(Signal::KILL);
        if let Some(mut process) = self.process.take() {
            process.wait().expect("a child can be waited for");
        }
    }

    /// Freezes the server: connections stay open, and nothing answers.
    pub fn pause(&self) {
        self.signal_all(Signal::STOP);
    }

    /// Continues the server after [`Self::pause`].
    pub fn resume(&self) {
        self.signal_all(Signal::CONT);
    }

    fn file(&self, suffix: &str) -> std::path::PathBuf {
        self.folder
            .path()
            .join(format!("{}.{suffix}", self.kind.name()))
    }

    fn signal_all(&self, signal: Signal) {
        let Some(process) = &self.process else { return };
        send(process.id(), signal);
        // PostgreSQL has a process for each client. The second pass finds those that were started
        // during the first.
        for _ in 0..2 {
            descendants(process.id())
                .into_iter()
                .for_each(|pid| send(pid, signal));
        }
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn send(pid: u32, signal: Signal) {
    let pid = i32::try_from(pid)
        .ok()
        .and_then(Pid::from_raw)
        .expect("the kernel gave this number");
    // Fails only if it has ended already.
    let _ = kill_process(pid, signal);
}

/// Returns all processes below `root`.
fn descendants(root: u32) -> Vec<u32> {
    let processes = std::fs::read_dir("/proc").expect("/proc").flatten();
    let pairs: Vec<(u32, u32)> = processes
        .filter_map(|entry| {
            Some((
                entry.file_name().to_str()?.parse().ok()?,
                parent(&entry.path())?,
            ))
        })
        .collect();
    let mut found = vec![root];
    let mut next = 0;
    while let Some(&above) = found.get(next) {
        found.extend(
            pairs
                .iter()
                .filter(|(_, parent)| *parent == above)
                .map(|(pid, _)| *pid),
        );
        next += 1;
    }
    found.split_off(1)
}

fn parent(process: &Path) -> Option<u32> {
    let status = std::fs::read_to_string(process.join("status")).ok()?;
    status
        .lines()
        .find_map(|line| line.strip_prefix("PPid:"))?
        .trim()
        .parse()
        .ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::{Read, Write};
    use std::net::TcpStream;

    fn ask(url: &str, command: &str) -> std::io::Result<String> {
        let address = url.trim_start_matches("redis://").trim_end_matches('/');
        let mut stream = TcpStream::connect(address)?;
        stream.set_read_timeout(Some(Duration::from_millis(300)))?;
        stream.write_all(command.as_bytes())?;
        let mut answer = [0; 64];
        let read = stream.read(&mut answer)?;
        Ok(String::from_utf8_lossy(&answer[..read]).into_owned())
    }

    #[test]
    fn a_private_server_keeps_its_port_and_data_over_a_kill() {
        let mut server = TestServer::start(ServerKind::Redis);
        let url = server.url().to_owned();
        assert_eq!(ask(&url, "SET a 1\r\n").unwrap(), "+OK\r\n");
        server.kill();
        assert!(ask(&url, "GET a\r\n").is_err());
        server.start_again();
        assert_eq!(
            (server.url(), ask(&url, "GET a\r\n").unwrap().as_str()),
            (url.as_str(), "$1\r\n1\r\n")
        );
        server.pause();
        assert!(ask(&url, "GET a\r\n").is_err());
        server.resume();
        assert_eq!(ask(&url, "GET a\r\n").unwrap(), "$1\r\n1\r\n");
        server.stop();
        assert!(ask(&url, "GET a\r\n").is_err());
    }

    #[test]
    fn the_databases_can_be_killed_and_started_again() {
        for kind in [ServerKind::Postgres, ServerKind::Mysql] {
            let mut server = TestServer::start(kind);
            server.pause();
            server.resume();
            server.kill();
            server.start_again();
            server.stop();
            server.start_again();
        }
    }

    #[test]
    fn the_shared_servers_are_of_their_kind() {
        for (kind, scheme) in [
            (ServerKind::Redis, "redis://"),
            (ServerKind::Postgres, "postgres://"),
            (ServerKind::Mysql, "mysql://"),
        ] {
            assert!(shared(kind).starts_with(scheme));
        }
    }
}
