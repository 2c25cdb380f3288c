//! Tools by name.

use crate::arguments::Checker;
use crate::{Tool, arguments};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use stead_core::ToolSpec;

/// A set of tools, in the order of their names.
#[derive(Clone)]
pub struct Registry {
    tools: BTreeMap<String, Entry>,
    /// From every name but the canonical one to the canonical one.
    aliases: BTreeMap<String, String>,
    specs: Arc<[ToolSpec]>,
}

#[derive(Clone)]
struct Entry {
    tool: Arc<dyn Tool>,
    checker: Arc<Checker>,
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
        let mut named: BTreeMap<String, Entry> = BTreeMap::new();
        for tool in tools {
            let name = tool.spec().name.clone();
            let checker = Arc::new(Checker::new(tool.spec(), tool.spellings()));
            if named.insert(name.clone(), Entry { tool, checker }).is_some() {
                return Err(RegistryError::Name(name));
            }
        }
        let mut aliases: BTreeMap<String, String> = BTreeMap::new();
        for (name, entry) in &named {
            for alias in entry.tool.spec().aliases.iter().filter(|alias| !named.contains_key(*alias)) {
                if let Some(first) = aliases.insert(alias.clone(), name.clone()) {
                    return Err(RegistryError::Alias { alias: alias.clone(), first, second: name.clone() });
                }
            }
        }
        let specs = named.values().map(|entry| entry.tool.spec().clone()).collect();
        Ok(Self { tools: named, aliases, specs })
    }

    /// The same with more tools.
    pub fn with(&self, tools: impl IntoIterator<Item = Arc<dyn Tool>>) -> Result<Self, RegistryError> {
        let mut more = tools.into_iter().peekable();
        if more.peek().is_none() {
            return Ok(self.clone());
        }
        Self::new(self.tools.values().map(|entry| Arc::clone(&entry.tool)).chain(more))
    }

    /// Only those that `keep` says, by canonical name.
    pub fn keep(&self, keep: impl Fn(&str) -> bool) -> Self {
        if self.tools.keys().all(|name| keep(name)) {
            return self.clone();
        }
        let mut kept = self.clone();
        kept.tools.retain(|name, _| keep(name));
        kept.aliases.retain(|_, name| keep(name));
        kept.specs = kept.specs.iter().filter(|spec| keep(&spec.name)).cloned().collect();
        kept
    }

    /// What the model and the gate are told, in the order of names.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// The tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        self.entry(name).map(|entry| &entry.tool)
    }

    /// The tool that a model means, and its arguments as the schema wants them; or what is wrong, in words
    /// the model can act on.
    ///
    /// Aliases of tools, parameters and values become the canonical ones. Where the schema wants a number or
    /// a boolean, its text is taken too (`"10"`, `"true"`); an optional parameter given as `null` counts as
    /// left out. Nothing else is guessed.
    pub fn prepare(&self, name: &str, args: Value) -> Result<(Arc<dyn Tool>, Value), String> {
        let entry = self.entry(name).ok_or_else(|| self.unknown(name))?;
        Ok((Arc::clone(&entry.tool), entry.checker.check(args)?))
    }

    fn entry(&self, name: &str) -> Option<&Entry> {
        self.tools.get(name).or_else(|| self.tools.get(self.aliases.get(name)?))
    }

    fn unknown(&self, name: &str) -> String {
        let names: Vec<&str> = self.tools.keys().map(String::as_str).collect();
        let hint = arguments::nearest(name, &names).map_or(".".to_owned(), |near| format!(", did you mean `{near}`?"));
        format!("there is no tool `{name}`{hint} The tools are: {}", names.join(", "))
    }
}

impl fmt::Debug for Registry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.tools.keys()).finish()
    }
}
