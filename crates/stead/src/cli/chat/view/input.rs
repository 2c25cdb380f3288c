//! Drawing the input and the completion list of `stead chat`.
//!
//! Effects: none.

use super::super::complete::Completion;
use super::super::state::Chat;
use super::super::wrap::clip;
use super::{ACCENT, QUIET, draw_lines};
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::Modifier;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};
use unicode_width::UnicodeWidthStr;

const MAX_POPUP_ROWS: u16 = 8;

pub(super) const PROMPT: &str = "› ";

pub(super) const PROMPT_COLUMNS: u16 = 2;

/// Draws the rows of the input around the cursor, and returns the position of the cursor.
pub(super) fn draw_input(
    rows: &[String],
    cursor: (usize, usize),
    area: Rect,
    buffer: &mut Buffer,
) -> Option<Position> {
    if area.height == 0 {
        return None;
    }
    let bordered = area.height >= 3;
    if bordered {
        let rule = "─".repeat(usize::from(area.width));
        for y in [area.y, area.bottom() - 1] {
            draw_lines(
                &[Line::styled(rule.clone(), QUIET)],
                Rect {
                    y,
                    height: 1,
                    ..area
                },
                buffer,
            );
        }
    }
    let inner = match bordered {
        true => Rect {
            y: area.y + 1,
            height: area.height - 2,
            ..area
        },
        false => area,
    };
    let height = usize::from(inner.height);
    let first = (cursor.0 + 1).saturating_sub(height);
    let shown = rows
        .iter()
        .enumerate()
        .skip(first)
        .take(height)
        .map(|(at, row)| {
            let prompt = if at == 0 {
                Span::styled(PROMPT, ACCENT)
            } else {
                Span::raw("  ")
            };
            Line::from(vec![prompt, Span::raw(row.clone())])
        });
    draw_lines(&shown.collect::<Vec<_>>(), inner, buffer);
    let column = u16::try_from(cursor.1)
        .unwrap_or(u16::MAX)
        .saturating_add(PROMPT_COLUMNS);
    let row = u16::try_from(cursor.0 - first).unwrap_or(0);
    Some(Position {
        x: inner.x + column.min(inner.width.saturating_sub(1)),
        y: inner.y + row,
    })
}

/// Draws the completion list above the input.
pub(super) fn draw_popup(chat: &Chat, input: Rect, screen: Rect, buffer: &mut Buffer) {
    let Some(popup) = &chat.popup else { return };
    let count = u16::try_from(popup.completions.len())
        .unwrap_or(u16::MAX)
        .min(MAX_POPUP_ROWS);
    let height = count.min(input.y.saturating_sub(screen.y));
    if height == 0 {
        return;
    }
    let widest = popup
        .completions
        .iter()
        .map(|choice| choice.text.width())
        .max()
        .unwrap_or(0);
    let first = (popup.selected + 1).saturating_sub(usize::from(height));
    let row = |(at, choice): (usize, &Completion)| {
        let blank = " ".repeat(widest - choice.text.width());
        let text = format!(" {}{blank}  {} ", choice.text, choice.help);
        let text = clip(&text, usize::from(screen.width));
        if at == popup.selected {
            Line::styled(text, ACCENT.add_modifier(Modifier::REVERSED))
        } else {
            Line::raw(text)
        }
    };
    let rows: Vec<Line<'static>> = popup
        .completions
        .iter()
        .enumerate()
        .skip(first)
        .take(usize::from(height))
        .map(row)
        .collect();
    let area = Rect {
        x: screen.x,
        y: input.y - height,
        width: screen.width,
        height,
    };
    Clear.render(area, buffer);
    draw_lines(&rows, area, buffer);
}
