//! Measuring the writing and the loading of one long session.
//!
//! Effects: the clock, the local disk (writes), the journal (writes).

use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;
use stead::core::{
    Block, CallIntent, CallResult, Entry, ModelReply, NewSession, Redactor, ResultStatus, RunEnd,
    RunId, RunOutcome, SessionId, StopReason, ToolCall, Usage, UserInput,
};
use stead::store::{FileSessions, LockWait, OsDisk, Sessions};

/// Loads the session that [`save`] wrote to `dir`.
pub(crate) async fn restore(dir: &Path) -> anyhow::Result<Value> {
    let journals = open_journals(dir);
    let started = Instant::now();
    let id = SessionId::new("bench")?;
    let opened = journals.open(&id, None, LockWait::No).await?;
    let seconds = started.elapsed().as_secs_f64();
    let messages = opened.state.map_or(0, |state| state.turns.len());
    Ok(json!({"restore_s": seconds, "messages": messages}))
}

fn open_journals(dir: &Path) -> FileSessions {
    let agent = stead::workspace::AgentConfig::default().agent_id();
    FileSessions::new(dir, agent, Arc::new(OsDisk), Redactor::default())
}

/// Writes a session of `messages` messages to `dir`, then one more message.
pub(crate) async fn save(dir: &Path, messages: usize) -> anyhow::Result<Value> {
    let journals = open_journals(dir);
    let started = Instant::now();
    let mut opened = journals
        .create(&SessionId::new("bench")?, NewSession::default())
        .await?;
    let mut entries = Vec::new();
    for turn in 0..messages.div_ceil(3) {
        entries.extend(exchange_entries(turn)?);
    }
    opened.writer.append(entries).await?;
    let saved = started.elapsed().as_secs_f64();
    let started = Instant::now();
    let run = RunId::new("last")?;
    opened
        .writer
        .append(vec![Entry::User(UserInput::text(run, "one more"))])
        .await?;
    let appended = started.elapsed().as_secs_f64();
    Ok(json!({"save_s": saved, "append_s": appended, "bytes": opened.writer.position().bytes}))
}

/// Returns three messages: a question, a call, a result.
fn exchange_entries(turn: usize) -> anyhow::Result<Vec<Entry>> {
    let run = RunId::new(format!("run{turn}"))?;
    let id = format!("call_{turn}");
    let call = ToolCall {
        id: id.clone(),
        name: "read_file".to_owned(),
        args: json!({"file_path": format!("dir/file_{turn}.txt"), "note": "x".repeat(160)}),
        invalid: None,
        signature: None,
    };
    Ok(vec![
        Entry::User(UserInput::text(
            run.clone(),
            format!("message {turn} {}", "words and words ".repeat(16)),
        )),
        Entry::Model(ModelReply {
            run: run.clone(),
            model: "bench:fake".to_owned(),
            content: vec![Block::ToolCall(call)],
            usage: Usage::default(),
            cost: None,
            stop: StopReason::ToolUse,
        }),
        Entry::Call(CallIntent {
            run: run.clone(),
            id: id.clone(),
            tool: "read_file".to_owned(),
            args_hash: "0123456789abcdef".to_owned(),
            changes: false,
            repeatable: true,
            nested: None,
        }),
        Entry::Result(CallResult {
            run: run.clone(),
            id,
            status: ResultStatus::Ok,
            exit_code: None,
            content: vec![Block::text("line of a result\n".repeat(20))],
            seen: Default::default(),
            activates: None,
            untrusted: false,
            taint: Vec::new(),
            change: None,
            tasks: Vec::new(),
            ms: 1,
            nested: None,
        }),
        Entry::End(RunEnd {
            run,
            outcome: RunOutcome::Cancelled,
            reason: None,
        }),
    ])
}
