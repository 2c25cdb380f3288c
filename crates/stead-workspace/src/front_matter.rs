//! Front matter: YAML between `---` lines, before Markdown.
//!
//! Effects: none.

use crate::{Finding, SettingsDocument};
use stead_skills::quote_colon_values;

/// A Markdown file, split into front matter and body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FrontMatter<'a> {
    /// The YAML; none if the file does not start with `---`.
    pub yaml: Option<&'a str>,
    /// The Markdown.
    pub body: &'a str,
    /// The line number at which the Markdown starts.
    pub body_line: u64,
}

impl<'a> FrontMatter<'a> {
    /// Splits the `text` of `file`. A front matter that is not closed is an error.
    pub fn split(file: &str, text: &'a str) -> Result<Self, Finding> {
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let mut lines = text.split_inclusive('\n');
        let first = lines.next().unwrap_or_default();
        if first.trim_end() != "---" {
            return Ok(Self {
                yaml: None,
                body: text,
                body_line: 1,
            });
        }
        let mut end = first.len();
        for (i, line) in lines.enumerate() {
            if line.trim_end() == "---" {
                let yaml = Some(&text[first.len()..end]);
                return Ok(Self {
                    yaml,
                    body: &text[end + line.len()..],
                    body_line: i as u64 + 3,
                });
            }
            end += line.len();
        }
        Err(Finding::error(
            file,
            "the front matter is not closed: a line `---` is missing after it",
        ))
    }

    /// Parses the YAML as settings of `file`. Without YAML the settings are empty.
    pub fn parse_document(&self, file: &str) -> Result<SettingsDocument, Finding> {
        SettingsDocument::parse_yaml_at(file, self.yaml.unwrap_or_default(), 2)
    }

    /// Does the same, but a text with `: ` in it need not be quoted, as other systems write it.
    pub fn parse_lenient_document(&self, file: &str) -> Result<SettingsDocument, Finding> {
        self.parse_document(file).or_else(|first| {
            let quoted = quote_colon_values(self.yaml.unwrap_or_default());
            SettingsDocument::parse_yaml_at(file, &quoted, 2).map_err(|_| first)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_taken_apart_at_its_fences() {
        let split = |text| {
            FrontMatter::split("a.md", text)
                .map(|m| (m.yaml.map(str::to_owned), m.body.to_owned(), m.body_line))
        };
        #[rustfmt::skip]
        let table = [
            ("---\na: 1\n---\n# Hi\n", Some("a: 1\n"), "# Hi\n", 4),
            ("\u{feff}---\r\na: 1\r\n---\r\nx", Some("a: 1\r\n"), "x", 4),
            ("---\n---\n", Some(""), "", 3),
            ("# No front matter\n---\n", None, "# No front matter\n---\n", 1),
            ("", None, "", 1),
        ];
        for (text, yaml, body, line) in table {
            assert_eq!(
                split(text),
                Ok((yaml.map(str::to_owned), body.to_owned(), line)),
                "{text:?}"
            );
        }
        assert!(split("---\na: 1\n").is_err());
    }

    #[test]
    fn places_count_from_the_top_of_the_file() {
        let document = FrontMatter::split("a.md", "---\nx: 1\ny: 2\n---\n")
            .unwrap()
            .parse_document("a.md")
            .unwrap();
        assert_eq!(document.position("y").line, 3);
    }
}
