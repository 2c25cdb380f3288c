//! What earlier sessions left to remember.

use super::{Contribution, Feature, TurnCx};
use futures_util::future::BoxFuture;
use stead_vfs::VPath;
use stead_workspace::{Cut, Section, Surface, Switch, Window, WorkspaceError, enclose, order};

/// Bytes that a token has at least; the budget is in tokens.
const BYTES_PER_TOKEN: u64 = 3;

/// What earlier sessions left to remember.
#[derive(Debug)]
pub(super) struct Memory;

impl Feature for Memory {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn contribute<'a>(&'a self, cx: &'a TurnCx<'a>) -> BoxFuture<'a, Result<Contribution, WorkspaceError>> {
        Box::pin(async move {
            let Some(path) = &cx.definition().tree.memory else { return Ok(Contribution::default()) };
            let off = |switch| cx.definition().config.disable.has(switch);
            let section = |title: &str, order, text| Section::new(title, self.name(), order, text);
            let mut sections = Vec::new();
            if !off(Switch::MemoryTools) {
                sections.extend(recall(cx, path).map(|text| section("memory recall", order::MEMORY_RECALL, text)));
            }
            if !off(Switch::MemoryHooks) {
                let text = persistence(cx, path);
                sections.extend(text.map(|text| section("memory persistence", order::MEMORY_PERSISTENCE, text)));
            }
            if !(off(Switch::MemoryTools) && off(Switch::MemoryHooks)) {
                sections.extend(self.curated(cx, path).await?);
            }
            Ok(sections.into())
        })
    }
}

impl Memory {
    /// The curated memory within its budget: the newest part, which stands last.
    async fn curated(&self, cx: &TurnCx<'_>, path: &VPath) -> Result<Option<Section>, WorkspaceError> {
        let limit = u64::from(cx.definition().config.memory.max_tokens) * BYTES_PER_TOKEN;
        let Some(memory) = cx.reader().read(&**cx.files, path, Window::Tail { limit }).await? else { return Ok(None) };
        let text = memory.text.trim();
        let cut = (memory.size > limit).then(|| {
            let (left_out, size) = (memory.cut_bytes(), memory.size);
            Cut { source: path.to_string(), what: format!("its first {left_out} of {size} bytes were left out") }
        });
        let text = match &cut {
            Some(cut) => {
                let find = if cx.has_tool("memory_search") { "memory_search" } else { cx.name_of("grep_files") };
                format!("[{path}: {}; find older entries with {find}]\n{text}", cut.what)
            }
            None => text.to_owned(),
        };
        if text.is_empty() {
            return Ok(None);
        }
        let section = Section::new("memory", self.name(), order::MEMORY, enclose("memory_context", &text));
        Ok(Some(section.from(path.to_string()).loaded().without(cut)))
    }
}

fn recall(cx: &TurnCx<'_>, path: &VPath) -> Option<String> {
    let days =
        cx.definition().tree.days.as_ref().map_or(String::new(), |days| format!(" and, day by day, in `{days}/`"));
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

fn persistence(cx: &TurnCx<'_>, path: &VPath) -> Option<String> {
    let how = if cx.has_tool("memory_save") {
        "save it with `memory_save`".to_owned()
    } else if cx.has_tool("write_file") {
        let how = match cx.definition().surface {
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
