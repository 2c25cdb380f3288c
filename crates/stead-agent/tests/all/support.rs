//! Test support: an agent in a temporary folder, assembled as the binary does it.

use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stead_agent::{Agent, AgentBuilder, RunOptions, open_folder};
use stead_core::{
    Block, Entry, Event, EventKind, Exposure, JournalLine, Redactor, Risk, SessionId, SessionState,
    ToolSpec,
};
use stead_model::{Model, ModelSettings, Params, Timeouts, connect};
use stead_place::{LocalPlace, Place, PlaceSettings};
use stead_sandbox::{Host, Sandbox};
use stead_store::{Disk, OsDisk};
use stead_testkit::{FakeModel, FakeWire};
use stead_tools::{CallPlan, Output, PlanError, Tool, ToolCx, ToolError};
use stead_workspace::{FeatureSwitch, Layout, ModelUse, OpenOptions};

/// Longer than any of these tests may take; a hang becomes a failure.
pub(crate) const DEADLINE: Duration = Duration::from_secs(30);

pub(crate) fn session(text: &str) -> SessionId {
    SessionId::new(text).unwrap()
}

pub(crate) fn text(text: &str) -> Vec<Block> {
    vec![Block::text(text)]
}

/// The name of a model on each wire.
pub(crate) fn model_name(wire: FakeWire) -> &'static str {
    match wire {
        FakeWire::Chat => "openai:x",
        FakeWire::Messages => "anthropic:x",
        FakeWire::Responses => "responses:x",
        FakeWire::Gemini => "gemini:x",
    }
}

/// The base URL as each wire's clients want it.
pub(crate) fn base_url(server: &FakeModel, wire: FakeWire) -> String {
    match wire {
        FakeWire::Chat | FakeWire::Responses => server.openai_url(),
        FakeWire::Messages => server.base_url(),
        FakeWire::Gemini => format!("{}/v1beta", server.base_url()),
    }
}

/// A model behind `server` that is asked `1 + max_retries` times and gives up after `idle` without
/// a byte.
pub(crate) fn patient_model(
    server: &FakeModel,
    wire: FakeWire,
    max_retries: u32,
    idle: Duration,
) -> Arc<dyn Model> {
    let settings = ModelSettings {
        name: model_name(wire).to_owned(),
        base_url: Some(base_url(server, wire)),
        max_retries: Some(max_retries),
        timeouts: Timeouts {
            idle_seconds: idle.as_secs_f64(),
            ..Timeouts::default()
        },
        ..ModelSettings::default()
    };
    connect(&settings, &|_| None).unwrap()
}

/// A model behind `server` that is asked once.
pub(crate) fn model(server: &FakeModel, wire: FakeWire) -> Arc<dyn Model> {
    patient_model(server, wire, 0, DEADLINE)
}

/// An agent in `dir` with the file tools.
pub(crate) async fn agent(dir: &Path, model: Arc<dyn Model>) -> Arc<Agent> {
    agent_on(dir, model, Arc::new(OsDisk), Vec::new()).await
}

/// An agent in `dir` whose every change goes through `disk`, with `more` tools.
pub(crate) async fn agent_on(
    dir: &Path,
    model: Arc<dyn Model>,
    disk: Arc<dyn Disk>,
    more: Vec<Arc<dyn Tool>>,
) -> Arc<Agent> {
    agent_of(dir, model, Params::default(), disk, more, None).await
}

/// An agent in `dir` that asks with `params`.
pub(crate) async fn agent_asking(dir: &Path, model: Arc<dyn Model>, params: Params) -> Arc<Agent> {
    agent_of(dir, model, params, Arc::new(OsDisk), Vec::new(), None).await
}

/// An agent in `dir` that runs commands on this machine.
pub(crate) async fn agent_with_host(dir: &Path, model: Arc<dyn Model>) -> Arc<Agent> {
    agent_with_host_and(dir, model, Vec::new()).await
}

/// The same with `more` tools.
pub(crate) async fn agent_with_host_and(
    dir: &Path,
    model: Arc<dyn Model>,
    more: Vec<Arc<dyn Tool>>,
) -> Arc<Agent> {
    let host: Arc<dyn Sandbox> = Arc::new(Host::new([]));
    agent_of(
        dir,
        model,
        Params::default(),
        Arc::new(OsDisk),
        more,
        Some(host),
    )
    .await
}

async fn agent_of(
    dir: &Path,
    model: Arc<dyn Model>,
    params: Params,
    disk: Arc<dyn Disk>,
    tools: Vec<Arc<dyn Tool>>,
    sandbox: Option<Arc<dyn Sandbox>>,
) -> Arc<Agent> {
    let place = local_place(dir, disk, Redactor::default()).await;
    let builder = builder(dir, model)
        .place(place)
        .params(params)
        // Memory has tests of its own; here it would only add to what is counted.
        .configure(|config| {
            config.memory.flush.get_or_insert(false);
        });
    let builder = tools.into_iter().fold(builder, AgentBuilder::tool);
    let builder = match sandbox {
        Some(sandbox) => builder.sandbox(sandbox),
        None => builder.disable(FeatureSwitch::Shell),
    };
    builder.build().await.unwrap()
}

/// A builder for an agent in `dir`, with nothing else set.
pub(crate) fn builder(dir: &Path, model: Arc<dyn Model>) -> AgentBuilder {
    let options = OpenOptions {
        layout: home_layout(dir),
        ..OpenOptions::default()
    };
    let builder = Agent::builder().workspace(dir).open_options(options);
    builder.model_arc(model)
}

/// The stead layout, also for a folder without `agent.yaml`, unless the folder has another one.
pub(crate) fn home_layout(dir: &Path) -> Option<Layout> {
    const OTHER_MARKS: [&str; 6] = [
        ".openharness",
        ".deepagents",
        ".mcp",
        "AGENT.md",
        "agent/AGENT.md",
        "agent.json",
    ];
    let is_other = OTHER_MARKS.iter().any(|mark| dir.join(mark).exists());
    (!is_other).then_some(Layout::Stead)
}

/// The folder `dir` as the place of its agent, changed through `disk`.
pub(crate) async fn local_place(
    dir: &Path,
    disk: Arc<dyn Disk>,
    redactor: Redactor,
) -> Arc<dyn Place> {
    let options = OpenOptions {
        layout: home_layout(dir),
        model_use: ModelUse::NotNeeded,
        ..OpenOptions::default()
    };
    let workspace = open_folder(dir, options, &|_| None).await.unwrap();
    let id = workspace.config().agent_id();
    Arc::new(LocalPlace::open(&PlaceSettings::local(dir, id), disk, redactor).unwrap())
}

/// The lines of a session and the state they add up to. Panics if the journal is not sound.
pub(crate) async fn journal(
    agent: &Arc<Agent>,
    id: &SessionId,
) -> (Vec<JournalLine>, SessionState) {
    let lines = agent.sessions().read(id).await.unwrap();
    let mut state = SessionState::default();
    for line in &lines {
        state.apply(line.seq, &line.entry).unwrap();
    }
    (lines, state)
}

/// The results of a journal: `(call id, status, text)`.
pub(crate) fn results(lines: &[JournalLine]) -> Vec<(String, stead_core::ResultStatus, String)> {
    let result = |line: &JournalLine| match &line.entry {
        Entry::Result(result) => Some((result.id.clone(), result.status, blocks(&result.content))),
        _ => None,
    };
    lines.iter().filter_map(result).collect()
}

pub(crate) fn blocks(content: &[Block]) -> String {
    stead_core::Message::User {
        content: content.to_vec(),
    }
    .text()
}

/// Options that keep every event.
pub(crate) fn listening() -> (RunOptions, Arc<Mutex<Vec<Event>>>) {
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let listener = Arc::new(move |event: &Event| sink.lock().unwrap().push(event.clone()));
    (
        RunOptions {
            listener,
            ..RunOptions::default()
        },
        heard,
    )
}

/// Panics unless the events are numbered without a gap and end with the end of the run, once.
pub(crate) fn assert_well_formed(events: &[Event]) {
    let numbers: Vec<u64> = events.iter().map(|event| event.seq).collect();
    assert_eq!(numbers, (1..=events.len() as u64).collect::<Vec<_>>());
    let ends = events
        .iter()
        .filter(|event| matches!(event.kind, EventKind::RunEnded { .. }))
        .count();
    assert!(
        ends == 1 && matches!(events.last().unwrap().kind, EventKind::RunEnded { .. }),
        "{events:?}"
    );
}

/// Runs a future on a runtime of its own, with a deadline.
pub(crate) fn block_on<T>(future: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    runtime.block_on(async {
        tokio::time::timeout(4 * DEADLINE, future)
            .await
            .expect("it took too long")
    })
}

/// Runs `job` on every item, on a few threads; the panic of one is the panic of all.
pub(crate) fn in_parallel<T: Sync>(items: &[T], job: impl Fn(&T) + Sync) {
    const THREADS: usize = 4;
    let next = std::sync::atomic::AtomicUsize::new(0);
    let work = || {
        while let Some(item) = items.get(next.fetch_add(1, std::sync::atomic::Ordering::SeqCst)) {
            job(item);
        }
    };
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
        threads
            .into_iter()
            .for_each(|thread| thread.join().unwrap());
    });
}

type Act =
    Box<dyn Fn(ToolCx, Value) -> BoxFuture<'static, Result<Output, ToolError>> + Send + Sync>;

/// A tool of a test's own.
pub(crate) struct TestTool {
    spec: ToolSpec,
    act: Act,
}

impl TestTool {
    pub(crate) fn make<F>(
        name: &str,
        risk: Risk,
        act: impl Fn(ToolCx, Value) -> F + Send + Sync + 'static,
    ) -> Arc<dyn Tool>
    where
        F: Future<Output = Result<Output, ToolError>> + Send + 'static,
    {
        let spec = ToolSpec::new(name, "A tool of a test.", risk)
            .with_parameters(json!({"type": "object", "properties": {"n": {"type": "integer"}}}));
        Arc::new(Self {
            spec,
            act: Box::new(move |cx, args| Box::pin(act(cx, args))),
        })
    }
}

impl TestTool {
    /// A tool with this name and exposure that says `ok`.
    pub(crate) fn with_exposure(name: &str, exposure: Exposure) -> Arc<dyn Tool> {
        Arc::new(Self {
            spec: ToolSpec::new(name, "A tool of a test.", Risk::READS).with_exposure(exposure),
            act: Box::new(|_, _| Box::pin(async { Ok(Output::text("ok")) })),
        })
    }
}

impl Tool for TestTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    fn plan(&self, args: Value) -> Result<CallPlan, PlanError> {
        Ok(CallPlan::default().with_args(args))
    }

    fn call<'a>(
        &'a self,
        cx: &'a ToolCx,
        plan: CallPlan,
    ) -> BoxFuture<'a, Result<Output, ToolError>> {
        match plan.take_args() {
            Ok(args) => (self.act)(cx.clone(), args),
            Err(error) => Box::pin(std::future::ready(Err(error))),
        }
    }
}
