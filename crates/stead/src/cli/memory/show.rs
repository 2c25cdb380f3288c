//! `stead memory status`, `list`, `blame` and `diff`: showing long-term memory.
//!
//! Effects: the clock, the terminal, workspace files (reads), the store (reads).

use super::args::JsonArgs;
use super::print_json_if_asked;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::print::outln;
use crate::cli::style::Style;
use crate::cli::usage::group_thousands;
use jiff::Timestamp;
use serde_json::json;
use std::process::ExitCode;
use stead::agent::{Agent, FactSource, MemoryStatus, MergeRecord};
use stead::core::counted;
use stead::tools::line_diff;

/// The number of lines of context around a change.
const CONTEXT_LINES: usize = 3;

pub(super) async fn status(agent: &Agent, form: JsonArgs) -> Result<ExitCode, CliError> {
    let status = agent.memory().status(agent.owner()).await?;
    if print_json_if_asked(form, &status)? {
        return Ok(ExitCode::SUCCESS);
    }
    for line in status_lines(&status) {
        outln!("{line}");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the state of long-term memory, a line each.
pub(crate) fn status_lines(status: &MemoryStatus) -> Vec<String> {
    let on = if status.flushes {
        "on"
    } else {
        "off (memory.flush, or disable: [memory_hooks])"
    };
    let merged = match status.merged_at {
        Some(at) => format!("{}, last at {at:.0}", counted(status.merges, "time")),
        None => "never".to_owned(),
    };
    let waiting = counted(status.quarantined, "fact");
    let mut lines = vec![
        format!("curated memory   {}", status.memory),
        format!("extraction       {on}"),
    ];
    lines.extend(waiting_lines(status));
    lines.extend([
        format!("not merged yet   {}", counted(status.unmerged, "fact")),
        format!("waiting for you  {waiting} (stead memory review)"),
        format!("merged           {merged}"),
    ]);
    if let Some(at) = status.merge_due_at {
        lines.push(format!("next merge       {}", when(at)));
    }
    lines.extend(status.dead.iter().map(|dead| {
        let attempts = dead.attempts;
        format!(
            "given up         {}, after {attempts} attempts: {}",
            dead.job, dead.reason
        )
    }));
    lines
}

/// Describes what waits to be looked through, when that happens, and what failed.
fn waiting_lines(status: &MemoryStatus) -> Vec<String> {
    let count = status.waiting.len();
    if count == 0 {
        return vec!["waiting          nothing".to_owned()];
    }
    let tokens = group_thousands(status.waiting_tokens);
    let mut lines = vec![format!(
        "waiting          {}, about {tokens} new tokens",
        counted(count, "session")
    )];
    let after = status.due_at.filter(|_| status.flushes).map(|at| {
        let enough = group_thousands(status.flush_tokens);
        format!(
            "                 looked through {}, sooner when {enough} tokens wait in idle sessions; \
             now: stead memory flush",
            when(at)
        )
    });
    lines.extend(after);
    let failed = status.waiting.iter().filter_map(|session| {
        let error = session.error.as_ref()?;
        Some(format!(
            "failed           session {}, {}: {error}",
            session.session,
            counted(session.failures, "attempt")
        ))
    });
    lines.extend(failed);
    lines
}

/// Returns a time to come in words, or that it has come.
fn when(at: Timestamp) -> String {
    if at <= Timestamp::now() {
        "with the next run or chat".to_owned()
    } else {
        format!("after {at:.0}")
    }
}

pub(super) async fn list(
    agent: &Agent,
    env: &ProcessEnv,
    form: JsonArgs,
) -> Result<ExitCode, CliError> {
    let facts = agent.memory().list(agent.owner()).await?;
    if print_json_if_asked(form, &facts)? {
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    for fact in &facts {
        let place = style.dim(&format!("{}:{}", fact.path, fact.line));
        outln!("{}  {}  {place}", fact.id, fact.text);
    }
    if facts.is_empty() {
        outln!("nothing is remembered yet");
    }
    Ok(ExitCode::SUCCESS)
}

pub(super) async fn blame(
    agent: &Agent,
    env: &ProcessEnv,
    form: JsonArgs,
) -> Result<ExitCode, CliError> {
    let lines = agent.memory().blame(agent.owner()).await?;
    if print_json_if_asked(form, &lines)? {
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    for line in &lines {
        let from: Vec<String> = line.sources.iter().map(describe_source).collect();
        let from = if from.is_empty() {
            "by hand".to_owned()
        } else {
            from.join("; ")
        };
        outln!("{:>4}  {}  {}", line.line, line.text, style.dim(&from));
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the date, session, entry and speaker, as far as known.
pub(super) fn describe_source(source: &FactSource) -> String {
    let noted = |key: &str| source.get(key).filter(|value| !value.is_empty());
    let approved = noted("approved_by").map(|by| format!("approved by {by}"));
    let parts = [
        noted("on").map(str::to_owned),
        noted("session").map(|session| format!("session {session}")),
        noted("seq").map(|seq| format!("entry {seq}")),
        noted("by").map(|by| format!("by {by}")),
        noted("through").map(|tools| format!("through {tools}")),
        approved,
    ];
    parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

pub(super) async fn diff(
    agent: &Agent,
    env: &ProcessEnv,
    number: usize,
    form: JsonArgs,
) -> Result<ExitCode, CliError> {
    let records = agent.memory().records(agent.owner(), number).await?;
    let memory = agent.memory().status(agent.owner()).await?.memory;
    let shown: Vec<_> = records
        .iter()
        .map(|record| {
            let model = record.by.as_ref().ok();
            let fallback = record.by.as_ref().err();
            let at = record.at;
            let facts = &record.facts;
            json!({"at": at, "facts": facts, "model": model, "fallback": fallback, "diff": unified_diff(record, &memory)})
        })
        .collect();
    if print_json_if_asked(form, &shown)? {
        return Ok(ExitCode::SUCCESS);
    }
    let style = Style::stdout(env);
    for record in &records {
        let by = match &record.by {
            Ok(model) => format!("decided by {model}"),
            Err(reason) => format!("without a model: {reason}"),
        };
        outln!(
            "{}",
            style.bold(&format!(
                "{:.0}  {}, {by}",
                record.at,
                counted(record.facts.len(), "fact")
            ))
        );
        outln!("{}", unified_diff(record, &memory));
    }
    if records.is_empty() {
        outln!("nothing was merged yet");
    }
    Ok(ExitCode::SUCCESS)
}

/// Returns the change as a patch.
fn unified_diff(record: &MergeRecord, memory: &str) -> String {
    let before = &record.shown.before;
    let after = &record.shown.after;
    if before == after {
        return format!("{memory} stayed as it was");
    }
    let patch = line_diff(before, after, CONTEXT_LINES, Some((memory, memory)));
    match record.shown.skipped {
        0 => patch,
        skipped => format!("(line numbers count from line {})\n{patch}", skipped + 1),
    }
}
