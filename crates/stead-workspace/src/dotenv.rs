//! The parser of `.env`, which has the variables of one workspace. They are never added to the
//! environment of the process.
//!
//! Effects: none.

use crate::{Finding, Severity, SourcePosition};
use std::collections::BTreeMap;

/// Parses `NAME=value` lines: `#` starts a comment, `export` is skipped, quotes are removed; in
/// double quotes the escapes `
/// `, `\"` and `\\` are read. The last line that sets a name wins; a line that sets no name is a
/// finding.
pub fn parse_dotenv(file: &str, text: &str) -> (BTreeMap<String, String>, Vec<Finding>) {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    let mut variables = BTreeMap::new();
    let mut findings = Vec::new();
    for (i, line) in text.lines().enumerate() {
        match parse_assignment(line) {
            Ok(Some((name, value))) => drop(variables.insert(name, value)),
            Ok(None) => {}
            Err(message) => {
                findings.push(
                    Finding::new(Severity::NonFatal, file, message).with_position(SourcePosition {
                        line: i as u64 + 1,
                        column: 1,
                    }),
                );
            }
        }
    }
    (variables, findings)
}

fn parse_assignment(line: &str) -> Result<Option<(String, String)>, &'static str> {
    let line = line.trim();
    if line.is_empty() || line.starts_with('#') {
        return Ok(None);
    }
    let line = line.strip_prefix("export ").map_or(line, str::trim_start);
    let (name, value) = line.split_once('=').ok_or("NAME=value is needed here")?;
    let name = name.trim_end();
    let mut letters = name.chars();
    let begins = letters
        .next()
        .is_some_and(|c| c.is_ascii_alphabetic() || c == '_');
    if !begins || !letters.all(|c| c.is_ascii_alphanumeric() || c == '_') {
        return Err("a variable's name has letters, digits and _ and does not begin with a digit");
    }
    Ok(Some((name.to_owned(), unquote(value.trim())?)))
}

fn unquote(value: &str) -> Result<String, &'static str> {
    const OPEN: &str = "the quote is not closed on this line";
    if let Some(rest) = value.strip_prefix('\'') {
        return rest
            .split_once('\'')
            .map(|(inner, _)| inner.to_owned())
            .ok_or(OPEN);
    }
    let Some(rest) = value.strip_prefix('"') else {
        let comment = value.find(" #").unwrap_or(value.len());
        return Ok(value[..comment].trim_end().to_owned());
    };
    let mut out = String::new();
    let mut chars = rest.chars();
    loop {
        match chars.next() {
            None => return Err(OPEN),
            Some('"') => return Ok(out),
            Some('\\') => match chars.next() {
                None => return Err(OPEN),
                Some('n') => out.push('\n'),
                Some(other) => out.push(other),
            },
            Some(other) => out.push(other),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_become_variables_and_mistakes_have_a_place() {
        let text = "# keys\nA=1\nexport B = 'x y' # why\nC=\"a\\n\\\"b\\\"\"\nD=plain # comment\nE=\nA=2\r\n";
        let variables: Vec<_> = parse_dotenv(".env", text).0.into_iter().collect();
        let expected = [
            ("A", "2"),
            ("B", "x y"),
            ("C", "a\n\"b\""),
            ("D", "plain"),
            ("E", ""),
        ];
        assert_eq!(
            variables,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        let findings = parse_dotenv(".env", "A=1\n1B=2\nnothing\nC='x\n").1;
        assert_eq!(
            findings.iter().map(|f| f.place.line).collect::<Vec<_>>(),
            [2, 3, 4]
        );
    }
}
