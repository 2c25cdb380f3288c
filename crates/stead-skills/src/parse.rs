//! Lenient reading of a SKILL.md, as the standard's guide for clients asks: what can be read is
//! used, with warnings; what cannot is skipped, with the reason.
//!
//! Effects: none.

use crate::problem::SkillProblem;
use crate::validate::{
    FENCE, MAX_COMPATIBILITY_CHARS, MAX_DESCRIPTION_CHARS, name_problems, normalize_line_endings,
};
use crate::yaml::{self, SkillYaml, SkillYamlNode, SkillYamlValue};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The maximum size of a SKILL.md.
pub(crate) const MAX_FILE_BYTES: u64 = 1024 * 1024;

/// The rules that a SKILL.md follows.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum SkillFlavor {
    /// The Agent Skills standard: a front matter with a description.
    #[default]
    Standard,
    /// OpenPaw: the front matter may be missing, invalid or without a description; the whole file is
    /// then the body.
    OpenPaw,
    /// OpenHarness: the front matter may be missing, and a missing description is taken from the
    /// text.
    OpenHarness,
}

/// The front matter of a skill.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SkillHeader {
    /// The name.
    pub name: String,
    /// The description. It is empty only where the flavor allows it.
    pub description: String,
    /// The license.
    pub license: Option<String>,
    /// The requirements of the skill, as a text for people.
    pub compatibility: Option<String>,
    /// Further keys and values of the author.
    pub metadata: BTreeMap<String, String>,
    /// The tools that the skill uses, as it names them. This is advice, not a permission.
    pub allowed_tools: Vec<String>,
}

/// A SKILL.md that can be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkillText {
    /// The front matter.
    pub header: SkillHeader,
    /// The text after the front matter.
    pub body: String,
    /// Deviations from the standard.
    pub warnings: Vec<SkillProblem>,
}

/// Reads the SKILL.md of a directory called `dir_name`. The error says why it cannot be used.
///
/// ```
/// use stead_skills::{SkillFlavor, parse_skill};
///
/// let skill = parse_skill(SkillFlavor::Standard, "pdf", b"---\nname: PDF\ndescription: Use: PDF files\n---\nUse pdftotext.").unwrap();
/// assert_eq!((&*skill.header.description, &*skill.body), ("Use: PDF files", "Use pdftotext."));
/// assert_eq!(skill.warnings.len(), 3);
/// assert!(parse_skill(SkillFlavor::Standard, "pdf", b"no front matter").is_err());
/// ```
pub fn parse_skill(
    flavor: SkillFlavor,
    dir_name: &str,
    content: &[u8],
) -> Result<SkillText, SkillProblem> {
    let text = as_text(content)?;
    let text = normalize_line_endings(text);
    let (front, body) = match (split(&text), flavor) {
        (Ok(parts), _) => parts,
        (Err(problem), SkillFlavor::Standard) => return Err(problem),
        (Err(_), SkillFlavor::OpenPaw | SkillFlavor::OpenHarness) => {
            return apply_flavor(flavor, dir_name, RawSkillFields::default(), &text);
        }
    };
    let mut warnings = Vec::new();
    let document = match (parse_front_matter(front, &mut warnings), flavor) {
        (Ok(document), _) => document,
        (Err(problem), SkillFlavor::Standard | SkillFlavor::OpenHarness) => return Err(problem),
        (Err(problem), SkillFlavor::OpenPaw) => {
            let fields = RawSkillFields {
                warnings: vec![problem],
                ..RawSkillFields::default()
            };
            return apply_flavor(flavor, dir_name, fields, &text);
        }
    };
    let fields = match document.root {
        Some(SkillYamlNode {
            value: SkillYamlValue::Map(fields),
            ..
        }) => read_fields(fields, warnings),
        Some(_) | None if flavor != SkillFlavor::Standard => RawSkillFields {
            warnings,
            ..RawSkillFields::default()
        },
        Some(SkillYamlNode { place, .. }) => {
            return Err(SkillProblem::at(place, "the front matter is not a map"));
        }
        None => {
            return Err(SkillProblem::whole_file(
                "the front matter is empty; it needs a name and a description",
            ));
        }
    };
    apply_flavor(flavor, dir_name, fields, body)
}

/// Returns the text of a file without a byte order mark.
fn as_text(content: &[u8]) -> Result<&str, SkillProblem> {
    if content.len() as u64 > MAX_FILE_BYTES {
        return Err(too_large(content.len() as u64));
    }
    if content.starts_with(b"\xff\xfe") || content.starts_with(b"\xfe\xff") {
        return Err(SkillProblem::whole_file("it is UTF-16; save it as UTF-8"));
    }
    match std::str::from_utf8(content) {
        Ok(text) => Ok(text.strip_prefix('\u{feff}').unwrap_or(text)),
        Err(error) => {
            let before = &content[..error.valid_up_to()];
            let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
            let column = before
                .iter()
                .rev()
                .take_while(|&&byte| byte != b'\n')
                .count()
                + 1;
            Err(SkillProblem {
                line,
                column,
                message: "it is not UTF-8; save it as UTF-8".to_owned(),
            })
        }
    }
}

/// Returns the problem with a file that has too many bytes.
pub(crate) fn too_large(bytes: u64) -> SkillProblem {
    let message = format!(
        "it has {bytes} bytes; the limit is {MAX_FILE_BYTES}. Move parts into files beside it"
    );
    SkillProblem::whole_file(message)
}

/// Splits a text into front matter and body.
fn split(text: &str) -> Result<(&str, &str), SkillProblem> {
    let is_fence = |line: &str| line.trim_end() == FENCE;
    let mut lines = text.split_inclusive('\n');
    let Some(first) = lines.next().filter(|line| is_fence(line)) else {
        return Err(SkillProblem::whole_file(
            "it has no front matter: begin with `---`, name, description, and `---`",
        ));
    };
    let mut end = first.len();
    for line in lines {
        if is_fence(line) {
            return Ok((
                &text[first.len()..end],
                text[end + line.len()..].trim_matches('\n'),
            ));
        }
        end += line.len();
    }
    Err(SkillProblem::whole_file(
        "its front matter is not closed; put a line `---` behind it",
    ))
}

/// Parses the front matter, and tries again with quotes if a `key: a: b` made it invalid.
fn parse_front_matter(
    front: &str,
    warnings: &mut Vec<SkillProblem>,
) -> Result<SkillYaml, SkillProblem> {
    let first = match yaml::parse(front, 2) {
        Ok(document) => return Ok(document),
        Err(problem) => problem,
    };
    let quoted = quote_colon_values(front);
    if quoted == front {
        return Err(first);
    }
    let document = yaml::parse(&quoted, 2).map_err(|_| first.clone())?;
    warnings.push(SkillProblem {
        message: "a text with `: ` in it must be quoted; it was read as if it were".into(),
        ..first
    });
    Ok(document)
}

/// Rewrites `key: a: b` as `key: "a: b"` in a front matter, for keys that are not indented.
pub fn quote_colon_values(front: &str) -> Cow<'_, str> {
    let quote = |line: &str| -> Option<String> {
        let (key, value) = line.trim_end().split_once(": ")?;
        let value = value.trim();
        let is_key = !key.is_empty()
            && key
                .bytes()
                .all(|b| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_'));
        let is_plain = !value.starts_with(['"', '\'', '|', '>', '[', '{', '#', '&', '*', '!']);
        let has_colon = value.contains(": ") || value.ends_with(':');
        (is_key && is_plain && has_colon).then(|| {
            format!(
                "{key}: \"{}\"\n",
                value.replace('\\', "\\\\").replace('"', "\\\"")
            )
        })
    };
    let lines: Vec<Cow<'_, str>> = front
        .split_inclusive('\n')
        .map(|line| quote(line).map_or(Cow::Borrowed(line), Cow::Owned))
        .collect();
    if lines.iter().all(|line| matches!(line, Cow::Borrowed(_))) {
        front.into()
    } else {
        lines.concat().into()
    }
}

/// The fields of a front matter before the rules of a flavor are applied.
#[derive(Default)]
struct RawSkillFields {
    name: Option<(String, SkillProblem)>,
    description: Option<String>,
    rest: SkillHeader,
    warnings: Vec<SkillProblem>,
}

fn read_fields(
    nodes: Vec<(SkillYamlNode, SkillYamlNode)>,
    warnings: Vec<SkillProblem>,
) -> RawSkillFields {
    let mut fields = RawSkillFields {
        warnings,
        ..RawSkillFields::default()
    };
    for (key, node) in nodes {
        let name = key.text().unwrap_or_default().to_owned();
        match (
            name.as_str(),
            node.text().map(|text| text.trim().to_owned()),
        ) {
            ("name", Some(text)) if !text.is_empty() => {
                fields.name = Some((one_line(&text), SkillProblem::at(node.place, String::new())));
            }
            ("description", Some(text)) if !text.is_empty() => {
                fields.description =
                    Some(fields.truncate_field("description", text, MAX_DESCRIPTION_CHARS, &node));
            }
            ("license", Some(text)) => fields.rest.license = Some(text),
            ("compatibility", Some(text)) => {
                let text =
                    fields.truncate_field("compatibility", text, MAX_COMPATIBILITY_CHARS, &node);
                fields.rest.compatibility = Some(text);
            }
            // Some skills have it at the top level; the standard puts it into metadata.
            ("version", Some(text)) => {
                drop(fields.rest.metadata.insert("version".to_owned(), text))
            }
            ("allowed-tools", _) => fields.rest.allowed_tools = tools(&node),
            ("metadata", _) => fields.read_metadata(node),
            ("name" | "description", None) => {
                fields.warnings.push(SkillProblem::at(
                    node.place,
                    format!("`{name}` must be a text, not {}", node.kind()),
                ));
            }
            // Fields of other clients are ignored here; the strict validation reports them.
            _ => {}
        }
    }
    fields
}

impl RawSkillFields {
    fn truncate_field(
        &mut self,
        field: &str,
        text: String,
        limit: usize,
        node: &SkillYamlNode,
    ) -> String {
        let Some((end, _)) = text.char_indices().nth(limit) else {
            return text;
        };
        let length = text.chars().count();
        let message = format!("`{field}` has {length} characters; only the first {limit} are used");
        self.warnings.push(SkillProblem::at(node.place, message));
        text[..end].to_owned()
    }

    fn read_metadata(&mut self, node: SkillYamlNode) {
        let SkillYamlValue::Map(entries) = node.value else {
            return self.warnings.push(SkillProblem::at(
                node.place,
                "`metadata` must be a map; it is left out",
            ));
        };
        for (key, value) in entries {
            match (key.text(), value.text()) {
                (Some(key), Some(text)) => {
                    drop(self.rest.metadata.insert(key.to_owned(), text.to_owned()))
                }
                (key, _) => {
                    let message = format!(
                        "metadata.{} is not a text; it is left out",
                        key.unwrap_or_default()
                    );
                    self.warnings.push(SkillProblem::at(value.place, message));
                }
            }
        }
    }
}

fn tools(node: &SkillYamlNode) -> Vec<String> {
    match &node.value {
        SkillYamlValue::Text(text) => text.split_whitespace().map(str::to_owned).collect(),
        SkillYamlValue::List(items) => items
            .iter()
            .filter_map(SkillYamlNode::text)
            .map(str::to_owned)
            .collect(),
        SkillYamlValue::Map(_) | SkillYamlValue::Nothing => Vec::new(),
    }
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// Applies the rules of a flavor.
fn apply_flavor(
    flavor: SkillFlavor,
    dir_name: &str,
    fields: RawSkillFields,
    body: &str,
) -> Result<SkillText, SkillProblem> {
    let RawSkillFields {
        name,
        description,
        rest,
        mut warnings,
    } = fields;
    let name = match (name, flavor) {
        (Some((name, place)), SkillFlavor::Standard) => {
            warnings.extend(name_problems(dir_name, &name).map(|message| SkillProblem {
                message,
                ..place.clone()
            }));
            name
        }
        (Some((name, _)), SkillFlavor::OpenPaw | SkillFlavor::OpenHarness) => name,
        (None, SkillFlavor::Standard) => {
            warnings.push(SkillProblem::whole_file(format!(
                "it has no name; that of its directory, `{dir_name}`, is used"
            )));
            dir_name.to_owned()
        }
        (None, SkillFlavor::OpenPaw | SkillFlavor::OpenHarness) => dir_name.to_owned(),
    };
    let description = match (description, flavor) {
        (Some(description), _) => description,
        (None, SkillFlavor::Standard) => {
            let message =
                "it has no description, so nobody could tell when to use it; add `description: …`";
            return Err(SkillProblem::whole_file(message));
        }
        (None, SkillFlavor::OpenPaw) => String::new(),
        (None, SkillFlavor::OpenHarness) => first_sentence(body),
    };
    if flavor == SkillFlavor::OpenHarness && body.trim().is_empty() {
        return Err(SkillProblem::whole_file("it has no text"));
    }
    Ok(SkillText {
        header: SkillHeader {
            name,
            description,
            ..rest
        },
        body: body.to_owned(),
        warnings,
    })
}

/// Returns the first line that is not a heading.
fn first_sentence(body: &str) -> String {
    let lines = body.lines().map(str::trim).filter(|line| !line.is_empty());
    let line = lines
        .clone()
        .find(|line| !line.starts_with('#'))
        .or(lines.clone().next())
        .unwrap_or_default();
    line.trim_start_matches('#')
        .trim()
        .chars()
        .take(MAX_DESCRIPTION_CHARS)
        .collect()
}
