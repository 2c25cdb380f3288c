//! The tools `session_search`, `session_list` and `session_history`, which read sessions.
//!
//! Effects: the clock, workspace files (reads), the local disk (writes), the journal (reads), the
//! model.

use super::format::{SearchArgs, format_date, format_hits, page, to_tool_error};
use crate::lookup::{Lookup, entry_text};
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use stead_core::{ArgumentAliases, JournalLine, Risk, SessionId, TaintOrigin, recorded_taint};
use stead_store::{PageRequest, Sessions};
use stead_tools::{Output, ToolCx, ToolDef, ToolError, TypedTool, builtin};

/// The most characters of one message in a history.
const MAX_MESSAGE_CHARS: usize = 500;

/// Parameters by which AgentScope names the agent whose sessions are looked at. Here these are
/// always the agent's own.
const OTHER_AGENTS: [&str; 2] = ["agentId", "agent_id"];

/// The tool `session_search`.
pub(super) struct SessionSearch {
    pub(super) lookup: Lookup,
    pub(super) sessions: Arc<dyn Sessions>,
}

impl TypedTool for SessionSearch {
    type Args = SearchArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::SESSION_SEARCH,
        Risk::READS,
        "Search everything that was said in all sessions, this one included. Gives ranked \
        hits as `session:seq (date) who: text`; read around a hit with session_history.",
    )
    .bounded()
    .argument_aliases(
        ArgumentAliases::of_names(&[("maxResults", "limit"), ("max_results", "limit")])
            .with_ignored(&OTHER_AGENTS),
    );

    async fn call(&self, _: &ToolCx, args: SearchArgs) -> Result<Output, ToolError> {
        let query = args.query()?;
        let result = self
            .lookup
            .sessions(&*self.sessions, &query)
            .await
            .map_err(to_tool_error)?;
        let rows = result.hits.hits.iter().map(|hit| {
            format!(
                "{}:{}{} {}: {}",
                hit.source,
                hit.position,
                format_date(hit.at),
                hit.voice.as_str(),
                hit.text
            )
        });
        let text = format_hits(
            &result,
            "nothing in any session matches; try other words, or memory_search",
            rows,
        );
        Ok(Output::text(text).tainted_by(result.taint))
    }
}

/// The tool `session_list`.
pub(super) struct SessionList {
    pub(super) sessions: Arc<dyn Sessions>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionListArgs {
    /// At most this many, the newest first.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 200))]
    limit: usize,
}

fn twenty() -> usize {
    20
}

impl TypedTool for SessionList {
    type Args = SessionListArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::SESSION_LIST,
        Risk::READS,
        "List the sessions there are, the newest first: id, last change, entries, first words.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::NONE.with_ignored(&OTHER_AGENTS));

    async fn call(&self, _: &ToolCx, args: SessionListArgs) -> Result<Output, ToolError> {
        let page = self
            .sessions
            .list(PageRequest::first(args.limit))
            .await
            .map_err(|error| ToolError::RespondToModel(error.to_string()))?;
        let mut rows: Vec<String> = page
            .sessions
            .iter()
            .map(|session| {
                let at = Timestamp::from_millisecond(session.updated_ms)
                    .map_or(String::new(), |at| format!("{at:.0}"));
                let damaged = if session.damage.is_some() {
                    ", damaged"
                } else {
                    ""
                };
                let of = session
                    .parent
                    .as_ref()
                    .map_or(String::new(), |parent| format!(", a subagent of {parent}"));
                format!(
                    "{} {at} ({} entries{of}{damaged}) {}",
                    session.id, session.entries, session.title
                )
            })
            .collect();
        if rows.is_empty() {
            rows.push("there are no sessions yet".to_owned());
        }
        if page.next.is_some() {
            rows.push("[there are more; raise limit]".to_owned());
        }
        Ok(Output::text(rows.join("\n")))
    }
}

/// The tool `session_history`.
pub(super) struct SessionHistory {
    pub(super) sessions: Arc<dyn Sessions>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct SessionHistoryArgs {
    /// The session's id, as session_list and session_search give it.
    session: String,
    /// Begin at this entry; left out, the last messages are given.
    #[serde(default)]
    from_seq: Option<u64>,
    /// How many messages. With from_seq and last_n 1, that message is given whole.
    #[serde(default = "twenty")]
    #[schemars(range(min = 1, max = 200))]
    last_n: usize,
    /// Of a message that is given whole: characters to skip.
    #[serde(default)]
    offset: usize,
}

impl TypedTool for SessionHistory {
    type Args = SessionHistoryArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::SESSION_HISTORY,
        Risk::READS,
        "Read what was said in a session: `seq time who: text`, long messages shortened.",
    )
    .bounded()
    .argument_aliases(
        ArgumentAliases::of_names(&[
            ("sessionId", "session"),
            ("session_id", "session"),
            ("lastN", "last_n"),
        ])
        .with_ignored(&OTHER_AGENTS),
    );

    async fn call(&self, _: &ToolCx, args: SessionHistoryArgs) -> Result<Output, ToolError> {
        let respond = |text: String| ToolError::RespondToModel(text);
        let id = SessionId::new(args.session.trim())
            .map_err(|error| respond(format!("session: {error}")))?;
        let lines = self
            .sessions
            .read(&id)
            .await
            .map_err(|error| respond(error.to_string()))?;
        let messages: Vec<(&JournalLine, _)> = lines
            .iter()
            .filter_map(|line| Some((line, entry_text(&line.entry)?)))
            .collect();
        let start = match args.from_seq {
            Some(seq) => messages.partition_point(|(line, _)| line.seq < seq),
            None => messages.len().saturating_sub(args.last_n),
        };
        let shown = &messages[start..(start + args.last_n).min(messages.len())];
        // Everything after the first untrusted message may repeat its content.
        let newest = shown.last().map_or(0, |(line, _)| line.seq);
        let is_tainted = !recorded_taint(&lines, newest).is_empty();
        let taint = is_tainted.then(|| TaintOrigin::Session { id: id.clone() });
        if let ([(line, message)], Some(_), 1) = (shown, args.from_seq, args.last_n) {
            let page = page(&message.text, args.offset);
            let head = format!("{} {:.0} {}:", line.seq, line.at, message.voice.as_str());
            let more = page.next.map_or(String::new(), |next| {
                format!("\n[more: the same with offset={next}]")
            });
            return Ok(Output::text(format!("{head} {}{more}", page.text)).tainted_by(taint));
        }
        if args.offset > 0 {
            return Err(respond(
                "offset is for one message: give from_seq, and last_n 1".to_owned(),
            ));
        }
        let mut rows: Vec<String> = shown
            .iter()
            .map(|(line, message)| {
                let text = shortened(&message.text, line.seq);
                format!(
                    "{} {:.0} {}: {text}",
                    line.seq,
                    line.at,
                    message.voice.as_str()
                )
            })
            .collect();
        if rows.is_empty() {
            rows.push(format!(
                "session {id} has no messages there; it has {} entries",
                lines.len()
            ));
        }
        if let Some((next, _)) = messages.get(start + args.last_n) {
            rows.push(format!("[more: from_seq={}]", next.seq));
        }
        Ok(Output::text(rows.join("\n")).tainted_by(taint))
    }
}

fn shortened(text: &str, seq: u64) -> String {
    match text.char_indices().nth(MAX_MESSAGE_CHARS) {
        None => text.to_owned(),
        Some((end, _)) => {
            let rest = text[end..].chars().count();
            format!(
                "{}… [{rest} more characters: from_seq={seq}, last_n=1]",
                &text[..end]
            )
        }
    }
}
