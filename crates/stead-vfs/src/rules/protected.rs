//! What no rule can open: the files that say what an agent is and may do, and files that hold
//! secrets.
//!
//! Letters are compared without regard to case, for some places keep names that way.

use crate::VPath;
use stead_core::AccessKind;

/// What no agent of any layout may write: its settings, and what would make its folder a workspace
/// of another layout, with other rules. Then what else is given.
macro_rules! marked {
    ($($more:literal),*) => {
        [
            "agent.yaml",
            "tools.json",
            ".stead",
            ".openharness",
            ".deepagents",
            ".agentscope",
            ".mcp",
            "skills/.seed",
            "agent/AGENT.md",
            "AGENT.md",
            "config/agent.yaml",
            $($more),*
        ]
    };
}

/// The protected names of a layout.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protected {
    /// Paths from the root that the agent cannot change.
    unwritable: &'static [&'static str],
    /// Paths from the root that the agent cannot even read.
    hidden: &'static [&'static str],
    /// Paths below an unwritable one that it does not cover.
    writable: &'static [&'static [&'static str]],
    /// The folder in which `agents/<id>/` lies; empty for the root.
    runtime: &'static str,
    /// The folder in which facts wait for a person's approval; empty for none.
    quarantine: &'static str,
}

impl Protected {
    /// Of the stead layout: settings, hooks, schedules, profiles, journals, what was installed, and
    /// the marks of layouts.
    pub const STEAD: Self = Self {
        unwritable: &marked!["hooks", "crons", "profiles", "agents"],
        quarantine: "memory/quarantine",
        ..Self::NONE
    };
    /// Of a tree that is no workspace: only secrets.
    pub const NONE: Self = Self {
        unwritable: &[],
        hidden: &[],
        writable: &[],
        runtime: "",
        quarantine: "",
    };
    /// Of a folder that is the template of others: what belongs to its owner alone is not there.
    pub const TEMPLATE: Self = Self {
        hidden: &["agents"],
        ..Self::NONE
    };
    /// Of the openpaw layout: its settings and journals, and what is kept of conversations; not the
    /// list of tasks.
    pub const OPENPAW: Self = Self {
        unwritable: &marked![
            "hooks",
            "crons",
            "agents",
            "config",
            "data",
            "memory/logs",
            "memory/conversations"
        ],
        writable: &[
            &["agent", "AGENT.md"],
            &["AGENT.md"],
            &["data", "TASKS.yaml"],
        ],
        runtime: "data",
        ..Self::NONE
    };
    /// Of the deepagents layout: settings; journals are not seen.
    pub const DEEPAGENTS: Self = Self {
        unwritable: &marked![],
        writable: &[&[".deepagents", "AGENTS.md"], &[".deepagents", "skills"]],
        hidden: &[".stead/agents"],
        runtime: ".stead",
        ..Self::NONE
    };
    /// Of the agentscope-py layout: settings and what is kept of sessions; journals, and tool
    /// servers with their keys, are not seen.
    pub const AGENTSCOPE_PY: Self = Self {
        unwritable: &marked!["sessions"],
        hidden: &[".stead/agents", ".mcp"],
        runtime: ".stead",
        ..Self::NONE
    };
    /// Of the openharness layout: all of `.openharness` but what it remembers.
    pub const OPENHARNESS: Self = Self {
        unwritable: &marked![],
        writable: &[&[".openharness", "memory"]],
        runtime: ".openharness/data",
        quarantine: ".openharness/memory/quarantine",
        ..Self::NONE
    };
}

/// What hides secrets, at any depth, in every layout; neither to be read nor to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secret {
    /// Every name that begins so.
    Prefix(&'static str),
    /// One name after another.
    Names(&'static [&'static str]),
}

const SECRETS: &[(&str, Secret)] = &[
    (".env*", Secret::Prefix(".env")),
    (".netrc", Secret::Names(&[".netrc"])),
    (".pgpass", Secret::Names(&[".pgpass"])),
    (".git-credentials", Secret::Names(&[".git-credentials"])),
    ("id_rsa", Secret::Names(&["id_rsa"])),
    ("id_dsa", Secret::Names(&["id_dsa"])),
    ("id_ecdsa", Secret::Names(&["id_ecdsa"])),
    ("id_ed25519", Secret::Names(&["id_ed25519"])),
    (".aws/credentials", Secret::Names(&[".aws", "credentials"])),
];

/// Whether a path holds secrets by its name, at any depth: `.env`, `id_rsa` and the like.
pub fn is_secret(path: &VPath) -> bool {
    let names: Vec<&str> = path.parts().collect();
    SECRETS.iter().any(|(_, secret)| secret.is_in(&names))
}

/// Why something is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// The workspace itself.
    Root,
    /// It says what the agent is.
    Fixed(&'static str),
    /// It holds secrets.
    Secret(&'static str),
    /// It is a user's folder.
    Users,
    /// It is git's own, which says what git runs.
    Git,
    /// It is what undo remembers.
    Undo,
    /// It waits for a person's approval.
    Quarantine,
}

impl Protection {
    /// In words; the entry of the table is named, never the path, which may be one that must not be
    /// told.
    pub(crate) fn describe(self) -> String {
        match self {
            Self::Root => {
                "protected: the workspace itself cannot be changed by the agent".to_owned()
            }
            Self::Fixed(name) => format!("protected: {name} cannot be changed by the agent"),
            Self::Secret(name) => format!("protected: {name} holds secrets"),
            Self::Git => {
                "protected: git's own files say what git runs, and cannot be changed by the agent"
                    .to_owned()
            }
            Self::Users => "protected: the folders of users are theirs".to_owned(),
            Self::Undo => {
                "protected: what undo remembers cannot be read or changed by the agent".to_owned()
            }
            Self::Quarantine => {
                "protected: facts that wait for approval cannot be read or changed by the agent; \
                                 `stead memory review` shows them"
                    .to_owned()
            }
        }
    }
}

impl Protected {
    /// Why the path with these names is protected from `kind`, if it is.
    pub(crate) fn protection_for(&self, kind: AccessKind, names: &[&str]) -> Option<Protection> {
        if let Some((entry, _)) = SECRETS.iter().find(|(_, secret)| secret.is_in(names)) {
            return Some(Protection::Secret(entry));
        }
        if let [first, ..] = names
            && first.starts_with("@@")
        {
            return Some(Protection::Users);
        }
        // Contents that rules keep from the agent must not come back to it as before-images.
        if let Some([agents, _, undo, ..]) = below(self.runtime, names)
            && agents.eq_ignore_ascii_case("agents")
            && undo.eq_ignore_ascii_case("undo")
        {
            return Some(Protection::Undo);
        }
        // Read back, words from outside would look like words of the workspace.
        if !self.quarantine.is_empty() && below(self.quarantine, names).is_some() {
            return Some(Protection::Quarantine);
        }
        let hidden = self.hidden.iter().find(|path| below(path, names).is_some());
        if let Some(name) = hidden.filter(|_| !self.is_offloaded(names)) {
            return Some(Protection::Secret(name));
        }
        match (kind, names.first()) {
            (AccessKind::Read, _) => None,
            (AccessKind::Write, None) => Some(Protection::Root),
            (AccessKind::Write, Some(_)) if *self != Self::NONE && is_git(names) => {
                Some(Protection::Git)
            }
            (AccessKind::Write, Some(_)) => {
                let fixed = self
                    .unwritable
                    .iter()
                    .find(|path| below(path, names).is_some());
                // Letter by letter: a name that only looks like it is no exception.
                let open = self.writable.iter().any(|path| names.starts_with(path));
                fixed.filter(|_| !open).map(|name| Protection::Fixed(name))
            }
        }
    }

    /// Whether this is the agent's own long output, which it was told to read there. A template's
    /// is not: it belongs to somebody else.
    fn is_offloaded(&self, names: &[&str]) -> bool {
        let offloaded = match below(self.runtime, names) {
            Some([agents, _, offload, ..]) => {
                agents.eq_ignore_ascii_case("agents") && offload.eq_ignore_ascii_case("offload")
            }
            Some(_) | None => false,
        };
        offloaded && *self != Self::TEMPLATE
    }

    /// Paths which, if they are links, protect from `kind` what they lead to.
    pub(crate) fn link_roots(
        &self,
        kind: AccessKind,
    ) -> impl Iterator<Item = (String, Protection)> {
        let fixed = match kind {
            AccessKind::Read => &[],
            AccessKind::Write => self.unwritable,
        };
        let secrets = SECRETS
            .iter()
            .map(|(entry, secret)| (secret.at_root(), Protection::Secret(entry)));
        let fixed = fixed
            .iter()
            .map(|name| ((*name).to_owned(), Protection::Fixed(name)));
        let hidden = self
            .hidden
            .iter()
            .map(|name| ((*name).to_owned(), Protection::Secret(name)));
        let waiting = (!self.quarantine.is_empty())
            .then(|| (self.quarantine.to_owned(), Protection::Quarantine));
        fixed.chain(hidden).chain(waiting).chain(secrets)
    }
}

/// Whether it lies in what git keeps of a repository.
fn is_git(names: &[&str]) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// The names that follow those of `path`, if it is where they begin.
fn below<'a, 'b>(path: &str, names: &'a [&'b str]) -> Option<&'a [&'b str]> {
    let mut rest = names;
    for wanted in path.split('/').filter(|name| !name.is_empty()) {
        let (first, more) = rest.split_first()?;
        if !first.eq_ignore_ascii_case(wanted) {
            return None;
        }
        rest = more;
    }
    Some(rest)
}

impl Secret {
    fn is_in(self, names: &[&str]) -> bool {
        match self {
            Self::Prefix(start) => names.iter().any(|name| {
                name.get(..start.len())
                    .is_some_and(|name| name.eq_ignore_ascii_case(start))
            }),
            Self::Names(secret) => names.windows(secret.len()).any(|names| {
                names
                    .iter()
                    .zip(secret)
                    .all(|(name, wanted)| name.eq_ignore_ascii_case(wanted))
            }),
        }
    }

    fn at_root(self) -> String {
        match self {
            Self::Prefix(start) => start.to_owned(),
            Self::Names(names) => names.join("/"),
        }
    }
}
