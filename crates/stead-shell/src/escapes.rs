//! The words that the last `*` of an allow rule does not cover (`data/escapes.txt`).

use super::script::{CommandPart, ShellWord};
use super::wrappers::base_name;
use std::collections::HashMap;
use std::sync::LazyLock;

const TABLE: &str = include_str!("../data/escapes.txt");

/// A row of the table.
struct EscapeRow {
    name: &'static str,
    sub: Option<&'static str>,
    kind: EscapeKind,
    words: &'static str,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum EscapeKind {
    Never,
    Leading,
    Before,
    Commands,
    Sed,
    Awk,
}

/// Returns the first word of a part, after the `named` words of the rule, that makes the command do
/// more than the rule says. A word with an unknown value may be any word.
pub(super) fn find_escape(part: &CommandPart, named: usize) -> Option<&ShellWord> {
    let name = part.name().map(base_name)?;
    let given = part.words.get(1..)?;
    let rows = rows_of(name).or_else(|| rows_of(versionless(name)))?;
    // Without a script, the program comes from standard input.
    let tells = |word: &ShellWord| {
        matches!(
            word.known(),
            Some("--version" | "-V" | "-v" | "--help" | "-h")
        )
    };
    if rows.iter().any(|row| row.kind == EscapeKind::Leading)
        && given.iter().all(is_option)
        && !given.iter().any(tells)
    {
        return part.words.first();
    }
    let call = CommandArguments {
        words: given,
        sub: given
            .iter()
            .position(|word| !is_option(word))
            .unwrap_or(given.len()),
        named,
    };
    (named.saturating_sub(1)..given.len())
        .find(|at| call.is_escape(rows, *at))
        .and_then(|at| given.get(at))
}

/// The words of a command after its name.
struct CommandArguments<'a> {
    words: &'a [ShellWord],
    /// The index of the first word that is not an option.
    sub: usize,
    /// The number of words that the rule names, including the command.
    named: usize,
}

impl CommandArguments<'_> {
    fn is_escape(&self, rows: &[EscapeRow], at: usize) -> bool {
        let Some(word) = self.words.get(at).and_then(ShellWord::known) else {
            return true;
        };
        let sub = self.word(self.sub);
        let mine = || {
            rows.iter()
                .filter(|row| row.sub.is_none_or(|name| name == sub))
        };
        let strange = |kind: EscapeKind| {
            let mut listed = mine().filter(|row| row.kind == kind).peekable();
            listed.peek().is_some() && !listed.any(|row| row.words().any(|known| known == word))
        };
        let is_never = |row: &EscapeRow| match row.kind {
            EscapeKind::Leading if self.named > 1 => false,
            EscapeKind::Never | EscapeKind::Leading => row.words().any(|pattern| match pattern {
                "*" => self.rule_ends_at_row(row, at),
                _ => {
                    matches_word(pattern, word)
                        || (row.name == "tar" && at == 0 && is_bundled(pattern, word))
                }
            }),
            EscapeKind::Sed => self.is_program(at, "l") && !plain_sed(word),
            EscapeKind::Awk => self.is_program(at, "vF") && !plain_awk(word),
            EscapeKind::Before | EscapeKind::Commands => false,
        };
        (at < self.sub && strange(EscapeKind::Before))
            || (at == self.sub && strange(EscapeKind::Commands))
            || mine().any(is_never)
    }

    /// Whether the rule names exactly the words of the row, and the word at `at` comes after them.
    fn rule_ends_at_row(&self, row: &EscapeRow, at: usize) -> bool {
        let length = if row.sub.is_some() { self.sub + 2 } else { 1 };
        self.named <= length && at + 2 > length
    }

    /// Whether a word is a script: the first that is neither an option nor the value of one of the
    /// letters `valued`, or the value of `-e`.
    fn is_program(&self, at: usize, valued: &str) -> bool {
        let gives =
            |at: usize| matches_word("-e", self.word(at)) || self.word(at).starts_with("--e");
        let is_alone = |at: usize| {
            matches!(self.word(at), "--expression" | "--source") || self.word(at).ends_with('e')
        };
        match (0..self.words.len()).any(gives) {
            true => (gives(at) && !is_alone(at)) || (at > 0 && gives(at - 1) && is_alone(at - 1)),
            false => {
                let takes = |at: usize| {
                    let word = self.word(at);
                    word.len() == 2
                        && word.starts_with('-')
                        && word.contains(|letter| valued.contains(letter))
                };
                let is_value = |at: usize| at > 0 && takes(at - 1);
                let first = (0..self.words.len())
                    .find(|at| !self.word(*at).starts_with('-') && !is_value(*at));
                first == Some(at)
            }
        }
    }

    fn word(&self, at: usize) -> &str {
        self.words
            .get(at)
            .and_then(ShellWord::known)
            .unwrap_or_default()
    }
}

/// The rows by command.
static ROWS: LazyLock<HashMap<&'static str, Vec<EscapeRow>>> = LazyLock::new(|| {
    let mut rows: HashMap<&str, Vec<EscapeRow>> = HashMap::new();
    for row in TABLE.lines().filter_map(EscapeRow::parse) {
        rows.entry(row.name).or_default().push(row);
    }
    rows
});

fn rows_of(name: &str) -> Option<&'static [EscapeRow]> {
    ROWS.get(name).map(Vec::as_slice)
}

impl EscapeRow {
    fn parse(line: &'static str) -> Option<Self> {
        let mut fields = line.split(" | ");
        let names = fields.next()?;
        let kind = fields.next()?;
        let words = fields.next()?;
        let (name, sub) = names
            .split_once(' ')
            .map_or((names, None), |(name, sub)| (name, Some(sub)));
        let kind = match (kind, words) {
            ("never", _) => EscapeKind::Never,
            ("leading", _) => EscapeKind::Leading,
            ("before", _) => EscapeKind::Before,
            ("commands", _) => EscapeKind::Commands,
            ("program", "sed") => EscapeKind::Sed,
            ("program", "awk") => EscapeKind::Awk,
            _ => return None,
        };
        Some(Self {
            name,
            sub,
            kind,
            words,
        })
    }

    fn words(&self) -> impl Iterator<Item = &'static str> {
        self.words.split(' ')
    }
}

fn is_option(word: &ShellWord) -> bool {
    word.known().is_some_and(|word| word.starts_with('-'))
}

/// Removes the version of a name: `python3.12` becomes `python`.
fn versionless(name: &str) -> &str {
    name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.' || c == '-')
}

/// Whether a word matches a pattern of the table.
fn matches_word(pattern: &str, word: &str) -> bool {
    let option = |word: &str| word.split('=').next().unwrap_or_default().to_owned();
    match (pattern.strip_prefix("--"), pattern.strip_prefix('-')) {
        (Some(_), _) => {
            word.len() > 2 && word.starts_with("--") && pattern.starts_with(&option(word))
        }
        (None, Some(letter)) if letter.len() == 1 => {
            !word.starts_with("--") && word.starts_with('-') && word.contains(letter)
        }
        (None, Some(_)) => {
            option(
                word.strip_prefix('-')
                    .filter(|word| word.starts_with('-'))
                    .unwrap_or(word),
            ) == pattern
        }
        (None, None) if pattern == "=" => word.contains('=') && !word.starts_with('-'),
        (None, None) => word == pattern,
    }
}

/// Whether a word is a group of letters without a dash that contains the option, as in `tar xIf
/// PROGRAM FILE`.
fn is_bundled(pattern: &str, word: &str) -> bool {
    let letter = pattern.strip_prefix('-').filter(|letter| letter.len() == 1);
    letter.is_some_and(|letter| !word.starts_with('-') && word.contains(letter))
}

/// Whether a sed script certainly neither runs nor writes anything.
fn plain_sed(script: &str) -> bool {
    script.split([';', '\n']).all(|command| {
        let command = command.trim_start_matches(|c: char| c.is_ascii_digit() || " $,!~".contains(c)).trim_end();
        let mut chars = command.chars();
        match chars.next() {
            None => true,
            Some('p' | 'd' | 'q' | '=' | 'n') => chars.next().is_none(),
            Some('/') => matches!(chars.as_str().split('/').collect::<Vec<_>>().as_slice(), [_, "p" | "d"]),
            Some('s') => {
                let Some(by) = chars.next().filter(|by| by.is_ascii_punctuation() && *by != '\\') else { return false };
                let parts: Vec<&str> = chars.as_str().split(by).collect();
                matches!(parts.as_slice(), [_, _, flags] if flags.chars().all(|c| "gpiIM0123456789".contains(c)))
            }
            Some(_) => false,
        }
    })
}

/// Whether an awk script certainly neither runs nor writes anything.
fn plain_awk(script: &str) -> bool {
    !["system", "getline", "|", ">", "@", "\\"]
        .iter()
        .any(|mark| script.contains(mark))
}

#[cfg(test)]
mod tests {
    use super::super::{allows, parse};
    use super::*;

    #[test]
    fn every_line_of_the_table_is_read() {
        let lines = TABLE
            .lines()
            .filter(|line| !line.starts_with('#') && !line.is_empty());
        for line in lines {
            let row = EscapeRow::parse(line).unwrap_or_else(|| panic!("cannot be read: {line}"));
            assert!(
                row.words().all(|word| !word.is_empty() && word.is_ascii()),
                "{line}"
            );
        }
    }

    #[test]
    fn a_rule_for_a_command_is_none_for_what_that_can_be_made_to_run() {
        let table = [
            ("git *", "git -c protocol.ext.allow=always clone ext::sh"),
            ("git *", "git -c alias.x='!rm' x"),
            ("git *", "git -C elsewhere status"),
            ("git *", "git --exec-path=. status"),
            ("git *", "git x"),
            ("git *", "git config core.hooksPath x"),
            ("git config *", "git config core.hooksPath x"),
            ("git *", "git grep -O rm"),
            ("git grep *", "git grep -nOrm x"),
            ("git grep *", "git grep --open-f=rm x"),
            ("git *", "git --no-pager grep --open-files-in-pager=rm x"),
            ("git log *", "git log --outp=x"),
            ("git *", "git rebase -x 'rm x' main"),
            ("git *", "git bisect run rm"),
            ("git *", "git submodule foreach rm"),
            ("git *", "git fetch --upload-pack 'rm x' origin"),
            ("git log *", "git log $X"),
            ("find *", "find . -delete"),
            ("find *", "find . -fprintf x y"),
            ("sort *", "sort --compr=rm x"),
            ("sort *", "sort -uo x x"),
            ("sed *", "sed -n '1e rm' x"),
            ("sed *", "sed s/a/b/e x"),
            ("sed *", "sed -ne 's/a/b/w y' x"),
            ("sed *", "sed -ni p x"),
            ("awk *", "awk 'BEGIN { system(\"rm\") }'"),
            ("awk *", "awk '{ print | \"sh\" }' x"),
            ("tar *", "tar xIf rm x"),
            ("tar *", "tar -xf x --to-comm=rm"),
            ("rg *", "rg --pre rm x"),
            ("python3 *", "python3 -c 'import os'"),
            ("python3.12 *", "python3.12 -Bc 'import os'"),
            ("perl *", "perl -pe 1 x"),
            ("python3 *", "python3 -W ignore -c 'import os'"),
            ("python3 *", "python3 <<< 'import os'"),
            ("python3 *", "echo 'import os' | python3"),
            ("test *", "test -v 'a[$(rm)]'"),
            ("[ *", "[ -v 'a[$(rm)]' ]"),
            ("printf *", "printf -v 'a[$(rm)]' x"),
            ("read *", "read 'a[$(rm)]' <<< x"),
            ("mapfile *", "mapfile -C 'rm x;' -c 1 x"),
            ("sed *", "sed -l 5 '1e rm' x"),
            ("awk *", "awk -v x=1 'BEGIN { system(\"rm\") }'"),
            ("awk *", "awk -F x -- 'BEGIN { system(\"rm\") }'"),
            ("make *", "make 'x:=$(shell rm)'"),
            ("git *", "git diff-files --ext-diff"),
            ("node *", "node --ev=1"),
            ("su *", "su -c 'rm x'"),
            ("sudo *", "sudo rm x"),
            ("npm *", "npm exec rm"),
            ("go test *", "go test -exec=rm ./..."),
            ("make *", "make --eval='$(shell rm)'"),
        ];
        for (rule, command) in table {
            assert!(
                !allows(&[rule.to_owned()], command),
                "{rule} allows {command}"
            );
        }
    }

    #[test]
    fn what_a_rule_names_it_allows_and_what_is_harmless_too() {
        let table = [
            ("git *", "git status"),
            ("git *", "git --no-pager log --oneline -p"),
            ("git log *", "git log --output-indicator-new=+"),
            ("git grep -O *", "git grep -O rm"),
            ("git config --get *", "git config --get user.name"),
            ("sudo apt *", "sudo apt update"),
            ("find . -delete", "find . -delete"),
            ("sed *", "sed -n '1,5p' x"),
            ("sed *", "sed 's/a/b/g; $d' news.txt"),
            ("sed -i *", "sed -i s/a/b/ x"),
            ("awk *", "awk -F: '{ print $1 }' sewage.txt"),
            ("python3 -m pytest *", "python3 -m pytest -c x"),
            ("python3 *", "python3 x.py --config y"),
            ("tar *", "tar xf x.tar"),
            ("python3 *", "python3 --version"),
            ("awk *", "awk -v x=1 '{ print x }' y"),
            ("test *", "test -f x"),
            ("npm *", "npm test"),
            ("ls *", "ls *"),
        ];
        for (rule, command) in table {
            assert!(
                allows(&[rule.to_owned()], command),
                "{rule} does not allow {command}"
            );
        }
    }

    #[test]
    fn any_words_are_taken() {
        for command in [
            "git", "git ''", "git - --", "sed", "tar ''", "sed -e", "find ''",
        ] {
            for part in parse(command).parts {
                assert!((0..4).all(|named| {
                    find_escape(&part, named).is_none_or(|word| part.words.contains(word))
                }));
            }
        }
    }
}
