//! Strict validation of a SKILL.md against the Agent Skills standard.
//!
//! ```
//! use stead_skills::validate;
//!
//! assert_eq!(validate("pdf", "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext."), []);
//! let problems = validate("pdf", "---\nname: PDF\ndescription: Reads PDF files.\n---\n");
//! assert_eq!(problems[0].to_string(), "2:7: the name `PDF` must be lower case: `pdf`");
//! ```
//!
//! Effects: none.

use crate::problem::{SkillProblem, TextPosition};
use crate::yaml::{self, SkillYamlNode, SkillYamlValue};
use std::borrow::Cow;
use unicode_general_category::get_general_category;
use unicode_normalization::UnicodeNormalization;

/// The maximum length of a name, in characters.
pub const MAX_NAME_CHARS: usize = 64;
/// The maximum length of a description, in characters.
pub const MAX_DESCRIPTION_CHARS: usize = 1024;
/// The maximum length of `compatibility`, in characters.
pub const MAX_COMPATIBILITY_CHARS: usize = 500;
/// The fields of the standard.
const FIELDS: [&str; 6] = [
    "allowed-tools",
    "compatibility",
    "description",
    "license",
    "metadata",
    "name",
];
/// The line that begins and ends a front matter.
pub(crate) const FENCE: &str = "---";

/// Returns all problems of the SKILL.md `text` of a skill in a directory called `dir_name`. The
/// result is empty exactly if the standard's reference validator accepts the file.
pub fn validate(dir_name: &str, text: &str) -> Vec<SkillProblem> {
    let text = normalize_line_endings(text);
    let Some(rest) = text.strip_prefix(FENCE) else {
        let message = "a SKILL.md must begin with `---`, its front matter, and `---` again";
        let bom = if text.starts_with('\u{feff}') {
            "; remove the byte order mark before it"
        } else {
            ""
        };
        return vec![SkillProblem::whole_file(format!("{message}{bom}"))];
    };
    // The reference validator takes the next `---` as the end, wherever it is.
    let Some(end) = rest.find(FENCE) else {
        return vec![SkillProblem::whole_file(
            "the front matter is not closed; put a line `---` behind it",
        )];
    };
    let document = match yaml::parse(&rest[..end], 1) {
        Ok(document) => document,
        Err(problem) => return vec![problem],
    };
    let mut problems = document.not_strict;
    match document.root {
        Some(SkillYamlNode {
            value: SkillYamlValue::Map(fields),
            ..
        }) => problems.extend(check_fields(dir_name, &fields)),
        Some(SkillYamlNode { place, .. }) => problems.push(SkillProblem::at(place, NOT_A_MAP)),
        None => problems.push(SkillProblem::whole_file(NOT_A_MAP)),
    }
    problems.sort();
    problems
}

const NOT_A_MAP: &str = "the front matter must be a map: at least `name: …` and `description: …`";

/// Replaces `\r\n` and `\r` by `\n`, as the reference validator does.
pub(crate) fn normalize_line_endings(text: &str) -> Cow<'_, str> {
    if text.contains('\r') {
        return text.replace("\r\n", "\n").replace('\r', "\n").into();
    }
    text.into()
}

fn check_fields(dir_name: &str, fields: &[(SkillYamlNode, SkillYamlNode)]) -> Vec<SkillProblem> {
    let mut problems = Vec::new();
    for (key, _) in fields {
        let name = key.text().unwrap_or_default();
        if !FIELDS.contains(&name) {
            let near = stead_tools::closest_name(name, &FIELDS)
                .map(|near| format!(", did you mean `{near}`?"));
            let near = near.unwrap_or_default();
            let all = FIELDS.join(", ");
            let message = format!(
                "there is no field `{name}`{near} (there are {all}; others belong into metadata)"
            );
            problems.push(SkillProblem::at(key.place, message));
        }
    }
    let field = |name: &str| {
        fields
            .iter()
            .find(|(key, _)| key.text() == Some(name))
            .map(|(_, value)| value)
    };
    match field("name") {
        None => problems.push(SkillProblem::whole_file(
            "the required field `name` is missing",
        )),
        Some(node) => match node
            .text()
            .map(python_strip)
            .filter(|name| !name.is_empty())
        {
            None => problems.push(SkillProblem::at(
                node.place,
                "`name` must be a text that is not empty",
            )),
            Some(name) => problems.extend(
                name_problems(dir_name, name).map(|text| SkillProblem::at(node.place, text)),
            ),
        },
    }
    match field("description") {
        None => problems.push(SkillProblem::whole_file(
            "the required field `description` is missing",
        )),
        Some(node) => match node.text().filter(|text| !python_strip(text).is_empty()) {
            None => problems.push(SkillProblem::at(
                node.place,
                "`description` must be a text that is not empty",
            )),
            Some(text) => problems.extend(too_long(
                "description",
                text,
                MAX_DESCRIPTION_CHARS,
                node.place,
            )),
        },
    }
    if let Some(node) = field("compatibility") {
        match node.text() {
            None => problems.push(SkillProblem::at(
                node.place,
                format!("`compatibility` must be a text, not {}", node.kind()),
            )),
            Some(text) => problems.extend(too_long(
                "compatibility",
                text,
                MAX_COMPATIBILITY_CHARS,
                node.place,
            )),
        }
    }
    problems
}

/// Returns the problems of a trimmed name.
pub(crate) fn name_problems(dir_name: &str, name: &str) -> impl Iterator<Item = String> + use<> {
    let name: String = name.nfkc().collect();
    let length = name.chars().count();
    let lower = name.to_lowercase();
    let dir: String = dir_name.nfkc().collect();
    let found = [
        (length > MAX_NAME_CHARS)
            .then(|| format!("the name has {length} characters, at most {MAX_NAME_CHARS}")),
        (name != lower).then(|| format!("the name `{name}` must be lower case: `{lower}`")),
        (name.starts_with('-') || name.ends_with('-'))
            .then(|| "a name must not begin or end with `-`".to_owned()),
        name.contains("--")
            .then(|| "a name must not contain `--`".to_owned()),
        name.chars()
            .find(|&c| c != '-' && !is_letter_or_number(c))
            .map(|c| format!("a name has letters, digits and single `-` only, not {c:?}")),
        (dir != name)
            .then(|| format!("the name `{name}` must be that of its directory, `{dir_name}`")),
    ];
    found.into_iter().flatten()
}

/// Returns whether Python calls the character alphanumeric. Unlike Rust, it excludes marks.
fn is_letter_or_number(c: char) -> bool {
    use unicode_general_category::GeneralCategory as Category;
    matches!(
        get_general_category(c),
        Category::UppercaseLetter
            | Category::LowercaseLetter
            | Category::TitlecaseLetter
            | Category::ModifierLetter
            | Category::OtherLetter
            | Category::DecimalNumber
            | Category::LetterNumber
            | Category::OtherNumber
    )
}

/// Trims white space as Python does.
fn python_strip(text: &str) -> &str {
    text.trim_matches(|c: char| c.is_whitespace() || matches!(c, '\u{1c}'..='\u{1f}'))
}

fn too_long(field: &str, text: &str, limit: usize, place: TextPosition) -> Option<SkillProblem> {
    let length = text.chars().count();
    (length > limit).then(|| {
        SkillProblem::at(
            place,
            format!("`{field}` has {length} characters, at most {limit}"),
        )
    })
}
