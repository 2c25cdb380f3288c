//! Showing the events of a run to people and programs.
//!
//! Effects: the terminal.

use super::approvals::{colour_diff, waiting_summary};
use super::args::GlobalArgs;
use super::args::OutputFormat;
use super::changes::{ChangeKind, ChangeRow, change_rows};
use super::env::ProcessEnv;
use super::error::CliError;
use super::live_output::LiveOutput;
use super::print::{clear_status_line, err, errln, outln, to_json, try_out};
use super::run::closing_note;
use super::style::Style;
use std::sync::{Arc, Mutex, PoisonError};
use stead::agent::{Listener, OpenQuestion};
use stead::core::counted;
use stead::core::{
    DroppedCounts, Event, EventKind, Message, NestedId, NoticeLevel, PlanStage, RunReport,
    ShownEnd, StopReason, Todo, TodoStatus, Usage, Usd,
};
use stead::tools::builtin_tool;
use tokio_util::sync::CancellationToken;

/// The most rows of a change of files that are shown.
const MAX_CHANGE_ROWS: usize = 30;

/// Prints a run while it is active.
pub(crate) struct Renderer {
    output: OutputFormat,
    /// Whether text is shown as it arrives, because standard output is a terminal. Otherwise only
    /// final text is printed, so that a pipe never gets an answer that a retry replaced.
    live: bool,
    style: Style,
    progress: bool,
    /// Cancels the run when the output can no longer be written.
    cancel: CancellationToken,
    state: Mutex<RenderState>,
}

#[derive(Default)]
struct RenderState {
    /// Whether standard output could not be written.
    output_failed: bool,
    is_mid_line: bool,
    status_shown: bool,
    /// The text of this step, where it is not shown as it arrives.
    answer_text: String,
    /// The lines of running calls, by source and id.
    tools: std::collections::BTreeMap<(String, String), String>,
    output: LiveOutput,
}

impl Renderer {
    pub(crate) fn new(env: &ProcessEnv, output: OutputFormat, cancel: CancellationToken) -> Self {
        Self {
            output,
            live: env.stdout_is_terminal,
            style: Style::stderr(env),
            progress: env.stderr_is_terminal,
            cancel,
            state: Mutex::default(),
        }
    }

    /// Returns the listener that feeds the renderer.
    pub(crate) fn listener(self: &Arc<Self>) -> Listener {
        let this = self.clone();
        Arc::new(move |event| this.show(event))
    }

    /// Prints the end of the run.
    pub(crate) fn finish(
        &self,
        report: &RunReport,
        common: &GlobalArgs,
        open: &[OpenQuestion],
    ) -> Result<(), CliError> {
        match self.output {
            OutputFormat::Events => return Ok(()),
            OutputFormat::Json => {
                let text = to_json(report)?;
                outln!("{text}");
                return Ok(());
            }
            OutputFormat::Text => {}
        }
        self.end_line();
        if !self.live && !report.text.is_empty() {
            outln!("{}", report.text);
        }
        if let Some(text) = closing_note(report, common) {
            errln!("{}", self.style.warn(&text));
        }
        err(format_args!("{}", waiting_summary(open, common)));
        if self.progress {
            errln!("{}", self.style.dim(&summary(report)));
        }
        Ok(())
    }

    /// Shows an event.
    pub(crate) fn show(&self, event: &Event) {
        match self.output {
            OutputFormat::Events => {
                if let Ok(text) = to_json(event) {
                    self.print(format_args!("{text}\n"));
                }
            }
            OutputFormat::Json => {}
            OutputFormat::Text if event.source.is_empty() => self.show_text(&event.kind),
            OutputFormat::Text => self.show_child(&event.source.join("/"), &event.kind),
        }
    }

    /// Shows the events of subagents, a line each, and their changes of files.
    fn show_child(&self, who: &str, kind: &EventKind) {
        let line = match kind {
            EventKind::RunStarted { .. } => "began".to_owned(),
            EventKind::ToolStarted { id, name, args, .. } => {
                self.remember_call(who, id, call_line(name, args));
                return;
            }
            EventKind::ToolEnded {
                id,
                name,
                status,
                exit_code,
                preview,
                diff,
                ms,
                ..
            } => {
                let call = self.forget_call(who, id).unwrap_or_else(|| name.clone());
                let end = status.shown(*exit_code);
                let mark = end_mark(end, self.style);
                let ended = outcome_line(end, preview, *ms);
                let who = self.style.dim(&format!("[{who}]"));
                self.note(&format!("{who} {mark} {call} {}", self.style.dim(&ended)));
                self.show_change(diff.as_deref());
                return;
            }
            EventKind::Ask {
                name, args, rule, ..
            } => format!("asks: {} ({rule})", call_line(name, args)),
            EventKind::Notice { text, .. } => text.clone(),
            EventKind::RunEnded {
                outcome, reason, ..
            } => match reason {
                Some(reason) => format!("{}: {reason}", outcome.as_str()),
                None => outcome.as_str().to_owned(),
            },
            _ => return,
        };
        self.note(&self.style.dim(&format!("[{who}] {line}")));
    }

    fn show_text(&self, kind: &EventKind) {
        match kind {
            EventKind::TextDelta { text } if self.live => {
                self.clear_status();
                self.print(format_args!("{text}"));
                self.lock().is_mid_line = !text.ends_with('\n');
            }
            EventKind::TextDelta { text } => self.lock().answer_text.push_str(text),
            EventKind::ModelEnded {
                stop: StopReason::ToolUse,
                ..
            } => {
                // The last text is the answer and goes to standard output; earlier texts are
                // intermediate.
                let said = std::mem::take(&mut self.lock().answer_text);
                if !said.trim().is_empty() {
                    errln!("{}", self.style.dim(said.trim()));
                }
            }
            EventKind::ModelStarted { step } => {
                self.status(&format!("step {step}: waiting for the model …"))
            }
            EventKind::ToolStarted { id, name, args, .. } => {
                let line = call_line(name, args);
                self.status(&format!("{line} …"));
                self.remember_call("", id, line);
            }
            EventKind::ToolOutputDelta { id, text } if self.progress => self.show_output(id, text),
            EventKind::ToolEnded {
                id,
                name,
                status,
                exit_code,
                preview,
                diff,
                ms,
                ..
            } => {
                let line = self.forget_call("", id).unwrap_or_else(|| name.clone());
                let rest = self.lock().output.finish(id);
                self.end_line();
                rest.iter().for_each(|line| self.output_line(line));
                let end = status.shown(*exit_code);
                let ended = outcome_line(end, preview, *ms);
                let indent = nested_indent(id);
                let mark = end_mark(end, self.style);
                errln!("{indent}{mark} {line} {}", self.style.dim(&ended));
                self.show_change(diff.as_deref());
            }
            EventKind::ModelRetry {
                attempt,
                wait_ms,
                reason,
            } => {
                self.lock().answer_text.clear();
                let seconds = *wait_ms as f64 / 1000.0;
                let text = format!("attempt {attempt} in {seconds:.1} s: {reason}");
                self.note(&self.style.warn(&text));
            }
            EventKind::Ask {
                name,
                args,
                rule,
                preview,
                ..
            } => {
                let text = format!("asks: {} ({rule})", call_line(name, args));
                self.note(&self.style.warn(&text));
                let shown = preview
                    .as_deref()
                    .map(|preview| colour_diff(preview, self.style));
                shown.iter().for_each(|shown| err(format_args!("{shown}")));
            }
            EventKind::AgentSwitched { from, to, .. } => {
                self.note(&self.style.dim(&format!("switched from {from} to {to}")));
            }
            EventKind::Steered { content } => {
                let said = Message::User {
                    content: content.clone(),
                }
                .text();
                self.note(&self.style.accent(&format!("you, during the run: {said}")));
            }
            EventKind::Notice { level, text } => {
                let text = match level {
                    NoticeLevel::Info => self.style.dim(text),
                    NoticeLevel::Warning => self.style.warn(text),
                };
                self.note(&text);
            }
            EventKind::CompactionStarted { before_tokens, .. } => {
                self.status(&format!(
                    "{before_tokens} tokens of context: summarising the older part …"
                ));
            }
            EventKind::Compacted {
                dropped,
                before_tokens,
                after_tokens,
                fallback,
                ..
            } => {
                let text = compacted_line(
                    [*before_tokens, *after_tokens],
                    dropped,
                    fallback.as_deref(),
                );
                self.note(&self.style.dim(&text));
            }
            EventKind::Todos { todos } => self.note(&self.style.dim(&todos_line(todos))),
            EventKind::Plan { stage } => self.note(&self.style.warn(&plan_line(stage.as_ref()))),
            EventKind::Mode { to } => {
                self.note(&self.style.warn(&format!("mode {to} from now on")))
            }
            EventKind::RunStarted { .. }
            | EventKind::ThinkingDelta { .. }
            | EventKind::ToolCallStarted { .. }
            | EventKind::ToolArgsDelta { .. }
            | EventKind::ModelEnded { .. }
            | EventKind::ToolOutputDelta { .. }
            | EventKind::Awaiting { .. }
            | EventKind::Decision { .. }
            | EventKind::RunEnded { .. } => {}
        }
    }

    fn remember_call(&self, who: &str, id: &str, line: String) {
        let key = (who.to_owned(), id.to_owned());
        self.lock().tools.insert(key, line);
    }

    fn forget_call(&self, who: &str, id: &str) -> Option<String> {
        self.lock().tools.remove(&(who.to_owned(), id.to_owned()))
    }

    /// Shows a piece of the output of a running command.
    fn show_output(&self, id: &str, text: &str) {
        let shown = self.lock().output.push(id, text);
        if !shown.lines.is_empty() {
            self.end_line();
            shown.lines.iter().for_each(|line| self.output_line(line));
        }
        if let Some((number, line)) = shown.newest {
            self.status(&format!("  │ {number}: {line}"));
        }
    }

    fn output_line(&self, line: &str) {
        errln!("{}", self.style.dim(&format!("  │ {line}")));
    }

    /// Shows the change of files that a call made, folded if it is long.
    fn show_change(&self, diff: Option<&str>) {
        let rows: Vec<ChangeRow<'_>> = diff.map(change_rows).into_iter().flatten().collect();
        for row in rows.iter().take(MAX_CHANGE_ROWS) {
            let text = match row.kind {
                ChangeKind::Added => self.style.good(row.text),
                ChangeKind::Removed => self.style.bad(row.text),
                ChangeKind::Place => self.style.accent(row.text),
                ChangeKind::Unchanged => self.style.dim(row.text),
            };
            errln!("  {} {text}", self.style.dim("│"));
        }
        if let Some(more) = rows
            .len()
            .checked_sub(MAX_CHANGE_ROWS)
            .filter(|more| *more > 0)
        {
            let more = format!("  │ … {}", counted(more, "more line"));
            errln!("{}", self.style.dim(&more));
        }
    }

    /// Prints to standard output. If that fails, the run is cancelled as by Ctrl-C.
    fn print(&self, text: std::fmt::Arguments<'_>) {
        if let Err(error) = try_out(text) {
            if !self.cancel.is_cancelled() && error.kind() != std::io::ErrorKind::BrokenPipe {
                errln!("stead: cannot write to standard output: {error}");
            }
            self.lock().output_failed = true;
            self.cancel.cancel();
        }
    }

    /// Whether standard output could not be written.
    pub(crate) fn output_failed(&self) -> bool {
        self.lock().output_failed
    }

    fn note(&self, text: &str) {
        self.end_line();
        errln!("{text}");
    }

    /// Shows the current activity on a line that the next output replaces.
    fn status(&self, text: &str) {
        if self.progress {
            self.end_line();
            // One row only: a status that wraps could not be cleared.
            let width = crossterm::terminal::size()
                .map_or(80, |(columns, _)| usize::from(columns).max(2))
                - 1;
            let text: String = text.chars().take(width).collect();
            err(format_args!("{}", self.style.dim(&text)));
            self.lock().status_shown = true;
        }
    }

    fn clear_status(&self) {
        if std::mem::take(&mut self.lock().status_shown) {
            clear_status_line();
        }
    }

    fn end_line(&self) {
        self.clear_status();
        if std::mem::take(&mut self.lock().is_mid_line) {
            self.print(format_args!("\n"));
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, RenderState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the indentation of a call: nested calls are below the call that made them.
pub(crate) fn nested_indent(id: &str) -> String {
    "  ".repeat(NestedId::depth_of(id))
}

/// Formats a call on one line: the tool and what the call is about.
pub(crate) fn call_line(name: &str, args: &serde_json::Value) -> String {
    /// The arguments that usually identify a call, for tools that are not built in.
    const USUAL_ARGUMENTS: &[&str] = &[
        "file_path",
        "path",
        "pattern",
        "from",
        "command",
        "name",
        "query",
        "to",
    ];
    let text = |key: &&str| args.get(*key).and_then(|value| value.as_str());
    let arguments = builtin_tool(name).map_or(USUAL_ARGUMENTS, |tool| tool.subject_arguments);
    let shown: Vec<&str> = arguments.iter().filter_map(text).collect();
    let mut line = format!("{name} {}", shown.join(" "));
    if let Some((end, _)) = line.char_indices().nth(100) {
        line.truncate(end);
        line.push('…');
    }
    line.trim_end().to_owned()
}

/// Returns the todos on one line.
pub(crate) fn todos_line(todos: &[Todo]) -> String {
    let done = todos
        .iter()
        .filter(|todo| todo.status == TodoStatus::Completed)
        .count();
    let now = todos
        .iter()
        .find(|todo| todo.status == TodoStatus::InProgress);
    let now = now.map_or(String::new(), |todo| {
        format!(" · now: {}", todo.content.replace('\n', " "))
    });
    format!("todos {done}/{}{now}", todos.len())
}

/// Returns the effect of a compaction on one line: the tokens before and after it, and what is no
/// longer shown.
pub(crate) fn compacted_line(
    [before, after]: [u64; 2],
    dropped: &DroppedCounts,
    fallback: Option<&str>,
) -> String {
    let why = fallback.map_or(String::new(), |why| {
        format!("; no summary by a model: {why}")
    });
    format!(
        "context {before} → {after} tokens: {}{why}",
        dropped.describe()
    )
}

/// Returns the state of the plan on one line.
pub(crate) fn plan_line(stage: Option<&PlanStage>) -> String {
    match stage {
        Some(PlanStage::Making { file }) => {
            format!("plan mode is on: only {file} is written until you agree")
        }
        Some(PlanStage::Agreed { file, .. }) => {
            format!("the plan in {file} is agreed to; plan mode is off")
        }
        None => "plan mode is off".to_owned(),
    }
}

/// Returns the sign of the end of a call.
pub(crate) fn end_sign(end: ShownEnd) -> &'static str {
    match end {
        ShownEnd::Succeeded => "✓",
        ShownEnd::Denied => "⊘",
        ShownEnd::CommandFailed(_) | ShownEnd::Failed => "✗",
    }
}

/// Returns the sign of the end of a call in its colour.
pub(crate) fn end_mark(end: ShownEnd, style: Style) -> String {
    let sign = end_sign(end);
    match end {
        ShownEnd::Succeeded => style.good(sign),
        ShownEnd::Denied => style.warn(sign),
        ShownEnd::CommandFailed(_) | ShownEnd::Failed => style.bad(sign),
    }
}

/// Returns the outcome of a call on one line.
pub(crate) fn outcome_line(end: ShownEnd, preview: &str, ms: u64) -> String {
    let time = if ms >= 1000 {
        format!("{:.1} s", ms as f64 / 1000.0)
    } else {
        format!("{ms} ms")
    };
    match end {
        ShownEnd::Succeeded => return time,
        ShownEnd::CommandFailed(code) => return format!("exit code {code} ({time})"),
        ShownEnd::Failed | ShownEnd::Denied => {}
    }
    let first: String = preview
        .lines()
        .next()
        .unwrap_or("")
        .chars()
        .take(160)
        .collect();
    format!("{first} ({time})")
}

/// Returns the summary of a run on one line.
pub(crate) fn summary(report: &RunReport) -> String {
    format!(
        "session {} · {} · {}",
        report.session,
        counted(report.steps, "step"),
        tokens_line(&report.usage, report.cost)
    )
}

/// Returns tokens and cost on one line.
pub(crate) fn tokens_line(usage: &Usage, cost: Option<Usd>) -> String {
    let nothing = *usage == Usage::default();
    let unknown = || {
        if nothing {
            "no answer yet"
        } else {
            "cost unknown"
        }
        .to_owned()
    };
    let cost = cost.map_or_else(unknown, |cost| cost.to_string());
    format!(
        "{} in, {} out · {cost}",
        usage.input_tokens, usage.output_tokens
    )
}
