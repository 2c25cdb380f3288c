//! Paths that no rule can open: the files that decide what an agent is or may do, and files that
//! hold secrets.
//!
//! Names are compared without regard to case, because some file systems do so too.
//!
//! Effects: none.

use crate::VPath;
use stead_core::AccessKind;

/// The protected paths of a tree.
///
/// ```
/// use stead_vfs::Protected;
///
/// const PROTECTED: Protected = Protected::workspace("").with_unwritable(&["agent.yaml", "agents"]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Protected {
    /// What the tree is.
    tree: ProtectedTree,
    /// Paths that decide what kind of workspace the tree is. The agent cannot change them.
    marks: &'static [&'static str],
    /// Further paths that the agent cannot change.
    unwritable: &'static [&'static str],
    /// Paths that the agent cannot even read.
    hidden: &'static [&'static str],
    /// Exceptions to `marks` and `unwritable`.
    writable: &'static [&'static [&'static str]],
    /// Further exceptions, for tools that choose these paths themselves. A call whose arguments name
    /// one cannot change it.
    tool_files: &'static [&'static [&'static str]],
    /// The folder in which `agents/<id>/` lies; empty for the root.
    runtime: &'static str,
    /// The folder of facts that wait for review; empty for none.
    quarantine: &'static str,
    /// The folder in which the folders of users (`@@name`) lie; empty for the root.
    users: &'static str,
}

/// What a tree with protected paths is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ProtectedTree {
    /// A workspace, as its agent sees it.
    Workspace,
    /// A workspace as the template of others.
    Template,
    /// Any other folder.
    Folder,
}

impl Protected {
    /// The protection of a tree that is no workspace: only secrets.
    pub const NONE: Self = Self {
        tree: ProtectedTree::Folder,
        ..Self::workspace("")
    };

    /// The protection of a workspace that is the template of others: what belongs to its owner is
    /// hidden.
    pub const TEMPLATE: Self = Self {
        tree: ProtectedTree::Template,
        hidden: &["agents"],
        ..Self::workspace("")
    };

    /// Returns the protection of a workspace whose runtime state lies below the folder `runtime`,
    /// from the root; empty for the root itself.
    pub const fn workspace(runtime: &'static str) -> Self {
        Self {
            tree: ProtectedTree::Workspace,
            marks: &[],
            unwritable: &[],
            hidden: &[],
            writable: &[],
            tool_files: &[],
            runtime,
            quarantine: "",
            users: "",
        }
    }

    /// Returns the folder below which the runtime state lies; empty for the root.
    pub const fn runtime(&self) -> &'static str {
        self.runtime
    }

    /// Adds the paths that decide what kind of workspace the tree is.
    pub const fn with_marks(self, marks: &'static [&'static str]) -> Self {
        Self { marks, ..self }
    }

    /// Adds paths that the agent cannot change.
    pub const fn with_unwritable(self, unwritable: &'static [&'static str]) -> Self {
        Self { unwritable, ..self }
    }

    /// Adds paths that the agent cannot read.
    pub const fn with_hidden(self, hidden: &'static [&'static str]) -> Self {
        Self { hidden, ..self }
    }

    /// Adds paths that the agent can change although they lie below one that it cannot, each as
    /// its names.
    pub const fn with_writable(self, writable: &'static [&'static [&'static str]]) -> Self {
        Self { writable, ..self }
    }

    /// Adds files that tools keep for the agent although they lie below a path that it cannot
    /// change, each as its names.
    pub const fn with_tool_files(self, tool_files: &'static [&'static [&'static str]]) -> Self {
        Self { tool_files, ..self }
    }

    /// Returns the protection from calls whose arguments name the path, if it differs.
    pub(crate) fn for_named_paths(self) -> Option<Self> {
        let tool_files: &[&[&str]] = &[];
        (!self.tool_files.is_empty()).then_some(Self { tool_files, ..self })
    }

    /// Sets the folder in which the folders of users lie.
    pub const fn with_users_in(self, users: &'static str) -> Self {
        Self { users, ..self }
    }

    /// Sets the folder of facts that wait for review.
    pub const fn with_quarantine(self, quarantine: &'static str) -> Self {
        Self { quarantine, ..self }
    }
}

/// A name that holds secrets at any depth of every tree. It can be neither read nor changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Secret {
    /// Every name with this prefix.
    Prefix(&'static str),
    /// These names, one below the other.
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

/// Returns whether a path holds secrets by its name, at any depth: `.env`, `id_rsa` and the like.
pub fn is_secret(path: &VPath) -> bool {
    let names: Vec<&str> = path.parts().collect();
    SECRETS.iter().any(|(_, secret)| secret.is_in(&names))
}

/// Why a path is protected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protection {
    /// The workspace itself.
    Root,
    /// It decides what the agent is or may do.
    Fixed(&'static str),
    /// It holds secrets.
    Secret(&'static str),
    /// It is the folder of a user.
    Users,
    /// It belongs to git and decides what git runs.
    Git,
    /// It holds the contents that undo restores.
    Undo,
    /// It waits for review by a person.
    Quarantine,
}

impl Protection {
    /// Returns the name of the protection in rule ids: the entry of the table, never the path, which
    /// may be secret.
    pub(crate) fn id(self) -> &'static str {
        match self {
            Self::Root => "workspace",
            Self::Fixed(name) | Self::Secret(name) => name,
            Self::Users => "users",
            Self::Git => "git",
            Self::Undo => "undo",
            Self::Quarantine => "quarantine",
        }
    }

    /// Describes the reason. It names the entry of the table and never the path, which may be
    /// secret.
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
                "protected: facts that wait for approval cannot be read or changed by the agent"
                    .to_owned()
            }
        }
    }
}

impl Protected {
    /// Returns why the path with these names is protected from `kind`, if it is.
    pub(crate) fn protection_for(&self, kind: AccessKind, names: &[&str]) -> Option<Protection> {
        if let Some((entry, _)) = SECRETS.iter().find(|(_, secret)| secret.is_in(names)) {
            return Some(Protection::Secret(entry));
        }
        if let Some([first, ..]) = below(self.users, names)
            && first.starts_with("@@")
        {
            return Some(Protection::Users);
        }
        // Contents that rules keep from the agent must not reach it as before-images.
        if let Some([agents, _, undo, ..]) = below(self.runtime, names)
            && agents.eq_ignore_ascii_case("agents")
            && undo.eq_ignore_ascii_case("undo")
        {
            return Some(Protection::Undo);
        }
        // Untrusted content would look like content of the workspace when read back.
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
            (AccessKind::Write, Some(_)) if self.tree != ProtectedTree::Folder && is_git(names) => {
                Some(Protection::Git)
            }
            (AccessKind::Write, Some(_)) => {
                let fixed = self
                    .unwritable_paths()
                    .find(|path| below(path, names).is_some());
                // An exception must match in case too.
                let mut open = self.writable.iter().chain(self.tool_files);
                let open = open.any(|path| names.starts_with(path));
                fixed.filter(|_| !open).map(Protection::Fixed)
            }
        }
    }

    /// Returns whether this is offloaded output of the agent, which it may read. In a template it
    /// belongs to somebody else.
    fn is_offloaded(&self, names: &[&str]) -> bool {
        let offloaded = match below(self.runtime, names) {
            Some([agents, _, offload, ..]) => {
                agents.eq_ignore_ascii_case("agents") && offload.eq_ignore_ascii_case("offload")
            }
            Some(_) | None => false,
        };
        offloaded && self.tree != ProtectedTree::Template
    }

    /// Returns the paths that the agent cannot change.
    fn unwritable_paths(&self) -> impl Iterator<Item = &'static str> + use<> {
        self.marks.iter().chain(self.unwritable).copied()
    }

    /// Returns the paths that, where they are links, protect their targets from `kind`.
    pub(crate) fn link_roots(
        &self,
        kind: AccessKind,
    ) -> impl Iterator<Item = (String, Protection)> {
        let fixed = match kind {
            AccessKind::Read => None,
            AccessKind::Write => Some(self.unwritable_paths()),
        };
        let secrets = SECRETS
            .iter()
            .map(|(entry, secret)| (secret.at_root(), Protection::Secret(entry)));
        let fixed = fixed
            .into_iter()
            .flatten()
            .map(|name| (name.to_owned(), Protection::Fixed(name)));
        let hidden = self
            .hidden
            .iter()
            .map(|name| ((*name).to_owned(), Protection::Secret(name)));
        let waiting = (!self.quarantine.is_empty())
            .then(|| (self.quarantine.to_owned(), Protection::Quarantine));
        fixed.chain(hidden).chain(waiting).chain(secrets)
    }
}

/// Returns whether the path lies in a `.git` folder.
fn is_git(names: &[&str]) -> bool {
    names.iter().any(|name| name.eq_ignore_ascii_case(".git"))
}

/// Returns the names that follow those of `path`, if `names` begins with them.
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
