//! Drawing `stead chat`. The result depends only on the state and the size of the screen.
//!
//! Effects: none.

mod footer;
mod input;
mod items;
mod picker;
mod status;

use self::footer::footer;
use self::input::{PROMPT_COLUMNS, draw_input, draw_popup};
use self::items::{CallMark, gap_before, item_rows};
use self::picker::draw_picker;
use self::status::status_rows;
use super::markdown;
use super::state::Chat;
use super::todos;
use super::transcript::ItemBody;
use super::wrap::clip;
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::Line;
use ratatui::widgets::{Clear, Widget};

/// Whether the terminal's colours are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Colours {
    On,
    Off,
}

const QUIET: Style = Style::new().fg(Color::DarkGray);
const GOOD: Style = Style::new().fg(Color::Green);
const WARN: Style = Style::new().fg(Color::Yellow);
const BAD: Style = Style::new().fg(Color::Red);
const ACCENT: Style = Style::new().fg(Color::Cyan);
/// The view of the interface, which caches rendered items.
#[derive(Debug)]
pub(super) struct ChatView {
    colours: Colours,
    width: usize,
    rendered: Vec<RenderedItem>,
    total_rows: usize,
}

/// An item rendered as rows.
#[derive(Debug, Default)]
struct RenderedItem {
    /// The item, revision and mark that the rows were rendered from.
    key: (u64, u64, CallMark),
    stream: markdown::StreamingMarkdown,
    rows: Vec<Line<'static>>,
}

/// The areas of the screen.
struct ScreenAreas {
    transcript: Rect,
    status: Rect,
    input: Rect,
    footer: Rect,
}

impl ChatView {
    pub(super) fn new(colours: Colours) -> Self {
        Self {
            colours,
            width: 0,
            rendered: Vec::new(),
            total_rows: 0,
        }
    }

    pub(super) fn draw(&mut self, frame: &mut Frame<'_>, chat: &mut Chat) {
        let area = frame.area();
        if area.width == 0 || area.height == 0 {
            return;
        }
        let input_width = usize::from(area.width.saturating_sub(PROMPT_COLUMNS));
        let (input_rows, cursor) = chat.editor.rows(input_width);
        let mut status = status_rows(chat, usize::from(area.width));
        // Todos come last, because the last rows are left out first where space is short.
        status.extend(todos::todo_rows(&chat.info.todos, usize::from(area.width)));
        let areas = areas(area, status.len(), input_rows.len());
        self.draw_transcript(areas.transcript, frame.buffer_mut(), chat);
        draw_lines(&status, areas.status, frame.buffer_mut());
        let position = draw_input(&input_rows, cursor, areas.input, frame.buffer_mut());
        draw_lines(
            &[footer(chat, usize::from(area.width))],
            areas.footer,
            frame.buffer_mut(),
        );
        draw_popup(chat, areas.input, area, frame.buffer_mut());
        if let Some(picker) = &chat.picker {
            draw_picker(picker, areas.transcript, frame.buffer_mut());
        }
        if let Some(position) = position {
            frame.set_cursor_position(position);
        }
        if self.colours == Colours::Off {
            for cell in &mut frame.buffer_mut().content {
                (cell.fg, cell.bg) = (Color::Reset, Color::Reset);
            }
        }
    }

    fn draw_transcript(&mut self, area: Rect, buffer: &mut Buffer, chat: &mut Chat) {
        self.render(chat, usize::from(area.width));
        let total: usize = self.rendered.iter().map(|item| item.rows.len()).sum();
        let height = usize::from(area.height);
        if chat.scroll > 0 {
            // The visible part stays in place while text is added below it.
            chat.scroll += total.saturating_sub(self.total_rows);
        }
        self.total_rows = total;
        chat.page = height.saturating_sub(1).max(1);
        chat.scroll = chat.scroll.min(total.saturating_sub(height));
        let end = total - chat.scroll;
        let rows = self.rendered.iter().flat_map(|item| &item.rows);
        let shown: Vec<Line<'static>> = rows
            .skip(end.saturating_sub(height))
            .take(height.min(end))
            .cloned()
            .collect();
        draw_lines(&shown, area, buffer);
        if chat.scroll > 0 && area.height > 0 {
            let text = format!(" {} more rows below, PgDn ", chat.scroll);
            let row = Rect {
                y: area.bottom() - 1,
                height: 1,
                ..area
            };
            Clear.render(row, buffer);
            draw_lines(
                &[Line::styled(
                    clip(&text, usize::from(area.width)),
                    WARN.add_modifier(Modifier::REVERSED),
                )],
                row,
                buffer,
            );
        }
    }

    /// Renders the items that are new or changed.
    fn render(&mut self, chat: &Chat, width: usize) {
        if width != self.width {
            self.width = width;
            self.rendered.clear();
        }
        self.rendered.truncate(chat.items().len());
        let newest_call = chat
            .items()
            .iter()
            .rev()
            .find(|item| matches!(item.body, ItemBody::Call(_)));
        let newest_call = newest_call.map(|item| item.id);
        for (at, item) in chat.items().iter().enumerate() {
            let before = at
                .checked_sub(1)
                .and_then(|before| chat.items().get(before));
            let key = (
                item.id,
                item.revision,
                CallMark::of(item.id, chat.selected, newest_call),
            );
            if self.rendered.get(at).is_some_and(|have| have.key == key) {
                continue;
            }
            let mut have = match self.rendered.get_mut(at) {
                Some(have) if have.key.0 == item.id => std::mem::take(have),
                Some(_) | None => RenderedItem::default(),
            };
            have.key = key;
            have.rows = if gap_before(before, item) {
                vec![Line::default()]
            } else {
                Vec::new()
            };
            have.rows
                .extend(item_rows(item, &mut have.stream, key.2, width));
            match self.rendered.get_mut(at) {
                Some(slot) => *slot = have,
                None => self.rendered.push(have),
            }
        }
    }
}

/// Divides the screen. The input and the footer come first, then the status; the transcript gets
/// the rest.
fn areas(area: Rect, status_rows: usize, input_rows: usize) -> ScreenAreas {
    let rows = |count: usize| u16::try_from(count).unwrap_or(u16::MAX);
    let footer_height = u16::from(area.height >= 3);
    let room = area.height - footer_height;
    let border = if room >= 6 { 2 } else { 0 };
    let most = (area.height / 3).max(1) + border;
    let input_height = (rows(input_rows) + border).min(most).min(room).max(1);
    let status_height = rows(status_rows).min((room - input_height) / 2);
    let transcript_height = room - input_height - status_height;
    let part = |y: u16, height: u16| Rect {
        x: area.x,
        y: area.y + y,
        width: area.width,
        height,
    };
    ScreenAreas {
        transcript: part(0, transcript_height),
        status: part(transcript_height, status_height),
        input: part(transcript_height + status_height, input_height),
        footer: part(room, footer_height),
    }
}

fn draw_lines(lines: &[Line<'_>], area: Rect, buffer: &mut Buffer) {
    for (line, row) in lines.iter().zip(area.rows()) {
        line.render(row, buffer);
    }
}

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
