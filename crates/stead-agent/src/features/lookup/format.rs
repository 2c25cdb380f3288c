//! Part of the lookup feature: arguments and output that its tools share.
//!
//! Effects: none.

use crate::lookup::{self, LookupError, LookupResult};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::text_tokens;
use stead_search::{Query, Ranking};
use stead_tools::ToolError;

/// The most tokens of one page of a long text.
pub(super) const MAX_PAGE_TOKENS: u64 = 20_000;
/// The number of characters whose tokens are counted at once.
const STEP_CHARS: usize = 2000;

/// The arguments of the search tools.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SearchArgs {
    /// Words; those in "quotes" must stand together.
    query: String,
    #[serde(default = "ten")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// First day: YYYY-MM-DD.
    #[serde(default)]
    since: Option<String>,
    /// Last day.
    #[serde(default)]
    until: Option<String>,
}

fn ten() -> usize {
    10
}

impl SearchArgs {
    /// Returns the query.
    pub(super) fn query(self) -> Result<Query, ToolError> {
        parse_query(
            self.query,
            self.limit,
            self.since.as_deref(),
            self.until.as_deref(),
        )
    }
}

/// Parses the arguments of a search.
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

/// Returns the parsed time of the argument `name`, or an error for the model.
fn require_timestamp(
    name: &str,
    text: &str,
    parsed: Option<Timestamp>,
) -> Result<Timestamp, ToolError> {
    let invalid = || {
        ToolError::RespondToModel(format!(
            "{name}: {text:?} is no date; write 2026-11-16 or 2026-11-16T09:30:00Z"
        ))
    };
    parsed.ok_or_else(invalid)
}

/// Returns the error as the model sees it.
pub(super) fn to_tool_error(error: LookupError) -> ToolError {
    ToolError::RespondToModel(error.to_string())
}

/// Returns ` (YYYY-MM-DD)`, or nothing if the time is not known.
pub(super) fn format_date(at: Option<Timestamp>) -> String {
    at.map_or_else(String::new, |at| format!(" ({})", at.strftime("%Y-%m-%d")))
}

/// Returns the hits, one row each, and notes about ranking and sources that were not searched.
pub(super) fn format_hits(
    result: &LookupResult,
    nothing: &str,
    rows: impl Iterator<Item = String>,
) -> String {
    let mut rows: Vec<String> = rows.collect();
    if rows.is_empty() {
        rows.push(nothing.to_owned());
    }
    match &result.hits.ranking {
        Ranking::Lexical | Ranking::Hybrid { unknown: 0 } => {}
        Ranking::Hybrid { unknown } => {
            rows.push(format!("[{unknown} lines were ranked by their words only]"))
        }
        Ranking::LexicalOnly { why } => rows.push(format!("[ranked by words only: {why}]")),
    }
    rows.extend(
        result
            .unread
            .iter()
            .map(|why| format!("[not searched: {why}]")),
    );
    rows.join("\n")
}

/// A page of a text.
pub(super) struct TextPage<'a> {
    pub(super) text: &'a str,
    /// The offset of the next page, in characters.
    pub(super) next: Option<usize>,
}

/// Returns the page of `text` that begins at the character `offset`.
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
