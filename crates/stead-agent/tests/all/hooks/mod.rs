//! The place for tests of hooks in a run; this file has their shared support.

mod changes;
mod events;
mod failures;
mod handlers;
mod process_lifetime;
mod sessionless;

use crate::support::{journal, listening, model, session, text};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead_agent::{Agent, AgentError, RunOptions, RunReport};
use stead_core::{Event, EventKind, HookOutcome, HookRun, JournalLine};
use stead_testkit::{FakeAnswer, FakeModel, FakeWire, reply};
use tempfile::TempDir;

/// A folder with hooks and a model behind a strict server.
struct Scene {
    dir: TempDir,
    server: FakeModel,
}

/// What a run left behind.
struct Ran {
    report: Result<RunReport, AgentError>,
    lines: Vec<JournalLine>,
    events: Vec<Event>,
}

/// Writes one file, then is done.
fn writes() -> Vec<FakeAnswer> {
    vec![
        reply().call(
            "write_file",
            json!({"file_path": "a.txt", "content": "hello"}),
        ),
        reply().text("done"),
    ]
}

impl Scene {
    fn new(script: Vec<FakeAnswer>) -> Self {
        Self::of(FakeModel::start(script))
    }

    fn of(server: FakeModel) -> Self {
        let scene = Self {
            dir: tempfile::tempdir().unwrap(),
            server,
        };
        scene.put("agent.yaml", "memory: {flush: false}\n");
        scene
    }

    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    /// A hook that is a line of shell.
    fn hook(&self, name: &str, events: &str, script: &str, more: &str) {
        let command = json!(script);
        let text = format!(
            "name: {name}\nevents: [{events}]\nhandler: {{type: command, command: {command}}}\n{more}\n"
        );
        self.put(&format!("hooks/{name}.yaml"), &text);
    }

    /// A hook that answers this.
    fn answers(&self, name: &str, events: &str, answer: Value, more: &str) {
        self.put(&format!("hooks/{name}.json"), &answer.to_string());
        self.hook(name, events, &format!("cat hooks/{name}.json"), more);
    }

    fn read(&self, name: &str) -> Option<String> {
        std::fs::read_to_string(self.path(name)).ok()
    }

    async fn agent(&self) -> Arc<Agent> {
        let model = model(&self.server, FakeWire::Messages);
        Agent::builder()
            .layout(stead_workspace::Layout::Stead)
            .workspace(self.dir.path())
            .model_arc(model)
            .build()
            .await
            .unwrap()
    }

    /// Runs one input in the session `s`.
    async fn run(&self) -> Ran {
        self.run_with(&self.agent().await, RunOptions::default())
            .await
    }

    async fn run_with(&self, agent: &Arc<Agent>, options: RunOptions) -> Ran {
        let (listening, heard) = listening();
        let options = RunOptions {
            listener: listening.listener,
            ..options
        };
        let report = agent.session(session("s")).run(text("go"), options).await;
        assert_eq!(self.server.rejections(), vec![]);
        let lines = match agent.sessions().read(&session("s")).await {
            Ok(_) => journal(agent, &session("s")).await.0,
            Err(_) => Vec::new(),
        };
        let events = heard.lock().unwrap().clone();
        Ran {
            report,
            lines,
            events,
        }
    }
}

impl Ran {
    /// `hook event outcome: detail` of every hook on record.
    fn hooks(&self) -> Vec<String> {
        hook_runs(&self.lines)
            .iter()
            .map(|run| {
                let HookRun {
                    hook,
                    event,
                    outcome,
                    detail,
                    ..
                } = run;
                let detail = detail
                    .as_ref()
                    .map_or(String::new(), |detail| format!(": {detail}"));
                format!("{hook} {event} {}{detail}", outcome.as_str())
            })
            .collect()
    }

    fn outcomes(&self) -> Vec<HookOutcome> {
        hook_runs(&self.lines)
            .iter()
            .map(|run| run.outcome)
            .collect()
    }

    fn notices(&self) -> Vec<String> {
        let notice = |event: &Event| match &event.kind {
            EventKind::Notice { text, .. } => Some(text.clone()),
            _ => None,
        };
        self.events.iter().filter_map(notice).collect()
    }
}

fn hook_runs(lines: &[JournalLine]) -> Vec<HookRun> {
    let run = |line: &JournalLine| match &line.entry {
        stead_core::Entry::Hook(run) => Some(run.clone()),
        _ => None,
    };
    lines.iter().filter_map(run).collect()
}

/// The JSON lines of a file.
fn told(path: &Path) -> Vec<Value> {
    let text = std::fs::read_to_string(path).unwrap_or_default();
    text.lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}

fn results_of(lines: &[JournalLine]) -> usize {
    crate::support::results(lines).len()
}
