//! Drawing the list of sessions of `stead chat` over the conversation.
//!
//! Effects: none.

use super::super::state::SessionPicker;
use super::super::wrap::clip;
use super::{ACCENT, QUIET, draw_lines};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Modifier;
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};
use stead::core::counted;

/// The rows above the list: what it is, and its keys.
const HEAD_ROWS: usize = 2;

pub(super) fn draw_picker(picker: &SessionPicker, area: Rect, buffer: &mut Buffer) {
    let width = usize::from(area.width);
    let shown = picker.shown();
    let selected = picker.selected();
    let head = match picker.filter.as_str() {
        "" => format!("{}; type to filter", counted(shown.len(), "session")),
        filter => format!("{} with “{filter}”", counted(shown.len(), "session")),
    };
    let mut rows = vec![
        Line::styled(clip(&head, width), ACCENT.add_modifier(Modifier::BOLD)),
        Line::styled(
            clip("Up, Down choose · Enter opens · Esc back", width),
            QUIET,
        ),
    ];
    let room = usize::from(area.height).saturating_sub(HEAD_ROWS);
    let first = (selected + 1).saturating_sub(room);
    for (at, row) in shown.iter().enumerate().skip(first).take(room) {
        let title = match row.title.as_str() {
            "" => row.id.as_str(),
            title => title,
        };
        let text = clip(&format!("{title}  {}", row.detail), width.saturating_sub(2));
        rows.push(if at == selected {
            Line::styled(
                clip(&format!("› {text}"), width),
                ACCENT.add_modifier(Modifier::REVERSED),
            )
        } else {
            Line::raw(format!("  {text}"))
        });
    }
    Clear.render(area, buffer);
    draw_lines(&rows, area, buffer);
}
