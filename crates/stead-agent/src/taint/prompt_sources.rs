//! The files from which later prompts are made, of every user. A change to them affects later
//! sessions, so a tainted session must ask first.
//!
//! Effects: none.

use super::command_paths::{NamedPath, PathCertainty};
use stead_core::{AccessKind, PathAccess};
use stead_shell::TargetRole;
use stead_vfs::VPath;
use stead_workspace::{Nested, WorkspacePaths};

/// The folders of commands that a person can send as an input.
const COMMAND_DIRS: [&str; 2] = ["commands", ".claude/commands"];
/// The folders of skills and subagents in every layout.
const STANDARD_DIRS: [&str; 3] = [".agents/skills", ".claude/skills", ".claude/agents"];

/// The paths of a workspace from which prompts are made. Each user has a folder at the root of the
/// workspace with versions of their own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PromptSources {
    /// Single files.
    files: Vec<VPath>,
    /// Folders of texts.
    folders: Vec<VPath>,
    /// Folders of skills, which may contain programs.
    skills: Vec<VPath>,
    /// Lower-case names of files that are prompt sources in every folder.
    nested: Vec<String>,
}

impl PromptSources {
    /// Creates the prompt sources of a workspace.
    pub(crate) fn new(paths: &WorkspacePaths) -> Self {
        let context = paths.context.iter().map(|file| file.path.clone());
        let folders = [&paths.daily_facts, &paths.knowledge, &paths.subagents];
        let folders = folders.into_iter().flatten();
        let commands = COMMAND_DIRS
            .iter()
            .filter_map(|path| VPath::parse(path).ok());
        let shared = STANDARD_DIRS
            .iter()
            .filter_map(|path| VPath::parse(path).ok());
        let nested = paths.context.iter().filter(|file| match file.nested {
            Nested::Yes => true,
            Nested::No => false,
        });
        Self {
            files: context.chain(paths.memory.clone()).collect(),
            folders: folders
                .chain(&paths.memory_of_parent)
                .cloned()
                .chain(commands)
                .collect(),
            skills: paths.skills.iter().cloned().chain(shared).collect(),
            nested: nested.map(|file| file.path.name().to_lowercase()).collect(),
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

    /// Returns the first prompt source that a command plainly names, as the command names it.
    pub(crate) fn first_named<'a>(&self, named: &'a [NamedPath]) -> Option<&'a str> {
        let mut found = named.iter().filter(|named| match named.role {
            TargetRole::Script => self.is_mentioned_in(&named.word),
            TargetRole::Changed => self.is_named_by(named),
            // `cargo test memory` means no folder.
            TargetRole::Argument => self.is_named_by(named) && !self.is_bare_folder(&named.word),
        });
        found.next().map(|named| named.word.as_str())
    }

    /// Whether `path` is a prompt source, or in one. Folders above do not count.
    pub(crate) fn contains(&self, path: &VPath) -> bool {
        let own = self.files.iter().chain(&self.folders).chain(&self.skills);
        own.into_iter().any(|own| is_inside(own, path))
            || self.is_of_user(path)
            || self.nested.contains(&path.name().to_lowercase())
    }

    /// Paths of the folder of each user that prompts are made from.
    pub(crate) fn all(&self) -> impl Iterator<Item = &VPath> {
        self.files.iter().chain(&self.folders).chain(&self.skills)
    }

    fn covers(&self, path: &VPath) -> bool {
        self.contains(path) || self.all().any(|own| is_inside(path, own))
    }

    /// Whether `path` is a prompt source of some user. Which folders are those of users is not
    /// known: another user may begin tomorrow. Elsewhere a folder of the same name may contain
    /// anything, so that only texts and folders count there, and everything among skills.
    fn is_of_user(&self, path: &VPath) -> bool {
        let Some(rest) = below_first(path) else {
            return false;
        };
        let is_text = match rest.name().rsplit_once('.') {
            Some((_, extension)) => extension.eq_ignore_ascii_case("md"),
            None => true,
        };
        self.files.iter().any(|own| is_inside(own, &rest))
            || self.skills.iter().any(|own| is_inside(own, &rest))
            || (is_text && self.folders.iter().any(|own| is_inside(own, &rest)))
    }

    fn is_named_by(&self, named: &NamedPath) -> bool {
        let Some(path) = &named.path else {
            return false;
        };
        match named.certainty {
            PathCertainty::Workspace => self.contains(path),
            // Wherever the path begins, its end may be a prompt source.
            PathCertainty::Elsewhere => ends(path).any(|end| self.contains(&end)),
        }
    }

    fn is_bare_folder(&self, word: &str) -> bool {
        let mut folders = self.folders.iter().chain(&self.skills);
        !word.contains('/') && folders.any(|own| own.as_str().eq_ignore_ascii_case(word))
    }

    /// Whether the text of a program mentions a prompt source.
    fn is_mentioned_in(&self, text: &str) -> bool {
        let text = text.to_lowercase();
        let names = self.files.iter().map(|own| own.name().to_lowercase());
        let mut names = names.chain(self.nested.iter().cloned());
        let mut folders = self.folders.iter().chain(&self.skills);
        names.any(|name| text.contains(&name))
            || folders.any(|own| text.contains(&format!("{}/", own.as_str().to_lowercase())))
    }
}

/// Returns the path without its first folder.
fn below_first(path: &VPath) -> Option<VPath> {
    let (_, rest) = path.as_str().split_once('/')?;
    VPath::parse(rest).ok()
}

/// Returns the path, and the path without its first folder, and so on.
pub(super) fn ends(path: &VPath) -> impl Iterator<Item = VPath> {
    std::iter::successors(Some(path.clone()), below_first)
}

/// Whether `path` is `folder` or in it. Case is ignored, because some file systems ignore it.
fn is_inside(folder: &VPath, path: &VPath) -> bool {
    let folder = folder.as_str().to_lowercase();
    let path = path.as_str().to_lowercase();
    folder.is_empty()
        || path == folder
        || path
            .strip_prefix(&folder)
            .is_some_and(|rest| rest.starts_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::PathScope;
    use stead_workspace::{AgentConfig, OpenOptions, Workspace};

    #[tokio::test]
    async fn only_changes_of_prompt_sources_are_reported() {
        let files = std::sync::Arc::new(stead_vfs::StoreVfs::in_memory());
        let workspace = Workspace::open(files, &home_options(), &|_| None)
            .await
            .unwrap();
        assert_eq!(workspace.config(), &AgentConfig::default());
        let prompt_sources = PromptSources::new(&workspace.definition.paths);
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
            "CLAUDE.md",
            "deep/claude.md",
            "knowledge/KNOWLEDGE.md",
            "skills/pdf/SKILL.md",
            "subagents/x.md",
            "ann/skills/x/SKILL.md",
            "bob/skills/pay/run.sh",
            "bob/skills",
            "@@bob/knowledge/KNOWLEDGE.md",
            "bob/subagents/x.md",
            "bob/MEMORY.md",
            "bob/memory/2026-11-16.md",
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
            "src/memory/mod.rs",
            "bob/notes.md",
            "memory2/x.md",
            "docs/a/knowledge/a.md",
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

    #[tokio::test]
    async fn commands_that_plainly_name_prompt_sources_are_noticed() {
        let files = std::sync::Arc::new(stead_vfs::StoreVfs::in_memory());
        let workspace = Workspace::open(files, &home_options(), &|_| None)
            .await
            .unwrap();
        let sources = PromptSources::new(&workspace.definition.paths);
        let table = [
            ("cp n.md MEMORY.md", ".", Some("MEMORY.md")),
            ("sed -i s/a/b/ MEMORY.md", ".", Some("MEMORY.md")),
            ("mv n.md AGENTS.md", ".", Some("AGENTS.md")),
            ("tee 2026-11-16.md", "memory", Some("2026-11-16.md")),
            ("echo x >> sub/AGENTS.md", ".", Some("sub/AGENTS.md")),
            ("cp -r evil skills", ".", Some("skills")),
            ("cp n.md /srv/ws/MEMORY.md", ".", Some("/srv/ws/MEMORY.md")),
            (
                "cp n.md ../ws/bob/skills/a/SKILL.md",
                ".",
                Some("../ws/bob/skills/a/SKILL.md"),
            ),
            ("cd memory && touch a.md", ".", Some("memory")),
            ("cp n.md bob/MEMORY.md", ".", Some("bob/MEMORY.md")),
            (
                "python3 tool.py skills/x/SKILL.md",
                ".",
                Some("skills/x/SKILL.md"),
            ),
            ("cargo test memory", ".", None),
            ("cargo test -p skills", ".", None),
            ("git commit -m 'say more in AGENTS.md'", ".", None),
            ("cp a.md b.md", ".", None),
            ("make all", ".", None),
            ("touch src/memory/mod.rs", ".", None),
        ];
        for (command, cwd, expected) in table {
            let named = super::super::command_paths::named_paths(command, cwd);
            assert_eq!(sources.first_named(&named), expected, "{command}");
        }
        let script = "python3 -c \"open('MEMORY.md', 'w')\"";
        let named = super::super::command_paths::named_paths(script, ".");
        assert!(sources.first_named(&named).is_some());
    }

    /// Options for a folder that is an agent, whatever its files.
    fn home_options() -> OpenOptions {
        OpenOptions {
            layout: Some(stead_workspace::Layout::Stead),
            ..OpenOptions::default()
        }
    }
}
