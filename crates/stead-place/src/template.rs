//! The template of a place: its tree without the paths that belong to one owner.
//!
//! Effects: none.

use std::sync::Arc;
use stead_core::{AccessKind, VerdictKind};
use stead_vfs::{Guarded, Protected, Rule, Rules, StoreVfs, Vfs};

/// Paths that belong to one owner in every tree: runtime state and the folders of users.
const OWNER_PATHS: [&str; 2] = ["agents", "@@*"];

/// Returns `files` as a template for several owners: without what belongs to one owner, which are
/// the runtime state, the folders of users and the patterns in `private`.
pub(crate) fn template_of(files: Arc<dyn Vfs>, private: &[&str]) -> Arc<dyn Vfs> {
    let patterns: Vec<&str> = OWNER_PATHS.iter().chain(private).copied().collect();
    hide_paths(files, &patterns, Protected::TEMPLATE)
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
