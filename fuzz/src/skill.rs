//! `SKILL.md` files.

use stead_core::YamlValue;
use stead_skills::{
    MAX_COMPATIBILITY_CHARS, MAX_DESCRIPTION_CHARS, SkillFlavor, SkillText, parse_skill, validate,
};

pub(crate) const TOKENS: &[&str] = &[
    "---\n",
    "\n---\n",
    "name: ",
    "description: ",
    "metadata:\n",
    "  a: b\n",
    "license: ",
    ": ",
    "- ",
    "|\n  ",
    ">-\n  ",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "#",
    "&a ",
    "*a",
    "!t ",
    "<<: ",
    "=",
    "\t",
    "\r\n",
    "? ",
    "allowed-tools: ",
    "compatibility: ",
    "\u{feff}",
    "é",
    "\u{85}",
    "\\",
    "\n",
];

const DIR_NAME: &str = "pdf";

/// Asserts of a `SKILL.md`, in every flavor:
///
/// - The header has a name on one line, and its texts are within their limits.
/// - Problems and warnings are at a place in the file.
/// - What strict validation accepts can be loaded.
/// - Where the YAML of settings files reads a text for the description, the skill has this text.
pub fn skill(data: &[u8]) {
    for flavor in [
        SkillFlavor::Standard,
        SkillFlavor::OpenPaw,
        SkillFlavor::OpenHarness,
    ] {
        if let Ok(skill) = parse_skill(flavor, DIR_NAME, data) {
            check_limits(&skill, data);
        }
    }
    let text = crate::text(data);
    let problems = validate(DIR_NAME, &text);
    let lines = lines_of(&text);
    for problem in &problems {
        assert!(
            (1..=lines).contains(&problem.line) && problem.column >= 1,
            "outside of the file: {problem}"
        );
    }
    let loaded = parse_skill(SkillFlavor::Standard, DIR_NAME, text.as_bytes());
    // A reference validator ends the front matter at any `---`, a loader only at a line.
    let Some((front, _)) = text
        .strip_prefix("---\n")
        .and_then(|rest| rest.split_once("---"))
    else {
        return;
    };
    let is_line = front.is_empty() || front.ends_with('\n');
    let closed = format!("---\n{front}---\n");
    if !is_line || !text.starts_with(&closed) || text.contains('\r') {
        return;
    }
    if problems.is_empty() {
        assert_eq!(loaded.as_ref().err(), None, "strictly valid, not loaded");
    }
    if let Ok(skill) = &loaded {
        check_description(skill, front);
    }
}

fn lines_of(text: &str) -> usize {
    text.replace("\r\n", "\n").split(['\n', '\r']).count()
}

fn check_limits(skill: &SkillText, data: &[u8]) {
    let header = &skill.header;
    assert!(!header.name.is_empty(), "no name");
    assert!(!header.name.contains('\n'), "a name of several lines");
    assert!(
        header.description.chars().count() <= MAX_DESCRIPTION_CHARS,
        "a description that is too long"
    );
    let compatibility = header.compatibility.as_deref().unwrap_or_default();
    assert!(
        compatibility.chars().count() <= MAX_COMPATIBILITY_CHARS,
        "a compatibility that is too long"
    );
    let lines = lines_of(&crate::text(data));
    for warning in &skill.warnings {
        assert!(
            (1..=lines).contains(&warning.line) && warning.column >= 1,
            "outside of the file: {warning}"
        );
    }
}

/// Compares the description with that of the YAML of settings files, if that one reads a text.
fn check_description(skill: &SkillText, front: &str) {
    let Ok(YamlValue::Map(fields)) = front.parse() else {
        return;
    };
    let described = fields
        .iter()
        .find(|(key, _)| key == "description")
        .and_then(|(_, value)| value.as_text());
    if let Some(text) = described.map(str::trim).filter(|text| !text.is_empty()) {
        let cut: String = text.chars().take(MAX_DESCRIPTION_CHARS).collect();
        assert_eq!(skill.header.description, cut, "the description");
    }
}
