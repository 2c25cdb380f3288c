//! Measuring how fast the server answers without a harness: the limit of every other figure.
//!
//! Effects: test support.

use super::monotonic_ns;
use memchr::memmem;
use std::io;
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

/// The load on the server.
#[derive(Debug, Clone, Copy)]
pub struct Load {
    /// The port of the server.
    pub port: u16,
    /// The number of connections that each send one request after another.
    pub connections: usize,
    /// The size of a request in bytes.
    pub body_bytes: usize,
    /// Whether the answers are streams or whole.
    pub mode: crate::ResponseMode,
    /// The duration of the measurement.
    pub duration: Duration,
}

/// The result of a measurement.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct PingReport {
    /// The number of answers per second over all connections.
    pub answers_per_s: f64,
    /// The median round trip.
    pub median_us: f64,
    /// The 99th percentile of round trips.
    pub p99_us: f64,
}

/// Sends requests as fast as the server answers. Run it on a [`tokio::task::LocalSet`].
pub async fn ping(load: Load) -> io::Result<PingReport> {
    let begun = Instant::now();
    let mut clients = JoinSet::new();
    for _ in 0..load.connections {
        clients.spawn_local(client(load, begun + load.duration));
    }
    let mut trips_ns = Vec::new();
    while let Some(trips) = clients.join_next().await {
        trips_ns.extend(trips.map_err(io::Error::other)??);
    }
    let elapsed_s = begun.elapsed().as_secs_f64();
    trips_ns.sort_unstable();
    let at = |share: usize| {
        trips_ns
            .get(trips_ns.len() * share / 100)
            .map_or(f64::NAN, |ns| *ns as f64 / 1e3)
    };
    Ok(PingReport {
        answers_per_s: trips_ns.len() as f64 / elapsed_s,
        median_us: at(50),
        p99_us: at(99),
    })
}

async fn client(load: Load, end: Instant) -> io::Result<Vec<u64>> {
    let stream = match load.mode {
        crate::ResponseMode::Whole => "false",
        crate::ResponseMode::Stream | crate::ResponseMode::StreamWithUsage => "true",
    };
    let scenario = r#"[[bench {\"n\":1,\"calls\":[{\"name\":\"ls\",\"args\":{\"path\":\".\"}}],\"nolog\":true}/bench]]"#;
    let padding = "x".repeat(load.body_bytes);
    let messages = format!(r#"[{{"role":"user","content":"{scenario} {padding}"}}]"#);
    let body = format!(r#"{{"model":"fake","stream":{stream},"messages":{messages}}}"#);
    let head = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    let request = (head + &body).into_bytes();

    let mut socket = TcpStream::connect(("127.0.0.1", load.port)).await?;
    socket.set_nodelay(true)?;
    let mut trips_ns = Vec::new();
    let mut buffer = Vec::with_capacity(8 * 1024);
    while Instant::now() < end {
        let sent_ns = monotonic_ns();
        socket.write_all(&request).await?;
        buffer.clear();
        while !is_whole(&buffer) {
            if socket.read_buf(&mut buffer).await? == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
        }
        trips_ns.push(monotonic_ns() - sent_ns);
    }
    Ok(trips_ns)
}

fn is_whole(answer: &[u8]) -> bool {
    const LENGTH: &[u8] = b"content-length: ";
    let Some(head_len) = memmem::find(answer, b"\r\n\r\n") else {
        return false;
    };
    let digits =
        memmem::find(&answer[..head_len], LENGTH).map(|at| &answer[at + LENGTH.len()..head_len]);
    let digits = digits.map(|rest| &rest[..memchr::memchr(b'\r', rest).unwrap_or(rest.len())]);
    let len = digits
        .and_then(|d| std::str::from_utf8(d).ok())
        .and_then(|d| d.parse::<usize>().ok());
    len.is_some_and(|len| answer.len() >= head_len + 4 + len)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::net::TcpListener;
    use tokio::task::LocalSet;

    #[tokio::test(flavor = "current_thread")]
    async fn the_server_answers_its_own_client_on_several_connections() {
        LocalSet::new()
            .run_until(async {
                let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
                let port = listener.local_addr().unwrap().port();
                let mut server = JoinSet::new();
                server.spawn_local(super::super::serve(listener, 0));
                for mode in [crate::ResponseMode::Whole, crate::ResponseMode::Stream] {
                    let duration = Duration::from_millis(50);
                    let load = Load {
                        port,
                        connections: 3,
                        body_bytes: 10_000,
                        mode,
                        duration,
                    };
                    let measured = ping(load).await.unwrap();
                    assert!(
                        measured.median_us > 0.0 && measured.p99_us >= measured.median_us,
                        "{measured:?}"
                    );
                }
            })
            .await;
    }
}
