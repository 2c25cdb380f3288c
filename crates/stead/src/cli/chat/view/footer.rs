//! The footer of the screen of `stead chat`: session, model and numbers.
//!
//! Effects: none.

use super::super::state::Chat;
use super::super::wrap::clip;
use super::QUIET;
use crate::cli::render::tokens_line;
use ratatui::text::Line;
use stead::agent::SideTotal;
use stead::core::{PermissionMode, counted};
use unicode_width::UnicodeWidthStr;

/// The maximum length of an id in the footer; longer ones are cut.
const MAX_ID_CHARS: usize = 20;

const SHORT_ID_CHARS: usize = 8;

/// Returns the footer: session and model on the left, numbers on the right. The numbers have
/// precedence.
pub(super) fn footer(chat: &Chat, width: usize) -> Line<'static> {
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
        &format!(
            "{context}{}{}{cache}",
            tokens_line(&info.usage, info.cost),
            side_calls(chat.side)
        ),
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
        short_id(info.session.as_str()),
        info.model
    );
    let names = clip(&names, width.saturating_sub(numbers.width() + 1));
    let blank = " ".repeat(width.saturating_sub(names.width() + numbers.width()));
    Line::styled(format!("{names}{blank}{numbers}"), QUIET)
}

/// Returns what calls beside the answers of the session cost: those of memory and of hooks.
fn side_calls(side: SideTotal) -> String {
    let SideTotal {
        calls,
        cost,
        unpriced_calls,
    } = side;
    match (calls, unpriced_calls) {
        (0, _) => String::new(),
        (calls, 0) => format!(" · {}, {cost}", counted(calls, "side call")),
        (calls, _) => format!(" · {}", counted(calls, "side call")),
    }
}

/// Returns a short form of a number of tokens: `900`, `12k`, `1050k`.
fn thousands(tokens: u64) -> String {
    if tokens < 1_000 {
        tokens.to_string()
    } else {
        format!("{}k", tokens / 1_000)
    }
}

/// Returns the end of a long id: generated ids differ at the end, not at the start.
fn short_id(id: &str) -> String {
    match id.chars().count() {
        ..=MAX_ID_CHARS => id.to_owned(),
        chars => format!(
            "…{}",
            id.chars().skip(chars - SHORT_ID_CHARS).collect::<String>()
        ),
    }
}
