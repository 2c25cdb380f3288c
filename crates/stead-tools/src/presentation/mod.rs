//! Which tools a model is shown, and how it reaches the others.
//!
//! The schemas of all tools would be most of a small request. So a model is shown the tools that it
//! needs often; tools that belong together are shown as one, a [`ToolGroup`] with an `action`; and
//! the others are found with `tool_search` and called with `use_tool`. Only what is shown changes: a
//! call of a group or of `use_tool` is unwrapped before anything looks at it, so rules, hooks,
//! limits and journals know the tool itself, and a model that calls it by its own name is understood
//! too.
//!
//! Effects: none.

mod groups;
mod search;

pub use groups::{ToolGroup, tool_group, tool_groups};
pub use search::{TOOL_SEARCH, USE_TOOL};

use crate::{Tool, ToolIdentity, builtin_tools};
use schemars::JsonSchema;
use search::use_tool;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::{Exposure, ToolSpec, spec_bytes};

/// The identities of the tools of this module.
pub(crate) const IDENTITIES: &[ToolIdentity] = &[TOOL_SEARCH, USE_TOOL];

/// Fewer bytes of schemas than this are shown: `tool_search` and `use_tool` take about as many.
const MIN_DEFERRED_BYTES: usize = 1_000;

/// The parameter of a group that chooses the tool.
const ACTION: &str = "action";

/// How many tools a model is shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum ShownTools {
    /// All, each by its own name.
    All,
    /// Those that are needed often.
    #[default]
    Usual,
    /// Those that are always needed: for models with small context windows.
    Few,
}

impl ShownTools {
    /// Whether tools of this exposure are shown.
    pub fn includes(self, exposure: Exposure) -> bool {
        match self {
            Self::All => true,
            Self::Usual => exposure <= Exposure::Usually,
            Self::Few => exposure == Exposure::Always,
        }
    }
}

/// What a model is shown of the tools of a registry.
#[derive(Debug, Clone, Default)]
pub(crate) struct Presentation {
    /// The groups whose tools are there, with the form in which they are shown.
    groups: Vec<GroupForm>,
    /// How many tools are shown.
    shown: ShownTools,
    /// The canonical names of tools and the names of groups that are not shown.
    deferred: BTreeSet<String>,
}

/// A group with those of its tools that are there.
#[derive(Debug, Clone)]
struct GroupForm {
    spec: ToolSpec,
    /// The canonical names of the tools, by action.
    actions: BTreeMap<&'static str, String>,
}

/// What is shown of lists of specs, so that registries with equal specs share it.
#[derive(Clone, Default)]
pub(crate) struct SharedPresentations(Arc<Mutex<Vec<Arc<Presented>>>>);

/// What is shown of a list of specs.
pub(crate) struct Presented {
    all: Arc<[ToolSpec]>,
    shown: ShownTools,
    /// Which of the specs are named.
    named: Vec<bool>,
    pub(crate) presentation: Arc<Presentation>,
    /// `tool_search` and `use_tool`, if something is not shown.
    pub(crate) tools: Vec<Arc<dyn Tool>>,
}

impl SharedPresentations {
    /// The most that are kept, the latest last.
    const MAX_KEPT: usize = 8;

    /// Returns what is shown of `all`, made once.
    pub(crate) fn get(
        &self,
        all: Arc<[ToolSpec]>,
        shown: ShownTools,
        is_named: &dyn Fn(&str) -> bool,
    ) -> Arc<Presented> {
        let named: Vec<bool> = all.iter().map(|spec| is_named(&spec.name)).collect();
        let mut kept = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let is_same = |known: &&Arc<Presented>| {
            Arc::ptr_eq(&known.all, &all) && known.shown == shown && known.named == named
        };
        if let Some(same) = kept.iter().find(is_same) {
            return Arc::clone(same);
        }
        let presentation = Presentation::new(&all, shown, is_named);
        let search = presentation.search_tool(&all);
        let tools = search.map(|search| vec![search, use_tool()]);
        let presented = Arc::new(Presented {
            shown,
            named,
            presentation: Arc::new(presentation),
            tools: tools.unwrap_or_default(),
            all,
        });
        if kept.len() == Self::MAX_KEPT {
            kept.remove(0);
        }
        kept.push(presented.clone());
        presented
    }
}

impl Presentation {
    /// Returns how `specs` are shown. Tools that `is_named` accepts are shown by their own names,
    /// whatever their exposure.
    pub(crate) fn new(
        specs: &[ToolSpec],
        shown: ShownTools,
        is_named: &dyn Fn(&str) -> bool,
    ) -> Self {
        let groups: Vec<(GroupForm, Exposure)> = match shown {
            ShownTools::All => Vec::new(),
            ShownTools::Usual | ShownTools::Few => tool_groups()
                .iter()
                .filter_map(|group| GroupForm::new(group, specs, is_named))
                .collect(),
        };
        let is_grouped = |name: &str| {
            groups
                .iter()
                .any(|(group, _)| group.action_of(name).is_some())
        };
        let hidden_groups = groups
            .iter()
            .filter(|(_, exposure)| !shown.includes(*exposure))
            .map(|(group, _)| &group.spec);
        let hidden_tools = specs.iter().filter(|spec| {
            !shown.includes(spec.exposure) && !is_named(&spec.name) && !is_grouped(&spec.name)
        });
        let hidden: Vec<&ToolSpec> = hidden_groups.chain(hidden_tools).collect();
        let bytes: usize = hidden.iter().map(|spec| spec_bytes(spec)).sum();
        let deferred = match bytes >= MIN_DEFERRED_BYTES {
            true => hidden.iter().map(|spec| spec.name.clone()).collect(),
            false => BTreeSet::new(),
        };
        Self {
            groups: groups.into_iter().map(|(group, _)| group).collect(),
            shown,
            deferred,
        }
    }

    /// Returns how many tools are shown.
    pub(crate) fn shown(&self) -> ShownTools {
        self.shown
    }

    /// Returns the names of what is not shown.
    pub(crate) fn deferred(&self) -> &BTreeSet<String> {
        &self.deferred
    }

    /// Whether the tool with this canonical name is shown by its own name.
    pub(crate) fn shows_itself(&self, name: &str) -> bool {
        self.group_of(name).is_none() && !self.deferred.contains(name)
    }

    /// Returns the specs of the groups that are shown.
    pub(crate) fn shown_groups(&self) -> impl Iterator<Item = &ToolSpec> {
        self.groups
            .iter()
            .map(|group| &group.spec)
            .filter(|spec| !self.deferred.contains(&spec.name))
    }

    /// Returns the spec of the group of this name.
    pub(crate) fn group(&self, name: &str) -> Option<&ToolSpec> {
        let mut specs = self.groups.iter().map(|group| &group.spec);
        specs.find(|spec| spec.name == name)
    }

    /// Returns the tool `tool_search` for what is not shown of `specs`; none if all is shown.
    pub(crate) fn search_tool(&self, specs: &[ToolSpec]) -> Option<Arc<dyn Tool>> {
        if self.deferred.is_empty() {
            return None;
        }
        let groups = self.groups.iter().map(|group| &group.spec);
        let all = groups
            .chain(specs)
            .filter(|spec| self.deferred.contains(&spec.name));
        let grouped = specs
            .iter()
            .filter(|spec| self.group_of(&spec.name).is_some());
        Some(search::tool_search(
            all.cloned().collect(),
            grouped.cloned().collect(),
        ))
    }

    fn group_of(&self, tool: &str) -> Option<(&GroupForm, &'static str)> {
        let found = |group| GroupForm::action_of(group, tool).map(|action| (group, action));
        self.groups.iter().find_map(found)
    }

    /// Returns the call of a tool that a call of the group `name` stands for; none if it stands for
    /// none.
    pub(crate) fn unwrap_group(&self, name: &str, args: &Value) -> Option<(String, Value)> {
        let group = self.groups.iter().find(|group| group.spec.name == name)?;
        let mut args = args.as_object()?.clone();
        let action = args.remove(ACTION)?;
        let action = action.as_str()?;
        let tool = group.actions.get(action).or_else(|| {
            let mut tools = group.actions.values();
            tools.find(|tool| *tool == action)
        })?;
        Some((tool.clone(), Value::Object(args)))
    }

    /// Returns the call of a shown tool that stands for a call of the tool with this canonical name;
    /// none if the tool is shown itself.
    pub(crate) fn wrap(&self, tool: &str, args: &Value) -> Option<(String, Value)> {
        let (name, args) = match self.group_of(tool) {
            Some((group, action)) => {
                let mut given = Map::new();
                given.insert(ACTION.to_owned(), action.into());
                given.extend(args.as_object().cloned().unwrap_or_default());
                (group.spec.name.clone(), Value::Object(given))
            }
            None if self.deferred.contains(tool) => (tool.to_owned(), args.clone()),
            None => return None,
        };
        match self.deferred.contains(&name) {
            true => Some((USE_TOOL.name.to_owned(), search::use_tool_args(name, args))),
            false => Some((name, args)),
        }
    }
}

impl GroupForm {
    /// Returns the form of a group, and which models are shown it; none if fewer than two of its
    /// tools are there, or if one of them is named by itself.
    fn new(
        group: &ToolGroup,
        specs: &[ToolSpec],
        is_named: &dyn Fn(&str) -> bool,
    ) -> Option<(Self, Exposure)> {
        let of_action = |&(action, tool): &(&'static str, &'static str)| {
            let spec = specs.iter().find(|spec| spec.name == tool)?;
            Some((action, spec))
        };
        let members: Vec<(&'static str, &ToolSpec)> =
            group.actions.iter().filter_map(of_action).collect();
        let is_taken = specs.iter().any(|spec| spec.name == group.name);
        if members.len() < 2 || is_taken || members.iter().any(|(_, spec)| is_named(&spec.name)) {
            return None;
        }
        let form = Self {
            spec: group.spec(&members),
            actions: members
                .iter()
                .map(|(action, spec)| (*action, spec.name.clone()))
                .collect(),
        };
        Some((form, group.exposure))
    }

    /// Returns the action that stands for the tool.
    fn action_of(&self, tool: &str) -> Option<&'static str> {
        let mut actions = self.actions.iter();
        actions
            .find(|(_, name)| *name == tool)
            .map(|(action, _)| *action)
    }
}

/// Returns the names of the built-in tools and groups that models are not shown, in a workspace
/// without settings.
pub fn usually_deferred(shown: ShownTools) -> impl Iterator<Item = &'static str> {
    let is_grouped = |name: &str| {
        let mut groups = tool_groups().iter();
        groups.any(|group| group.actions.iter().any(|(_, tool)| *tool == name))
    };
    let groups = tool_groups()
        .iter()
        .filter(move |group| !shown.includes(group.exposure))
        .map(|group| group.name);
    let tools = builtin_tools()
        .filter(move |tool| !shown.includes(tool.exposure) && !is_grouped(tool.name))
        .map(|tool| tool.name);
    groups.chain(tools)
}

/// Returns the call that a call of `use_tool` stands for; none if its arguments name none.
pub(crate) fn unwrap_use_tool(args: &Value) -> Option<(String, Value)> {
    search::used_tool(args).filter(|(name, _)| name != USE_TOOL.name)
}
