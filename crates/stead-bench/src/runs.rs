//! Running sessions and measuring the setup of turns, for `bench/`.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), hooks, tools, the model, the
//! network.

use crate::agent::bench_agent;
use crate::args::BenchCommon;
use crate::print::print_line;
use serde_json::{Value, json};
use std::path::Path;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Instant;
use stead::core::{Message, RunOutcome};
use stead::workspace::{ModelUse, OpenOptions};
use stead::{Agent, Block, FeatureSwitch, RunOptions, Session, SessionId};
use tokio::task::JoinSet;

/// Runs one session and prints its final text.
pub(crate) async fn run(common: &BenchCommon, prompt: String) -> anyhow::Result<ExitCode> {
    let agent = bench_agent(common).await?;
    let mut session = agent.session(SessionId::fresh());
    let input = vec![Block::text(prompt)];
    let report = session.run(input, RunOptions::default()).await?;
    print_line(&report.text);
    let failed = report.outcome != RunOutcome::Completed;
    Ok(ExitCode::from(u8::from(failed)))
}

/// Runs one session and prints a line per message, cut to `clip` characters.
pub(crate) async fn dump(common: &BenchCommon, prompt: String, clip: usize) -> anyhow::Result<()> {
    let agent = bench_agent(common).await?;
    let mut session = agent.session(SessionId::fresh());
    let input = vec![Block::text(prompt)];
    session.run(input, RunOptions::default()).await?;
    for turn in &session.state().turns {
        let text = match &*turn.message {
            Message::Tool { .. } | Message::User { .. } => turn.message.text(),
            Message::Assistant { .. } => {
                let names: Vec<_> = turn.message.calls().map(|call| &call.name).collect();
                format!("{names:?}")
            }
        };
        let line: String = text.replace('\n', "\\n").chars().take(clip).collect();
        print_line(&line);
    }
    Ok(())
}

/// Runs all prompts of a file at once.
pub(crate) async fn many(common: &BenchCommon, prompts_file: &Path) -> anyhow::Result<()> {
    let agent = bench_agent(common).await?;
    let started = Instant::now();
    let (sessions, errors) = run_all(&agent, prompts_file).await?;
    let wall = started.elapsed().as_secs_f64();
    drop(sessions);
    print_line(&json!({"wall_s": wall, "errors": errors}));
    Ok(())
}

/// Runs all prompts of a file at once, and keeps the sessions until a line is read.
pub(crate) async fn hold(common: &BenchCommon, prompts_file: Option<&Path>) -> anyhow::Result<()> {
    let agent = bench_agent(common).await?;
    let (sessions, errors) = match prompts_file {
        Some(file) => run_all(&agent, file).await?,
        None => (Vec::new(), 0),
    };
    print_line(&format_args!("READY {errors} {}", std::process::id()));
    let mut line = String::new();
    std::io::stdin().read_line(&mut line)?;
    drop(sessions);
    Ok(())
}

/// Measures the first turn of a process, and the median of those that follow it.
pub(crate) async fn measure_turns(workdir: &Path, rounds: usize) -> anyhow::Result<Value> {
    let agent = Agent::builder()
        .workspace(workdir)
        .open_options(OpenOptions {
            model_use: ModelUse::NotNeeded,
            ..OpenOptions::default()
        })
        .disable(FeatureSwitch::Shell)
        .build()
        .await?;
    let started = Instant::now();
    let first = agent.sessionless().turn().await?;
    let cold_ms = started.elapsed().as_secs_f64() * 1000.0;
    let mut warm_ms = Vec::with_capacity(rounds);
    for _ in 0..rounds.max(1) {
        let started = Instant::now();
        agent.sessionless().turn().await?;
        warm_ms.push(started.elapsed().as_secs_f64() * 1000.0);
    }
    warm_ms.sort_by(f64::total_cmp);
    let bytes: usize = first
        .prompt
        .parts()
        .iter()
        .map(|part| part.text.len())
        .sum();
    Ok(json!({"bytes": bytes, "cold_ms": cold_ms, "warm_ms": warm_ms[warm_ms.len() / 2]}))
}

async fn run_all(agent: &Arc<Agent>, prompts_file: &Path) -> anyhow::Result<(Vec<Session>, usize)> {
    let text = std::fs::read_to_string(prompts_file)?;
    let prompts: Vec<String> = serde_json::from_str(&text)?;
    let mut tasks = JoinSet::new();
    for prompt in prompts {
        let mut session = agent.session(SessionId::fresh());
        tasks.spawn(async move {
            let report = session
                .run(vec![Block::text(prompt)], RunOptions::default())
                .await;
            (
                session,
                report.is_ok_and(|report| report.outcome == RunOutcome::Completed),
            )
        });
    }
    let mut sessions = Vec::new();
    let mut errors = 0;
    while let Some(done) = tasks.join_next().await {
        match done {
            Ok((session, true)) => sessions.push(session),
            Ok((_, false)) | Err(_) => errors += 1,
        }
    }
    agent.sessions().flush().await;
    Ok((sessions, errors))
}
