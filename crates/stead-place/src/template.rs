//! The template of a place: its tree without the paths that belong to one owner.
//!
//! Effects: the clock.

use std::sync::Arc;
use stead_core::{AccessKind, VerdictKind};
use stead_vfs::{Guarded, Protected, Rule, Rules, StoreVfs, VPath, Vfs};

/// Paths that belong to one owner in every tree, from the folder in which everything of the agent
/// lies: runtime state and the folders of users.
const OWNER_PATHS: [&str; 2] = ["agents", "@@*"];

/// Returns `files` as a template for several owners: without what belongs to one owner, which are
/// the runtime state, the folders of users and the patterns in `private`. `home` is the folder in which
/// everything of the agent lies.
pub(crate) fn template_of(files: Arc<dyn Vfs>, home: &VPath, private: &[&str]) -> Arc<dyn Vfs> {
    let of_owner = OWNER_PATHS.map(|path| match home.is_root() {
        true => path.to_owned(),
        false => format!("{home}/{path}"),
    });
    let patterns: Vec<&str> = of_owner
        .iter()
        .map(String::as_str)
        .chain(private.iter().copied())
        .collect();
    let protected = match home.is_root() {
        true => Protected::TEMPLATE,
        // The rules above hide the state, and `agents/` at the root is not ours.
        false => Protected::TEMPLATE.with_hidden(&[]),
    };
    hide_paths(files, &patterns, protected)
}

/// Returns `files` without the paths that `patterns` cover and those that are protected.
pub(crate) fn hide_paths(
    files: Arc<dyn Vfs>,
    patterns: &[&str],
    protected: Protected,
) -> Arc<dyn Vfs> {
    let rule = Rule {
        operations: vec![AccessKind::Read, AccessKind::Write],
        paths: patterns.iter().map(|&name| name.to_owned()).collect(),
        mode: VerdictKind::Deny,
    };
    match Rules::new(&[rule], protected) {
        Ok(rules) => Arc::new(Guarded::hiding_denied(files, Arc::new(rules))),
        // The patterns are constants of the program. If one is invalid, nothing is shown.
        Err(_) => Arc::new(StoreVfs::in_memory()),
    }
}
