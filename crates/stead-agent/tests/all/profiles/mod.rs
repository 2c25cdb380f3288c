//! The place for tests of model profiles in a run; this file has their shared support.

mod active_model;
mod builtin_agent;
mod exclusion;
mod request;

use crate::subagents::{Says, answers};
use crate::support::{builder, results};
use futures_util::StreamExt;
use futures_util::stream::BoxStream;
use serde_json::Value;
use std::path::Path;
use std::sync::{Arc, Mutex};
use stead_agent::{Agent, ModelConnector};
use stead_core::{Entry, JournalLine, Message, ResultStatus};
use stead_model::{Delta, Model, ModelError, ModelFacts, Params, Request};
use stead_sandbox::Host;

/// A workspace of these files.
pub(crate) fn workspace(files: &[(&str, &str)]) -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    put(dir.path(), "AGENTS.md", "You lead.");
    files
        .iter()
        .for_each(|(name, content)| put(dir.path(), name, content));
    dir
}

pub(crate) fn put(dir: &Path, name: &str, content: &str) {
    let path = dir.join(name);
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, content).unwrap();
}

/// A model under a name of its own, which keeps what it was asked.
#[derive(Debug)]
pub(crate) struct Named {
    facts: ModelFacts,
    inner: Arc<dyn Model>,
    asked: Mutex<Vec<Asked>>,
}

/// What is looked at of a request.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Asked {
    pub(crate) system: String,
    /// Names and descriptions.
    pub(crate) tools: Vec<(String, String)>,
    pub(crate) params: Params,
}

impl Asked {
    pub(crate) fn has(&self, tool: &str) -> bool {
        self.tools.iter().any(|(name, _)| name == tool)
    }
}

impl Named {
    pub(crate) fn new(
        name: &'static str,
        f: impl Fn(&str, usize, &Request) -> Says + Send + Sync + 'static,
    ) -> Arc<Self> {
        Arc::new(Self {
            facts: ModelFacts::from_catalogue(name).with_price(None),
            inner: answers(f),
            asked: Mutex::default(),
        })
    }

    pub(crate) fn asked(&self) -> Vec<Asked> {
        self.asked.lock().unwrap().clone()
    }
}

impl Model for Named {
    fn facts(&self) -> &ModelFacts {
        &self.facts
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let parts: Vec<&str> = request
            .system
            .iter()
            .map(|part| part.text.as_str())
            .collect();
        self.asked.lock().unwrap().push(Asked {
            system: parts.join("\n\n"),
            tools: request
                .tools
                .iter()
                .map(|tool| (tool.name.clone(), tool.description.clone()))
                .collect(),
            params: request.params.clone(),
        });
        let name = |delta| match delta {
            Delta::Done(mut reply) => {
                reply.model = self.facts.name.to_string();
                Delta::Done(reply)
            }
            other => other,
        };
        self.inner
            .stream(request)
            .map(move |delta| delta.map(name))
            .boxed()
    }
}

/// An agent in `dir` that asks `model`; those that others of its agents name are found in `more`.
pub(crate) async fn agent(dir: &Path, model: Arc<dyn Model>, more: Vec<Arc<Named>>) -> Arc<Agent> {
    let main = model.clone();
    let models = ModelConnector::new(move |settings| {
        let found = more
            .iter()
            .find(|model| model.name() == settings.name)
            .map(|model| model.clone() as Arc<dyn Model>);
        Ok(found.unwrap_or_else(|| main.clone()))
    });
    builder(dir, model)
        .model_connector(models)
        .sandbox(Arc::new(Host::new([])))
        .configure(|config| {
            config.memory.flush.get_or_insert(false);
        })
        .build()
        .await
        .unwrap()
}

/// A call of a task.
pub(crate) fn task(agent: &str, prompt: &str) -> (&'static str, Value) {
    (
        "task",
        serde_json::json!({"agent": agent, "description": prompt, "prompt": prompt}),
    )
}

/// What came of each call, in the order of the calls: results stand in the order in which they
/// came.
pub(crate) fn outcomes(lines: &[JournalLine]) -> Vec<(ResultStatus, String)> {
    let calls = lines.iter().filter_map(|line| match &line.entry {
        Entry::Model(reply) => Some(Message::Assistant {
            content: reply.content.clone(),
        }),
        _ => None,
    });
    let ids: Vec<String> = calls
        .flat_map(|message| {
            message
                .calls()
                .map(|call| call.id.clone())
                .collect::<Vec<_>>()
        })
        .collect();
    let all = results(lines);
    let of = |id: &String| all.iter().find(|(of, _, _)| of == id).cloned();
    ids.iter()
        .filter_map(of)
        .map(|(_, status, text)| (status, text))
        .collect()
}
