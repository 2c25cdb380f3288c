//! The place for tests that runs are addressable across processes: one process runs sessions, the
//! other one follows them, sends to them, and takes them up when the first one is killed.

mod child;
mod follower;
mod kills;
mod pieces;
mod shared_sessions;

use serde_json::{Value, json};
use std::fs::OpenOptions;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stead_agent::Agent;
use stead_core::{Risk, ToolEffect, ToolSpec};
use stead_host::Host;
use stead_model::ModelSettings;
use stead_testkit::servers::{ServerKind, shared};
use stead_testkit::{FakeAnswer, FakeModel, RecordedRequest, RequestTurn, reply};
use stead_tools::{CallPlan, Output, PlanError, Tool, ToolCx, ToolError};

/// Where the sessions of a test are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Store {
    Files,
    Postgres,
}

impl Store {
    pub(crate) const ALL: [Self; 2] = [Self::Files, Self::Postgres];
}

/// The name of the agent in every host.
const AGENT: &str = "main";
/// A tool that leaves a line in a file each time it runs.
const MARK: &str = "leave_mark";
/// The same, but a person is asked before.
const ASK_MARK: &str = "ask_mark";
/// The file with the marks, beside the workspace.
const MARKS: &str = "marks.txt";

/// A workspace on disk that several processes use.
#[derive(Debug)]
pub(crate) struct Workspace {
    folder: tempfile::TempDir,
}

impl Workspace {
    pub(crate) fn new(store: Store, settings: &str) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path().join("workspace");
        std::fs::create_dir(&root).unwrap();
        std::fs::write(root.join("AGENTS.md"), "You are brief.\n").unwrap();
        let place = match store {
            Store::Files => String::new(),
            Store::Postgres => {
                let url = shared(ServerKind::Postgres);
                let namespace = folder.path().file_name().unwrap().to_str().unwrap();
                let namespace = namespace.trim_start_matches('.').to_lowercase();
                format!("filesystem: {{mode: store, url: '{url}', namespace: {namespace}}}\n")
            }
        };
        let yaml = format!(
            "queue: {{mode: collect, debounce_ms: 5}}\napprovals: {{{ASK_MARK}: true}}\n{place}{settings}"
        );
        std::fs::write(root.join("agent.yaml"), yaml).unwrap();
        std::fs::write(folder.path().join(MARKS), "").unwrap();
        Self { folder }
    }

    pub(crate) fn path(&self) -> &Path {
        self.folder.path()
    }

    /// How often each mark was left.
    pub(crate) fn marks(&self) -> Vec<String> {
        let text = std::fs::read_to_string(self.path().join(MARKS)).unwrap();
        text.lines().map(str::to_owned).collect()
    }

    /// A host of this process.
    pub(crate) async fn host(&self, model: &FakeModel) -> Arc<Host> {
        host_at(self.path(), &model.openai_url()).await
    }
}

/// A host with an agent of the workspace in `folder` that asks the model at `url`.
pub(crate) async fn host_at(folder: &Path, url: &str) -> Arc<Host> {
    let host = Host::new();
    host.add_agent(AGENT, agent_at(folder, url).await);
    host
}

pub(crate) async fn agent_at(folder: &Path, url: &str) -> Arc<Agent> {
    let model = ModelSettings {
        name: "openai:x".into(),
        base_url: Some(url.to_owned()),
        ..ModelSettings::default()
    };
    let marks = folder.join(MARKS);
    Agent::builder()
        .workspace(folder.join("workspace"))
        .model_settings(model)
        .tool(MarkTool::make(MARK, marks.clone()))
        .tool(MarkTool::make(ASK_MARK, marks))
        .build()
        .await
        .unwrap()
}

/// A tool that appends a line to a file. It is not repeatable.
struct MarkTool {
    spec: ToolSpec,
    marks: PathBuf,
}

impl MarkTool {
    fn make(name: &str, marks: PathBuf) -> Arc<dyn Tool> {
        let risk = Risk {
            effect: ToolEffect::Writes,
            parallel_safe: false,
            repeatable: false,
        };
        let parameters = json!({"type": "object", "properties": {"mark": {"type": "string"}}, "required": ["mark"]});
        let spec = ToolSpec::new(name, "Leaves a mark.", risk).with_parameters(parameters);
        Arc::new(Self { spec, marks })
    }
}

impl Tool for MarkTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn plan(&self, args: Value) -> Result<CallPlan, PlanError> {
        Ok(CallPlan::default().with_args(args))
    }

    fn call<'a>(
        &'a self,
        _: &'a ToolCx,
        plan: CallPlan,
    ) -> futures_util::future::BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async move {
            let args: Value = plan.take_args()?;
            let line = format!("{}\n", args["mark"].as_str().unwrap());
            let mut file = OpenOptions::new().append(true).open(&self.marks).unwrap();
            file.write_all(line.as_bytes()).unwrap();
            Ok(Output::text("left"))
        })
    }
}

/// A model that leaves two marks after each message and then says something, in small pieces.
pub(crate) fn marking_model() -> FakeModel {
    let next = AtomicUsize::new(0);
    FakeModel::start_with(move |request: &RecordedRequest| {
        let mark = next.fetch_add(1, Ordering::Relaxed);
        marking_answer(request, mark)
    })
}

fn marking_answer(request: &RecordedRequest, mark: usize) -> FakeAnswer {
    let seen = request.seen.as_ref().unwrap();
    let since_message = seen.turns.iter().rev().take_while(|turn| match turn {
        RequestTurn::User(_) => false,
        RequestTurn::Assistant { .. } | RequestTurn::Result { .. } => true,
    });
    let results = since_message.filter(|turn| matches!(turn, RequestTurn::Result { .. }));
    let args = json!({"mark": format!("<mark {mark}>")});
    let tool = match mark % 5 {
        0 => ASK_MARK,
        _ => MARK,
    };
    let answer = match results.count() {
        0 | 1 => reply().text("I leave a mark now.").call(tool, args),
        _ => reply().text("That is all for this time."),
    };
    answer.chunks_of(400).pause_ms(2)
}
