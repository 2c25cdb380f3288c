//! The words of a command that may name files of the folder.
//!
//! Effects: none.

use crate::hooks::Program;
use std::collections::{BTreeMap, BTreeSet};

/// The maximum number of words of a command that are looked up as files. A command with more is not
/// trusted.
pub(crate) const MAX_NAMED_FILES: usize = 1024;

/// Words after which a pattern such as `s/*.sh` stands for files that are run, not for data.
const RUNNING: [&str; 26] = [
    "sh",
    "bash",
    "dash",
    "zsh",
    "ksh",
    "ash",
    "fish",
    "busybox",
    "python",
    "python2",
    "python3",
    "node",
    "deno",
    "bun",
    "ruby",
    "perl",
    "php",
    "lua",
    "source",
    ".",
    "exec",
    "eval",
    "for",
    "xargs",
    "find",
    "run-parts",
];

/// What a command names.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CommandNames {
    /// The words that may be names of files or folders.
    pub(crate) words: Vec<String>,
    /// The patterns that may stand for files that are run.
    pub(crate) patterns: BTreeSet<String>,
    /// The words that are known only when the command runs.
    pub(crate) unknown: BTreeSet<String>,
}

/// Returns what the command of a hook names, with the variables that the hook sets.
pub(crate) fn names_of_hook(program: &Program, env: &BTreeMap<String, String>) -> CommandNames {
    let (words, is_shell) = match program {
        Program::Shell(line) => (named_in_line(line), Shell::Yes),
        Program::Direct { program, args } => {
            let words = std::iter::once(program).chain(args).cloned().collect();
            (named_in_words(words), Shell::No)
        }
    };
    let of_variables = env.values().flat_map(|value| {
        let split = value.split(|c: char| c.is_whitespace() || c == ':');
        split.chain([value.as_str()]).map(str::to_owned)
    });
    let mut names = CommandNames::default();
    let mut seen = BTreeSet::new();
    for word in words
        .into_iter()
        .chain(named_in_words(of_variables.collect()))
    {
        let known = with_variables(&word, env);
        let forms = match is_shell {
            // Only a shell replaces anything.
            Shell::No => vec![word],
            Shell::Yes => braces_expanded(&known),
        };
        names
            .words
            .extend(forms.into_iter().filter(|form| seen.insert(form.clone())));
    }
    if is_shell == Shell::Yes {
        let runs = names
            .words
            .iter()
            .any(|word| RUNNING.contains(&word.as_str()));
        let is_pattern = |word: &&String| word.contains(['*', '?', '[']);
        let patterns = names.words.iter().filter(is_pattern);
        let patterns = patterns.filter(|word| runs || word.starts_with("./"));
        names.patterns = patterns.cloned().collect();
        let unknown = names
            .words
            .iter()
            .filter(|word| is_unknown(word, &names.words));
        names.unknown = unknown.cloned().collect();
    }
    names
}

/// Whether a shell reads the words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shell {
    Yes,
    No,
}

/// Returns the words of a command line that may be names of files: see [`named_in_words`].
pub(crate) fn named_in_line(line: &str) -> Vec<String> {
    let script = stead_shell::parse(line);
    let parts = script.parts.iter();
    let words = parts.flat_map(|part| part.words.iter().filter_map(|word| word.known()));
    let parsed = words.map(str::to_owned);
    // A line that is too unusual to be parsed is split at everything that ends a word.
    let split = line.split(|c: char| c.is_whitespace() || ";|&()<>\"'`".contains(c));
    named_in_words(parsed.chain(split.map(str::to_owned)).collect())
}

/// Returns the words that may be names of files, also behind `--option=` and below a folder that a
/// variable names: `$DIR/scripts/x.sh`.
pub(crate) fn named_in_words(words: Vec<String>) -> Vec<String> {
    let values = words.iter().filter_map(|word| word.split_once('='));
    let values: Vec<String> = values.map(|(_, value)| value.to_owned()).collect();
    let mut all: Vec<String> = words.into_iter().chain(values).collect();
    let below = all.iter().filter(|word| word.starts_with('$'));
    let below = below.filter_map(|word| word.split_once('/'));
    let below: Vec<String> = below.map(|(_, rest)| rest.to_owned()).collect();
    all.extend(below);
    all.retain(|word| !word.is_empty());
    all
}

/// Returns a word with the values of variables in place of `$NAME` and `${NAME}`.
fn with_variables(word: &str, env: &BTreeMap<String, String>) -> String {
    let mut text = word.to_owned();
    // A longer name goes first, because `$AB` is not `$A` and `B`.
    let mut names: Vec<&String> = env.keys().collect();
    names.sort_by_key(|name| std::cmp::Reverse(name.len()));
    for name in names {
        let value = &env[name];
        text = text.replace(&format!("${{{name}}}"), value);
        text = text.replace(&format!("${name}"), value);
    }
    text
}

/// Returns the words that a shell makes of `{a,b}`. Of more than it may name, those that were made.
fn braces_expanded(word: &str) -> Vec<String> {
    let mut done = Vec::new();
    let mut open = vec![word.to_owned()];
    while let Some(next) = open.pop() {
        match first_braces(&next) {
            Some(forms) if open.len() + forms.len() <= MAX_NAMED_FILES => open.extend(forms),
            Some(_) | None => done.push(next),
        }
        if done.len() > MAX_NAMED_FILES {
            break;
        }
    }
    done
}

/// Returns the forms of the first innermost `{a,b}` of a word.
fn first_braces(word: &str) -> Option<Vec<String>> {
    let end = word.find('}')?;
    let start = word[..end].rfind('{')?;
    let inside = &word[start + 1..end];
    let is_variable = word[..start].ends_with('$');
    if is_variable || !inside.contains(',') {
        return None;
    }
    let form = |part: &str| format!("{}{part}{}", &word[..start], &word[end + 1..]);
    Some(inside.split(',').map(form).collect())
}

/// Whether a word has a variable or a command in it that nothing here says the value of.
fn is_unknown(word: &str, all: &[String]) -> bool {
    let Some((_, rest)) = word.split_once('$') else {
        return false;
    };
    let name: String = rest
        .trim_start_matches('{')
        .chars()
        .take_while(|c| c.is_ascii_alphanumeric() || *c == '_')
        .collect();
    // Set in the line itself, or the workspace: what is below it is looked up.
    let is_set = |other: &String| other.split_once('=').is_some_and(|(set, _)| set == name);
    let is_loop = all
        .windows(2)
        .any(|pair| pair[0] == "for" && pair[1] == name);
    !(name.starts_with("STEAD_") || is_loop || all.iter().any(is_set))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_word_that_may_be_a_file_is_found() {
        for (line, name) in [
            ("sh run.sh", "run.sh"),
            ("env A=1 python3 'my tool.py' --x", "my tool.py"),
            ("true && x --config=conf/a.json", "conf/a.json"),
            ("cat a | ./b.sh", "./b.sh"),
            ("\"$STEAD_WORKSPACE/scripts/c.sh\"", "scripts/c.sh"),
            ("${DIR}/d.sh", "d.sh"),
            ("eval \"$(cat e.sh)\"", "e.sh"),
            ("sh < f.sh", "f.sh"),
        ] {
            let words = named_in_line(line);
            assert!(words.iter().any(|word| word == name), "{line}: {words:?}");
        }
    }

    #[test]
    fn what_a_shell_would_make_of_the_words_of_a_hook_is_found() {
        let env = BTreeMap::from([
            ("G".to_owned(), "tools/guard.py".to_owned()),
            ("D".to_owned(), "tools".to_owned()),
            ("PATH".to_owned(), "bin:/usr/bin".to_owned()),
        ]);
        let names = |line: &str| names_of_hook(&Program::Shell(line.to_owned()), &env);
        for (line, word) in [
            ("python3 $G", "tools/guard.py"),
            ("python3 ${D}/guard.py", "tools/guard.py"),
            ("sh s/{a,b}.sh", "s/b.sh"),
            ("sh {s,t}/{a,b{1,2}}.sh", "t/b2.sh"),
            ("guard", "bin"),
        ] {
            let found = names(line).words;
            assert!(found.iter().any(|name| name == word), "{line}: {found:?}");
        }
        assert!(names("sh s/*.sh").patterns.contains("s/*.sh"));
        assert!(names("prettier --write src/*.ts").patterns.is_empty());
        for (line, unknown) in [("sh $X", true), ("X=a.sh; sh $X", false), ("sh $G", false)] {
            assert_eq!(!names(line).unknown.is_empty(), unknown, "{line}");
        }
    }
}
