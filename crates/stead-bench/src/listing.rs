//! Measuring a folder with many sessions, for `bench/`: making it, and what it costs to follow one
//! of them.
//!
//! Effects: the clock, randomness, the environment, workspace files (writes), the local disk
//! (writes), the store (writes), the journal (writes), hooks, tools, the model, the network.

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use stead::agent::Agent;
use stead::core::{
    Block, Client, Cursor, Entry, ModelReply, NewSession, Presence, RunEnd, RunId, RunOutcome,
    SessionId, StopReason, Usage, UserInput,
};
use stead::host::Host;
use stead::model::ScriptedModel;

/// The number of sessions that are followed.
const FOLLOWED: usize = 20;

/// Writes `count` sessions of one run to the workspace in `workdir`.
pub(crate) async fn make(workdir: &Path, count: usize) -> anyhow::Result<Value> {
    let agent = agent(workdir).await?;
    let sessions = agent.sessions();
    for n in 0..count {
        let mut opened = sessions
            .create(&session_id(n)?, NewSession::default())
            .await?;
        opened.writer.append(one_run(n)?).await?;
    }
    sessions.flush().await;
    Ok(json!({"sessions": count}))
}

/// Measures how long it takes to subscribe to a session of the workspace in `workdir`, until its
/// first entry is there, and the memory of a process that has done nothing else.
pub(crate) async fn measure(workdir: &Path, count: usize) -> anyhow::Result<Value> {
    let host = Host::new();
    host.add_agent("main", agent(workdir).await?);
    let mut ms = Vec::new();
    for n in 0..FOLLOWED {
        let id = session_id(n * 7_919 % count)?;
        let address = host.address("main", id).await?;
        let begun = Instant::now();
        let mut events = host
            .subscribe(&address, Cursor::Start, Presence::Watches)
            .await?;
        events.next().await?;
        ms.push(begun.elapsed().as_secs_f64() * 1e3);
    }
    host.close().await;
    ms.sort_by(f64::total_cmp);
    Ok(json!({"subscribe_ms": ms[FOLLOWED / 2], "mb": resident_kb()? as f64 / 1024.0}))
}

async fn agent(workdir: &Path) -> anyhow::Result<Arc<Agent>> {
    let model = Arc::new(ScriptedModel::parse("none", "- text: Done.\n")?);
    Ok(Agent::builder()
        .workspace(workdir)
        .model_arc(model)
        .build()
        .await?)
}

fn session_id(n: usize) -> anyhow::Result<SessionId> {
    Ok(SessionId::new(format!("session-{n}"))?)
}

fn one_run(n: usize) -> anyhow::Result<Vec<Entry>> {
    let run = RunId::new("run")?;
    let asked = format!("question {n} {}", "words and words ".repeat(16));
    Ok(vec![
        Entry::User(UserInput::text(run.clone(), asked)),
        Entry::Model(ModelReply {
            run: run.clone(),
            model: "bench:fake".to_owned(),
            content: vec![Block::text("an answer of some length ".repeat(10))],
            usage: Usage::default(),
            cost: None,
            stop: StopReason::EndTurn,
        }),
        Entry::End(RunEnd {
            run,
            outcome: RunOutcome::Completed,
            reason: None,
        }),
    ])
}

fn resident_kb() -> anyhow::Result<u64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kb = line.and_then(|line| line.split_whitespace().next());
    Ok(kb.unwrap_or_default().parse()?)
}
