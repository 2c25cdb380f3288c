//! The status rows above the input of `stead chat`: the question, the run and queued messages.
//!
//! Effects: none.

use super::super::state::{Activity, AnswerStage, Chat, ChatPhase, RunningState, typed_text};
use super::super::wrap::clip;
use super::{ACCENT, QUIET, WARN};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use stead::agent::{MessageQueue, QueuedMessage};
use stead::core::{ApprovalQuestion, DecisionKind};

const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];

/// The time for which each frame of the spinner is shown.
const SPINNER_STEP_MS: u128 = 100;

/// The maximum number of queued messages that are shown.
const MAX_QUEUED_ROWS: usize = 5;

/// Returns the status rows: the question, the run, and queued messages.
pub(super) fn status_rows(chat: &Chat, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if let Some(question) = &chat.question {
        let call = crate::cli::render::call_line(&question.tool, &question.args);
        let by = question.called_by.as_ref();
        let by = by.map_or(String::new(), |tool| format!(" for {tool}"));
        let who = chat.asker(question);
        let who = who.map_or(String::new(), |who| format!("[{who}] "));
        rows.push(Line::styled(
            clip(
                &format!("{who}allow {call}{by}? ({})", question.rule),
                width,
            ),
            WARN,
        ));
        let keys = match (chat.answering.stage, chat.editor.is_empty()) {
            (AnswerStage::Choosing, true) => answer_keys(question),
            (AnswerStage::Choosing, false) => "empty the input to answer with one key".to_owned(),
            (AnswerStage::ConfirmingAlways, _) => confirmation(question),
            (AnswerStage::GivingReason, _) => {
                "no: write why, or nothing · Enter answers · Esc back".to_owned()
            }
        };
        rows.push(Line::styled(
            clip(&keys, width),
            WARN.add_modifier(Modifier::BOLD),
        ));
    }
    if let Some(search) = &chat.search {
        rows.extend(search_rows(&search.query, chat.search_match(), width));
    }
    if let ChatPhase::Running(run) = &chat.phase {
        rows.push(running_row(run, width));
    }
    if chat.phase == ChatPhase::Idle && chat.tasks > 0 {
        let words = if chat.tasks == 1 {
            "task is"
        } else {
            "tasks are"
        };
        rows.push(Line::styled(
            clip(
                &format!("{} {words} running in the background", chat.tasks),
                width,
            ),
            QUIET,
        ));
    }
    rows.extend(queued_rows(&chat.queue, width));
    rows
}

/// Returns the rows of a search of earlier inputs.
fn search_rows(query: &str, found: Option<&str>, width: usize) -> Vec<Line<'static>> {
    let shown = match found {
        Some(found) => found.replace('\n', " "),
        None => "(nothing)".to_owned(),
    };
    let keys = "Enter takes it · Ctrl-R goes on · Esc ends";
    vec![
        Line::styled(clip(&format!("search “{query}”: {shown}"), width), ACCENT),
        Line::styled(clip(keys, width), QUIET),
    ]
}

/// Returns the rows of queued messages with how they will be delivered.
fn queued_rows(queue: &MessageQueue, width: usize) -> Vec<Line<'static>> {
    let mode = queue.mode();
    let waiting = queue.queued();
    let row = |QueuedMessage {
                   content,
                   already_shown: told,
               }: &QueuedMessage| {
        let how = if *told {
            "sent, and again after the run"
        } else {
            mode.as_str()
        };
        let text = format!("queued ({how}): {}", typed_text(content).replace('\n', " "));
        Line::styled(clip(&text, width), QUIET)
    };
    let mut rows: Vec<Line<'static>> = waiting.iter().take(MAX_QUEUED_ROWS).map(row).collect();
    if let Some(more) = waiting
        .len()
        .checked_sub(MAX_QUEUED_ROWS)
        .filter(|more| *more > 0)
    {
        rows.push(Line::styled(
            clip(&format!("  and {more} more"), width),
            QUIET,
        ));
    }
    rows
}

/// Returns the keys that answer a question.
fn answer_keys(question: &ApprovalQuestion) -> String {
    let key = |kind: &DecisionKind| match kind {
        DecisionKind::Approve => Some("y yes".to_owned()),
        DecisionKind::Reject => Some("n no".to_owned()),
        DecisionKind::Edit | DecisionKind::Respond => None,
    };
    let keys = question.terms.allowed().iter().filter_map(key);
    let always = question
        .always_scope
        .as_ref()
        .map(|always| format!("A always ({always})"));
    let later = match [DecisionKind::Edit, DecisionKind::Respond]
        .into_iter()
        .any(|kind| question.terms.accepts(kind))
    {
        true => "e park it, to edit or answer with `stead approvals`",
        false => "l later",
    };
    keys.chain(always)
        .chain([later.to_owned()])
        .collect::<Vec<_>>()
        .join(" · ")
}

/// Returns the question whether a call is to be allowed for good.
fn confirmation(question: &ApprovalQuestion) -> String {
    let tool = &question.tool;
    let scope = question.always_scope.as_deref().unwrap_or_default();
    format!("allow {tool} {scope} for good? y yes, for good · any other key back")
}

fn running_row(run: &RunningState, width: usize) -> Line<'static> {
    let doing = match &run.activity {
        Activity::Waiting => "waiting for the model",
        Activity::Summarising => "summarising the older part of the conversation",
        Activity::Thinking => "thinking",
        Activity::Answering => "answering",
        Activity::Calling(name) => &format!("writing a call of {name}"),
        Activity::Tools => "running tools",
        Activity::Asking => "waiting for your answer",
        Activity::Cancelling => "cancelling; Ctrl-C again leaves",
    };
    let picture = SPINNER[(run.elapsed.as_millis() / SPINNER_STEP_MS) as usize % SPINNER.len()];
    let text = format!(
        " {doing} · step {} · {} s · Esc stops",
        run.step.max(1),
        run.elapsed.as_secs()
    );
    let text = clip(&text, width.saturating_sub(1));
    Line::from(vec![
        Span::styled(picture, ACCENT),
        Span::styled(text, QUIET),
    ])
}
