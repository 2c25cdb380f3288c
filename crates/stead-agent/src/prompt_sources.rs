//! The files that later prompts are made from. Who writes them speaks to every later session, so a
//! session that took in words from outside asks first.

use stead_core::{AccessKind, Owner, PathAccess};
use stead_vfs::VPath;
use stead_workspace::{Nested, WorkspacePaths};

/// Where skills lie in every layout.
const STANDARD_SKILLS: [&str; 1] = [".agents/skills"];

/// What of the workspace a prompt is made from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptSources {
    paths: Vec<VPath>,
    /// Names that count in every folder.
    nested: Vec<String>,
    /// The folder with a user's own versions of all these.
    user_folder: Option<VPath>,
}

impl PromptSources {
    /// Of an agent whose parts lie as `tree` says, for sessions of `owner`.
    pub(crate) fn new(tree: &WorkspacePaths, owner: &Owner) -> Self {
        let context = tree.context.iter().map(|file| file.path.clone());
        let parts = [
            &tree.memory,
            &tree.daily_facts,
            &tree.knowledge,
            &tree.subagents,
        ];
        let parts = parts.into_iter().flatten().cloned();
        let shared = STANDARD_SKILLS
            .iter()
            .filter_map(|path| VPath::parse(path).ok());
        let paths = context
            .chain(parts)
            .chain(tree.skills.iter().cloned())
            .chain(shared)
            .collect();
        let nested = tree.context.iter().filter(|file| match file.nested {
            Nested::Yes => true,
            Nested::No => false,
        });
        let nested = nested.map(|file| file.path.name().to_lowercase()).collect();
        let user = owner.user.as_str();
        Self {
            paths,
            nested,
            user_folder: VPath::parse(user).ok().filter(|path| path.as_str() == user),
        }
    }

    /// The first of the accesses that would change such a file, as it was named.
    pub(crate) fn first_changed<'a>(
        &self,
        accesses: &'a [PathAccess],
        resolved: impl Fn(&str) -> Option<VPath>,
    ) -> Option<&'a str> {
        let changing = accesses
            .iter()
            .filter(|access| access.kind == AccessKind::Write);
        let mut hit = changing.filter(|access| {
            let named = VPath::parse(&access.path).ok();
            let ways = [named, resolved(&access.path)];
            // A path that is none is nobody's to vouch for.
            ways.iter().flatten().next().is_none()
                || ways.iter().flatten().any(|path| self.covers(path))
        });
        hit.next().map(|access| access.path.as_str())
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

/// Whether one lies in the other, whatever the case of their letters: some places do not tell it.
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

/// The path below `folder`.
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
    async fn only_changes_of_what_prompts_are_made_from_are_told() {
        let files = std::sync::Arc::new(stead_vfs::StoreVfs::in_memory());
        let workspace = Workspace::open(files, &OpenOptions::default(), &|_| None)
            .await
            .unwrap();
        assert_eq!(workspace.config(), &AgentConfig::default());
        let owner = Owner {
            user: UserId::new("ann").unwrap(),
            ..Owner::default()
        };
        let standing = PromptSources::new(&workspace.definition.paths, &owner);
        let touched = |path: &str, kind| {
            let access = PathAccess {
                path: path.to_owned(),
                kind,
                scope: PathScope::Content,
            };
            standing.first_changed(&[access], |_| None).is_some()
        };
        let told = [
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
        for path in told {
            assert!(touched(path, AccessKind::Write), "{path}");
            assert!(!touched(path, AccessKind::Read), "{path}");
        }
        for path in [
            "notes.md",
            "src/memory.rs",
            "bob/skills/x/SKILL.md",
            "memory2/x.md",
            "docs/knowledge/a.md",
        ] {
            assert!(!touched(path, AccessKind::Write), "{path}");
        }
        // A link leads there.
        let link = [PathAccess {
            path: "link".to_owned(),
            kind: AccessKind::Write,
            scope: PathScope::Content,
        }];
        let leads = standing.first_changed(&link, |_| VPath::parse("MEMORY.md").ok());
        assert_eq!(leads, Some("link"));
    }
}
