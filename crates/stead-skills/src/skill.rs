//! A skill, and where skills come from.
//!
//! Effects: none.

use crate::{SkillFlavor, SkillHeader};
use std::fmt;
use std::sync::Arc;
use stead_vfs::{VPath, Version, Vfs};

/// A skill that can be used. Its body is read when it is needed.
#[derive(Debug, Clone)]
pub struct Skill {
    /// The front matter.
    pub header: Arc<SkillHeader>,
    /// The origin.
    pub origin: SkillOrigin,
    /// The tree that holds the skill.
    pub files: Arc<dyn Vfs>,
    /// The directory of the skill in that tree.
    pub dir: VPath,
    /// The version of its SKILL.md.
    pub version: Version,
    /// The rules that it follows.
    pub flavor: SkillFlavor,
}

impl Skill {
    /// Returns the name.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// Returns the path of the SKILL.md.
    pub fn file(&self) -> VPath {
        self.dir
            .join(SKILL_FILE)
            .unwrap_or_else(|_| self.dir.clone())
    }
}

/// The file that makes a directory a skill.
pub const SKILL_FILE: &str = "SKILL.md";

/// The origin of a skill, lowest first. Of two skills with the same name, the higher one is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillOrigin {
    /// A folder of the person or machine, for all workspaces.
    Global,
    /// An installed source, by name.
    Repository(String),
    /// The workspace.
    Workspace,
    /// A folder of one user.
    User,
}

impl SkillOrigin {
    /// Returns whether its paths are paths of the workspace, to which file rules apply.
    pub fn is_in_workspace(&self) -> bool {
        match self {
            Self::Global => false,
            Self::Repository(_) | Self::Workspace | Self::User => true,
        }
    }
}

impl fmt::Display for SkillOrigin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Global => f.write_str("global"),
            Self::Repository(name) => write!(f, "repository {name}"),
            Self::Workspace => f.write_str("workspace"),
            Self::User => f.write_str("user"),
        }
    }
}

/// A directory of skills.
#[derive(Debug, Clone)]
pub struct SkillLayer {
    /// The origin of its skills.
    pub origin: SkillOrigin,
    /// The tree that holds the layer, as tools see it: without what rules hide.
    pub files: Arc<dyn Vfs>,
    /// The directory that holds the directories of the skills. It need not exist.
    pub root: VPath,
    /// Directories below it that are layers of their own.
    pub except: Vec<VPath>,
    /// The rules that its skills follow.
    pub flavor: SkillFlavor,
}
