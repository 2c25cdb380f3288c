//! A definition without the parts that act.
//!
//! Effects: none.

use crate::{Definition, ExecuteSettings, SearchSettings, TrustSettings};
use stead_core::PermissionMode;
use stead_place::{FilesystemSettings, SessionSettings};
use stead_shell::{CommandRules, ReadPolicy};

/// Removes everything that acts from `definition`. It was loaded with [`placeholder_variable`], so
/// that no value of the process is in it.
///
/// What is left may only read: the permission mode becomes `explore`, and models are the person's
/// own.
pub(crate) fn restrict(definition: &mut Definition) {
    let config = &mut definition.config;
    config.permission_mode = PermissionMode::Explore;
    config.model = None;
    config.compaction.model = None;
    config.memory.model = None;
    config.search = SearchSettings::default();
    config.execute = ExecuteSettings::default();
    config.trust = TrustSettings::default();
    config.filesystem = FilesystemSettings::default();
    config.sessions = SessionSettings::default();
    let CommandRules { deny, ask, .. } = std::mem::take(&mut config.commands);
    config.commands = CommandRules {
        reads: ReadPolicy::Ask,
        allow: Vec::new(),
        ask,
        deny,
    };
    config.memory.flush = Some(false);
    config.variables.clear();
    for spec in definition.agents.values_mut() {
        spec.model = None;
    }
    definition.hooks.clear();
    definition.declared_parts.clear();
    definition.variable_uses.clear();
}

/// Returns what stands in a folder that is not trusted for a variable of the process.
pub(crate) fn placeholder_variable(name: &str) -> Option<String> {
    Some(format!("[{name}]"))
}
