//! What earlier sessions left to remember.

use super::{Contribution, Feature, TurnCx};
use crate::memory::{MemoryFiles, memory_tools, without_sources};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_tools::Tool;
use stead_vfs::VPath;
use stead_workspace::{Cut, Section, Surface, Switch, Window, WorkspaceError, enclose, order};

/// Bytes that a token has at least; the budget is in tokens.
const BYTES_PER_TOKEN: u64 = 3;
/// How much more is read than is shown: where each fact is from is for people, and left out.
const SOURCES_ROOM: u64 = 4;

/// What earlier sessions left to remember.
#[derive(Debug)]
pub(super) struct Memory;

impl Feature for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let Some(path) = &cx.definition().tree.memory else {
                return Ok(Contribution::default());
            };
            let off = |switch| cx.definition().config.disable.has(switch);
            let tools = match MemoryFiles::new(cx.definition(), cx.bare.clone()) {
                Ok(files) if !off(Switch::MemoryTools) => {
                    memory_tools(files, cx.sessions.redactor().clone())
                }
                // A layout that has curated memory and no place for days is its own keeper.
                Ok(_) | Err(_) => Vec::new(),
            };
            let section = |title: &str, order, text| Section::new(title, self.name(), order, text);
            let mut sections = Vec::new();
            if off(Switch::WorkspaceContext) {
                return Ok(Contribution { sections, tools });
            }
            if !off(Switch::MemoryTools) {
                sections.extend(
                    recall(cx, path)
                        .map(|text| section("memory recall", order::MEMORY_RECALL, text)),
                );
            }
            if !off(Switch::MemoryHooks) {
                let text = persistence(cx, path, &tools);
                sections.extend(
                    text.map(|text| section("memory persistence", order::MEMORY_PERSISTENCE, text)),
                );
            }
            if !(off(Switch::MemoryTools) && off(Switch::MemoryHooks)) {
                sections.extend(self.curated(cx, path).await?);
            }
            Ok(Contribution { sections, tools })
        })
    }
}

impl Memory {
    /// The curated memory within its budget: the newest part, which stands last.
    async fn curated(
        &self,
        cx: &TurnCx<'_>,
        path: &VPath,
    ) -> Result<Option<Section>, WorkspaceError> {
        let limit = u64::from(cx.definition().config.memory.max_tokens) * BYTES_PER_TOKEN;
        let window = Window::Tail {
            limit: limit.saturating_mul(SOURCES_ROOM),
        };
        let Some(memory) = cx.reader().read(&**cx.files, path, window).await? else {
            return Ok(None);
        };
        let (text, cut_bytes) = newest(&memory.text, limit);
        let left_out = memory.cut_bytes() + cut_bytes;
        let cut = (left_out > 0).then(|| {
            let size = memory.size;
            Cut {
                source: path.to_string(),
                what: format!("its first {left_out} of {size} bytes were left out"),
            }
        });
        let text = text.trim();
        let text = match &cut {
            Some(cut) => {
                let find = if cx.has_tool("memory_search") {
                    "memory_search"
                } else {
                    cx.name_of("grep_files")
                };
                format!(
                    "[{path}: {}; find older entries with {find}]\n{text}",
                    cut.what
                )
            }
            None => text.to_owned(),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let section = Section::new(
            "memory",
            self.name(),
            order::MEMORY,
            enclose("memory_context", &text),
        );
        Ok(Some(section.from(path.to_string()).loaded().without(cut)))
    }
}

/// The newest lines that come to at most `limit` bytes without their sources, and how many bytes
/// come before them.
fn newest(text: &str, limit: u64) -> (String, u64) {
    let mut lines: Vec<String> = Vec::new();
    let mut used = 0;
    let mut start = text.len();
    for line in text.split_inclusive('\n').rev() {
        let shown = match without_sources(line) {
            whole if whole.len() == line.len() => line.to_owned(),
            bare => format!("{bare}\n"),
        };
        if used + shown.len() as u64 > limit {
            break;
        }
        used += shown.len() as u64;
        start -= line.len();
        lines.push(shown);
    }
    if lines.is_empty() {
        // One line that is longer than all that may be shown.
        start = text.ceil_char_boundary(
            text.len()
                .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX)),
        );
        return (text[start..].to_owned(), start as u64);
    }
    lines.reverse();
    (lines.concat(), start as u64)
}

fn recall(cx: &TurnCx<'_>, path: &VPath) -> Option<String> {
    let days = cx
        .definition()
        .tree
        .days
        .as_ref()
        .map_or(String::new(), |days| {
            format!(" and, day by day, in `{days}/`")
        });
    let how = if cx.has_tool("memory_search") {
        "search them with `memory_search`".to_owned()
    } else if cx.has_tool("grep_files") {
        format!("search them with `{}`", cx.name_of("grep_files"))
    } else {
        return None;
    };
    Some(format!(
        "## Memory Recall\nWhat earlier sessions learned is in `{path}`{days}. Before you answer about earlier work, \
         people, decisions or preferences, {how}; the part shown below may not be all."
    ))
}

fn persistence(cx: &TurnCx<'_>, path: &VPath, tools: &[Arc<dyn Tool>]) -> Option<String> {
    let can_save =
        tools.iter().any(|tool| tool.spec().name == "memory_save") && cx.allows_tool("memory_save");
    let how = if can_save {
        "save it with `memory_save`".to_owned()
    } else if cx.has_tool("write_file") {
        let how = match cx.surface {
            Surface::Snake => " (`write_file` with `mode: append`)",
            Surface::Title => "",
        };
        match &cx.definition().tree.days {
            Some(days) => format!("append it to `{days}/YYYY-MM-DD.md` of today{how}"),
            None => format!("append it to `{path}`{how}"),
        }
    } else {
        return None;
    };
    Some(format!(
        "## Memory Persistence\nWhen you learn something that will matter in later sessions (a decision and its \
         reason, a preference, a fact about the project), {how}: one short line each, never a secret. What is only \
         needed now does not belong there."
    ))
}
