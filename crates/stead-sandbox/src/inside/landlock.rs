//! Rights on files by Landlock: the second wall behind the mounts.
//!
//! Landlock knows folders that can be used, and no exceptions below them. So it does not know the
//! files that rules hide or protect inside the workspace; the mounts do.
//!
//! Effects: the local disk (reads), processes.

use super::FileRights;
use landlock::{
    ABI, Access, AccessFs, CompatLevel, Compatible, PathBeneath, PathFd, Ruleset, RulesetAttr,
    RulesetCreated, RulesetCreatedAttr, RulesetError, RulesetStatus, Scope,
};
use std::path::PathBuf;

/// The newest version whose rights are asked for. An older kernel enforces those it knows.
const WANTED: ABI = ABI::V6;

/// Restricts this process and everything it starts.
pub(super) fn restrict(files: &FileRights) -> Result<(), String> {
    let restricted = apply(files).map_err(|error| format!("Landlock: {error}"))?;
    match restricted {
        RulesetStatus::FullyEnforced | RulesetStatus::PartiallyEnforced => Ok(()),
        RulesetStatus::NotEnforced => Err("Landlock: this kernel does not enforce it".to_owned()),
    }
}

fn apply(files: &FileRights) -> Result<RulesetStatus, RulesetError> {
    let rules = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(AccessFs::from_all(WANTED))?
        .scope(Scope::from_all(WANTED))?
        .create()?;
    let rules = allow(rules, &files.readable, AccessFs::from_read(WANTED))?;
    let rules = allow(rules, &files.writable, AccessFs::from_all(WANTED))?;
    Ok(rules.restrict_self()?.ruleset)
}

/// Adds the paths that exist.
fn allow(
    mut rules: RulesetCreated,
    paths: &[PathBuf],
    access: landlock::BitFlags<AccessFs>,
) -> Result<RulesetCreated, RulesetError> {
    for path in paths {
        let Ok(opened) = PathFd::new(path) else {
            continue;
        };
        let access = match path.is_dir() {
            true => access,
            false => access & AccessFs::from_file(WANTED),
        };
        rules = rules.add_rule(PathBeneath::new(opened, access))?;
    }
    Ok(rules)
}
