//! The sources of skills: repositories, directories, archives and stores.
//!
//! Effects: none.

mod archive;
mod bundle;
mod fetch;
mod git;
pub(crate) mod install;
pub(crate) mod manifest;
mod progress;
mod publish;
mod tar;
mod url;
mod zip;

pub use archive::{ArchiveError, ArchiveFormat};
pub use bundle::{Bundle, BundleFile, BundledSkill};
pub use fetch::FetchedSkills;
pub use install::{InstallOutcome, Installation};
pub use manifest::{InstalledSkill, InstalledSource, MANIFEST, SKILLS_DIR};
pub use progress::SkillProgress;
pub use publish::{publish, published_tree};

use serde::{Deserialize, Serialize};
use std::fmt;
use stead_core::Hint;
use stead_store::StoreError;
use stead_vfs::{VPath, VfsError};

/// A source from which skills are installed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillSource {
    /// The kind of source.
    pub kind: SourceKind,
    /// The address with variables instead of secrets, as it is stored and shown.
    pub from: String,
    /// The branch, tag or commit of a repository; none for its HEAD.
    pub rev: Option<String>,
}

/// The kinds of sources.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SourceKind {
    /// A git repository.
    Git,
    /// A directory of this machine.
    Directory,
    /// A `.zip`, `.tar`, `.tar.gz` or `.tgz` of this machine.
    Archive,
    /// A store that skills were published to.
    Store,
}

impl fmt::Display for SourceKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Git => "git",
            Self::Directory => "directory",
            Self::Archive => "archive",
            Self::Store => "store",
        })
    }
}

/// Why skills cannot be installed, updated or removed. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum SourceError {
    /// The text names no source.
    #[error("{0}")]
    Address(String),
    /// The address holds a secret.
    #[error(
        "{0} holds a secret, which would be kept in the workspace; put it into a variable and write ${{VARIABLE}}"
    )]
    Credentials(String),
    /// Variables of the address are not set.
    #[error("not set: {}", .0.join(", "))]
    Variables(Vec<String>),
    /// The archive is refused.
    #[error("the archive is refused, and nothing was written: {0}")]
    Archive(#[from] ArchiveError),
    /// The `git` command failed.
    #[error("git: {0}")]
    Git(String),
    /// There is nothing to install.
    #[error("there is no skill in {0}: no directory with a SKILL.md that can be used{1}")]
    NoSkills(String, String),
    /// Something in a skill cannot be installed.
    #[error("{path} {reason}")]
    Content {
        /// What it is.
        path: VPath,
        /// Why.
        reason: String,
    },
    /// The name of a source is invalid.
    #[error(
        "{0:?} cannot be the name of a source: use lower case letters, digits, `-`, `_` and `.`"
    )]
    Name(String),
    /// Another source has this name.
    #[error("there is a source `{0}` already")]
    Exists(String),
    /// No source has this name.
    #[error("there is no source `{name}`; {known}")]
    Unknown {
        /// The name.
        name: String,
        /// A sentence that lists the existing sources.
        known: String,
    },
    /// The manifest is invalid.
    #[error(
        "{MANIFEST}:{line}:{column}: {reason}; restore the file, or remove .stead/ and add the sources again"
    )]
    Manifest {
        /// The line.
        line: usize,
        /// The column.
        column: usize,
        /// What is wrong.
        reason: String,
    },
    /// The workspace or the source cannot be read or written.
    #[error(transparent)]
    Files(#[from] VfsError),
    /// The store does not answer, or its address is invalid.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl SourceError {
    /// Returns what a person can do about it, if the message does not say so.
    pub fn hint(&self) -> Option<Hint> {
        match self {
            Self::Name(_) => Some(Hint::NameSource),
            Self::Exists(name) => Some(Hint::UpdateSource(name.clone())),
            Self::Store(error) => error.hint(),
            Self::Address(_)
            | Self::Credentials(_)
            | Self::Variables(_)
            | Self::Archive(_)
            | Self::Git(_)
            | Self::NoSkills(..)
            | Self::Content { .. }
            | Self::Unknown { .. }
            | Self::Manifest { .. }
            | Self::Files(_) => None,
        }
    }
}
