//! A file of facts, line by line. Lines that are not facts were written by people and are kept byte
//! for byte.
//!
//! Effects: none.

use crate::fact::Fact;
use std::collections::HashSet;

/// The lines of a memory file, each with its line ending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct FactDocument {
    lines: Vec<String>,
}

impl FactDocument {
    /// Splits `text` into lines.
    pub fn parse(text: &str) -> Self {
        Self {
            lines: text.split_inclusive('\n').map(str::to_owned).collect(),
        }
    }

    /// Returns the whole text.
    pub fn text(&self) -> String {
        self.lines.concat()
    }

    /// Returns the lines, each with its line ending.
    pub fn lines(&self) -> &[String] {
        &self.lines
    }

    /// Returns the facts, each with the index of its line.
    pub fn facts(&self) -> impl Iterator<Item = (usize, Fact)> {
        self.lines
            .iter()
            .enumerate()
            .filter_map(|(at, line)| Some((at, Fact::parse(line)?)))
    }

    /// Returns the ids of all sources of all facts.
    pub fn ids(&self) -> HashSet<String> {
        self.facts()
            .flat_map(|(_, fact)| fact.ids().map(str::to_owned).collect::<Vec<_>>())
            .collect()
    }

    /// Appends facts, except those whose id is in `known`. Returns how many were added.
    pub fn append<'a>(
        &mut self,
        facts: impl IntoIterator<Item = &'a Fact>,
        known: &HashSet<String>,
    ) -> usize {
        let mut known: HashSet<&str> = known.iter().map(String::as_str).collect();
        let mut added = 0;
        for fact in facts {
            if known.insert(fact.id()) {
                self.push(&fact.to_string());
                added += 1;
            }
        }
        added
    }

    /// Appends one line, with the line ending that the file uses.
    pub fn push(&mut self, line: &str) {
        let end = self.line_end();
        if let Some(last) = self.lines.last_mut()
            && !last.ends_with('\n')
        {
            last.push_str(end);
        }
        self.lines.push(format!("{line}{end}"));
    }

    /// Replaces the line at `at` by a fact, keeping indentation and line ending.
    pub(crate) fn replace(&mut self, at: usize, fact: &Fact) {
        let Some(line) = self.lines.get_mut(at) else {
            return;
        };
        let indent = &line[..line.len() - line.trim_start_matches([' ', '\t']).len()];
        let end = &line[line.trim_end_matches(['\r', '\n']).len()..];
        *line = format!("{indent}{fact}{end}");
    }

    /// Removes the lines at `indices` and returns them.
    pub(crate) fn remove_lines(&mut self, indices: &HashSet<usize>) -> Vec<String> {
        let mut taken = Vec::new();
        let mut at = 0;
        self.lines.retain_mut(|line| {
            let goes = indices.contains(&at);
            at += 1;
            if goes {
                taken.push(std::mem::take(line));
            }
            !goes
        });
        taken
    }

    fn line_end(&self) -> &'static str {
        if self
            .lines
            .first()
            .is_some_and(|line| line.ends_with("\r\n"))
        {
            "\r\n"
        } else {
            "\n"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fact::FactSource;
    use proptest::prelude::*;

    fn fact(id: &str) -> Fact {
        Fact {
            text: format!("fact {id}"),
            sources: vec![FactSource::new(id)],
        }
    }

    #[test]
    fn facts_are_added_once_and_as_the_file_ends_its_lines() {
        let table = [
            ("", "- fact a <!-- stead: id=a -->\n"),
            ("# Mine", "# Mine\n- fact a <!-- stead: id=a -->\n"),
            (
                "# Mine\r\n\r\n- x",
                "# Mine\r\n\r\n- x\r\n- fact a <!-- stead: id=a -->\r\n",
            ),
            (
                "- other words <!-- stead: id=b ; id=a -->",
                "- other words <!-- stead: id=b ; id=a -->",
            ),
        ];
        for (text, want) in table {
            let mut document = FactDocument::parse(text);
            let known = document.ids();
            document.append([&fact("a"), &fact("a")], &known);
            assert_eq!(document.text(), want, "{text:?}");
        }
    }

    #[test]
    fn a_fact_in_the_place_of_another_keeps_the_shape_of_the_line() {
        let mut document = FactDocument::parse("# A\r\n  - old <!-- stead: id=a -->\r\nend");
        document.replace(1, &fact("b"));
        assert_eq!(
            document.text(),
            "# A\r\n  - fact b <!-- stead: id=b -->\r\nend"
        );
        assert_eq!(
            document.remove_lines(&HashSet::from([1])),
            ["  - fact b <!-- stead: id=b -->\r\n"]
        );
        assert_eq!(document.text(), "# A\r\nend");
    }

    proptest! {
        #[test]
        fn every_text_survives_byte_for_byte_and_what_is_added_comes_after_it(
            lines in prop::collection::vec(
                prop_oneof!["\\PC{0,30}", "- \\PC{0,20}", Just("- f <!-- stead: id=x by=user -->".to_owned())], 0..8),
            end in prop_oneof![Just("\n"), Just("\r\n")],
            last in prop::bool::ANY,
        ) {
            let text = lines.join(end) + if last { end } else { "" };
            prop_assert!(FactDocument::parse(&text).text() == text);
            let mut document = FactDocument::parse(&text);
            document.append([&fact("new")], &HashSet::new());
            let after = document.text();
            prop_assert!(after.starts_with(&text));
            prop_assert_eq!(FactDocument::parse(&after).ids().contains("new"), true);
        }
    }
}
