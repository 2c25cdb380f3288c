//! The todo list of `stead chat`, as a few rows above the input.
//!
//! Effects: none.

use super::wrap::clip;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use stead::core::{Todo, TodoStatus};

/// The maximum number of open todos that are shown.
const MAX_SHOWN: usize = 4;
const QUIET: Style = Style::new().fg(Color::DarkGray);
const CURRENT_STYLE: Style = Style::new().fg(Color::Cyan).add_modifier(Modifier::BOLD);

/// Returns the rows for the current todo and the next ones, and the number of completed ones.
pub(super) fn todo_rows(todos: &[Todo], width: usize) -> Vec<Line<'static>> {
    if todos.is_empty() {
        return Vec::new();
    }
    let open: Vec<&Todo> = todos
        .iter()
        .filter(|todo| todo.status != TodoStatus::Completed)
        .collect();
    let row = |text: String, style| Line::styled(clip(&text.replace('\n', " "), width), style);
    let mut rows = vec![row(
        format!("✓ {} of {} done", todos.len() - open.len(), todos.len()),
        QUIET,
    )];
    rows.extend(open.iter().take(MAX_SHOWN).map(|todo| match todo.status {
        TodoStatus::InProgress => row(format!("▸ {}", todo.content), CURRENT_STYLE),
        TodoStatus::Pending | TodoStatus::Completed => row(format!("☐ {}", todo.content), QUIET),
    }));
    if open.len() > MAX_SHOWN {
        rows.push(row(format!("  and {} more", open.len() - MAX_SHOWN), QUIET));
    }
    rows
}
