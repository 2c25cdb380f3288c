//! The catalogue: the skills of all layers.
//!
//! Effects: none.

use crate::{Skill, SkillOrigin, SkillProblem};
use std::collections::BTreeMap;
use std::fmt;
use stead_vfs::VPath;

/// The skills of all layers, by name.
#[derive(Debug, Clone, Default)]
pub struct Catalogue {
    skills: BTreeMap<String, Skill>,
    /// Skills that a higher layer hides by the same name.
    pub shadowed: Vec<Shadowed>,
    /// The problems that were found.
    pub findings: Vec<SkillFinding>,
}

/// A skill hidden by another one of the same name.
#[derive(Debug, Clone)]
pub struct Shadowed {
    /// The hidden one.
    pub skill: Skill,
    /// The layer of the one that is used.
    pub by: SkillOrigin,
    /// The directory of the one that is used.
    pub by_dir: VPath,
}

/// A problem in a layer.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct SkillFinding {
    /// The layer.
    pub origin: SkillOrigin,
    /// The file or directory.
    pub path: VPath,
    /// The problem and its position in the file.
    pub problem: SkillProblem,
    /// The consequence for the skill.
    pub consequence: Consequence,
}

/// The consequence of a problem for a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Consequence {
    /// The skill is used nevertheless.
    Used,
    /// The skill is not used.
    Skipped,
}

impl fmt::Display for SkillFinding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.path, self.problem)
    }
}

impl Catalogue {
    /// Returns the skill called `name`.
    pub fn get(&self, name: &str) -> Option<&Skill> {
        self.skills.get(name)
    }

    /// Returns all skills, sorted by name.
    pub fn skills(&self) -> impl ExactSizeIterator<Item = &Skill> {
        self.skills.values()
    }

    /// Returns whether there are no skills.
    pub fn is_empty(&self) -> bool {
        self.skills.is_empty()
    }

    /// Keeps only the skills for which `keep` returns true.
    pub fn retain(&mut self, keep: impl Fn(&Skill) -> bool) {
        self.skills.retain(|_, skill| keep(skill));
    }

    /// Adds a skill of a higher layer; it hides one of the same name.
    pub(crate) fn insert(&mut self, skill: Skill) {
        let by = skill.origin.clone();
        let by_dir = skill.dir.clone();
        if let Some(skill) = self.skills.insert(skill.name().to_owned(), skill) {
            self.shadowed.push(Shadowed { skill, by, by_dir });
        }
    }

    /// Adds a skill whose name its own layer has already, in another directory.
    pub(crate) fn insert_shadowed(&mut self, skill: Skill) {
        let Some(used) = self.skills.get(skill.name()) else {
            return;
        };
        let by = used.origin.clone();
        let by_dir = used.dir.clone();
        let message = format!(
            "`{}` is also in {by_dir}, which is used; rename one of them",
            skill.name()
        );
        let layer = skill.origin.clone();
        let path = skill.file();
        let problem = SkillProblem::whole_file(message);
        self.findings.push(SkillFinding {
            origin: layer,
            path,
            problem,
            consequence: Consequence::Skipped,
        });
        self.shadowed.push(Shadowed { skill, by, by_dir });
    }
}
