//! The tools `memory_search` and `memory_get`, which search and read the files of memory.
//!
//! Effects: the clock, workspace files (reads), the local disk (writes), the journal (reads), the
//! model.

use super::format::{SearchArgs, format_date, format_hits, to_tool_error};
use crate::lookup::{Lookup, MemoryFiles};
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{ArgumentAliases, Risk};
use stead_tools::{CallPlan, Output, ToolCx, ToolDef, ToolError, TypedTool, builtin};
use stead_vfs::{LineRange, VPath};

/// The most lines that one call returns.
const MAX_LINES: u64 = 2000;
/// The most bytes of one line, and of all lines, that one call returns.
const MAX_LINE_BYTES: usize = 4096;
const MAX_BYTES: usize = 64 * 1024;

/// The tool `memory_search`.
pub(super) struct MemorySearch {
    pub(super) lookup: Lookup,
    pub(super) memory: MemoryFiles,
}

impl TypedTool for MemorySearch {
    type Args = SearchArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::MEMORY_SEARCH,
        Risk::READS,
        "Searches what earlier sessions left to remember. Gives ranked hits as `path:line (date) text`.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[
        ("maxResults", "limit"),
        ("max_results", "limit"),
    ]));

    fn plan(&self, _: &SearchArgs) -> CallPlan {
        // The searched view does not include files that the rules deny or ask about.
        CallPlan::default()
    }

    async fn call(&self, _: &ToolCx, args: SearchArgs) -> Result<Output, ToolError> {
        let query = args.query()?;
        let result = self
            .lookup
            .memory(&self.memory, &query)
            .await
            .map_err(to_tool_error)?;
        let rows = result.hits.hits.iter().map(|hit| {
            format!(
                "{}:{}{} {}",
                self.memory.path(&hit.source),
                hit.position,
                format_date(hit.at),
                hit.text
            )
        });
        Ok(Output::text(format_hits(
            &result,
            "nothing in memory matches; try other words, or session_search",
            rows,
        )))
    }
}

/// The tool `memory_get`.
pub(super) struct MemoryGet {
    pub(super) memory: MemoryFiles,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct MemoryGetArgs {
    /// A file of memory, as memory_search names it.
    path: String,
    /// The first line, from 1.
    #[serde(default)]
    #[schemars(range(min = 1))]
    start_line: Option<u64>,
    /// The last line; left out, as much as one call gives.
    #[serde(default)]
    #[schemars(range(min = 1))]
    end_line: Option<u64>,
}

impl TypedTool for MemoryGet {
    type Args = MemoryGetArgs;
    const DEF: ToolDef = ToolDef::new(
        builtin::MEMORY_GET,
        Risk::READS,
        "Read lines of a file of memory, numbered. Only files of memory can be read with it.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[
        ("startLine", "start_line"),
        ("endLine", "end_line"),
    ]));

    fn plan(&self, args: &MemoryGetArgs) -> CallPlan {
        CallPlan::reads(&args.path)
    }

    async fn call(&self, cx: &ToolCx, args: MemoryGetArgs) -> Result<Output, ToolError> {
        let respond = |text: String| ToolError::RespondToModel(text);
        let path = VPath::parse(&args.path).map_err(|error| respond(error.to_string()))?;
        // The resolved path counts, because a link could make another file look like memory.
        let real = cx
            .vfs
            .resolve(&path)
            .await
            .map_err(|error| respond(error.to_string()))?;
        if !self.memory.contains(&real) {
            return Err(respond(format!(
                "{path} is no file of memory; memory_search names those there are"
            )));
        }
        let first = args.start_line.unwrap_or(1).max(1);
        let last = args.end_line.unwrap_or(u64::MAX);
        if last < first {
            return Err(respond(format!(
                "end_line {last} comes before start_line {first}"
            )));
        }
        let take =
            usize::try_from((last - first).saturating_add(1).min(MAX_LINES)).unwrap_or(usize::MAX);
        let range = LineRange {
            skip: first - 1,
            take,
            max_line_bytes: MAX_LINE_BYTES,
            max_bytes: MAX_BYTES,
        };
        let lines = cx
            .vfs
            .read_lines(&path, range)
            .await
            .map_err(|error| respond(error.to_string()))?;
        let mut rows: Vec<String> = lines
            .lines
            .iter()
            .zip(first..)
            .map(|(line, n)| numbered(line, n))
            .collect();
        let next = first + rows.len() as u64;
        let more = lines
            .total
            .map_or(rows.len() == take, |total| next <= total);
        if rows.is_empty() {
            rows.push(format!("{path} has no line {first}"));
        } else if next <= last && more {
            rows.push(format!(
                "[more: memory_get(path=\"{path}\", start_line={next})]"
            ));
        }
        Ok(Output::text(rows.join("\n")))
    }
}

fn numbered(line: &stead_vfs::FileLine, number: u64) -> String {
    let text = String::from_utf8_lossy(&line.text);
    match line.dropped_bytes {
        0 => format!("{number}|{text}"),
        dropped => format!("{number}|{text}… [{dropped} more bytes]"),
    }
}
