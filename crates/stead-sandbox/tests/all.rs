//! The place for tests of commands on the host; this file has their shared support.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/bubblewrap.rs"]
mod bubblewrap;
#[path = "all/escapes.rs"]
mod escapes;
#[path = "all/host_environment.rs"]
mod host_environment;
#[path = "all/killed_parent.rs"]
mod killed_parent;
#[path = "all/process_cleanup.rs"]
mod process_cleanup;

use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};
use stead_sandbox::{Exec, ExecOutcome, Host, OutputSink, Sandbox, SandboxError, SinkState};

/// Keeps the beginning of the output.
#[derive(Default)]
struct Said(Vec<u8>);

/// The maximum length that is kept.
const MAX_SAID_BYTES: usize = 1024 * 1024;

impl OutputSink for Said {
    fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, SinkState> {
        self.0.extend_from_slice(piece);
        let room = if self.0.len() < MAX_SAID_BYTES {
            SinkState::Accepting
        } else {
            SinkState::Full
        };
        Box::pin(async move { room })
    }
}

impl Said {
    fn text(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap()
    }
}

/// Returns a unique name that every process of a test has in its environment.
fn trace() -> String {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    format!(
        "trace-{}-{}-end",
        std::process::id(),
        COUNT.fetch_add(1, Ordering::SeqCst)
    )
}

/// Returns `command` in `dir` with the trace in its environment.
fn traced(command: &str, dir: &Path, trace: &str) -> Exec {
    let exec = Exec::new(command, dir).with_timeout(Duration::from_secs(20));
    Exec {
        env: [("TRACE".to_owned(), trace.to_owned())].into(),
        ..exec
    }
}

async fn run(exec: Exec) -> (Result<ExecOutcome, SandboxError>, Said) {
    let mut said = Said::default();
    let ended = Host::new([]).exec(exec, &mut said).await;
    (ended, said)
}

/// Returns the live processes that the test started.
fn alive(trace: &str) -> Vec<String> {
    let processes = std::fs::read_dir("/proc").unwrap().flatten();
    let has_trace = |dir: &std::path::PathBuf| {
        let environ = std::fs::read(dir.join("environ")).unwrap_or_default();
        environ
            .windows(trace.len())
            .any(|window| window == trace.as_bytes())
    };
    let traced = processes.map(|entry| entry.path()).filter(has_trace);
    traced
        .map(|dir| {
            format!(
                "{}: {:?}",
                dir.display(),
                std::fs::read_to_string(dir.join("cmdline"))
            )
        })
        .collect()
}

/// Waits until `is_so` holds, for at most a few seconds.
fn eventually(what: &str, is_so: impl Fn() -> bool) {
    let end = Instant::now() + Duration::from_secs(10);
    while !is_so() {
        assert!(Instant::now() < end, "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}
