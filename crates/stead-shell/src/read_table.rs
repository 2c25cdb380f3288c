//! The table of commands that only read, and what they read: `data/reads.txt`.
//!
//! Effects: none.

const TABLE: &str = include_str!("../data/reads.txt");

/// A command of the table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadCommandEntry {
    pub(super) operands: Operands,
    options: Vec<&'static str>,
}

/// The meaning of the words that are not options.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Operands {
    /// There are no operands.
    None,
    /// Text.
    Text,
    /// Files; without any, the command reads standard input.
    Paths,
    /// Files or folders; without any, the command reads the current folder.
    PathsOrHere,
    /// At most one file: a second one would be written.
    OnePath,
    /// A pattern, then files or folders; without any, the command may read the current folder.
    Pattern,
    /// `+FORMAT`.
    Format,
    /// A script that only prints lines by number, then files.
    Lines,
    /// Folders, then an expression of whole words.
    Find,
    /// A condition.
    Test,
    /// Files, and no folders.
    Files,
    /// Revisions or files of a repository, of which only names are shown.
    Revisions,
    /// `HEAD` or its ancestors, then `--` and files, of which the contents are shown.
    HeadFiles,
}

/// The value that an option takes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum OptionValue {
    Nothing,
    /// A value, attached or as the next word.
    Text,
    /// A file that is read, attached or as the next word.
    Path,
    /// A value only after `=`.
    Attached,
}

impl ReadCommandEntry {
    /// Returns the entries for the first words of a command, with the number of words that name
    /// it: the usual one, and the one for lines that name files after `--`.
    pub(super) fn find(words: &[&str]) -> Vec<(Self, usize)> {
        let found = (1..=words.len().min(3)).rev().find_map(|count| {
            let name = words.get(..count).filter(|name| !name.contains(&"--"))?;
            let name = name.join(" ");
            let entries = [Self::by_name(&name), Self::by_name(&format!("{name} --"))];
            let entries: Vec<Self> = entries.into_iter().flatten().collect();
            (!entries.is_empty()).then_some((entries, count))
        });
        let (entries, count) = found.unwrap_or_default();
        entries.into_iter().map(|entry| (entry, count)).collect()
    }

    fn by_name(name: &str) -> Option<Self> {
        let mut entry: Option<Self> = None;
        for (_, kind, options) in rows().filter(|(row, _, _)| *row == name) {
            let entry = entry.get_or_insert(Self {
                operands: operands(kind)?,
                options: Vec::new(),
            });
            entry.options.extend(options.split_whitespace());
        }
        entry
    }

    /// Returns the value of a long option, or of a whole word of an expression; none if it is not
    /// in the table.
    pub(super) fn word(&self, word: &str) -> Option<OptionValue> {
        self.options.iter().find_map(|option| {
            let (name, takes) = suffix(option);
            (name == word).then_some(takes)
        })
    }

    /// Returns the value of the option with this letter.
    pub(super) fn letter(&self, letter: char) -> Option<OptionValue> {
        self.options
            .iter()
            .filter(|option| !option.starts_with("--"))
            .find_map(|option| {
                let (letters, takes) = suffix(option);
                letters.strip_prefix('-')?.contains(letter).then_some(takes)
            })
    }

    /// Returns the options of which one must be given; empty if there are none.
    pub(super) fn needed(&self) -> Vec<&'static str> {
        let marked = self.options.iter();
        let marked = marked.filter_map(|option| option.strip_suffix('!'));
        marked.map(|option| suffix(option).0).collect()
    }

    /// Whether `-5` is a number of lines for the command.
    pub(super) fn takes_number(&self) -> bool {
        self.options.contains(&"-#")
    }
}

fn suffix(option: &str) -> (&str, OptionValue) {
    let option = option.strip_suffix('!').unwrap_or(option);
    let attached = option
        .strip_suffix("[=]")
        .map(|name| (name, OptionValue::Attached));
    let text = option
        .strip_suffix('=')
        .map(|name| (name, OptionValue::Text));
    let path = option
        .strip_suffix('@')
        .map(|name| (name, OptionValue::Path));
    attached
        .or(text)
        .or(path)
        .unwrap_or((option, OptionValue::Nothing))
}

fn rows() -> impl Iterator<Item = (&'static str, &'static str, &'static str)> {
    let lines = TABLE
        .lines()
        .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
    lines.filter_map(|line| {
        let mut fields = line.splitn(3, '|').map(str::trim);
        Some((fields.next()?, fields.next()?, fields.next()?))
    })
}

fn operands(kind: &str) -> Option<Operands> {
    match kind {
        "none" => Some(Operands::None),
        "text" => Some(Operands::Text),
        "paths" => Some(Operands::Paths),
        "paths or ." => Some(Operands::PathsOrHere),
        "one path" => Some(Operands::OnePath),
        "pattern" => Some(Operands::Pattern),
        "format" => Some(Operands::Format),
        "lines" => Some(Operands::Lines),
        "find" => Some(Operands::Find),
        "test" => Some(Operands::Test),
        "files" => Some(Operands::Files),
        "revisions" => Some(Operands::Revisions),
        "head files" => Some(Operands::HeadFiles),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_short_enough_to_be_checked() {
        let programs = rows().filter_map(|(name, _, _)| name.split(' ').next());
        let programs: std::collections::BTreeSet<&str> = programs.collect();
        assert!(programs.len() <= 25, "{programs:?}");
    }

    #[test]
    fn every_line_of_the_table_is_understood() {
        let lines = TABLE
            .lines()
            .filter(|line| !line.starts_with('#') && !line.trim().is_empty());
        for line in lines {
            let fields: Vec<&str> = line.split('|').map(str::trim).collect();
            let [name, kind, options] = fields.as_slice() else {
                panic!("not three fields: {line}")
            };
            assert!(!name.is_empty() && operands(kind).is_some(), "{line}");
            assert!(
                options
                    .split_whitespace()
                    .all(|option| option.starts_with('-') && option.len() > 1),
                "{line}"
            );
            let all: Vec<&str> = rows()
                .filter(|(row, _, _)| row == name)
                .map(|(_, kind, _)| kind)
                .collect();
            assert!(
                all.iter().all(|other| other == kind),
                "{name} has operands of two kinds"
            );
        }
    }
}
