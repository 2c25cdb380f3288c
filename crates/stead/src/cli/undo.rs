//! `stead sessions undo`: undoing what a run changed.
//!
//! Effects: the clock, the terminal, workspace files (writes), the store (writes), the journal
//! (writes).

use super::approvals::colour_diff;
use super::choose_session::find_session;
use super::error::CliError;
use super::print::{out_json, outln};
use super::style::Style;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, ApplyMode, UndoAction, UndoHistory, UndoObstacle, UndoPlan};
use stead::core::{RunId, SessionId};
use stead::store::RunKey;
use stead::tools::line_diff;

/// The maximum size of contents that are shown as a diff.
const MAX_DIFF_BYTES: usize = 1024 * 1024;
/// The number of lines of context around a change.
const CONTEXT_LINES: usize = 2;

/// The run to undo, and whether to do it.
pub(crate) struct UndoRequest<'a> {
    pub(crate) run: Option<&'a str>,
    pub(crate) session: Option<&'a str>,
    pub(crate) apply: ApplyMode,
    pub(crate) json: bool,
}

pub(crate) async fn undo(
    agent: &Arc<Agent>,
    style: Style,
    wanted: UndoRequest<'_>,
) -> Result<ExitCode, CliError> {
    let key = find_run(agent, &wanted).await?;
    let runs = [key.run.clone()];
    let undo = agent.undo(agent.owner(), &key.session);
    // The plan is made before anything changes, so that it can be shown with the current files.
    let plan = undo.plan(&runs).await?;
    let shown = describe_plan(&undo, &plan, style, &wanted).await?;
    let commands = undo.commands(&runs).await?;
    let done = match wanted.apply {
        ApplyMode::DryRun => plan,
        ApplyMode::Apply => {
            agent
                .undo(agent.owner(), &key.session)
                .undo_runs(&runs)
                .await?
        }
    };
    finish(&key, &done, &UndoReport { shown, commands }, &wanted)
}

/// What is shown about an undo.
struct UndoReport {
    /// The steps.
    shown: Vec<String>,
    /// The commands of the run, whose effects stay.
    commands: Vec<String>,
}

/// Returns the lines that name the commands whose effects undo does not take back.
pub(crate) fn command_lines(commands: &[String]) -> Vec<String> {
    if commands.is_empty() {
        return Vec::new();
    }
    let heading = "not taken back is what these commands did:".to_owned();
    let lines = commands.iter().flat_map(|command| command.lines());
    std::iter::once(heading)
        .chain(lines.map(|line| format!("  {line}")))
        .collect()
}

/// Undoes the changes of all `runs` of a session, as part of rewinding it. Nothing is changed if
/// any of them cannot be undone.
pub(crate) async fn undo_all(
    agent: &Arc<Agent>,
    session: &SessionId,
    runs: &[RunId],
) -> Result<UndoPlan, CliError> {
    let plan = agent.undo(agent.owner(), session).undo_runs(runs).await?;
    refuse_obstacles(&plan.obstacles)?;
    Ok(plan)
}

fn refuse_obstacles(obstacles: &[UndoObstacle]) -> Result<(), CliError> {
    if obstacles.is_empty() {
        return Ok(());
    }
    let lines: Vec<String> = obstacles
        .iter()
        .map(|obstacle| format!("  {obstacle}"))
        .collect();
    Err(CliError::Failed(anyhow::anyhow!(
        "nothing was undone:\n{}\nPut these back, or undo another run: `stead sessions undo RUN --dry-run` shows a run's changes",
        lines.join("\n")
    )))
}

async fn find_run(agent: &Arc<Agent>, wanted: &UndoRequest<'_>) -> Result<RunKey, CliError> {
    let session = match wanted.session {
        Some(text) => Some(find_session(agent, text).await?),
        None => None,
    };
    let undo = agent.undo(
        agent.owner(),
        session.as_ref().unwrap_or(&SessionId::sessionless()),
    );
    let Some(text) = wanted.run else {
        let Some(newest) = undo.newest(session.as_ref()).await? else {
            return Err(no_run_to_undo(&undo, session.as_ref()).await?);
        };
        return Ok(newest);
    };
    let mut found = undo.find(text).await?;
    found.retain(|key| {
        session
            .as_ref()
            .is_none_or(|session| key.session == *session)
    });
    match <[RunKey; 1]>::try_from(found) {
        Ok([key]) => Ok(key),
        Err(found) if found.is_empty() => Err(CliError::usage(format!(
            "no run {text} changed a file; `stead sessions show ID --json` names the runs"
        ))),
        Err(found) => {
            let runs: Vec<String> = found
                .iter()
                .map(|key| format!("{} (session {})", key.run, key.session))
                .collect();
            Err(CliError::usage(format!(
                "several runs begin with {text}: {}",
                runs.join(", ")
            )))
        }
    }
}

/// Returns the message that there is nothing to undo, with the commands of the newest run that started
/// some.
async fn no_run_to_undo(
    undo: &UndoHistory,
    session: Option<&SessionId>,
) -> Result<CliError, CliError> {
    let none = "there is no run that changed a file and could be undone";
    Ok(match undo.newest_with_commands(session).await? {
        None => CliError::usage(none),
        Some((key, commands)) => CliError::usage(format!(
            "{none}. Run {} of session {} ran commands; {}",
            key.run,
            key.session,
            command_lines(&commands).join("\n")
        )),
    })
}

/// Returns what undoing `runs` would do, as lines of text and diffs without colours.
pub(crate) async fn preview_undo(
    undo: &UndoHistory,
    runs: &[RunId],
) -> Result<Vec<String>, CliError> {
    let plan = undo.plan(runs).await?;
    let wanted = UndoRequest {
        run: None,
        session: None,
        apply: ApplyMode::DryRun,
        json: false,
    };
    let mut lines = describe_plan(undo, &plan, Style::plain(), &wanted).await?;
    let obstacles = plan.obstacles.iter();
    lines.extend(obstacles.map(|obstacle| format!("not possible: {obstacle}")));
    Ok(lines)
}

/// Returns the changes that a plan would take back, as diffs from what was to what is.
pub(crate) async fn changes(undo: &UndoHistory, plan: &UndoPlan) -> Result<Vec<String>, CliError> {
    let mut lines = Vec::new();
    for step in &plan.steps {
        let path = &step.path;
        let before = match &step.action {
            UndoAction::Restore { hash, .. } => undo.saved_content(hash).await?.unwrap_or_default(),
            UndoAction::Remove => bytes::Bytes::new(),
            UndoAction::MoveBack { from } => {
                lines.push(format!("moved {path} to {from}"));
                continue;
            }
            UndoAction::MakeDirectory { .. } | UndoAction::RemoveDirectory => continue,
        };
        let after = undo.current_content(path).await?.unwrap_or_default();
        lines.push(path.to_string());
        lines.extend(diff_lines(&before, &after, Style::plain()));
    }
    let obstacles = plan.obstacles.iter();
    lines.extend(obstacles.map(|obstacle| format!("changed since: {obstacle}")));
    Ok(lines)
}

/// Returns the plan as lines of text and diffs.
async fn describe_plan(
    undo: &UndoHistory,
    plan: &UndoPlan,
    style: Style,
    wanted: &UndoRequest<'_>,
) -> Result<Vec<String>, CliError> {
    let mut shown = Vec::new();
    for step in &plan.steps {
        let path = &step.path;
        shown.push(match &step.action {
            UndoAction::Restore { over: Some(_), .. } => format!("restore {path}"),
            UndoAction::Restore { over: None, .. } => format!("bring back {path}"),
            UndoAction::Remove => format!("remove {path}"),
            UndoAction::MakeDirectory { .. } => format!("make directory {path}"),
            UndoAction::MoveBack { from } => format!("move {from} back to {path}"),
            UndoAction::RemoveDirectory => format!("remove directory {path}, if it is empty"),
        });
        if wanted.apply == ApplyMode::Apply || wanted.json {
            continue;
        }
        let after = match &step.action {
            UndoAction::Restore { hash, .. } => undo.saved_content(hash).await?.unwrap_or_default(),
            UndoAction::Remove => bytes::Bytes::new(),
            UndoAction::MakeDirectory { .. }
            | UndoAction::MoveBack { .. }
            | UndoAction::RemoveDirectory => continue,
        };
        let before = undo.current_content(path).await?.unwrap_or_default();
        shown.extend(diff_lines(&before, &after, style));
    }
    Ok(shown)
}

fn diff_lines(before: &[u8], after: &[u8], style: Style) -> Vec<String> {
    let texts = (std::str::from_utf8(before), std::str::from_utf8(after));
    let (Ok(before), Ok(after)) = texts else {
        return vec![format!(
            "  (not text: {} bytes become {})",
            before.len(),
            after.len()
        )];
    };
    if before.len().max(after.len()) > MAX_DIFF_BYTES {
        return vec![format!(
            "  (large: {} bytes become {})",
            before.len(),
            after.len()
        )];
    }
    let lines = line_diff(before, after, CONTEXT_LINES, None);
    colour_diff(&lines, style)
        .lines()
        .map(|line| format!("  {line}"))
        .collect()
}

fn finish(
    key: &RunKey,
    plan: &UndoPlan,
    report: &UndoReport,
    wanted: &UndoRequest<'_>,
) -> Result<ExitCode, CliError> {
    if wanted.json {
        let obstacles: Vec<String> = plan.obstacles.iter().map(ToString::to_string).collect();
        let done = plan.obstacles.is_empty() && wanted.apply == ApplyMode::Apply;
        out_json(&json!({
            "session": key.session, "run": key.run, "steps": report.shown, "commands": report.commands,
            "obstacles": obstacles, "undone": done,
        }));
        return Ok(ExitCode::from(u8::from(!plan.obstacles.is_empty())));
    }
    match wanted.apply {
        ApplyMode::DryRun => {
            let verb = if plan.obstacles.is_empty() {
                "would"
            } else {
                "would, if it could"
            };
            outln!("undoing run {} of session {} {verb}:", key.run, key.session);
            for line in report.shown.iter().chain(&command_lines(&report.commands)) {
                outln!("{line}");
            }
            for obstacle in &plan.obstacles {
                outln!("not possible: {obstacle}");
            }
            Ok(ExitCode::from(u8::from(!plan.obstacles.is_empty())))
        }
        ApplyMode::Apply => {
            refuse_obstacles(&plan.obstacles)?;
            outln!("undoing run {} of session {}:", key.run, key.session);
            for line in &report.shown {
                outln!("{line}");
            }
            outln!("run {} of session {} is undone", key.run, key.session);
            for line in command_lines(&report.commands) {
                outln!("{line}");
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}
