//! A skill, and where skills come from.

use crate::{SkillFlavor, SkillHeader};
use std::fmt;
use std::sync::Arc;
use stead_vfs::{VPath, Version, Vfs};

/// A skill that can be used. Its body is read when it is needed.
#[derive(Debug, Clone)]
pub struct Skill {
    /// What its front matter says.
    pub header: Arc<SkillHeader>,
    /// Where it comes from.
    pub origin: SkillOrigin,
    /// The files it lies in.
    pub files: Arc<dyn Vfs>,
    /// Its directory there.
    pub dir: VPath,
    /// The version of its SKILL.md.
    pub version: Version,
    /// Whose rules it follows.
    pub flavor: SkillFlavor,
}

impl Skill {
    /// Its name.
    pub fn name(&self) -> &str {
        &self.header.name
    }

    /// Its SKILL.md.
    pub fn file(&self) -> VPath {
        self.dir
            .join(SKILL_FILE)
            .unwrap_or_else(|_| self.dir.clone())
    }
}

/// What every skill has.
pub const SKILL_FILE: &str = "SKILL.md";

/// Where a skill comes from, lowest first: of two with one name, the higher is used.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum SkillOrigin {
    /// What this person or machine has for every workspace.
    Global,
    /// An installed source, by its name.
    Repository(String),
    /// The workspace's own.
    Workspace,
    /// A user's own.
    User,
}

impl SkillOrigin {
    /// Whether its paths are those of the workspace, which file rules are about.
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
    /// What it is.
    pub origin: SkillOrigin,
    /// The files it lies in, as tools see them: what rules hide is not there.
    pub files: Arc<dyn Vfs>,
    /// The directory that holds the skills' directories. It need not exist.
    pub root: VPath,
    /// Whose rules its skills follow.
    pub flavor: SkillFlavor,
}
