//! The agent that `bench/` measures.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (writes), the network.

use crate::args::BenchCommon;
use anyhow::Context;
use std::sync::Arc;
use stead::model::{ModelSettings, connect};
use stead::{Agent, FeatureSwitch};

/// Builds an agent as a user would have it, except for what the benchmark's rules ask: no retries,
/// no compaction, no memory after a run, and no guard against loops, since the measured work is the
/// same call again and again.
pub(crate) async fn bench_agent(common: &BenchCommon) -> anyhow::Result<Arc<Agent>> {
    let base = common.base_url.as_ref().context("--base-url is needed")?;
    let base_url = if common.api == "anthropic" {
        base.clone()
    } else {
        format!("{base}/v1")
    };
    let settings = ModelSettings {
        name: format!("{}:fake", common.api),
        base_url: Some(base_url),
        api_key: Some("bench-key".to_owned()),
        stream: Some(common.stream),
        max_retries: Some(0),
        ..ModelSettings::default()
    };
    let agent = Agent::builder()
        .workspace(&common.workdir)
        .model_arc(connect(&settings, &|_| None)?)
        .disable(FeatureSwitch::Shell)
        .disable(FeatureSwitch::Compaction)
        .disable(FeatureSwitch::MemoryHooks)
        .configure(|config| {
            config.policy.max_steps = u32::MAX;
            config.policy.repeat_nudge = 0;
            config.policy.repeat_end = 0;
        })
        .build()
        .await?;
    Ok(agent)
}
