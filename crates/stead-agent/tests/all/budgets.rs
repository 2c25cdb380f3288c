//! Acceptance 5.7: what a run, a session and a day may spend. Every kind of limit, a process that dies between
//! reserving and settling, processes that share a day, more money from a person, an answer that is made shorter.

use crate::support::{agent, block_on, journal, listening, session, text};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, AgentError, Budget, BudgetError, RunOptions, RunReport, Session};
use stead_core::{
    Allowance, Estimate, EventKind, Exhausted, Outcome, Owner, Price, Span, StopReason, Unit, Usage, Usd,
};
use stead_model::{Model, ModelSettings, ScriptedModel, connect};
use stead_testkit::{FakeModel, Reexec, reply};

const PRICE: Price = Price { input: 10.0, output: 50.0, cache_read: None, cache_write: None };
/// Every answer of the endless model.
const ENDLESS: &str = "
- calls: [{tool: ls, args: {path: .}}]
  usage: {input_tokens: 1000, output_tokens: 200}
- loop: true
";

fn settings(dir: &Path, budget: &str) {
    let policy = "policy: {repeat_nudge: 0, repeat_end: 0, max_steps: 100000}";
    std::fs::write(dir.join("agent.yaml"), format!("budget: {{{budget}}}\n{policy}\n")).unwrap();
}
