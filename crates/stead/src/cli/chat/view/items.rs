//! Rendering items of the conversation in `stead chat` as rows.
//!
//! Effects: none.

use super::super::markdown;
use super::super::transcript::{CallItem, CallStage, ChatItem, Details, ItemBody, Tone};
use super::super::wrap::{LineBreak, clip, wrap, wrap_text};
use super::input::{PROMPT, PROMPT_COLUMNS};
use super::{ACCENT, BAD, GOOD, QUIET, WARN};
use crate::cli::call_arguments::ordered_arguments;
use crate::cli::changes::{ChangeKind, change_rows};
use crate::cli::render::{end_sign, outcome_line};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use stead::core::{ShownEnd, counted};
use unicode_width::UnicodeWidthStr;

/// The maximum number of rows of a running tool's output that are shown.
const OUTPUT_ROWS: usize = 5;

/// The same, if the details of the call are shown.
const DETAILED_OUTPUT_ROWS: usize = 20;

/// The maximum number of rows of a change of files, unless the details of the call are shown.
const CHANGE_ROWS: usize = 12;

/// The maximum number of rows of an input.
const INPUT_ROWS: usize = 20;

/// The columns of the bar before rows that belong to a call.
const BAR_COLUMNS: usize = 4;

/// Whether Ctrl-O would open this call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum CallMark {
    Selected,
    Newest,
    #[default]
    None,
}

impl CallMark {
    pub(super) fn of(id: u64, chosen: Option<u64>, newest: Option<u64>) -> Self {
        match chosen {
            Some(chosen) if chosen == id => Self::Selected,
            None if newest == Some(id) => Self::Newest,
            Some(_) | None => Self::None,
        }
    }
}

/// Whether there is a blank row between two items. Adjacent calls have none.
pub(super) fn gap_before(before: Option<&ChatItem>, item: &ChatItem) -> bool {
    match before.map(|before| (&before.body, &item.body)) {
        None | Some((ItemBody::Call(_), ItemBody::Call(_))) => false,
        Some(_) => true,
    }
}

pub(super) fn item_rows(
    item: &ChatItem,
    stream: &mut markdown::StreamingMarkdown,
    mark: CallMark,
    width: usize,
) -> Vec<Line<'static>> {
    match &item.body {
        ItemBody::User { text, attached } => {
            let style = Style::new().add_modifier(Modifier::BOLD);
            let inner = width.saturating_sub(usize::from(PROMPT_COLUMNS));
            let mut rows = wrap_text(text, style, inner);
            if rows.len() > INPUT_ROWS + 2 {
                let more = format!("… {}", counted(rows.len() - INPUT_ROWS, "more row"));
                rows.truncate(INPUT_ROWS);
                rows.push(Line::styled(more, QUIET));
            }
            for name in attached {
                rows.extend(wrap_text(
                    name,
                    QUIET,
                    width.saturating_sub(usize::from(PROMPT_COLUMNS)),
                ));
            }
            with_prefix(rows, Span::styled(PROMPT, ACCENT), Span::raw("  "))
        }
        ItemBody::Answer(text) => stream.render(text, width),
        ItemBody::Call(call) => call_rows(call, mark, width),
        ItemBody::Note(tone, text) => {
            let style = match tone {
                Tone::Info => QUIET,
                Tone::Warning => WARN,
                Tone::Error => BAD,
            };
            wrap(&[(text.clone(), style)], width, LineBreak::Words)
        }
    }
}

fn with_prefix(
    rows: Vec<Line<'static>>,
    first: Span<'static>,
    rest: Span<'static>,
) -> Vec<Line<'static>> {
    let prefix = |(at, mut row): (usize, Line<'static>)| {
        row.spans
            .insert(0, if at == 0 { first.clone() } else { rest.clone() });
        row
    };
    rows.into_iter().enumerate().map(prefix).collect()
}

fn call_rows(call: &CallItem, mark: CallMark, width: usize) -> Vec<Line<'static>> {
    let (sign, style, after) = match &call.stage {
        CallStage::AwaitingApproval { rule, .. } => ("?", WARN, format!("asks ({rule})")),
        CallStage::Running(_) => ("…", ACCENT, String::new()),
        CallStage::Ended {
            end, preview, ms, ..
        } => {
            let style = match end {
                ShownEnd::Succeeded => GOOD,
                ShownEnd::Denied => WARN,
                ShownEnd::CommandFailed(_) | ShownEnd::Failed => BAD,
            };
            let after = match (ms, end) {
                (Some(ms), _) => outcome_line(*end, preview, *ms),
                (None, ShownEnd::Succeeded) => String::new(),
                (None, ShownEnd::CommandFailed(code)) => format!("exit code {code}"),
                (None, ShownEnd::Failed | ShownEnd::Denied) => {
                    preview.lines().next().unwrap_or("").to_owned()
                }
            };
            (end_sign(*end), style, after)
        }
    };
    let hint = match (mark, call.details) {
        (CallMark::Selected, _) => "  ‹ Ctrl-O",
        (CallMark::Newest, Details::Hidden) => "  Ctrl-O",
        (CallMark::Newest, Details::Shown) | (CallMark::None, _) => "",
    };
    let head_width = width.saturating_sub(2);
    let text = clip(&call.line(), head_width);
    let left = head_width.saturating_sub(text.width() + 1);
    let after = clip(&after, left);
    let left = left.saturating_sub(after.width());
    let hint = if hint.width() <= left { hint } else { "" };
    let head = Line::from(vec![
        Span::styled(format!("{sign} "), style),
        Span::raw(text),
        Span::styled(format!(" {after}"), QUIET),
        Span::styled(hint, QUIET.add_modifier(Modifier::ITALIC)),
    ]);
    let mut rows = vec![head];
    if let CallStage::AwaitingApproval {
        preview: Some(preview),
        ..
    } = &call.stage
    {
        rows.extend(preview_rows(preview, width));
    }
    match call.details {
        Details::Hidden => {}
        Details::Shown => rows.extend(detail_rows(call, width)),
    }
    match &call.stage {
        CallStage::AwaitingApproval { .. } => {}
        CallStage::Running(output) => rows.extend(output_rows(output, call.details, width)),
        CallStage::Ended { diff, .. } => {
            let diff = diff.as_deref().unwrap_or_default();
            rows.extend(changed_rows(diff, call.details, width));
        }
    }
    rows
}

/// Returns the end of the output of a running call.
fn output_rows(output: &str, details: Details, width: usize) -> Vec<Line<'static>> {
    let most = match details {
        Details::Hidden => OUTPUT_ROWS,
        Details::Shown => DETAILED_OUTPUT_ROWS,
    };
    let text = output.trim_end_matches('\n');
    if text.is_empty() {
        return Vec::new();
    }
    let end: Vec<&str> = text.lines().rev().take(most).collect();
    let inner = width.saturating_sub(BAR_COLUMNS);
    let lines = end
        .into_iter()
        .rev()
        .flat_map(|line| wrap(&[(line.to_owned(), QUIET)], inner, LineBreak::Anywhere));
    let rows: Vec<Line<'static>> = lines.collect();
    let from = rows.len().saturating_sub(most);
    barred(rows[from..].to_vec())
}

/// Returns the change of files that a call made. A long one is folded unless the details are shown.
fn changed_rows(diff: &str, details: Details, width: usize) -> Vec<Line<'static>> {
    let inner = width.saturating_sub(BAR_COLUMNS);
    let all: Vec<Line<'static>> = change_rows(diff)
        .flat_map(|row| {
            let style = match row.kind {
                ChangeKind::Added => GOOD,
                ChangeKind::Removed => BAD,
                ChangeKind::Place => ACCENT,
                ChangeKind::Unchanged => QUIET,
            };
            wrap(&[(row.text.to_owned(), style)], inner, LineBreak::Anywhere)
        })
        .collect();
    let folded = match details {
        // Folding a row or two would hide less than it takes.
        Details::Hidden if all.len() > CHANGE_ROWS + 2 => all.len() - CHANGE_ROWS,
        Details::Hidden | Details::Shown => 0,
    };
    let mut rows = all;
    rows.truncate(rows.len() - folded);
    if folded > 0 {
        let text = format!("… {}, Ctrl-O", counted(folded, "more row"));
        rows.push(Line::styled(text, QUIET));
    }
    barred(rows)
}

/// Returns rows that belong to the call above them.
fn barred(rows: Vec<Line<'static>>) -> Vec<Line<'static>> {
    let bar = Span::styled("  │ ", QUIET);
    with_prefix(rows, bar.clone(), bar)
}

/// Returns the preview of a call, in the colours of a diff.
fn preview_rows(preview: &str, width: usize) -> Vec<Line<'static>> {
    let inner = width.saturating_sub(BAR_COLUMNS);
    let style = |line: &str| match line.as_bytes().first() {
        Some(b'+') => GOOD,
        Some(b'-') => BAD,
        Some(b'@') => ACCENT,
        Some(_) | None => QUIET,
    };
    let rows = preview.lines().flat_map(|line| {
        wrap(
            &[(line.to_owned(), style(line))],
            inner,
            LineBreak::Anywhere,
        )
    });
    barred(rows.collect())
}

fn detail_rows(call: &CallItem, width: usize) -> Vec<Line<'static>> {
    let inner = width.saturating_sub(BAR_COLUMNS);
    let mut rows = Vec::new();
    for (name, value) in ordered_arguments(&call.name, &call.args) {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        let pieces = [(format!("{name}: "), ACCENT), (text, Style::new())];
        rows.extend(wrap(&pieces, inner, LineBreak::Anywhere));
    }
    match &call.stage {
        CallStage::AwaitingApproval { .. } | CallStage::Running(_) => {}
        CallStage::Ended { preview, .. } => rows.extend(wrap(
            &[(preview.clone(), QUIET)],
            inner,
            LineBreak::Anywhere,
        )),
    }
    barred(rows)
}
