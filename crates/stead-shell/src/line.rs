//! A command line with the circumstances that rules depend on.
//!
//! Effects: none.

use super::script::{CommandPart, Invocation, ShellScript, WordValue};
use super::wrappers::base_name;

/// A command line, the folder it starts in, and what keeps it from harm.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellLine<'a> {
    /// The command line.
    pub text: &'a str,
    /// The folder of the workspace in which it starts. `.` is the root.
    pub folder: &'a str,
    /// What limits its processes.
    pub confinement: Confinement,
}

/// What limits the processes of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Confinement {
    /// Nothing: they can do whatever the user can. Rules with wildcards allow only reads.
    Host,
    /// A sandbox from which they reach neither the machine nor the network. Rules with wildcards
    /// apply as they are written.
    Sandbox,
}

impl<'a> ShellLine<'a> {
    /// Returns the line as it runs without a sandbox, at the root of the workspace.
    pub fn on_host(text: &'a str) -> Self {
        Self {
            text,
            folder: ".",
            confinement: Confinement::Host,
        }
    }

    /// Returns the line as it starts in another folder.
    pub fn in_folder(self, folder: &'a str) -> Self {
        Self { folder, ..self }
    }

    /// Returns the line as it runs with another confinement.
    pub fn confined(self, confinement: Confinement) -> Self {
        Self {
            confinement,
            ..self
        }
    }
}

impl<'a> From<&'a str> for ShellLine<'a> {
    fn from(text: &'a str) -> Self {
        Self::on_host(text)
    }
}

impl<'a> From<&'a String> for ShellLine<'a> {
    fn from(text: &'a String) -> Self {
        Self::on_host(text)
    }
}

/// Returns a path inside of a folder, both from the root of the workspace, without `.` and `..`.
/// None if it is absolute or leaves the workspace.
pub fn join_folder(folder: &str, path: &str) -> Option<String> {
    if path.starts_with('/') || path.starts_with('~') {
        return None;
    }
    let mut parts: Vec<&str> = Vec::new();
    for part in folder.split('/').chain(path.split('/')) {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            name => parts.push(name),
        }
    }
    Some(match parts.is_empty() {
        true => ".".to_owned(),
        false => parts.join("/"),
    })
}

/// Returns the folder in which every part of a line runs, apart from a leading `cd FOLDER &&`. None
/// if the line changes folders in any other way, so that this is not certain.
pub(super) fn folder_of_parts(line: ShellLine<'_>, script: &ShellScript) -> Option<String> {
    let start = join_folder(".", line.folder)?;
    let movers = script.parts.iter().filter(|part| may_move(part)).count();
    match (movers, leading_cd(line.text, script)) {
        (0, _) => Some(start),
        (_, None) if script.parts.len() == 1 => Some(start),
        (1, Some(folder)) => join_folder(&start, folder),
        (_, _) => None,
    }
}

/// Returns the folder of a line `cd FOLDER && …` in which nothing runs if the folder cannot be
/// entered.
pub(super) fn leading_cd<'s>(text: &str, script: &'s ShellScript) -> Option<&'s str> {
    let [first, _, ..] = script.parts.as_slice() else {
        return None;
    };
    let [cd, folder] = first.words.as_slice() else {
        return None;
    };
    let is_plain = first.invocation == Invocation::Direct
        && first.assignments.is_empty()
        && first.redirects.is_empty()
        && cd.source == "cd"
        && text.trim_start().starts_with("cd ");
    // Without these, every command depends on the one before it.
    let rest = text.replace("&&", "");
    let is_chain = !rest.contains(['&', ';', '\n', '(', ')', '{', '}', '`', '!'])
        && !rest.contains("||")
        && text.contains("&&");
    let is_first = text
        .split("&&")
        .next()
        .is_some_and(|before| !before.contains('|'));
    folder
        .known()
        .filter(|folder| is_plain && is_chain && is_first && !folder.starts_with('-'))
}

/// Whether a part may change the folder of the commands after it.
fn may_move(part: &CommandPart) -> bool {
    let is_move = |word: &str| matches!(base_name(word), "cd" | "pushd" | "popd" | "chdir");
    let is_unknown = part
        .words
        .first()
        .is_some_and(|word| matches!(word.value, WordValue::Unknown(_)));
    let mut words = part.words.iter().take(2).filter_map(|word| word.known());
    words.any(is_move) || is_unknown
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    #[test]
    fn the_folder_of_a_line_is_known_if_every_command_depends_on_its_cd() {
        let table = [
            ("make", Some("web")),
            ("cd a && make", Some("web/a")),
            ("cd a/../b && make | cat", Some("web/b")),
            ("cd .. && make", Some(".")),
            ("cd 'a b' && make", Some("web/a b")),
            ("cd ../.. && make", None),
            ("cd /etc && cat passwd", None),
            ("cd ~ && make", None),
            ("cd - && make", None),
            ("cd $x && make", None),
            ("cd a; make", None),
            ("cd a || make", None),
            ("cd a & make", None),
            ("cd a | cat && make", None),
            ("(cd a) && make", None),
            ("cd a && make; make", None),
            ("cd a && cd b && make", None),
            ("pushd a && make", None),
            ("builtin cd a && make", None),
            ("$x a && make", None),
        ];
        for (text, expected) in table {
            let line = ShellLine::on_host(text).in_folder("web");
            let folder = folder_of_parts(line, &parse(text));
            assert_eq!(folder.as_deref(), expected, "{text}");
        }
    }
}
