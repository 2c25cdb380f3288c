//! The tool `recall`: searching and reading the whole current session, including what compaction
//! left out.
//!
//! Effects: the clock, workspace files (reads), the local disk (writes), the journal (reads), the
//! model.

use super::format::{format_date, format_hits, page, parse_query, to_tool_error};
use crate::lookup::{Lookup, entry_text};
use schemars::JsonSchema;
use serde::Deserialize;
use std::sync::Arc;
use stead_core::{Risk, SessionId, recorded_taint};
use stead_store::{Sessions, StoreError};
use stead_tools::{Output, ToolCx, ToolDef, ToolError, TypedTool, builtin};

/// The tool `recall`.
pub(super) struct Recall {
    pub(super) lookup: Lookup,
    pub(super) sessions: Arc<dyn Sessions>,
    pub(super) session: SessionId,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct RecallArgs {
    /// Words to look for in this session; the best matches come first.
    #[serde(default)]
    query: Option<String>,
    /// At most this many hits.
    #[serde(default = "eight")]
    #[schemars(range(min = 1, max = 50))]
    limit: usize,
    /// Instead of query: give this entry whole.
    #[serde(default)]
    seq: Option<u64>,
    /// With seq: characters to skip.
    #[serde(default)]
    offset: usize,
}

fn eight() -> usize {
    8
}

impl TypedTool for Recall {
    type Args = RecallArgs;
    const DEF: ToolDef = ToolDef::new(builtin::RECALL, Risk::READS, "Find what was said earlier in this session, also what is no longer shown because \
        the conversation became too long. With query: ranked hits as `seq (date) who: text`. With seq: that entry, whole.").bounded();

    async fn call(&self, _: &ToolCx, args: RecallArgs) -> Result<Output, ToolError> {
        match (args.query, args.seq) {
            (Some(_), Some(_)) => Err(ToolError::RespondToModel(
                "give query or seq, not both".to_owned(),
            )),
            (None, None) => Err(ToolError::RespondToModel(
                "give query, the words to look for, or seq, the entry to read".to_owned(),
            )),
            (Some(_), None) if args.offset > 0 => Err(ToolError::RespondToModel(
                "offset is for seq only".to_owned(),
            )),
            (Some(text), None) => self.search(text, args.limit).await,
            (None, Some(seq)) => self.read(seq, args.offset).await,
        }
    }
}

impl Recall {
    async fn search(&self, text: String, limit: usize) -> Result<Output, ToolError> {
        let query = parse_query(text, limit, None, None)?;
        let result = match self
            .lookup
            .session(&*self.sessions, &self.session, &query)
            .await
        {
            Err(crate::LookupError::Sessions(StoreError::NotFound(_))) => {
                return Err(ToolError::RespondToModel(
                    "there is no session yet to recall anything from".to_owned(),
                ));
            }
            result => result.map_err(to_tool_error)?,
        };
        let rows = result.hits.hits.iter().map(|hit| {
            format!(
                "{}{} {}: {}",
                hit.position,
                format_date(hit.at),
                hit.voice.as_str(),
                hit.text
            )
        });
        let text = format_hits(
            &result,
            "nothing in this session matches; try other words, or session_search",
            rows,
        );
        Ok(Output::text(text).tainted_by(result.taint))
    }

    async fn read(&self, seq: u64, offset: usize) -> Result<Output, ToolError> {
        let lines = self
            .sessions
            .read(&self.session)
            .await
            .map_err(|error| ToolError::RespondToModel(error.to_string()))?;
        let Some(line) = lines.iter().find(|line| line.seq == seq) else {
            return Err(ToolError::RespondToModel(format!(
                "there is no entry {seq}; this session has {}",
                lines.len()
            )));
        };
        let Some(entry) = entry_text(&line.entry) else {
            return Err(ToolError::RespondToModel(format!(
                "entry {seq} holds no words; recall with query finds those that do"
            )));
        };
        let page = page(&entry.text, offset);
        let more = page.next.map_or(String::new(), |next| {
            format!("\n[more: recall(seq={seq}, offset={next})]")
        });
        let text = format!(
            "{seq} {:.0} {}: {}{more}",
            line.at,
            entry.voice.as_str(),
            page.text
        );
        let taint = recorded_taint(&lines, seq);
        Ok(Output::text(text).tainted_by(taint.named().to_vec()))
    }
}
