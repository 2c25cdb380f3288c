//! How these tools read their arguments and word their answers.

use crate::lookup::{self, LookupError, LookupResult};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::text_tokens;
use stead_search::{Query, Ranking};
use stead_tools::ToolError;

/// Tokens of one page of a text that is given whole.
pub(super) const MAX_PAGE_TOKENS: u64 = 20_000;
/// Characters that are counted at once.
const STEP_CHARS: usize = 2000;

/// What the tools that search take.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArgs {
    /// Words to look for; the best matches come first. Words in "quotes" must stand together.
    query: String,
    /// At most this many hits.
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// Only from this day on: YYYY-MM-DD.
    #[serde(default)]
    since: Option<String>,
    /// Only up to this day: YYYY-MM-DD.
    #[serde(default)]
    until: Option<String>,
}

fn ten() -> usize {
    10
}

impl SearchArgs {
    /// The question they ask.
    pub(super) fn query(self) -> Result<Query, ToolError> {
        parse_query(
            self.query,
            self.limit,
            self.since.as_deref(),
            self.until.as_deref(),
        )
    }
}

/// A question in the words of a tool's arguments.
pub(super) fn parse_query(
    text: String,
    limit: usize,
    since: Option<&str>,
    until: Option<&str>,
) -> Result<Query, ToolError> {
    let since = since
        .map(|text| require_timestamp("since", text, lookup::parse_since(text)))
        .transpose()?;
    let until = until
        .map(|text| require_timestamp("until", text, lookup::parse_until(text)))
        .transpose()?;
    Ok(Query {
        since,
        until,
        ..Query::new(text).limit(limit)
    })
}

fn require_timestamp(
    name: &str,
    text: &str,
    moment: Option<Timestamp>,
) -> Result<Timestamp, ToolError> {
    let wrong = || {
        ToolError::RespondToModel(format!(
            "{name}: {text:?} is no date; write 2026-11-16 or 2026-11-16T09:30:00Z"
        ))
    };
    moment.ok_or_else(wrong)
}

pub(super) fn to_tool_error(error: LookupError) -> ToolError {
    ToolError::RespondToModel(error.to_string())
}

/// The date of a moment, in brackets and with a blank before it.
pub(super) fn format_date(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| format!(" ({})", at.strftime("%Y-%m-%d")))
}

/// The hits, one row each, and what a reader should know about them.
pub(super) fn format_hits(
    looked: &LookupResult,
    nothing: &str,
    rows: impl Iterator<Item = String>,
) -> String {
    let mut rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        rows.push(nothing.to_owned());
    }
    match &looked.hits.ranking {
        Ranking::Lexical | Ranking::Hybrid { unknown: 0 } => {}
        Ranking::Hybrid { unknown } => {
            rows.push(format!("[{unknown} lines were ranked by their words only]"))
        }
        Ranking::LexicalOnly { why } => rows.push(format!("[ranked by words only: {why}]")),
    }
    rows.extend(
        looked
            .unread
            .iter()
            .map(|why| format!("[not searched: {why}]")),
    );
    rows.join("\n")
}

/// A page of a text.
pub(super) struct TextPage<'a> {
    pub(super) text: &'a str,
    /// Where the next one begins, in characters.
    pub(super) next: Option<usize>,
}

/// The part of `text` from the character `offset` on that fits a page.
pub(super) fn page(text: &str, offset: usize) -> TextPage<'_> {
    let start = text
        .char_indices()
        .nth(offset)
        .map_or(text.len(), |(at, _)| at);
    let rest = &text[start..];
    let mut end = 0;
    let mut tokens = 0;
    while end < rest.len() {
        let step = rest[end..]
            .char_indices()
            .nth(STEP_CHARS)
            .map_or(rest.len() - end, |(at, _)| at);
        tokens += text_tokens(&rest[end..end + step]);
        if tokens > MAX_PAGE_TOKENS && end > 0 {
            break;
        }
        end += step;
    }
    let shown = &rest[..end];
    let next = (end < rest.len()).then(|| offset + shown.chars().count());
    TextPage { text: shown, next }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_together_are_the_text() {
        let text = "数据 and words ".repeat(20_000);
        let mut offset = 0;
        let mut all = String::new();
        loop {
            let page = page(&text, offset);
            assert!(text_tokens(page.text) <= MAX_PAGE_TOKENS);
            all.push_str(page.text);
            match page.next {
                Some(next) => offset = next,
                None => break,
            }
        }
        assert!(all == text);
        assert_eq!(page("short", 9).text, "");
    }
}
