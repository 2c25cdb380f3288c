//! Journals as text for people, for `stead sessions`.
//!
//! Effects: none.

use super::error::CliError;
use super::nested_lines::{NestedLines, entry_call};
use super::render::{call_line, end_mark, nested_indent, tokens_line};
use super::style::Style;
use std::fmt::Write;
use stead::core::counted;
use stead::core::{
    Block, Compaction, DecisionKind, DeliveryOutcome, Entry, HookRun, JournalLine, Message,
    NestedCall, NextAction, PermissionCeiling, PlanStage, RunCause, RunLimits, RunOutcome,
    SentMessage, SessionChange, SessionState, ToolResult, fenced,
};

/// How much of a journal is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// The current conversation, with long results cut.
    Brief,
    /// Every entry.
    Full,
}

const BRIEF_LINES: usize = 6;

/// Returns one line of the journal as JSON.
pub(crate) fn line_json(line: &JournalLine) -> serde_json::Value {
    let (text, _) =
        stead::core::encode_line(line.seq, line.at, &line.entry, stead::core::ChainSum::START);
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
    if let Some(fields) = value.as_object_mut() {
        fields.insert("sum".to_owned(), serde_json::json!(line.sum));
    }
    value
}

/// Returns the journal as text for a terminal.
pub(crate) fn render_terminal(
    lines: &[JournalLine],
    detail: Detail,
    style: Style,
) -> Result<String, CliError> {
    match detail {
        Detail::Brief => render_conversation(lines, style),
        Detail::Full => Ok(render_journal(lines, style)),
    }
}

/// Returns the current conversation as text. Inputs are numbered as `rewind` and `fork` count them.
fn render_conversation(lines: &[JournalLine], style: Style) -> Result<String, CliError> {
    let state = fold(lines)?;
    let nested = NestedLines::new(lines);
    let mut out = String::new();
    let mut turn = 0;
    for said in &state.turns {
        match &*said.message {
            Message::User { content } if said.starts_run.is_some() => {
                turn += 1;
                let run = said
                    .starts_run
                    .as_ref()
                    .map_or(String::new(), |run| format!("run {run}"));
                let you = style.accent(&format!("[{turn}] you:"));
                let _ = writeln!(out, "{you} {}  {}", blocks_text(content), style.dim(&run));
            }
            Message::User { content } if said.is_steering => {
                let _ = writeln!(
                    out,
                    "{} {}",
                    style.accent("you, during the run:"),
                    blocks_text(content)
                );
            }
            Message::User { content } => {
                let _ = writeln!(out, "{} {}", style.warn("harness:"), blocks_text(content));
            }
            Message::Assistant { content } => {
                for block in content {
                    out.push_str(&block_line(block, style));
                }
            }
            Message::Tool { results } => {
                for result in results {
                    out.push_str(&result_lines(result, style));
                    out.push_str(&nested.render(&result.id, style));
                }
            }
        }
    }
    if let Some(run) = &state.run {
        for pending in run.pending.iter() {
            out.push_str(&nested.render(&pending.call.id, style));
        }
        let waits = !run.pending.asked().is_empty();
        let why = if waits {
            "waits for a decision"
        } else {
            "was interrupted"
        };
        let _ = writeln!(
            out,
            "{}",
            style.warn(&format!("the last run {why}; resume with --resume"))
        );
    }
    let end = lines.iter().rev().find_map(|line| match &line.entry {
        Entry::End(end) if state.last_outcome == Some(end.outcome) => Some(end),
        _ => None,
    });
    if let Some(end) = end.filter(|end| end.outcome != RunOutcome::Completed) {
        let reason = end.reason.as_deref().unwrap_or("");
        let _ = writeln!(
            out,
            "{}",
            style.warn(&format!(
                "the last run ended: {} ({reason})",
                end.outcome.as_str()
            ))
        );
    }
    let _ = writeln!(out, "{}", style.dim(&tokens_line(&state.usage, state.cost)));
    Ok(out)
}

/// Returns all entries as text, in order.
fn render_journal(lines: &[JournalLine], style: Style) -> String {
    let mut out = String::new();
    for line in lines {
        let head = style.dim(&format!("{:>5} {:.3}", line.seq, line.at));
        let body = match &line.entry {
            Entry::Session(start) => format!("session {} of agent {}", start.session, start.agent),
            Entry::User(input) if input.cause == RunCause::Wake => {
                "woken by tasks that ended".to_owned()
            }
            Entry::User(input) if input.cause == RunCause::Resume => "resumed".to_owned(),
            Entry::User(input) => {
                format!("{} {}", style.accent("you:"), blocks_text(&input.content))
            }
            Entry::Model(reply) => {
                let text = blocks_text(&reply.content);
                format!(
                    "{} {}\n{text}",
                    reply.model,
                    style.dim(&tokens_line(&reply.usage, reply.cost))
                )
            }
            Entry::Call(intent) => {
                let args = nested_args(intent.nested.as_ref());
                format!("{} begins ({}){args}", intent.tool, intent.id)
            }
            Entry::Result(result) => {
                let call = result.nested.as_ref();
                let call = call.map_or(String::new(), |call| {
                    format!(" {} {}", call.name, call.args)
                });
                format!(
                    "{}{call} {} after {} ms\n{}",
                    result.id,
                    result.status.as_str(),
                    result.ms,
                    blocks_text(&result.content)
                )
            }
            Entry::Ask(ask) => {
                let call = ask.nested.as_ref();
                let call = call.map_or(String::new(), |call| {
                    format!(" {} {}", call.name, call.args)
                });
                format!("{}{call} asks: {}", ask.id, ask.rule)
            }
            Entry::Decision(decision) => {
                let answer = match decision.kind() {
                    DecisionKind::Approve => "approved",
                    DecisionKind::Edit => "approved with other arguments",
                    DecisionKind::Reject => "rejected",
                    DecisionKind::Respond => "answered instead of run",
                };
                let words = decision
                    .words
                    .as_ref()
                    .map_or(String::new(), |words| format!(": {words}"));
                format!("{} {answer} by {}{words}", decision.id, decision.by)
            }
            Entry::Notice(notice) if notice.text.is_empty() => "tools recorded".to_owned(),
            Entry::Notice(notice) => format!("harness: {}", notice.text),
            Entry::Steer(steer) => format!(
                "{} {}",
                style.accent("you, during the run:"),
                blocks_text(&steer.content)
            ),
            Entry::Set(set) => format!("{} set {}", set.by, change_text(&set.change)),
            Entry::Pin(pin) => format!(
                "entry {} {}",
                pin.seq,
                if pin.pinned {
                    "pinned"
                } else {
                    "no longer pinned"
                }
            ),
            Entry::Compaction(compaction) => {
                let summary = compaction.view.summary.as_deref().unwrap_or("");
                format!("{}\n{}", compaction_line(compaction), summary)
            }
            Entry::Hook(hook) => hook_line(hook),
            Entry::Sent(sent) => sent_line(sent),
            Entry::Rewind(rewind) => format!("rewound to entry {}", rewind.to),
            Entry::End(end) => format!(
                "run ended: {} {}",
                end.outcome.as_str(),
                end.reason.as_deref().unwrap_or("")
            ),
        };
        let indent = entry_call(&line.entry).map(nested_indent);
        let indent = indent.unwrap_or_default();
        // Every line of a nested call is below the call that made it.
        let body = body.trim_end().replace('\n', &format!("\n{indent}"));
        let _ = writeln!(out, "{head} {indent}{body}");
    }
    out
}

/// Returns the arguments of a nested call, for the line that introduces it.
fn nested_args(nested: Option<&NestedCall>) -> String {
    nested.map_or(String::new(), |call| format!(" {}", call.args))
}

/// Returns the line for a message to a channel.
fn sent_line(sent: &SentMessage) -> String {
    let to = match &sent.thread {
        Some(thread) => format!("{} {thread}", sent.via),
        None => sent.via.clone(),
    };
    match &sent.outcome {
        None => format!("sends a message to {to}"),
        Some(DeliveryOutcome::Delivered { .. }) => format!("the message to {to} was delivered"),
        Some(DeliveryOutcome::Refused { reason }) => {
            format!("the message to {to} was refused: {reason}")
        }
        Some(DeliveryOutcome::Unknown) => format!("the message to {to} may have been delivered"),
    }
}

/// Returns the outcome of a hook on one line, and the arguments it gave.
fn hook_line(hook: &HookRun) -> String {
    let HookRun {
        event,
        hook: name,
        outcome,
        call,
        detail,
        args,
        ms,
        ..
    } = hook;
    let call = call
        .as_ref()
        .map_or(String::new(), |call| format!(" ({call})"));
    let detail = detail
        .as_ref()
        .map_or(String::new(), |detail| format!(": {detail}"));
    let args = args
        .as_ref()
        .map_or(String::new(), |args| format!("\n{args}"));
    format!(
        "hook {name} at {event}{call} {} after {ms} ms{detail}{args}",
        outcome.as_str()
    )
}

/// Returns the effect of a compaction on one line.
pub(crate) fn compaction_line(compaction: &Compaction) -> String {
    let Compaction {
        before_tokens,
        after_tokens,
        dropped,
        fallback,
        ..
    } = compaction;
    let why = fallback.as_ref().map_or(String::new(), |why| {
        format!(" (no summary by a model: {why})")
    });
    format!(
        "context compacted, {before_tokens} to about {after_tokens} tokens: {}{why}",
        dropped.describe()
    )
}

/// Returns the conversation as Markdown.
pub(crate) fn render_markdown(id: &str, lines: &[JournalLine]) -> Result<String, CliError> {
    let state = fold(lines)?;
    let mut out = format!("# Session {id}\n\n");
    for turn in &state.turns {
        match &*turn.message {
            Message::User { content } => {
                let who = match (turn.is_user_input(), turn.is_steering) {
                    (true, false) => "You",
                    (true, true) => "You, during the run",
                    (false, _) => "Harness",
                };
                let _ = write!(out, "## {who}\n\n{}\n\n", blocks_text(content));
            }
            Message::Assistant { content } => {
                let _ = write!(out, "## Agent\n\n");
                for block in content {
                    match block {
                        Block::Text { text } => {
                            let _ = write!(out, "{text}\n\n");
                        }
                        Block::ToolCall(call) => {
                            let args = serde_json::to_string_pretty(&call.args).unwrap_or_default();
                            let _ =
                                write!(out, "**{}**\n\n{}\n\n", call.name, fenced("json", &args));
                        }
                        Block::Thinking(_) | Block::Media(_) => {}
                    }
                }
            }
            Message::Tool { results } => {
                for result in results {
                    let text = blocks_text(&result.content);
                    let _ = write!(
                        out,
                        "*{}* ({})\n\n{}\n\n",
                        result.name,
                        result.status.as_str(),
                        fenced("", &text)
                    );
                }
            }
        }
    }
    Ok(out)
}

/// Whether the run machine, in `state`, leads to `entry`.
pub(crate) fn check_expected(state: &SessionState, entry: &Entry) -> Result<(), String> {
    // Limits were settings at that time; a replay checks only order and kind.
    let limits = RunLimits {
        max_steps: u32::MAX,
        repeat_nudge: 0,
        repeat_end: 0,
    };
    let next = state.next(&limits);
    match (entry, &next) {
        (Entry::Model(_), NextAction::CallModel) => Ok(()),
        (Entry::Model(_), next) => Err(format!("an answer came while {}", describe_next(next))),
        // While one call of a step waits for a person, the others are judged, and those that only
        // read are run.
        (
            Entry::Call(_) | Entry::Ask(_),
            NextAction::RunTools(_) | NextAction::AwaitDecision(_),
        ) => Ok(()),
        (Entry::Call(_) | Entry::Ask(_), next) => {
            Err(format!("a call came while {}", describe_next(next)))
        }
        (Entry::Result(_), NextAction::RunTools(_) | NextAction::AwaitDecision(_)) => Ok(()),
        (Entry::Result(_), next) => Err(format!("a result came while {}", describe_next(next))),
        (Entry::Decision(_), NextAction::AwaitDecision(_) | NextAction::RunTools(_)) => Ok(()),
        (Entry::Decision(_), next) => Err(format!("a decision came while {}", describe_next(next))),
        (Entry::Compaction(_), NextAction::RunTools(_) | NextAction::AwaitDecision(_)) => Err(
            format!("the context was compacted while {}", describe_next(&next)),
        ),
        (
            Entry::Session(_)
            | Entry::User(_)
            | Entry::Notice(_)
            | Entry::Steer(_)
            | Entry::Set(_)
            | Entry::Pin(_)
            | Entry::Hook(_)
            | Entry::Compaction(_)
            | Entry::Sent(_)
            | Entry::Rewind(_)
            | Entry::End(_),
            _,
        ) => Ok(()),
    }
}

fn describe_next(next: &NextAction) -> &'static str {
    match next {
        NextAction::Idle => "no run was open",
        NextAction::CallModel => "a model call was next",
        NextAction::RunTools(_) => "tool calls were next",
        NextAction::Nudge(_) => "a notice was next",
        NextAction::AwaitDecision(_) => "a decision was next",
        NextAction::Done(..) => "the run had ended",
    }
}

fn fold(lines: &[JournalLine]) -> Result<SessionState, CliError> {
    let mut state = SessionState::default();
    for line in lines {
        state
            .apply(line.seq, &line.entry)
            .map_err(anyhow::Error::from)?;
    }
    Ok(state)
}

fn block_line(block: &Block, style: Style) -> String {
    match block {
        Block::Text { text } => format!("{text}\n"),
        Block::Thinking(thinking) => {
            format!("{}\n", style.dim(&format!("thinking: {}", thinking.text)))
        }
        Block::Media(media) => format!("[{}]\n", media.mime),
        Block::ToolCall(call) => format!(
            "{} {}\n",
            style.accent("→"),
            call_line(&call.name, &call.args)
        ),
    }
}

fn result_lines(result: &ToolResult, style: Style) -> String {
    let text = blocks_text(&result.content);
    let shown: Vec<&str> = text.lines().take(BRIEF_LINES).collect();
    let rest = text.lines().count().saturating_sub(BRIEF_LINES);
    let more = if rest > 0 {
        format!("\n  … {} (--full)", counted(rest, "more line"))
    } else {
        String::new()
    };
    let mark = end_mark(result.status.shown(result.exit_code), style);
    format!(
        "{mark} {}\n",
        style.dim(&format!("{}{more}", shown.join("\n  ")))
    )
}

/// Returns blocks as people read them in a session or a Markdown export. Offloaded media are named
/// with their file, which a person can open.
fn blocks_text(blocks: &[Block]) -> String {
    let texts = blocks.iter().map(|block| match block {
        Block::Media(media) => match &media.file {
            Some(file) => format!("[{} in {file}]", media.label()),
            None => block.plain_text(),
        },
        Block::Text { .. } | Block::Thinking(_) | Block::ToolCall(_) => block.plain_text(),
    });
    texts
        .filter(|text| !text.is_empty())
        .collect::<Vec<_>>()
        .join("\n")
}

/// Returns a change of session settings as text.
fn change_text(change: &SessionChange) -> String {
    match change {
        SessionChange::Todos { todos } => counted(todos.len(), "todo"),
        SessionChange::Plan {
            plan: Some(PlanStage::Making { file }),
        } => format!("plan mode ({file})"),
        SessionChange::Plan {
            plan: Some(PlanStage::Agreed { file, .. }),
        } => format!("the plan in {file} as agreed"),
        SessionChange::Plan { plan: None } => "plan mode off".to_owned(),
        SessionChange::Agent { to } => format!("the agent to {to}"),
        SessionChange::Mode { to, .. } => format!("the permission mode to {to}"),
        SessionChange::Model { to } => format!("the model to {}", to.name),
        SessionChange::Trust => "the session so far as trusted".to_owned(),
        SessionChange::Title { to } => format!("the title to {to:?}"),
        SessionChange::Ceiling(PermissionCeiling {
            modes,
            planning,
            denied,
            ..
        }) => {
            let modes: Vec<&str> = modes.iter().map(|mode| mode.as_str()).collect();
            let planning = planning
                .as_ref()
                .map_or(String::new(), |file| format!(", plan mode ({file})"));
            let denied = if denied.is_empty() {
                String::new()
            } else {
                format!(", without {}", denied.join(", "))
            };
            format!(
                "the inherited restrictions to {}{planning}{denied}",
                modes.join(", ")
            )
        }
    }
}
