//! The options of a command before its operands, as between a wrapper and the command it runs.
//!
//! Effects: none.

use super::script::ShellWord;

/// The options of a command that may come before its operands.
pub(super) struct OptionSpec {
    /// The letters of options without a value.
    pub(super) flags: &'static str,
    /// The letters of options with a value.
    pub(super) valued: &'static str,
    /// The names of long options without a value.
    pub(super) long: &'static [&'static str],
    /// The names of long options with a value.
    pub(super) long_valued: &'static [&'static str],
}

impl OptionSpec {
    /// Returns the words after the options, or none if an option is unknown.
    pub(super) fn operands<'w>(&self, words: &'w [ShellWord]) -> Option<&'w [ShellWord]> {
        let mut rest = words;
        while let [word, after @ ..] = rest {
            let text = word.known()?;
            let taken = match (text.strip_prefix("--"), text.strip_prefix('-')) {
                (Some(""), _) => return Some(after),
                (Some(long), _) => self.long(long)?,
                (None, Some(short)) if !short.is_empty() => self.short(short)?,
                _ => return Some(rest),
            };
            rest = rest.get(taken..)?;
        }
        Some(rest)
    }

    /// Returns the number of words that a long option takes.
    fn long(&self, text: &str) -> Option<usize> {
        let (name, value) = text
            .split_once('=')
            .map_or((text, None), |(name, value)| (name, Some(value)));
        match value {
            None if self.long.contains(&name) => Some(1),
            None if self.long_valued.contains(&name) => Some(2),
            Some(_) if self.long_valued.contains(&name) => Some(1),
            _ => None,
        }
    }

    /// Returns the number of words that a cluster of letters takes.
    fn short(&self, letters: &str) -> Option<usize> {
        for (at, letter) in letters.char_indices() {
            if self.valued.contains(letter) {
                return Some(if at + letter.len_utf8() == letters.len() {
                    2
                } else {
                    1
                });
            }
            if !self.flags.contains(letter) {
                return None;
            }
        }
        Some(1)
    }
}
