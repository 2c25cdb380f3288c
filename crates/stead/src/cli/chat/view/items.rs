//! Rendering items of the conversation in `stead chat` as rows.
//!
//! Effects: none.

use super::super::markdown;
use super::super::transcript::{CallItem, CallStage, ChatItem, Details, ItemBody, Tone};
use super::super::wrap::{LineBreak, clip, wrap, wrap_text};
use super::input::{PROMPT, PROMPT_COLUMNS};
use super::{ACCENT, BAD, GOOD, QUIET, WARN};
use crate::cli::render::outcome_line;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use stead::core::ResultStatus;
use unicode_width::UnicodeWidthStr;

/// The maximum number of rows of a running tool's output that are shown.
const OUTPUT_ROWS: usize = 12;

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
            let mut rows = wrap_text(
                text,
                style,
                width.saturating_sub(usize::from(PROMPT_COLUMNS)),
            );
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
            status,
            preview,
            ms,
        } => {
            let (sign, style) = match status {
                ResultStatus::Ok => ("✓", GOOD),
                ResultStatus::Denied => ("⊘", WARN),
                ResultStatus::Error
                | ResultStatus::Cancelled
                | ResultStatus::Interrupted
                | ResultStatus::Skipped => ("✗", BAD),
            };
            let after = match ms {
                Some(ms) => outcome_line(*status, preview, *ms),
                None if status.is_error() => preview.lines().next().unwrap_or("").to_owned(),
                None => String::new(),
            };
            (sign, style, after)
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
    rows
}

/// Returns the preview of a call, in the colours of a diff.
fn preview_rows(preview: &str, width: usize) -> Vec<Line<'static>> {
    let inner = width.saturating_sub(4);
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
    with_prefix(
        rows.collect(),
        Span::styled("  │ ", QUIET),
        Span::styled("  │ ", QUIET),
    )
}

fn detail_rows(call: &CallItem, width: usize) -> Vec<Line<'static>> {
    let inner = width.saturating_sub(4);
    let mut rows = Vec::new();
    if let Some(args) = call.args.as_object() {
        for (name, value) in args {
            let text = value
                .as_str()
                .map_or_else(|| value.to_string(), str::to_owned);
            let pieces = [(format!("{name}: "), ACCENT), (text, Style::new())];
            rows.extend(wrap(&pieces, inner, LineBreak::Anywhere));
        }
    }
    match &call.stage {
        CallStage::AwaitingApproval { .. } => {}
        CallStage::Running(output) => {
            let all = wrap(&[(output.clone(), QUIET)], inner, LineBreak::Anywhere);
            rows.extend(all.into_iter().rev().take(OUTPUT_ROWS).rev());
        }
        CallStage::Ended { preview, .. } => rows.extend(wrap(
            &[(preview.clone(), QUIET)],
            inner,
            LineBreak::Anywhere,
        )),
    }
    with_prefix(
        rows,
        Span::styled("  │ ", QUIET),
        Span::styled("  │ ", QUIET),
    )
}
