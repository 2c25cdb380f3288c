//! Measuring the cost of subagents besides their models, for `bench/`.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (writes), the store (writes), the journal (writes), hooks, tools, the model, the network.

use futures_util::stream::{self, BoxStream, StreamExt};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;
use stead::agent::{Agent, RunOptions};
use stead::core::{Block, Message, RunOutcome, SessionId, StopReason, ToolCall, Usage};
use stead::model::{Delta, Model, ModelError, ModelFacts, Reply, Request};
use stead::workspace::FeatureSwitch;

/// The input of the parent session.
const LEAD_INPUT: &str = "hand over";
/// The number of waves after which all long-lived state exists.
const WARM_WAVES: usize = 5;

/// A model that delegates `width` tasks in each of `waves` waves; subagents finish at once.
#[derive(Debug)]
struct WaveModel {
    waves: usize,
    width: usize,
    /// The resident memory after the warm-up waves.
    warm_kb: AtomicU64,
}

impl WaveModel {
    fn answer(&self, request: &Request) -> Vec<Block> {
        let is_lead = request
            .messages
            .first()
            .is_some_and(|message| message.text() == LEAD_INPUT);
        let said = request
            .messages
            .iter()
            .filter(|message| matches!(&***message, Message::Assistant { .. }))
            .count();
        if is_lead && said == WARM_WAVES.min(self.waves) {
            self.warm_kb.store(resident_kb(), Ordering::Relaxed);
        }
        if !is_lead || said >= self.waves {
            return vec![Block::text("done")];
        }
        let args = json!({"agent": "general-purpose", "description": "nothing", "prompt": "say that you are done"});
        let call = |i: usize| ToolCall {
            id: format!("c{said}_{i}"),
            name: "task".to_owned(),
            args: args.clone(),
            invalid: None,
            signature: None,
        };
        (0..self.width).map(|i| Block::ToolCall(call(i))).collect()
    }
}

impl Model for WaveModel {
    fn facts(&self) -> &ModelFacts {
        static FACTS: ModelFacts = ModelFacts::unknown(Cow::Borrowed("bench:waves"));
        &FACTS
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let content = self.answer(request);
        let stop = match content.first() {
            Some(Block::ToolCall(_)) => StopReason::ToolUse,
            Some(Block::Text { .. } | Block::Media(_) | Block::Thinking(_)) | None => {
                StopReason::EndTurn
            }
        };
        let usage = Usage {
            input_tokens: 100,
            output_tokens: 10,
            ..Usage::default()
        };
        let reply = Reply {
            content,
            usage,
            stop,
            model: self.name().to_owned(),
        };
        stream::iter([Ok(Delta::Done(Box::new(reply)))]).boxed()
    }
}

/// Measures `waves` × `width` subagents, then as many sessions without a parent.
pub(crate) async fn measure(workdir: &Path, waves: usize, width: usize) -> anyhow::Result<Value> {
    let model = Arc::new(WaveModel {
        waves,
        width,
        warm_kb: AtomicU64::new(0),
    });
    let at_once = u32::try_from(width).unwrap_or(u32::MAX).max(1);
    let agent = Agent::builder()
        .workspace(workdir)
        .model_arc(model.clone())
        .disable(FeatureSwitch::Shell)
        .disable(FeatureSwitch::Compaction)
        .disable(FeatureSwitch::MemoryHooks)
        .configure(move |config| {
            config.policy.max_concurrent_subagents = at_once;
            config.policy.parallel_tool_calls = at_once;
            config.policy.max_steps = u32::MAX;
            config.policy.repeat_nudge = 0;
            config.policy.repeat_end = 0;
        })
        .build()
        .await?;
    let begun = Instant::now();
    run(&agent, LEAD_INPUT).await?;
    let child_s = begun.elapsed().as_secs_f64();
    let last_kb = resident_kb();
    let begun = Instant::now();
    for _ in 0..waves {
        let wave: Vec<_> = (0..width)
            .map(|_| run(&agent, "say that you are done"))
            .collect();
        futures_util::future::try_join_all(wave).await?;
    }
    let session_s = begun.elapsed().as_secs_f64();
    agent.sessions().flush().await;
    let count = (waves * width).max(1) as f64;
    let growth_kb = last_kb.saturating_sub(model.warm_kb.load(Ordering::Relaxed));
    let per = |seconds: f64| seconds * 1000.0 / count;
    Ok(
        json!({"children": waves * width, "child_ms": per(child_s), "session_ms": per(session_s), "growth_kb": growth_kb}),
    )
}

async fn run(agent: &Arc<Agent>, input: &str) -> anyhow::Result<()> {
    let report = agent
        .session(SessionId::fresh())
        .run(vec![Block::text(input)], RunOptions::default())
        .await?;
    match report.outcome {
        RunOutcome::Completed => Ok(()),
        outcome => anyhow::bail!("the run ended as {}: {:?}", outcome.as_str(), report.reason),
    }
}

/// Returns the resident memory of this process.
fn resident_kb() -> u64 {
    const PAGE_KB: u64 = 4;
    let pages = std::fs::read_to_string("/proc/self/statm").ok();
    let pages = pages.and_then(|text| text.split_whitespace().nth(1)?.parse::<u64>().ok());
    pages.unwrap_or_default() * PAGE_KB
}
