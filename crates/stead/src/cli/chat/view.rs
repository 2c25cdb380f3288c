//! Drawing. The picture depends only on the state and the size of the screen.

use super::markdown;
use super::state::{Activity, Chat, ChatPhase, RunningState, typed_text};
use super::todos;
use super::transcript::{CallItem, CallStage, ChatItem, Details, ItemBody, Tone};
use super::wrap::{LineBreak, clip, wrap, wrap_text};
use crate::cli::render::{outcome_line, tokens_line};
use ratatui::Frame;
use ratatui::buffer::Buffer;
use ratatui::layout::{Position, Rect};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};
use ratatui::widgets::{Clear, Widget};
use stead::agent::{ApprovalQuestion, Inbox, QueuedMessage};
use stead::core::{DecisionKind, PermissionMode, ResultStatus};
use unicode_width::UnicodeWidthStr;

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
const SPINNER: [&str; 10] = ["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"];
/// How long each frame of the spinner is shown.
const SPINNER_STEP_MS: u128 = 100;
const MAX_POPUP_ROWS: u16 = 8;
/// Ids up to this length are shown whole in the footer; longer ones are cut to it.
const MAX_ID_CHARS: usize = 20;
const SHORT_ID_CHARS: usize = 8;
/// The most queued messages that are shown.
const MAX_QUEUED_ROWS: usize = 5;
/// The most rows of a running tool's output that are shown.
const OUTPUT_ROWS: usize = 12;

/// Draws the interface, and caches rendered items.
#[derive(Debug)]
pub(super) struct ChatView {
    colours: Colours,
    width: usize,
    rendered: Vec<RenderedItem>,
    total_rows: usize,
}

/// An item as rows.
#[derive(Debug, Default)]
struct RenderedItem {
    /// The item, revision and mark it was rendered from.
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
        // Last, because they are left out first where space is short.
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

/// Whether Ctrl-O would open this call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum CallMark {
    Selected,
    Newest,
    #[default]
    None,
}

impl CallMark {
    fn of(id: u64, chosen: Option<u64>, newest: Option<u64>) -> Self {
        match chosen {
            Some(chosen) if chosen == id => Self::Selected,
            None if newest == Some(id) => Self::Newest,
            Some(_) | None => Self::None,
        }
    }
}

const PROMPT: &str = "› ";
const PROMPT_COLUMNS: u16 = 2;

/// The input and the footer come first, then the status; the transcript gets what is left.
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

/// A blank row between things of different kinds; calls in a row stand together.
fn gap_before(before: Option<&ChatItem>, item: &ChatItem) -> bool {
    match before.map(|before| (&before.body, &item.body)) {
        None | Some((ItemBody::Call(_), ItemBody::Call(_))) => false,
        Some(_) => true,
    }
}

fn item_rows(
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

/// The preview of a call, in the colours of a diff.
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

/// The status rows: the question, the run, and queued messages.
fn status_rows(chat: &Chat, width: usize) -> Vec<Line<'static>> {
    let mut rows = Vec::new();
    if let Some(question) = &chat.question {
        let call = crate::cli::render::call_line(&question.tool, &question.args);
        rows.push(Line::styled(
            clip(&format!("allow {call}? ({})", question.rule), width),
            WARN,
        ));
        let keys = match chat.editor.is_empty() {
            true => answer_keys(question),
            false => "empty the input to answer with one key".to_owned(),
        };
        rows.push(Line::styled(
            clip(&keys, width),
            WARN.add_modifier(Modifier::BOLD),
        ));
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
                &format!("{} {words} worked on in the background", chat.tasks),
                width,
            ),
            QUIET,
        ));
    }
    rows.extend(queued_rows(&chat.inbox, width));
    rows
}

/// The queued messages, and how they will be delivered.
fn queued_rows(inbox: &Inbox, width: usize) -> Vec<Line<'static>> {
    let mode = inbox.mode();
    let waiting = inbox.queued();
    let row = |QueuedMessage {
                   content,
                   already_shown: told,
               }: &QueuedMessage| {
        let how = if *told {
            "said, and once more afterwards"
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

/// The keys that answer a question.
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
        .map(|always| format!("a always ({always})"));
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
        " {doing} · step {} · {} s · Ctrl-C cancels",
        run.step.max(1),
        run.elapsed.as_secs()
    );
    let text = clip(&text, width.saturating_sub(1));
    Line::from(vec![
        Span::styled(picture, ACCENT),
        Span::styled(text, QUIET),
    ])
}

/// Draws the rows of the input around the cursor, and says where the cursor is.
fn draw_input(
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

/// Session and model on the left, numbers on the right; the numbers have precedence.
fn footer(chat: &Chat, width: usize) -> Line<'static> {
    let info = &chat.info;
    let cache = chat
        .cache_hits()
        .map_or(String::new(), |percent| format!(" · cache {percent}%"));
    let context = info
        .context
        .map_or(String::new(), |(used, window)| match window {
            Some(window) => format!("{}/{} · ", thousands(used), thousands(window)),
            None => format!("{} · ", thousands(used)),
        });
    let numbers = clip(
        &format!("{context}{}{cache}", tokens_line(&info.usage, info.cost)),
        width,
    );
    let plan = if info.planning.is_some() {
        "plan mode · "
    } else {
        ""
    };
    let mode = match info.mode {
        PermissionMode::Default => String::new(),
        other => format!("{other} · "),
    };
    let agent = if chat.agents.len() > 1 {
        format!("{} · ", info.agent)
    } else {
        String::new()
    };
    let names = format!(
        "{plan}{mode}{agent}{} · {}",
        short_id(&info.session),
        info.model
    );
    let names = clip(&names, width.saturating_sub(numbers.width() + 1));
    let blank = " ".repeat(width.saturating_sub(names.width() + numbers.width()));
    Line::styled(format!("{names}{blank}{numbers}"), QUIET)
}

/// Tokens in a few letters: `900`, `12k`, `1050k`.
fn thousands(tokens: u64) -> String {
    if tokens < 1_000 {
        tokens.to_string()
    } else {
        format!("{}k", tokens / 1_000)
    }
}

/// The end of a long id: that of a generated one tells it apart, its beginning does not.
fn short_id(id: &str) -> String {
    match id.chars().count() {
        ..=MAX_ID_CHARS => id.to_owned(),
        chars => format!(
            "…{}",
            id.chars().skip(chars - SHORT_ID_CHARS).collect::<String>()
        ),
    }
}

/// The choices, above the input.
fn draw_popup(chat: &Chat, input: Rect, screen: Rect, buffer: &mut Buffer) {
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
    let row = |(at, choice): (usize, &super::complete::Completion)| {
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

#[cfg(test)]
#[path = "view_tests.rs"]
mod tests;
