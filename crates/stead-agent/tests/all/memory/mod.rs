//! The place for tests of long-term memory; this file has their shared support.

mod crashes;
mod flush;
mod merge;
mod untrusted;
mod waiting;

use crate::support::{builder, text};
use futures_util::stream::BoxStream;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stead_agent::{Agent, AgentBuilder, FactDocument, RunOptions, RunReport, WorkerOptions};
use stead_core::{
    AgentId, Block, Message, Owner, Redactor, SessionId, StopReason, TenantId, Usage,
};
use stead_model::{Delta, Model, ModelError, ModelFacts, Reply, Request};
use stead_place::{LocalPlace, Place, PlaceSettings};
use stead_store::{Disk, OsDisk};
use stead_tools::Tool;
use stead_workspace::{AgentConfig, FeatureSwitch, FlushAfter};

/// What a test's model says to a conversation.
type Talk = dyn Fn(&Request) -> Vec<Block> + Send + Sync;

/// What happens while it is asked about memory.
pub(super) type Before = Box<dyn FnMut(&str) -> Result<(), ModelError> + Send>;

/// A model that does as it is told. In a conversation it says what the test wants. Asked for facts,
/// it repeats every line that says `fact:`, whoever said it. Asked how to merge, it keeps every
/// fact as a bullet of its own.
pub(super) struct Obedient {
    talk: Box<Talk>,
    facts: ModelFacts,
    /// The questions about memory, in order.
    pub(super) asked: Mutex<Vec<String>>,
    /// What it does before it answers a question about memory.
    pub(super) before: Mutex<Option<Before>>,
}

impl std::fmt::Debug for Obedient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Obedient")
    }
}

impl Obedient {
    pub(super) fn new(talk: impl Fn(&Request) -> Vec<Block> + Send + Sync + 'static) -> Arc<Self> {
        Self::of_window(100_000, talk)
    }

    pub(super) fn of_window(
        window: u64,
        talk: impl Fn(&Request) -> Vec<Block> + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            talk: Box::new(talk),
            facts: ModelFacts {
                context_window: Some(window),
                ..ModelFacts::unknown("test:obedient".into())
            },
            asked: Mutex::default(),
            before: Mutex::default(),
        })
    }

    /// One that only says `ok`.
    pub(super) fn quiet() -> Arc<Self> {
        Self::new(|_| vec![Block::text("ok")])
    }

    pub(super) fn questions(&self) -> Vec<String> {
        self.asked.lock().unwrap().clone()
    }

    fn answer(&self, request: &Request) -> Result<Vec<Block>, ModelError> {
        let system: String = request
            .system
            .iter()
            .map(|part| part.text.as_str())
            .collect();
        if !system.starts_with("You keep the long-term memory of an agent") {
            return Ok((self.talk)(request));
        }
        let question = request.messages[0].text();
        self.asked.lock().unwrap().push(question.clone());
        if let Some(before) = self.before.lock().unwrap().as_mut() {
            before(&question)?;
        }
        let answer = if system.contains("in order") {
            merged(&question)
        } else {
            facts(&question)
        };
        Ok(vec![Block::text(answer.to_string())])
    }
}

/// Every line that says `fact:`, with the entry it stands in.
fn facts(question: &str) -> Value {
    let mut seq = 0;
    let mut found = Vec::new();
    for line in question.lines() {
        let number = line
            .strip_prefix('[')
            .and_then(|rest| rest.split(']').next()?.parse::<u64>().ok());
        seq = number.unwrap_or(seq);
        if let Some((_, fact)) = line.split_once("fact:") {
            found.push(json!({"fact": fact.trim(), "seqs": [seq]}));
        }
    }
    Value::Array(found)
}

fn merged(question: &str) -> Value {
    let (_, new) = question.split_once("New facts:\n").unwrap();
    let bullets = new.lines().filter_map(|line| line.split_once(". "));
    let bullets: Vec<Value> = bullets
        .map(|(number, text)| json!({"text": text, "from": [number.parse::<u64>().unwrap()]}))
        .collect();
    json!({"bullets": bullets, "dropped": []})
}

impl Model for Obedient {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let reply = self.answer(request).map(|content| {
            let calls = content
                .iter()
                .any(|block| matches!(block, Block::ToolCall(_)));
            let stop = if calls {
                StopReason::ToolUse
            } else {
                StopReason::EndTurn
            };
            Delta::Done(Box::new(Reply {
                content,
                usage: Usage::default(),
                stop,
                model: "test:obedient".to_owned(),
            }))
        });
        Box::pin(futures_util::stream::iter([reply]))
    }
}

/// How many answers the model gave before.
pub(super) fn step(request: &Request) -> usize {
    request
        .messages
        .iter()
        .filter(|message| matches!(***message, Message::Assistant { .. }))
        .count()
}

/// An agent in `dir` that merges at once.
pub(super) async fn agent(dir: &Path, model: Arc<Obedient>) -> Arc<Agent> {
    agent_of(dir, model, Arc::new(OsDisk), Vec::new(), |_| {}).await
}

pub(super) async fn agent_of(
    dir: &Path,
    model: Arc<Obedient>,
    disk: Arc<dyn Disk>,
    tools: Vec<Arc<dyn Tool>>,
    change: impl FnOnce(&mut AgentConfig) + Send + 'static,
) -> Arc<Agent> {
    let place = LocalPlace::open(
        &PlaceSettings::local(dir, AgentId::main()),
        disk,
        Redactor::new(["sk-secret-1".to_owned()]),
    )
    .unwrap();
    agent_at(dir, Arc::new(place), model, tools, change).await
}

pub(super) async fn agent_at(
    dir: &Path,
    place: Arc<dyn Place>,
    model: Arc<Obedient>,
    tools: Vec<Arc<dyn Tool>>,
    change: impl FnOnce(&mut AgentConfig) + Send + 'static,
) -> Arc<Agent> {
    let builder = builder(dir, model)
        .place(place)
        .disable(FeatureSwitch::Shell)
        .configure(|config| {
            config.memory.flush_after = Some(FlushAfter::Run);
            config.memory.consolidate_minutes = 0;
            config.timezone = Some("UTC".to_owned());
        })
        .configure(change);
    let builder = tools.into_iter().fold(builder, AgentBuilder::tool);
    builder.build().await.unwrap()
}

pub(super) async fn say(agent: &Arc<Agent>, session: &str, words: &str) -> RunReport {
    say_as(agent, &Owner::default(), session, words).await
}

pub(super) async fn say_as(
    agent: &Arc<Agent>,
    owner: &Owner,
    session: &str,
    words: &str,
) -> RunReport {
    let mut session = agent.session_of(owner.clone(), SessionId::new(session).unwrap());
    session
        .run(text(words), RunOptions::default())
        .await
        .unwrap()
}

/// A worker that is soon believed to be gone, and does not rest long.
pub(super) fn hasty() -> WorkerOptions {
    WorkerOptions {
        visibility_timeout: Duration::from_millis(300),
        retry_delay: Duration::from_millis(1),
        ..WorkerOptions::with_limit(Duration::from_secs(20))
    }
}

pub(super) async fn work(agent: &Arc<Agent>) {
    agent
        .memory()
        .work(&TenantId::default(), &hasty())
        .await
        .unwrap();
}

/// The facts of all days, in order.
pub(super) async fn of_days(agent: &Arc<Agent>, owner: &Owner) -> Vec<String> {
    let all = agent.memory().list(owner).await.unwrap();
    all.into_iter()
        .filter(|fact| fact.path.starts_with("memory/"))
        .map(|fact| fact.text)
        .collect()
}

/// The facts of curated memory, in order.
pub(super) async fn curated(agent: &Arc<Agent>, owner: &Owner) -> Vec<String> {
    let all = agent.memory().list(owner).await.unwrap();
    all.into_iter()
        .filter(|fact| fact.path == "MEMORY.md")
        .map(|fact| fact.text)
        .collect()
}

pub(super) fn read(dir: &Path, name: &str) -> String {
    std::fs::read_to_string(dir.join(name)).unwrap_or_default()
}

/// All that lies in `memory/` and `MEMORY.md`, but what waits for approval.
pub(super) fn remembered(dir: &Path) -> String {
    fn collect(dir: &Path, into: &mut String) {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            if entry.path().is_dir() && entry.file_name() != "quarantine" {
                collect(&entry.path(), into);
            } else if entry.path().is_file() {
                into.push_str(&std::fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    let mut all = read(dir, "MEMORY.md");
    collect(&dir.join("memory"), &mut all);
    all
}

/// The texts of the facts in a file.
pub(super) fn texts(file: &str) -> Vec<String> {
    FactDocument::parse(file)
        .facts()
        .map(|(_, fact)| fact.text)
        .collect()
}

/// The system prompt as it is now.
pub(super) async fn prompt(agent: &Arc<Agent>) -> String {
    agent
        .sessionless()
        .turn()
        .await
        .unwrap()
        .prompt
        .parts()
        .iter()
        .map(|part| part.text.as_str())
        .collect()
}
