//! Tools by name.

use crate::arguments::ArgumentChecker;
use crate::{Surface, Tool, closest_name, known_tool};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use stead_core::ToolSpec;

/// A set of tools, in the order of their names.
#[derive(Clone)]
pub struct Registry {
    tools: BTreeMap<String, RegisteredTool>,
    /// From every name but the canonical one to the canonical one.
    aliases: BTreeMap<String, String>,
    specs: Arc<[ToolSpec]>,
    /// Tools that were there before lists left them out, by every name.
    filtered_out: BTreeMap<String, Arc<dyn Tool>>,
    /// Tools that may never be called, by canonical name, and why.
    excluded: BTreeMap<String, String>,
    /// How tools are named to the model.
    surface: Surface,
}

#[derive(Clone)]
struct RegisteredTool {
    tool: Arc<dyn Tool>,
    checker: Arc<ArgumentChecker>,
    /// How the model is shown it, if not as it is.
    title: Option<Arc<TitledTool>>,
    /// What the model is told of it, if not its own description.
    description: Option<Arc<str>>,
}

/// A tool under its title.
struct TitledTool {
    spec: ToolSpec,
    checker: ArgumentChecker,
    tool: Arc<dyn Tool>,
    translate: fn(Value) -> Result<Value, String>,
}

/// Why tools do not go together.
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
        /// One tool.
        first: String,
        /// The other.
        second: String,
    },
}

impl Registry {
    /// A registry of `tools`. A tool's own name goes before another's alias.
    pub fn new(tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegistryError> {
        Self::build(BTreeMap::new(), tools)
    }

    /// What is `named`, with what it has compiled so far, and `tools`.
    fn build(
        mut named: BTreeMap<String, RegisteredTool>,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<Self, RegistryError> {
        for tool in tools {
            let name = tool.spec().name.clone();
            let checker = Arc::new(ArgumentChecker::new(tool.spec(), tool.argument_aliases()));
            if named
                .insert(
                    name.clone(),
                    RegisteredTool {
                        tool,
                        checker,
                        title: None,
                        description: None,
                    },
                )
                .is_some()
            {
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
        Ok(Self::from_parts(named, aliases))
    }

    /// The same tools, shown to the model as `surface` names them. Every name and alias still
    /// works; a tool that has no title keeps its name.
    pub fn with_surface(mut self, surface: Surface) -> Self {
        for entry in self.tools.values_mut() {
            entry.title = match surface {
                Surface::Snake => None,
                Surface::Title => TitledTool::of(&*entry.tool).map(Arc::new),
            };
        }
        let Self {
            filtered_out: left_out,
            excluded,
            ..
        } = self;
        Self {
            filtered_out: left_out,
            excluded,
            surface,
            ..Self::from_parts(self.tools, self.aliases)
        }
    }

    /// The same tools, each of those in `descriptions` (by any of its names) with that description.
    pub fn with_descriptions(mut self, descriptions: &BTreeMap<String, String>) -> Self {
        for (name, text) in descriptions {
            let Some(canonical) = self.canonical(name).map(str::to_owned) else {
                continue;
            };
            if let Some(entry) = self.tools.get_mut(&canonical) {
                entry.description = Some(text.as_str().into());
            }
        }
        let Self {
            filtered_out: left_out,
            excluded,
            surface,
            ..
        } = self;
        Self {
            filtered_out: left_out,
            excluded,
            surface,
            ..Self::from_parts(self.tools, self.aliases)
        }
    }

    /// The same without what `why` gives a reason to exclude, by canonical name: neither shown nor
    /// callable.
    pub fn excluding(&self, why: &BTreeMap<String, String>) -> Self {
        Self {
            excluded: why.clone(),
            ..self.retain(|name| !why.contains_key(name))
        }
    }

    /// Why the tool of this name or alias may never be called, and its canonical name, whether it
    /// would be here or not.
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

    /// How tools are named to the model.
    pub fn surface(&self) -> Surface {
        self.surface
    }

    /// The same with more tools.
    pub fn with(
        &self,
        tools: impl IntoIterator<Item = Arc<dyn Tool>>,
    ) -> Result<Self, RegistryError> {
        let mut more = tools.into_iter().peekable();
        if more.peek().is_none() {
            return Ok(self.clone());
        }
        Self::build(self.tools.clone(), more)
    }

    /// Those of the tools that `keep` says, by canonical name.
    pub fn retain(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.tools.keys().all(|name| keep(name)) {
            return self.clone();
        }
        let tools: BTreeMap<_, _> = self
            .tools
            .iter()
            .filter(|(name, _)| keep(name))
            .map(|(name, entry)| (name.clone(), entry.clone()))
            .collect();
        let aliases = self
            .aliases
            .iter()
            .filter(|(_, name)| tools.contains_key(*name));
        let aliases = aliases
            .map(|(alias, name)| (alias.clone(), name.clone()))
            .collect();
        let mut left_out = self.filtered_out.clone();
        for name in self
            .tools
            .keys()
            .chain(self.aliases.keys())
            .filter(|name| !keep(self.canonical(name).unwrap_or(name)))
        {
            left_out.extend(self.find(name).map(|tool| (name.clone(), tool.clone())));
        }
        let excluded = self.excluded.clone();
        let surface = self.surface;
        Self {
            filtered_out: left_out,
            excluded,
            surface,
            ..Self::from_parts(tools, aliases)
        }
    }

    /// The tool of this name or alias that lists left out.
    pub fn filtered_out(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.filtered_out.get(name)
    }

    /// Those of the tools that `allow` lists (all, if there is no such list) and `deny` does not.
    /// Lists may use any name of a tool.
    pub fn filter(&self, allow: Option<&[String]>, deny: &[String]) -> Self {
        let listed = |list: &[String], name: &str| {
            list.iter().any(|given| self.canonical(given) == Some(name))
        };
        let stays =
            |name: &str| allow.is_none_or(|allow| listed(allow, name)) && !listed(deny, name);
        self.retain(stays)
    }

    fn from_parts(
        tools: BTreeMap<String, RegisteredTool>,
        aliases: BTreeMap<String, String>,
    ) -> Self {
        let mut specs: Vec<ToolSpec> = tools.values().map(RegisteredTool::visible_spec).collect();
        specs.sort_by(|a, b| a.name.cmp(&b.name));
        let left_out = BTreeMap::new();
        let excluded = BTreeMap::new();
        Self {
            tools,
            aliases,
            specs: specs.into(),
            filtered_out: left_out,
            excluded,
            surface: Surface::default(),
        }
    }

    /// What the model is told, in the order of names.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// The tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// The canonical name of the tool of this name or alias.
    pub fn canonical(&self, name: &str) -> Option<&str> {
        match self.tools.get_key_value(name) {
            Some((name, _)) => Some(name),
            None => self.aliases.get(name).map(String::as_str),
        }
    }

    /// The tool that a model means, and its arguments as the schema wants them; or what is wrong,
    /// in words the model can act on.
    ///
    /// Aliases of tools, parameters and values become the canonical ones. Where the schema wants a
    /// number or a boolean, its text is taken too (`"10"`, `"true"`); an optional parameter given
    /// as `null` counts as left out. Nothing else is guessed.
    pub fn prepare(&self, name: &str, args: Value) -> Result<(Arc<dyn Tool>, Value), String> {
        let entry = self
            .entry(name)
            .ok_or_else(|| self.unknown_tool_message(name))?;
        match &entry.title {
            Some(title) if title.spec.name == name => Ok((
                Arc::clone(&title.tool),
                (title.translate)(title.checker.check(args)?)?,
            )),
            Some(_) | None => Ok((Arc::clone(&entry.tool), entry.checker.check(args)?)),
        }
    }

    fn entry(&self, name: &str) -> Option<&RegisteredTool> {
        self.tools.get(self.canonical(name)?)
    }

    fn unknown_tool_message(&self, name: &str) -> String {
        let names: Vec<&str> = self.specs.iter().map(|spec| spec.name.as_str()).collect();
        let hint = closest_name(name, &names)
            .map_or(".".to_owned(), |near| format!(", did you mean `{near}`?"));
        format!(
            "there is no tool `{name}`{hint} The tools are: {}",
            names.join(", ")
        )
    }
}

impl RegisteredTool {
    /// As the model is shown it.
    fn visible_spec(&self) -> ToolSpec {
        let spec = self
            .title
            .as_ref()
            .map_or(self.tool.spec(), |title| &title.spec)
            .clone();
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
    fn of(tool: &dyn Tool) -> Option<Self> {
        let form = tool.title_form()?;
        let own = tool.spec();
        let names = own
            .aliases
            .iter()
            .chain([&own.name])
            .filter(|name| *name != form.name);
        let spec = ToolSpec {
            name: form.name.to_owned(),
            aliases: names.cloned().collect(),
            description: form.description.to_owned(),
            parameters: form.parameters,
            risk: own.risk,
        };
        let checker = ArgumentChecker::new(&spec, form.spellings);
        Some(Self {
            spec,
            checker,
            tool: form.tool,
            translate: form.translate,
        })
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
