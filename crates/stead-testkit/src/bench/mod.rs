//! The model server of the benchmark, and a client that measures the server itself.
//!
//! The conversation carries its own scenario, in the first user message:
//!
//! ```text
//! [[bench {"id":"s1","n":50,"calls":[{"name":"write_file","args":{"file_path":"/a{i}.txt","content":"x"}}],
//!          "final":"done","tokens":0,"delay_ms":0,"usage_in":null,"nolog":false}/bench]]
//! ```
//!
//! Step k answers with `calls[k % len]` under the id `call_b%07d`; after `n` steps comes the final
//! text (`tokens` words of it, if given). `{i}` and `{id}` in the arguments stand for the step and
//! the scenario's id. The step is one more than the number in the last such id of the request, else
//! the count of tool results.
//!
//! Bodies are searched, not parsed: the server's time must vanish beside that of the harness. All
//! times are `CLOCK_MONOTONIC`, so that a runner can relate them to the start of a process.
//!
//! `GET /log[?id=S]` has a line per request: `id step first_byte_ns received_ns sent_ns
//! body_bytes`. `POST /reset` forgets them, `GET /stats` counts them, `GET /delay?ms=N` slows every
//! answer down.
//!
//! Effects: test support.

mod ping;
mod scenario;

pub use ping::{Load, PingReport, ping};

use crate::model::http::{self, FakeHttpRequest, Framing, monotonic_ns};
use crate::{FakeWire, render};
use bytes::BytesMut;
use scenario::Scenario;
use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::fmt::Write;
use std::io;
use std::rc::Rc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// Serves on this listener forever. Run it on a [`tokio::task::LocalSet`].
pub async fn serve(listener: TcpListener, delay_ms: u64) -> io::Result<()> {
    let server = Rc::new(BenchServer {
        delay_ms: Cell::new(delay_ms),
        ..BenchServer::default()
    });
    let mut connections = JoinSet::new();
    loop {
        tokio::select! {
            accepted = listener.accept() => {
                connections.spawn_local(converse(accepted?.0, Rc::clone(&server)));
            }
            Some(_) = connections.join_next(), if !connections.is_empty() => {}
        }
    }
}

#[derive(Default)]
struct BenchServer {
    /// The scenarios by the bytes between the marks, so that each is parsed once.
    scenarios: RefCell<HashMap<Vec<u8>, Rc<Scenario>>>,
    log: RefCell<Vec<BenchLine>>,
    requests: Cell<u64>,
    delay_ms: Cell<u64>,
}

struct BenchLine {
    scenario: Rc<Scenario>,
    step: usize,
    first_byte_ns: u64,
    received_ns: u64,
    sent_ns: u64,
    body_bytes: usize,
}

async fn converse(mut stream: TcpStream, server: Rc<BenchServer>) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = BytesMut::with_capacity(16 * 1024);
    while let Some(request) = http::read(&mut stream, &mut buffer).await? {
        match FakeWire::of(&request.target) {
            Some(wire) => server.model(&mut stream, wire, &request).await?,
            None => {
                let (content_type, body) = server.control(&request);
                send(&mut stream, content_type, &body).await?;
            }
        }
    }
    Ok(())
}

async fn send(stream: &mut TcpStream, content_type: &str, body: &str) -> io::Result<()> {
    let head = http::head(200, content_type, Framing::Length(body.len()), None);
    stream.write_all((head + body).as_bytes()).await
}

impl BenchServer {
    async fn model(
        &self,
        stream: &mut TcpStream,
        wire: FakeWire,
        request: &FakeHttpRequest,
    ) -> io::Result<()> {
        let received_ns = monotonic_ns();
        self.requests.set(self.requests.get() + 1);
        let body = request.body.as_ref();
        let scenario = self.scenario(body);
        let step = scenario::step(body);
        let mode = scenario::mode(wire, &request.target, body);
        let answer = render(&scenario.answer(step), wire, mode, step, body.len());
        let delay_ms = scenario.delay_ms.max(self.delay_ms.get());
        if delay_ms > 0 {
            tokio::time::sleep(Duration::from_millis(delay_ms)).await;
        }
        // Logged before the write, so that a client that reads the log right after the answer finds
        // the entry.
        let sent_ns = monotonic_ns();
        if !scenario.nolog {
            let FakeHttpRequest { first_byte_ns, .. } = *request;
            let line = BenchLine {
                scenario,
                step,
                first_byte_ns,
                received_ns,
                sent_ns,
                body_bytes: body.len(),
            };
            self.log.borrow_mut().push(line);
        }
        let content_type = match mode {
            crate::ResponseMode::Whole => "application/json",
            crate::ResponseMode::Stream | crate::ResponseMode::StreamWithUsage => {
                "text/event-stream"
            }
        };
        send(stream, content_type, &answer).await
    }

    fn scenario(&self, body: &[u8]) -> Rc<Scenario> {
        let Some(raw) = scenario::marked(body) else {
            return Rc::default();
        };
        if let Some(known) = self.scenarios.borrow().get(raw) {
            return Rc::clone(known);
        }
        let scenario = Rc::new(Scenario::parse(raw).unwrap_or_else(|why| {
            eprintln!("bad scenario ({why}): {}", String::from_utf8_lossy(raw));
            Scenario::default()
        }));
        self.scenarios
            .borrow_mut()
            .insert(raw.to_vec(), Rc::clone(&scenario));
        scenario
    }

    fn control(&self, request: &FakeHttpRequest) -> (&'static str, String) {
        let (path, query) = request
            .target
            .split_once('?')
            .unwrap_or((&request.target, ""));
        match path {
            "/log" => ("text/plain", self.log_text(query.strip_prefix("id="))),
            "/reset" => {
                self.log.take();
                self.scenarios.take();
                self.requests.set(0);
                ("text/plain", "ok\n".into())
            }
            "/delay" => {
                self.delay_ms.set(
                    query
                        .strip_prefix("ms=")
                        .and_then(|ms| ms.parse().ok())
                        .unwrap_or(0),
                );
                ("text/plain", "ok\n".into())
            }
            "/stats" => {
                let stats =
                    serde_json::json!({"requests": self.requests.get(), "now": monotonic_ns()});
                ("application/json", format!("{stats}\n"))
            }
            "/v1/models" => (
                "application/json",
                r#"{"object":"list","data":[{"id":"fake","object":"model"}]}"#.into(),
            ),
            _ => ("application/json", "{}".into()),
        }
    }

    fn log_text(&self, id: Option<&str>) -> String {
        let mut out = String::new();
        for line in self
            .log
            .borrow()
            .iter()
            .filter(|line| id.is_none_or(|id| line.scenario.id == id))
        {
            let BenchLine {
                scenario,
                step,
                first_byte_ns,
                received_ns,
                sent_ns,
                body_bytes,
            } = line;
            writeln!(
                out,
                "{} {step} {first_byte_ns} {received_ns} {sent_ns} {body_bytes}",
                scenario.id
            )
            .expect("a String takes everything");
        }
        out
    }
}
