//! The files from which later prompts are made. A change to them affects every later session, so a
//! tainted session must ask first.

use stead_core::{AccessKind, Owner, PathAccess};
use stead_vfs::VPath;
use stead_workspace::{Nested, WorkspacePaths};

/// The folders of skills in every layout.
const STANDARD_SKILLS: [&str; 1] = [".agents/skills"];

/// The paths of a workspace from which prompts are made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptSources {
    paths: Vec<VPath>,
    /// Lower-case names of files that are prompt sources in every folder.
    nested: Vec<String>,
    /// The folder with a user's own versions of these files.
    user_folder: Option<VPath>,
}

impl PromptSources {
    /// Creates the prompt sources of a workspace for sessions of `owner`.
    pub(crate) fn new(paths: &WorkspacePaths, owner: &Owner) -> Self {
        let context = paths.context.iter().map(|file| file.path.clone());
        let parts = [
            &paths.memory,
            &paths.daily_facts,
            &paths.knowledge,
            &paths.subagents,
        ];
        let parts = parts.into_iter().flatten().cloned();
        let shared = STANDARD_SKILLS
            .iter()
            .filter_map(|path| VPath::parse(path).ok());
        let sources = context
            .chain(parts)
            .chain(paths.skills.iter().cloned())
            .chain(shared)
            .collect();
        let nested = paths.context.iter().filter(|file| match file.nested {
            Nested::Yes => true,
            Nested::No => false,
        });
        let nested = nested.map(|file| file.path.name().to_lowercase()).collect();
        let user = owner.user.as_str();
        Self {
            paths: sources,
            nested,
            user_folder: VPath::parse(user).ok().filter(|path| path.as_str() == user),
        }
    }

    /// Returns the path, as the call names it, of the first access that would change a prompt
    /// source. `resolved` follows links.
    pub(crate) fn first_changed<'a>(
        &self,
        accesses: &'a [PathAccess],
        resolved: impl Fn(&str) -> Option<VPath>,
    ) -> Option<&'a str> {
        let changing = accesses
            .iter()
            .filter(|access| access.kind == AccessKind::Write);
        let mut changed = changing.filter(|access| {
            let named = VPath::parse(&access.path).ok();
            let candidates = [named, resolved(&access.path)];
            // An invalid path counts as a prompt source.
            candidates.iter().flatten().next().is_none()
                || candidates.iter().flatten().any(|path| self.covers(path))
        });
        changed.next().map(|access| access.path.as_str())
    }

    fn covers(&self, path: &VPath) -> bool {
        let within = |path: &VPath| self.paths.iter().any(|own| overlap(own, path));
        let below = self
            .user_folder
            .as_ref()
            .and_then(|own| relative_to(own, path));
        within(path)
            || below.is_some_and(|rest| within(&rest))
            || self.nested.contains(&path.name().to_lowercase())
    }
}

/// Whether one path contains the other. Case is ignored, because some file systems ignore it.
fn overlap(one: &VPath, other: &VPath) -> bool {
    let one = one.as_str().to_lowercase();
    let other = other.as_str().to_lowercase();
    let inside = |outer: &str, inner: &str| {
        outer.is_empty()
            || inner == outer
            || inner
                .strip_prefix(outer)
                .is_some_and(|rest| rest.starts_with('/'))
    };
    inside(&one, &other) || inside(&other, &one)
}

/// Returns `path` relative to `folder`; `None` if it is not inside.
fn relative_to(folder: &VPath, path: &VPath) -> Option<VPath> {
    let rest = path
        .as_str()
        .strip_prefix(folder.as_str())?
        .strip_prefix('/')?;
    VPath::parse(rest).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{PathScope, UserId};
    use stead_workspace::{AgentConfig, OpenOptions, Workspace};

    #[tokio::test]
    async fn only_changes_of_prompt_sources_are_reported() {
        let files = std::sync::Arc::new(stead_vfs::StoreVfs::in_memory());
        let workspace = Workspace::open(files, &OpenOptions::default(), &|_| None)
            .await
            .unwrap();
        assert_eq!(workspace.config(), &AgentConfig::default());
        let owner = Owner {
            user: UserId::new("ann").unwrap(),
            ..Owner::default()
        };
        let prompt_sources = PromptSources::new(&workspace.definition.paths, &owner);
        let is_reported = |path: &str, kind| {
            let access = PathAccess {
                path: path.to_owned(),
                kind,
                scope: PathScope::Content,
            };
            prompt_sources.first_changed(&[access], |_| None).is_some()
        };
        let sources = [
            "MEMORY.md",
            "memory.MD",
            "memory/2026-11-16.md",
            "memory",
            "AGENTS.md",
            "deep/down/AGENTS.md",
            "knowledge/KNOWLEDGE.md",
            "skills/pdf/SKILL.md",
            "subagents/x.md",
            "ann/skills/x/SKILL.md",
            ".",
            "../x",
        ];
        for path in sources {
            assert!(is_reported(path, AccessKind::Write), "{path}");
            assert!(!is_reported(path, AccessKind::Read), "{path}");
        }
        for path in [
            "notes.md",
            "src/memory.rs",
            "bob/skills/x/SKILL.md",
            "memory2/x.md",
            "docs/knowledge/a.md",
        ] {
            assert!(!is_reported(path, AccessKind::Write), "{path}");
        }
        // A link to a prompt source counts as that file.
        let link = [PathAccess {
            path: "link".to_owned(),
            kind: AccessKind::Write,
            scope: PathScope::Content,
        }];
        let changed = prompt_sources.first_changed(&link, |_| VPath::parse("MEMORY.md").ok());
        assert_eq!(changed, Some("link"));
    }
}
