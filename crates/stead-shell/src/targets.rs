//! What a command line plainly names: files that it may change, and other machines.
//!
//! This is for questions about trust. It finds what is written in the command; what programs do
//! besides, only a sandbox can limit.
//!
//! Effects: none.

use super::parse;
use super::script::{CommandPart, RedirectKind, ShellScript};
use super::wrappers::base_name;

/// A word of a command line that may name a file which the command changes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommandTarget {
    /// The word, or the part of it that may be a path. A word whose value is not known before the
    /// command runs is given as it is written.
    pub word: String,
    /// How certain it is.
    pub role: TargetRole,
}

/// What a word of a command line may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TargetRole {
    /// A file or folder that the command is there to change, or the folder that it goes to.
    Changed,
    /// An argument of another program, which may be a path.
    Argument,
    /// A program text, which may contain paths.
    Script,
}

/// Commands that change the files and folders they name.
const FILE_COMMANDS: [&str; 25] = [
    "cp", "mv", "ln", "install", "rsync", "tee", "touch", "rm", "rmdir", "mkdir", "truncate", "dd",
    "shred", "sed", "ed", "ex", "patch", "tar", "unzip", "cpio", "sponge", "cd", "pushd", "chmod",
    "chdir",
];
/// Commands whose arguments may be programs.
const INTERPRETERS: [&str; 14] = [
    "python", "python3", "perl", "ruby", "node", "deno", "bun", "php", "lua", "awk", "gawk", "sed",
    "ed", "ex",
];
/// Subcommands of git that change no file of the working tree.
const GIT_KEEPS_FILES: [&str; 4] = ["add", "commit", "status", "push"];
/// Commands that are there to reach other machines.
const NETWORK_COMMANDS: [&str; 24] = [
    "curl", "wget", "http", "https", "xh", "aria2c", "ssh", "scp", "sftp", "ftp", "lftp", "telnet",
    "nc", "ncat", "netcat", "socat", "rsync", "dig", "nslookup", "host", "ping", "gh", "glab",
    "mail",
];
/// Subcommands of git that reach other machines.
const GIT_NETWORK: [&str; 6] = ["push", "pull", "fetch", "clone", "ls-remote", "submodule"];

/// Returns the words of a command line that may name files which it changes. A command line that
/// cannot be read with certainty is a target as a whole.
pub fn command_targets(command: &str) -> Vec<CommandTarget> {
    let script = parse(command);
    let mut targets: Vec<CommandTarget> = Vec::new();
    let mut add = |word: &str, role| {
        let target = CommandTarget {
            word: word.to_owned(),
            role,
        };
        if !word.is_empty() && !targets.contains(&target) {
            targets.push(target);
        }
    };
    if script.ambiguity.is_some() {
        add(command, TargetRole::Script);
    }
    let folders: Vec<&str> = script.parts.iter().filter_map(folder_change).collect();
    for part in &script.parts {
        for (word, role) in part_targets(part) {
            add(&word, role);
            // After a `cd`, a relative path may be below another folder.
            for folder in folders.iter().filter(|_| !word.starts_with('/')) {
                add(&format!("{folder}/{word}"), role);
            }
        }
    }
    targets
}

/// Whether a command line plainly reaches other machines: by the command, or by an address.
pub fn names_network(command: &str) -> bool {
    let ShellScript { parts, .. } = parse(command);
    parts.iter().any(|part| {
        let mut words = part.words.iter().filter_map(|word| word.known());
        let name = words.clone().next().map(base_name).unwrap_or_default();
        let is_git = name == "git" && words.clone().any(|word| GIT_NETWORK.contains(&word));
        let is_device =
            |target: &str| target.starts_with("/dev/tcp/") || target.starts_with("/dev/udp/");
        let has_device = part
            .redirects
            .iter()
            .filter_map(|redirect| redirect.target.known())
            .any(is_device);
        NETWORK_COMMANDS.contains(&name) || is_git || has_device || words.any(has_address)
    })
}

/// Whether a word contains an address of another machine.
fn has_address(word: &str) -> bool {
    let mut schemes = word.match_indices("://").map(|(at, _)| &word[..at]);
    schemes.any(|before| !before.ends_with("file"))
}

/// Returns the folder that a part goes to.
fn folder_change(part: &CommandPart) -> Option<&str> {
    let name = base_name(part.name()?);
    match name {
        "cd" | "pushd" | "chdir" => part.words.get(1)?.known(),
        _ => None,
    }
}

fn part_targets(part: &CommandPart) -> Vec<(String, TargetRole)> {
    let name = part.name().map(base_name).unwrap_or_default();
    let subcommand = part.words.get(1).and_then(|word| word.known());
    let keeps_files =
        name == "git" && subcommand.is_some_and(|word| GIT_KEEPS_FILES.contains(&word));
    let role = match FILE_COMMANDS.contains(&name) {
        true => TargetRole::Changed,
        false => TargetRole::Argument,
    };
    let mut targets = Vec::new();
    for word in part.words.iter().skip(1).filter(|_| !keeps_files) {
        let text = word.known().unwrap_or(&word.source);
        if INTERPRETERS.contains(&name) {
            targets.push((text.to_owned(), TargetRole::Script));
        }
        // `--output=FILE`, `of=FILE`
        let value = text.split_once('=').map(|(_, value)| value);
        let whole = Some(text).filter(|text| !text.starts_with('-'));
        targets.extend(
            whole
                .into_iter()
                .chain(value)
                .map(|text| (text.to_owned(), role)),
        );
    }
    let written = part
        .redirects
        .iter()
        .filter(|redirect| match redirect.kind {
            RedirectKind::Write => true,
            RedirectKind::Read
            | RedirectKind::Duplicate
            | RedirectKind::Heredoc(_)
            | RedirectKind::Text => false,
        });
    targets.extend(written.map(|redirect| {
        let target = &redirect.target;
        let text = target.known().unwrap_or(&target.source);
        (text.to_owned(), TargetRole::Changed)
    }));
    targets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn targets(command: &str) -> Vec<(String, TargetRole)> {
        let all = command_targets(command).into_iter();
        all.map(|target| (target.word, target.role)).collect()
    }

    #[test]
    fn what_a_command_may_change_is_found_with_its_role() {
        use TargetRole::{Argument, Changed, Script};
        #[rustfmt::skip]
        let table: [(&str, &[(&str, TargetRole)]); 8] = [
            ("cp n.md MEMORY.md", &[("n.md", Changed), ("MEMORY.md", Changed)]),
            ("cargo test memory", &[("test", Argument), ("memory", Argument)]),
            ("echo x > AGENTS.md", &[("x", Argument), ("AGENTS.md", Changed)]),
            ("dd of=a", &[("of=a", Changed), ("a", Changed)]),
            ("git commit -m MEMORY.md", &[]),
            ("git checkout x", &[("checkout", Argument), ("x", Argument)]),
            ("cd memory && touch a", &[("memory", Changed), ("memory/memory", Changed), ("a", Changed), ("memory/a", Changed)]),
            ("python3 -c pass", &[("-c", Script), ("pass", Script), ("pass", Argument)]),
        ];
        for (command, expected) in table {
            let expected: Vec<(String, TargetRole)> = expected
                .iter()
                .map(|(word, role)| ((*word).to_owned(), *role))
                .collect();
            assert_eq!(targets(command), expected, "{command}");
        }
        let unclear = "echo 'x";
        assert!(targets(unclear).contains(&(unclear.to_owned(), Script)));
        assert!(targets("sh -c 'cp a b'").contains(&("b".to_owned(), Changed)));
    }

    #[test]
    fn other_machines_are_noticed_where_they_are_plainly_named() {
        for command in [
            "curl x.org",
            "timeout 5 wget -q x",
            "git push origin main",
            "python3 get.py https://x.org/a",
            "cat a > /dev/tcp/x.org/80",
            "sh -c 'ssh x'",
        ] {
            assert!(names_network(command), "{command}");
        }
        for command in [
            "cargo test",
            "git log",
            "cat file:///a",
            "grep curl a.sh",
            "make",
        ] {
            assert!(!names_network(command), "{command}");
        }
    }
}
