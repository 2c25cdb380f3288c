//! The line that tells what of a workspace a run goes without.
//!
//! Effects: the terminal.

use super::print::errln;
use stead::agent::Agent;
use stead::core::counted;
use stead::workspace::{Finding, Severity};

/// Prints what the agent runs without: someone may rely on it.
pub(crate) fn warn_passed_over(agent: &Agent) {
    if let Some(line) = passed_over(agent) {
        errln!("{line}");
    }
}

/// Returns what the agent runs without, as one line, if there is anything.
pub(crate) fn passed_over(agent: &Agent) -> Option<String> {
    passed_over_line(&agent.workspace().definition.findings)
}

fn passed_over_line(findings: &[Finding]) -> Option<String> {
    let count = |severity| {
        let matching = findings
            .iter()
            .filter(|finding| finding.severity == severity);
        matching.count()
    };
    let (inactive, mistakes) = (count(Severity::Inactive), count(Severity::NonFatal));
    let verb = |count| if count == 1 { "has" } else { "have" };
    let no_effect = format!(
        "{} of this workspace {} no effect in this version",
        counted(inactive, "setting"),
        verb(inactive)
    );
    let were = if mistakes == 1 { "was" } else { "were" };
    let told = match (inactive, mistakes) {
        (0, 0) => return None,
        (_, 0) => no_effect,
        (0, _) => format!(
            "{} of this workspace {were} passed over",
            counted(mistakes, "mistake")
        ),
        (_, _) => format!(
            "{no_effect}, and {} {were} passed over",
            counted(mistakes, "mistake")
        ),
    };
    let them = if inactive + mistakes == 1 {
        "it"
    } else {
        "them"
    };
    Some(format!("{told}; `stead check` lists {them}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_tells_what_has_no_effect_and_what_was_passed_over() {
        let findings = |inactive: usize, mistakes: usize| -> Vec<Finding> {
            let of = |severity, count| {
                std::iter::repeat_with(move || Finding::new(severity, "x", "y")).take(count)
            };
            of(Severity::Inactive, inactive)
                .chain(of(Severity::NonFatal, mistakes))
                .chain(of(Severity::Warning, 1))
                .collect()
        };
        #[rustfmt::skip]
        let table = [
            (0, 0, None),
            (1, 0, Some("1 setting of this workspace has no effect in this version; `stead check` lists it")),
            (0, 1, Some("1 mistake of this workspace was passed over; `stead check` lists it")),
            (2, 0, Some("2 settings of this workspace have no effect in this version; `stead check` lists them")),
            (2, 3, Some("2 settings of this workspace have no effect in this version, and 3 mistakes were passed over; `stead check` lists them")),
        ];
        for (inactive, mistakes, expected) in table {
            assert_eq!(
                passed_over_line(&findings(inactive, mistakes)).as_deref(),
                expected
            );
        }
    }
}
