//! Settings files, and YAML before Markdown.

use serde_json::Value;
use stead_core::{SourcePosition, YamlDocument, YamlValue};
use stead_workspace::{FrontMatter, SettingsDocument};

pub(crate) const YAML_TOKENS: &[&str] = &[
    ": ",
    "- ",
    "\n",
    "\n  ",
    "\"",
    "'",
    "[",
    "]",
    "{",
    "}",
    "|\n  ",
    ">\n  ",
    "#",
    "&a ",
    "*a",
    "!!str ",
    "<<: ",
    "~",
    "null",
    "yes",
    "0x1f",
    "1e3",
    ".inf",
    ".nan",
    "-",
    "? ",
    "---\n",
    "\t",
    "\u{feff}",
    "\\",
    "\u{2028}",
    "\u{85}",
    "18446744073709551615",
    "-9223372036854775808",
    "0.1",
    "é",
    ",",
    "0o7",
    "+1",
    "=",
];

pub(crate) const JSON_TOKENS: &[&str] = &[
    "{", "}", "[", "]", ":", ",", "\"", "\\\"", "//", "/*", "*/", "\n", "null", "true", "1e3",
    "\"a\":", ",]", ",}", "\\u0000", "\u{feff}", "é", "/", "*",
];

/// Asserts of a YAML document:
///
/// - Printed and parsed again, it has the same value.
/// - Parsing with and without positions gives the same value, or the same error.
/// - Every position is in the text.
pub fn yaml(data: &[u8]) {
    let text = crate::text(data);
    let value = text.parse::<YamlValue>();
    let document = text.parse::<YamlDocument>();
    match (value, document) {
        (Ok(value), Ok(document)) => {
            assert!(same(&value, &document.value), "with and without positions");
            for position in document.positions.values() {
                check_position(&text, *position);
            }
            let printed = value.to_string();
            match printed.parse::<YamlValue>() {
                Ok(again) => assert!(same(&value, &again), "printed: {printed:?}"),
                Err(error) => assert_eq!(error.to_string(), "", "printed: {printed:?}"),
            }
        }
        (Err(error), Err(other)) => {
            assert_eq!(error, other);
            check_position(&text, error.position);
        }
        (value, document) => assert_eq!(value.is_ok(), document.is_ok(), "one of them fails"),
    }
}

/// Compares two values; NaN is the same as NaN.
fn same(a: &YamlValue, b: &YamlValue) -> bool {
    format!("{a:?}") == format!("{b:?}")
}

fn check_position(text: &str, position: SourcePosition) {
    // A parser may count characters as line breaks that Rust does not.
    let breaks = text
        .chars()
        .filter(|c| matches!(c, '\n' | '\r' | '\u{85}' | '\u{2028}' | '\u{2029}'))
        .count() as u64;
    assert!(
        (1..=breaks + 2).contains(&position.line) && position.column >= 1,
        "outside of the file: {position:?}"
    );
}

/// Asserts that text which is JSON already has the same value when it is read as JSON with comments
/// and trailing commas, unless a key occurs twice.
pub fn settings_json(data: &[u8]) {
    let text = crate::text(data);
    let lenient = SettingsDocument::parse_json("settings.json", &text);
    let strict: Result<Value, _> = serde_json::from_str(&text);
    match (strict, lenient) {
        (Ok(value), Ok(document)) => assert_eq!(document.value(), &value),
        (Ok(_), Err(finding)) => assert_eq!(finding.message, "this key stands here twice"),
        (Err(_), Ok(document)) => {
            for (_, position) in document.keys() {
                check_position(&text, position);
            }
        }
        (Err(_), Err(finding)) => check_position(&text, finding.place),
    }
}

/// Asserts that the parts of a Markdown file make up the file again, that the body begins at the
/// line that is said, and that the YAML can be read without harm.
pub fn front_matter(data: &[u8]) {
    let text = crate::text(data);
    let Ok(parts) = FrontMatter::split("a.md", &text) else {
        return;
    };
    let plain = text.strip_prefix('\u{feff}').unwrap_or(&text);
    let Some(head) = plain.strip_suffix(parts.body) else {
        assert_eq!(parts.body, plain, "the body is not the end of the file");
        return;
    };
    let breaks = head.matches('\n').count() as u64;
    match parts.yaml {
        None => assert_eq!((head, parts.body_line), ("", 1), "no front matter"),
        Some(yaml) => {
            let fences = head.replacen(yaml, "", 1);
            let fences: Vec<&str> = fences.lines().map(str::trim_end).collect();
            assert_eq!(fences, ["---", "---"], "around {yaml:?}");
            let closed = u64::from(!head.ends_with('\n'));
            assert_eq!(parts.body_line, breaks + closed + 1, "the line of the body");
        }
    }
    match parts.parse_document("a.md") {
        Ok(document) => document
            .keys()
            .for_each(|(_, position)| check_position(plain, position)),
        Err(finding) => check_position(plain, finding.place),
    }
}
