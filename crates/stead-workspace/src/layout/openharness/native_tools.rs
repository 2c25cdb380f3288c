//! The built-in tools and their names in the openharness layout.
//!
//! Effects: none.

use super::common::suggestion;
use std::collections::BTreeMap;
use stead_tools::{Registry, ToolIdentity, builtin, file_tools};

/// The tools of the layout that come in a later version: title, canonical name.
const PLANNED_TOOLS: [(&str, &str); 1] = [("WebFetch", "web_fetch")];
/// The built-in tools that are not file tools.
const OTHER_TOOLS: [ToolIdentity; 3] =
    [builtin::LOAD_SKILL, builtin::EXECUTE, builtin::WRITE_TODOS];

/// All built-in tools, by each of their names.
pub(super) struct NativeTools {
    by_name: BTreeMap<String, NativeTool>,
}

/// A built-in tool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct NativeTool {
    pub(super) canonical: String,
    pub(super) state: NativeToolState,
}

/// Whether a tool is available.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NativeToolState {
    Active,
    Planned,
}

impl NativeTools {
    pub(super) fn new() -> Self {
        let mut known = BTreeMap::new();
        let mut add = |name: &str, canonical: &str, state| {
            known.insert(
                name.to_owned(),
                NativeTool {
                    canonical: canonical.to_owned(),
                    state,
                },
            );
        };
        // The names of the built-in tools do not conflict; a test checks this.
        for spec in Registry::new(file_tools())
            .iter()
            .flat_map(|tools| tools.specs().to_vec())
        {
            spec.aliases
                .iter()
                .chain([&spec.name])
                .for_each(|name| add(name, &spec.name, NativeToolState::Active));
        }
        for tool in OTHER_TOOLS {
            for name in tool.title.into_iter().chain([tool.name]) {
                add(name, tool.name, NativeToolState::Active);
            }
        }
        for (title, canonical) in PLANNED_TOOLS {
            add(title, canonical, NativeToolState::Planned);
            add(canonical, canonical, NativeToolState::Planned);
        }
        Self { by_name: known }
    }

    /// Returns the tool with this name, or the problem of the name.
    pub(super) fn find(&self, name: &str) -> Result<&NativeTool, String> {
        let titles = self
            .by_name
            .keys()
            .map(String::as_str)
            .filter(|name| name.starts_with(char::is_uppercase));
        let known: Vec<&str> = self.by_name.keys().map(String::as_str).collect();
        self.by_name.get(name).ok_or_else(|| {
            // Suggest titles only: these are the names that this layout uses.
            let hint = match crate::closest_name(name, &known) {
                Some(near) => format!("; did you mean `{near}`?"),
                None => suggestion(name, titles),
            };
            format!("there is no built-in tool `{name}`{hint}")
        })
    }
}
