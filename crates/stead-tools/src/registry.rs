//! The registry: tools by name, and calls that are ready to be judged and executed.
//!
//! Effects: tools.

use crate::arguments::{ArgumentChecker, CheckerCache};
use crate::presentation::{
    self, Presentation, SharedPresentations, ShownTools, TOOL_SEARCH, USE_TOOL,
};
use crate::{
    CallPlan, Output, PlanError, PlanView, SessionView, Surface, Tool, ToolCx, ToolError,
    closest_name, known_tool, schema,
};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::ToolSpec;
use stead_vfs::Vfs;

/// A set of tools, in the order of their names.
#[derive(Clone)]
pub struct Registry {
    tools: BTreeMap<String, RegisteredTool>,
    /// Every other name with the canonical one.
    aliases: BTreeMap<String, String>,
    /// The specs that the model is shown.
    specs: Arc<[ToolSpec]>,
    /// Which tools the model is shown, and how.
    presentation: Arc<Presentation>,
    /// Tools that lists left out, by every name.
    filtered_out: BTreeMap<String, Arc<dyn Tool>>,
    /// The reasons why tools may never be called, by canonical name.
    excluded: BTreeMap<String, String>,
    /// The names under which tools are shown to the model.
    surface: Surface,
    /// Compiled schemas, shared by all registries that are made from this one.
    checkers: CheckerCache,
    /// Lists of specs, shared in the same way.
    shared_specs: SharedSpecs,
    /// What is shown of lists of specs, shared in the same way.
    shared_presentations: SharedPresentations,
}

#[derive(Clone)]
struct RegisteredTool {
    tool: Arc<dyn Tool>,
    checker: Arc<ArgumentChecker>,
    /// The form in which the tool is shown to the model, if it is another.
    title: Option<Arc<TitledTool>>,
    /// The description that replaces the tool's own, if there is one.
    description: Option<Arc<str>>,
}

/// A tool under its title.
struct TitledTool {
    spec: ToolSpec,
    checker: Arc<ArgumentChecker>,
    translate: fn(Value) -> Result<Value, String>,
}

/// Why tools cannot be in one registry.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RegistryError {
    /// Two tools have one name.
    #[error("two tools are named `{0}`")]
    Name(String),
    /// Two tools have one alias.
    #[error("`{alias}` is an alias of both `{first}` and `{second}`")]
    Alias {
        /// The alias.
        alias: String,
        /// The name of one tool.
        first: String,
        /// The other tool.
        second: String,
    },
}

impl Registry {
    /// Creates a registry of `tools`. A tool's own name overrides another's alias.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegistryError> {
        Self::build(
            BTreeMap::new(),
            CheckerCache::default(),
            Shared::default(),
            tools,
        )
    }

    /// Creates a registry of the tools in `named` and of `tools`.
    fn build(
        mut named: BTreeMap<String, RegisteredTool>,
        checkers: CheckerCache,
        (shared_specs, shared_presentations): Shared,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<Self, RegistryError> {
        for tool in tools {
            let spec = tool.spec();
            let name = spec.name.clone();
            let checker = checkers.get(&name, &spec.parameters, spec.argument_aliases);
            let entry = RegisteredTool {
                tool,
                checker,
                title: None,
                description: None,
            };
            if named.insert(name.clone(), entry).is_some() {
                return Err(RegistryError::Name(name));
            }
        }
        let mut aliases: BTreeMap<String, String> = BTreeMap::new();
        for (name, entry) in &named {
            for alias in entry
                .tool
                .spec()
                .aliases
                .iter()
                .filter(|alias| !named.contains_key(*alias))
            {
                if let Some(first) = aliases.insert(alias.clone(), name.clone()) {
                    return Err(RegistryError::Alias {
                        alias: alias.clone(),
                        first,
                        second: name.clone(),
                    });
                }
            }
        }
        Ok(Self {
            specs: shared_specs.share(visible_specs(&named, &Presentation::default())),
            presentation: Arc::default(),
            tools: named,
            aliases,
            filtered_out: BTreeMap::new(),
            excluded: BTreeMap::new(),
            surface: Surface::default(),
            checkers,
            shared_specs,
            shared_presentations,
        })
    }

    /// Returns the same tools, shown to the model as `surface` names them. Every name and alias
    /// still works; a tool without a title keeps its name.
    pub fn with_surface(mut self, surface: Surface) -> Self {
        for entry in self.tools.values_mut() {
            entry.title = match surface {
                Surface::Snake => None,
                Surface::Title => TitledTool::of(entry.tool.spec(), &self.checkers).map(Arc::new),
            };
        }
        Self {
            specs: self
                .shared_specs
                .share(visible_specs(&self.tools, &self.presentation)),
            surface,
            ..self
        }
    }

    /// Returns the registry with other descriptions for the tools in `descriptions`, by any of
    /// their names.
    pub fn with_descriptions(mut self, descriptions: &BTreeMap<String, String>) -> Self {
        for (name, text) in descriptions {
            let Some(canonical) = self.canonical(name).map(str::to_owned) else {
                continue;
            };
            if let Some(entry) = self.tools.get_mut(&canonical) {
                entry.description = Some(text.as_str().into());
            }
        }
        Self {
            specs: self
                .shared_specs
                .share(visible_specs(&self.tools, &self.presentation)),
            ..self
        }
    }

    /// Returns the tools without those that `why` gives a reason to exclude, by canonical name.
    /// They are neither shown nor callable.
    pub fn excluding(&self, why: &BTreeMap<String, String>) -> Self {
        Self {
            excluded: why.clone(),
            ..self.retain(|name| !why.contains_key(name))
        }
    }

    /// Returns the canonical name of a tool that may never be called, by any of its names, and why.
    /// The tool need not be registered.
    pub fn exclusion(&self, name: &str) -> Option<(&str, &str)> {
        let own = self
            .filtered_out
            .get(name)
            .map(|tool| tool.spec().name.as_str());
        let canonical = own
            .or_else(|| known_tool(name).map(|known| known.name))
            .unwrap_or(name);
        self.excluded
            .get_key_value(canonical)
            .map(|(name, why)| (name.as_str(), why.as_str()))
    }

    /// Returns how tools are named to the model.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// Returns a registry with more tools.
    pub fn with(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<Self, RegistryError> {
        let mut more = tools.into_iter().peekable();
        if more.peek().is_none() {
            return Ok(self.clone());
        }
        Self::build(
            self.tools.clone(),
            self.checkers.clone(),
            (self.shared_specs.clone(), self.shared_presentations.clone()),
            more,
        )
    }

    /// Returns the tools that `keep` accepts by their canonical names.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> Self {
        self.retain_specs(|spec| keep(&spec.name))
    }

    /// Returns the tools whose specs `keep` accepts.
    pub fn retain_specs(&self, keep: impl Fn(&ToolSpec) -> bool) -> Self {
        let keeps = |name: &str| self.find(name).is_some_and(|tool| keep(tool.spec()));
        if self.tools.keys().all(|name| keeps(name)) {
            return self.clone();
        }
        let mut kept = self.clone();
        kept.tools.retain(|name, _| keeps(name));
        kept.aliases.retain(|_, name| kept.tools.contains_key(name));
        for name in self.tools.keys().chain(self.aliases.keys()) {
            if let Some(tool) = self.find(name).filter(|tool| !keep(tool.spec())) {
                kept.filtered_out.insert(name.clone(), tool.clone());
            }
        }
        kept.specs = self
            .shared_specs
            .share(visible_specs(&kept.tools, &kept.presentation));
        kept
    }

    /// Returns the tool of this name or alias that lists left out.
    pub fn filtered_out(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.filtered_out.get(name)
    }

    /// Returns the tools that `allow` lists (all, if there is no such list) and `deny` does not.
    /// Lists may use any name of a tool.
    pub fn filter(&self, allow: Option<&[String]>, deny: &[String]) -> Self {
        let listed = |list: &[String], name: &str| {
            list.iter().any(|given| self.canonical(given) == Some(name))
        };
        let stays =
            |name: &str| allow.is_none_or(|allow| listed(allow, name)) && !listed(deny, name);
        self.retain(stays)
    }

    /// Returns the registry as a model is shown `shown` of it: tools that belong together as one, and
    /// `tool_search` and `use_tool` for the rest. Tools that `is_named` accepts by their canonical
    /// names are shown by themselves. Every tool can still be called by its own name.
    pub fn showing(self, shown: ShownTools, is_named: &dyn Fn(&str) -> bool) -> Self {
        let all = self.shared_specs.share(self.all_specs());
        let presented = self.shared_presentations.get(all, shown, is_named);
        let mut shown = match self.with(presented.tools.iter().cloned()) {
            Ok(shown) => shown,
            // A tool of the program has the name of one of these two.
            Err(_) => return self,
        };
        shown.filtered_out = self.filtered_out;
        shown.excluded = self.excluded;
        if shown.surface != self.surface {
            shown = shown.with_surface(self.surface);
        }
        shown.presentation = presented.presentation.clone();
        shown.specs = shown
            .shared_specs
            .share(visible_specs(&shown.tools, &shown.presentation));
        shown
    }

    /// Returns the specs that the model is shown, in the order of names.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// Returns the specs of all tools as a model may be shown them, in the order of names.
    pub fn all_specs(&self) -> Vec<ToolSpec> {
        visible_specs(&self.tools, &Presentation::default())
    }

    /// Returns how many tools the model is shown.
    pub fn shown(&self) -> ShownTools {
        self.presentation.shown()
    }

    /// Returns the names of the tools and groups that the model is not shown.
    pub fn deferred(&self) -> impl Iterator<Item = &str> {
        self.presentation.deferred().iter().map(String::as_str)
    }

    /// Returns the call that a model means: calls of `use_tool` and of groups stand for calls of
    /// other tools. What stands for none is returned as it is, and is refused like every call that
    /// is not valid.
    pub fn unwrap_call(&self, name: String, args: Value) -> (String, Value) {
        let is_own = name == USE_TOOL.name
            && (!self.tools.contains_key(&name) || self.tools.contains_key(TOOL_SEARCH.name));
        let used = is_own
            .then(|| presentation::unwrap_use_tool(&args))
            .flatten();
        let (name, args) = used.unwrap_or((name, args));
        let member = self.presentation.unwrap_group(&name, &args);
        member.unwrap_or((name, args))
    }

    /// Returns the call of a shown tool that stands for a call of another one; none if the tool is
    /// shown itself. It is the reverse of [`Self::unwrap_call`].
    pub fn wrap_call(&self, name: &str, args: &Value) -> Option<(String, Value)> {
        self.presentation.wrap(self.canonical(name)?, args)
    }

    /// Returns the tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// Returns the canonical name of the tool of this name or alias.
    pub fn canonical(&self, name: &str) -> Option<&str> {
        match self.tools.get_key_value(name) {
            Some((name, _)) => Some(name),
            None => self.aliases.get(name).map(String::as_str),
        }
    }

    /// Returns the call that a model means, or what is wrong with it, in words that the model can
    /// act on. A tool that lists leave out is unknown.
    ///
    /// Aliases of tools, parameters and values become the canonical ones. Where the schema wants a
    /// number or a boolean, its text is accepted too (`"10"`, `"true"`); an optional parameter
    /// given as `null` counts as left out. Nothing else is guessed.
    pub fn prepare(&self, name: &str, args: Value) -> Result<PreparedCall, PlanError> {
        match self.filtered_out.contains_key(name) {
            true => Err(PlanError::UnknownTool(self.unknown_tool_message(name))),
            false => self.prepare_for_gate(name, args),
        }
    }

    /// Prepares a call as [`Self::prepare`] does, for the gate: a tool that lists leave out is known,
    /// because the gate refuses it by name.
    pub fn prepare_for_gate(&self, name: &str, args: Value) -> Result<PreparedCall, PlanError> {
        if let Some(tool) = self.filtered_out.get(name) {
            return Ok(PreparedCall::of_filtered_out(tool.clone(), args));
        }
        let Some(entry) = self.entry(name) else {
            return Err(match self.presentation.group(name) {
                Some(group) => PlanError::InvalidArguments(format!(
                    "{name}: `action` must be one of those in its schema: {}",
                    group.parameters
                )),
                None => PlanError::UnknownTool(self.unknown_tool_message(name)),
            });
        };
        let invalid = |why: String| PlanError::InvalidArguments(self.with_schema(entry, why));
        let (args, surface) = match &entry.title {
            Some(title) if title.spec.name == name => {
                let args = title.checker.check(args).map_err(invalid)?;
                let args = (title.translate)(args);
                let args = args.map_err(|why| invalid(format!("{name}: {why}")))?;
                (args, Surface::Title)
            }
            Some(_) | None => (entry.checker.check(args).map_err(invalid)?, Surface::Snake),
        };
        let tool = Arc::clone(&entry.tool);
        let plan = tool.plan(args.clone())?;
        Ok(PreparedCall {
            tool,
            args,
            plan,
            surface,
        })
    }

    /// Returns the arguments of a call with the canonical names of the parameters of the tool as it
    /// was called; none if they are not valid.
    pub fn checked_args(&self, name: &str, args: Value) -> Option<Value> {
        let entry = self.entry(name)?;
        let checker = match &entry.title {
            Some(title) if title.spec.name == name => &title.checker,
            Some(_) | None => &entry.checker,
        };
        checker.check(args).ok()
    }

    /// Returns what is wrong with arguments, with the schema if the model was not shown it.
    fn with_schema(&self, entry: &RegisteredTool, why: String) -> String {
        let spec = entry.tool.spec();
        match self.presentation.shows_itself(&spec.name) {
            true => why,
            false => format!("{why}. Schema: {}", entry.checker.shown_schema()),
        }
    }

    fn entry(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.get(self.canonical(name)?)
    }

    fn unknown_tool_message(&self, name: &str) -> String {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        let known: Vec<&str> = names
            .iter()
            .copied()
            .chain(self.tools.keys().map(String::as_str))
            .collect();
        let hint = closest_name(name, &known)
            .map_or(".".to_owned(), |near| format!(", did you mean `{near}`?"));
        let more = match self.presentation.deferred().is_empty() {
            true => "",
            false => "; tool_search finds more",
        };
        format!(
            "there is no tool `{name}`{hint} The tools are: {}{more}",
            names.join(", ")
        )
    }
}

/// Returns the specs that a model is shown, in the order of names.
fn visible_specs(
    tools: &BTreeMap<String, RegisteredTool>,
    presentation: &Presentation,
) -> Vec<ToolSpec> {
    let themselves = tools
        .iter()
        .filter(|(name, _)| presentation.shows_itself(name))
        .map(|(_, tool)| tool.visible_spec());
    let groups = presentation.shown_groups().map(|group| ToolSpec {
        parameters: schema::short(&group.parameters),
        ..group.clone()
    });
    let mut specs: Vec<ToolSpec> = themselves.chain(groups).collect();
    specs.sort_by(|a, b| a.name.cmp(&b.name));
    specs
}

/// What all registries that are made from one share.
type Shared = (SharedSpecs, SharedPresentations);

/// Lists of specs, so that registries with equal specs share one copy: a list takes 12 KB, and each
/// of a thousand sessions has its own registry.
#[derive(Clone, Default)]
struct SharedSpecs(Arc<Mutex<Vec<Arc<[ToolSpec]>>>>);

impl SharedSpecs {
    /// The most lists that are kept, the latest last. A turn makes half a dozen on its way.
    const MAX_LISTS: usize = 16;

    /// Returns the list that equals `specs`, or else keeps `specs` as a new list.
    fn share(&self, specs: Vec<ToolSpec>) -> Arc<[ToolSpec]> {
        let mut lists = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(same) = lists.iter().find(|list| ***list == *specs) {
            return Arc::clone(same);
        }
        let list: Arc<[ToolSpec]> = specs.into();
        if lists.len() == Self::MAX_LISTS {
            lists.remove(0);
        }
        lists.push(Arc::clone(&list));
        list
    }
}

impl RegisteredTool {
    /// Returns the spec that the model is shown.
    fn visible_spec(&self) -> ToolSpec {
        let (spec, checker) = match &self.title {
            Some(title) => (&title.spec, &title.checker),
            None => (self.tool.spec(), &self.checker),
        };
        let spec = ToolSpec {
            parameters: checker.shown_schema().clone(),
            ..spec.clone()
        };
        match &self.description {
            Some(text) => ToolSpec {
                description: text.to_string(),
                ..spec
            },
            None => spec,
        }
    }
}

impl TitledTool {
    fn of(own: &ToolSpec, checkers: &CheckerCache) -> Option<Self> {
        let form = own.title.as_ref()?;
        let names = own
            .aliases
            .iter()
            .chain([&own.name])
            .filter(|name| *name != form.name);
        let spec = ToolSpec {
            name: form.name.to_owned(),
            aliases: names.cloned().collect(),
            description: form.description.to_owned(),
            parameters: form.parameters.clone(),
            argument_aliases: form.argument_aliases,
            ..own.clone()
        };
        let checker = checkers.get(form.name, &form.parameters, form.argument_aliases);
        Some(Self {
            spec,
            checker,
            translate: form.translate,
        })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}

/// A call with its tool, its arguments as the schema wants them, and its plan.
///
/// [`Registry::prepare_for_gate`](crate::Registry::prepare_for_gate) makes it, each time the call is
/// judged or shown to hooks. The gate, the question to a person and the execution use it.
pub struct PreparedCall {
    tool: Arc<dyn Tool>,
    args: Value,
    plan: CallPlan,
    surface: Surface,
}

impl PreparedCall {
    /// Creates a call that will be refused because the tool is filtered out. Its arguments were not
    /// checked, so its plan names only the command it would run, if there is one.
    fn of_filtered_out(tool: Arc<dyn Tool>, args: Value) -> Self {
        let plan = tool.plan(args.clone()).unwrap_or_default();
        Self {
            tool,
            args,
            plan: plan.without_accesses(),
            surface: Surface::Snake,
        }
    }

    /// Returns what the tool is.
    pub fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    /// Returns the arguments, as the schema wants them.
    pub fn args(&self) -> &Value {
        &self.args
    }

    /// Returns what the call would do.
    pub fn plan(&self) -> &CallPlan {
        &self.plan
    }

    /// Returns what the lazy parts of the plan may look at.
    pub fn view<'a>(&self, files: &'a dyn Vfs, session: &'a SessionView) -> PlanView<'a> {
        PlanView {
            files,
            session,
            surface: self.surface,
        }
    }

    /// Carries the call out.
    pub async fn call(self, cx: ToolCx) -> Result<Output, ToolError> {
        let cx = ToolCx {
            surface: self.surface,
            ..cx
        };
        self.tool.call(&cx, self.plan).await
    }
}

impl fmt::Debug for PreparedCall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedCall")
            .field("tool", &self.spec().name)
            .field("args", &self.args)
            .field("plan", &self.plan)
            .finish_non_exhaustive()
    }
}
