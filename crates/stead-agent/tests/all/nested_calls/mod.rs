//! The place for tests of nested calls: calls that a running tool call makes. They pass the same
//! gate, journal and limits as calls of the model; this file has the shared scenario.

mod crashes;
mod interruptions;
mod permissions;
mod questions;
mod runs;

use crate::support::{TestTool, agent_on, blocks, journal, session, text};
use futures_util::future::join_all;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{Entry, JournalLine, Message, Risk, SessionState};
use stead_model::{Model, ScriptedModel};
use stead_store::{Disk, OsDisk};
use stead_tools::{NestedCallError, NestedOutput, Output, Tool};

/// A tool that makes the calls in `steps`: steps one after the other, the calls of a step together.
/// Its result has a line per call: id, status and text.
pub(crate) fn script() -> Arc<dyn Tool> {
    TestTool::make("script", Risk::READS, |cx, args| async move {
        let mut said = Vec::new();
        for step in args["steps"].as_array().into_iter().flatten() {
            let calls = step.as_array().into_iter().flatten().map(|call| {
                let name = call[0].as_str().unwrap_or_default();
                cx.calls.call(name, call[1].clone())
            });
            said.extend(join_all(calls).await.iter().map(line));
        }
        Ok(Output::text(said.join("\n")))
    })
}

/// The outcome of a nested call on one line.
fn line(outcome: &Result<NestedOutput, NestedCallError>) -> String {
    match outcome {
        Ok(output) => {
            let text = output.text().replace('\n', " ");
            format!("{} {} {text}", output.id, output.status.as_str())
        }
        Err(error) => format!("not made: {error}"),
    }
}

/// A model that makes these calls in its first answer, as `c1`, `c2` …, and then says `done`.
fn model_calling(calls: &[(&str, Value)]) -> Arc<dyn Model> {
    let calls: Vec<Value> = (1..)
        .zip(calls)
        .map(|(n, (tool, args))| json!({"id": format!("c{n}"), "tool": tool, "args": args}))
        .collect();
    let answers = json!([{"calls": calls}, {"text": "done"}]);
    Arc::new(ScriptedModel::parse("test", &answers.to_string()).unwrap())
}

/// A model that runs one script.
fn model_of(steps: Value) -> Arc<dyn Model> {
    model_calling(&[("script", json!({"steps": steps}))])
}

async fn agent_with(
    dir: &Path,
    model: Arc<dyn Model>,
    disk: Arc<dyn Disk>,
    more: Vec<Arc<dyn Tool>>,
) -> Arc<Agent> {
    let tools = [script()].into_iter().chain(more).collect();
    agent_on(dir, model, disk, tools).await
}

async fn agent_of(dir: &Path, model: Arc<dyn Model>) -> Arc<Agent> {
    agent_with(dir, model, Arc::new(OsDisk), Vec::new()).await
}

/// Runs the input `go` in the session `s`.
async fn run(agent: &Arc<Agent>, options: RunOptions) -> stead_agent::RunReport {
    let report = agent.session(session("s")).run(text("go"), options).await;
    agent.sessions().flush().await;
    report.unwrap()
}

/// Options under which every question is answered with yes.
fn approving() -> RunOptions {
    RunOptions {
        approvals: ApprovalPolicy::ApproveAll,
        ..RunOptions::default()
    }
}

async fn read_journal(agent: &Arc<Agent>) -> (Vec<JournalLine>, SessionState) {
    journal(agent, &session("s")).await
}

/// Entries about calls, one line each: kind, id and what matters of them.
fn call_lines(lines: &[JournalLine]) -> Vec<String> {
    let of = |nested: &Option<stead_core::NestedCall>| match nested {
        Some(call) => format!(" = {} of {}", call.name, call.parent),
        None => String::new(),
    };
    lines
        .iter()
        .filter_map(|line| match &line.entry {
            Entry::Call(call) => Some(format!("call {}{}", call.id, of(&call.nested))),
            Entry::Result(result) => Some(format!(
                "result {} {}{}",
                result.id,
                result.status.as_str(),
                of(&result.nested)
            )),
            Entry::Ask(ask) => Some(format!("ask {}{}", ask.id, of(&ask.nested))),
            Entry::Decision(decision) => Some(format!(
                "decision {} {}",
                decision.id,
                decision.kind().as_str()
            )),
            Entry::Hook(hook) => Some(format!("hook {:?}{}", hook.call, of(&hook.nested))),
            _ => None,
        })
        .collect()
}

/// What the model was told of its calls, a text per call.
fn told(state: &SessionState) -> Vec<String> {
    let results = state.turns.iter().filter_map(|turn| match &*turn.message {
        Message::Tool { results } => Some(results),
        _ => None,
    });
    results
        .flatten()
        .map(|result| format!("{}: {}", result.status.as_str(), blocks(&result.content)))
        .collect()
}

/// The scenario: a script makes four calls. The second is denied, a person is asked about the third,
/// and the fourth could be told from one that ran twice.
mod scenario {
    use super::*;

    pub(super) fn lay_out(dir: &Path) {
        let settings = "approvals: {write_file: {decisions: [approve, edit, reject, respond]}}\n\
                        permissions:\n- {operations: [write], paths: [fixed.txt], mode: deny}\n";
        for (name, content) in [
            ("agent.yaml", settings),
            ("notes.txt", "buy milk\n"),
            ("fixed.txt", "stays\n"),
            ("log.txt", "x\n"),
            ("count.txt", "one two three\n"),
        ] {
            std::fs::write(dir.join(name), content).unwrap();
        }
    }

    pub(super) fn model() -> Arc<dyn Model> {
        model_of(json!([
            [["read_file", {"file_path": "notes.txt"}]],
            [["delete_file", {"file_path": "fixed.txt"}]],
            [["write_file", {"file_path": "log.txt", "content": "y\n", "mode": "append"}]],
            [["edit_file", {"file_path": "count.txt", "old_string": "two", "new_string": "2"}]],
        ]))
    }

    pub(super) async fn agent(dir: &Path) -> Arc<Agent> {
        agent_of(dir, model()).await
    }

    pub(super) fn file(dir: &Path, name: &str) -> String {
        std::fs::read_to_string(dir.join(name)).unwrap()
    }

    /// The entries of the run up to the question.
    pub(super) const UNTIL_THE_QUESTION: [&str; 5] = [
        "call c1",
        "call c1/1 = read_file of c1",
        "result c1/1 ok",
        "result c1/2 denied = delete_file of c1",
        "ask c1/3 = write_file of c1",
    ];
}
