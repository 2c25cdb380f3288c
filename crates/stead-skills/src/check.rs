//! Strict validation of all skills of a catalogue.
//!
//! Effects: workspace files (reads).

use crate::catalogue::{Catalogue, Consequence, SkillFinding};
use crate::library::read_skill;
use crate::{Skill, SkillFlavor, SkillProblem, validate};

impl Catalogue {
    /// Returns every deviation of the skills from the standard, including hidden skills and problems
    /// that do not prevent a skill from being used. Skills of a layout with looser rules are checked
    /// by those.
    pub async fn check(&self) -> Vec<SkillFinding> {
        let mut findings = self.findings.clone();
        // The strict validation below reports these findings again.
        findings.retain(|finding| {
            finding.consequence == Consequence::Skipped || !self.is_standard(finding)
        });
        for skill in self
            .skills()
            .chain(self.shadowed.iter().map(|shadowed| &shadowed.skill))
        {
            let problems = match skill.flavor {
                SkillFlavor::Standard => problems(skill).await,
                SkillFlavor::OpenPaw | SkillFlavor::OpenHarness => Vec::new(),
            };
            findings.extend(problems.into_iter().map(|problem| SkillFinding {
                origin: skill.origin.clone(),
                path: skill.file(),
                problem,
                consequence: Consequence::Used,
            }));
        }
        findings.sort();
        findings.dedup();
        findings
    }

    fn is_standard(&self, finding: &SkillFinding) -> bool {
        let all = self
            .skills()
            .chain(self.shadowed.iter().map(|shadowed| &shadowed.skill));
        let mut of_file =
            all.filter(|skill| skill.origin == finding.origin && skill.file() == finding.path);
        of_file.any(|skill| skill.flavor == SkillFlavor::Standard)
    }
}

async fn problems(skill: &Skill) -> Vec<SkillProblem> {
    match read_skill(skill).await {
        Ok((content, _)) => {
            let text = std::str::from_utf8(&content).unwrap_or_default();
            validate(skill.dir.name(), text)
        }
        Err(reason) => vec![SkillProblem::whole_file(reason)],
    }
}
