//! The memory feature: the section of the prompt with long-term memory, and the tools that change
//! it.
//!
//! Effects: workspace files (reads).

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use std::sync::Arc;
use stead_core::ToolKind;
use stead_memory::{FactFiles, memory_tools, without_sources};
use stead_tools::{Tool, ToolIdentity, builtin};
use stead_vfs::VPath;
use stead_workspace::{
    FeatureSwitch, ReadWindow, Section, SectionCut, Surface, WorkspaceError, enclose, section_order,
};

/// The assumed bytes of a token; the limit of memory is in tokens.
const BYTES_PER_TOKEN: u64 = 3;
/// How many times more is read than is shown, because the sources of facts are not shown.
const SOURCES_READ_FACTOR: u64 = 4;

/// The sections and tools of long-term memory.
#[derive(Debug)]
pub(super) struct MemoryFeature;

impl Feature for MemoryFeature {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn offers(&self) -> &'static [ToolIdentity] {
        &[builtin::MEMORY_SAVE, builtin::MEMORY_FORGET]
    }

    fn contribute<'a>(
        &'a self,
        cx: &'a TurnCx<'a>,
    ) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let Some(path) = &cx.definition().paths.memory else {
                return Ok(Contribution::default());
            };
            let off = |switch| cx.definition().config.disable.contains(switch);
            let tools = match FactFiles::new(cx.definition(), cx.unguarded_files.clone()) {
                Ok(files) if !off(FeatureSwitch::MemoryTools) => {
                    memory_tools(files, cx.sessions.redactor().clone())
                }
                // A layout with curated memory but no folder for daily facts does not use these
                // tools.
                Ok(_) | Err(_) => Vec::new(),
            };
            let section = |title: &str, order, text| Section::new(title, self.name(), order, text);
            let mut sections = Vec::new();
            if off(FeatureSwitch::WorkspaceContext) {
                return Ok(Contribution { sections, tools });
            }
            if !off(FeatureSwitch::MemoryTools) {
                sections.extend(
                    recall_help(cx, path)
                        .map(|text| section("memory recall", section_order::MEMORY_RECALL, text)),
                );
            }
            if !off(FeatureSwitch::MemoryHooks) {
                let text = persistence_help(cx, path, &tools);
                sections.extend(text.map(|text| {
                    section(
                        "memory persistence",
                        section_order::MEMORY_PERSISTENCE,
                        text,
                    )
                }));
            }
            if !(off(FeatureSwitch::MemoryTools) && off(FeatureSwitch::MemoryHooks)) {
                // In the folder of a user lies what another system kept for that user.
                for path in cx.user_version(path).iter().chain([path]) {
                    sections.extend(self.curated_section(cx, path).await?);
                }
            }
            Ok(Contribution { sections, tools })
        })
    }
}

impl MemoryFeature {
    /// Returns the section with the newest part of curated memory, which is at its end.
    async fn curated_section(
        &self,
        cx: &TurnCx<'_>,
        path: &VPath,
    ) -> Result<Option<Section>, WorkspaceError> {
        let limit = u64::from(cx.definition().config.memory.max_tokens) * BYTES_PER_TOKEN;
        let window = ReadWindow::Tail {
            limit: limit.saturating_mul(SOURCES_READ_FACTOR),
        };
        let Some(memory) = cx.reader().read(&**cx.files, path, window).await? else {
            return Ok(None);
        };
        let (text, cut_bytes) = newest_lines(&memory.text, limit);
        let left_out = memory.cut_bytes() + cut_bytes;
        let cut = (left_out > 0).then(|| {
            let size = memory.size;
            SectionCut {
                source: path.to_string(),
                what: format!("its first {left_out} of {size} bytes were left out"),
            }
        });
        let text = text.trim();
        let text = match &cut {
            Some(cut) => {
                let find = if cx.has_tool(&builtin::MEMORY_SEARCH) {
                    builtin::MEMORY_SEARCH.name
                } else {
                    cx.name_of(&builtin::GREP_FILES)
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
            section_order::MEMORY,
            enclose("memory_context", &text),
        );
        Ok(Some(
            section
                .with_source(path.to_string())
                .as_loaded_file()
                .with_cuts(cut),
        ))
    }
}

/// Returns the newest lines that have at most `limit` bytes without their sources, and the number
/// of bytes before them.
fn newest_lines(text: &str, limit: u64) -> (String, u64) {
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
        // The newest line alone exceeds the limit.
        start = text.ceil_char_boundary(
            text.len()
                .saturating_sub(usize::try_from(limit).unwrap_or(usize::MAX)),
        );
        return (text[start..].to_owned(), start as u64);
    }
    lines.reverse();
    (lines.concat(), start as u64)
}

/// Returns the text about searching memory.
fn recall_help(cx: &TurnCx<'_>, path: &VPath) -> Option<String> {
    let days = cx
        .definition()
        .paths
        .daily_facts
        .as_ref()
        .map_or(String::new(), |days| {
            format!(" and, day by day, in `{days}/`")
        });
    let how = if cx.has_tool(&builtin::MEMORY_SEARCH) {
        "search them with `memory_search`".to_owned()
    } else if cx.has_tool(&builtin::GREP_FILES) {
        format!("search them with `{}`", cx.name_of(&builtin::GREP_FILES))
    } else {
        return None;
    };
    Some(format!(
        "## Memory Recall\nWhat earlier sessions learned is in `{path}`{days}. Before you answer about earlier work, \
         people, decisions or preferences, {how}."
    ))
}

/// Returns the text about saving to memory.
fn persistence_help(cx: &TurnCx<'_>, path: &VPath, tools: &[Arc<dyn Tool>]) -> Option<String> {
    let can_save = tools
        .iter()
        .any(|tool| tool.spec().kind == ToolKind::MemorySave)
        && cx.allows_tool(&builtin::MEMORY_SAVE);
    let how = if can_save {
        "save it with `memory_save`".to_owned()
    } else if cx.has_tool(&builtin::WRITE_FILE) {
        let how = match cx.surface {
            Surface::Snake => " (`write_file` with `mode: append`)",
            Surface::Title => "",
        };
        match &cx.definition().paths.daily_facts {
            Some(days) => format!("append it to `{days}/YYYY-MM-DD.md` of today{how}"),
            None => format!("append it to `{path}`{how}"),
        }
    } else {
        return None;
    };
    Some(format!(
        "## Memory Persistence\nWhat will matter in later sessions (a decision and its reason, a preference, a fact about \
         the project): {how}; one short line each, never a secret."
    ))
}
