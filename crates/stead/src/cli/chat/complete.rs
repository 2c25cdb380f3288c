//! Completion of slash commands and of `@paths` in the input of `stead chat`.
//!
//! Effects: the clock, workspace files (reads).

use super::custom_commands::CustomCommand;
use super::slash::SLASH_COMMANDS;
use std::ops::Range;
use stead::core::PermissionMode;
use stead::vfs::{Bounds, FileKind, GlobQuery, VPath, Vfs};
use stead::workspace::QueueMode;
use tokio_util::sync::CancellationToken;

/// The maximum number of paths that are offered.
const MAX_PATHS: usize = 50;

/// The kind of completion for the word before the cursor.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum CompletionKind {
    Command,
    /// An argument of a command.
    Argument(&'static str),
    /// A path that starts with this text.
    Path(String),
}

/// Returns the word before the cursor, if it can be completed: its range and the kind of
/// completion.
pub(super) fn completion_target(
    text: &str,
    cursor: usize,
) -> Option<(Range<usize>, CompletionKind)> {
    let before = text.get(..cursor)?;
    let start = before.rfind(char::is_whitespace).map_or(0, |at| {
        at + before[at..].chars().next().map_or(1, char::len_utf8)
    });
    let word = &before[start..];
    if start == 0 && word.starts_with('/') && !word[1..].contains('/') {
        return Some((start..cursor, CompletionKind::Command));
    }
    if let Some(command) = SLASH_COMMANDS
        .iter()
        .map(|slash| slash.name)
        .find(|name| before[..start].trim_end() == *name)
    {
        return Some((start..cursor, CompletionKind::Argument(command)));
    }
    let path = word.strip_prefix('@')?;
    Some((start..cursor, CompletionKind::Path(path.to_owned())))
}

/// A possible completion.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Completion {
    /// The text for the input, including the leading `/` or `@`.
    pub(super) text: String,
    /// The text after it: a space if the word is complete.
    pub(super) suffix: &'static str,
    pub(super) help: String,
}

/// Returns the commands that start with `word`.
pub(super) fn complete_command(word: &str, custom: &[CustomCommand]) -> Vec<Completion> {
    // A command that is typed completely comes before longer ones.
    let (whole, others): (Vec<_>, Vec<_>) = SLASH_COMMANDS
        .iter()
        .filter(|slash| slash.name.starts_with(word))
        .partition(|slash| slash.name == word);
    let fitting = whole.into_iter().chain(others);
    let after = |argument: &str| if argument.is_empty() { "" } else { " " };
    let own = custom
        .iter()
        .filter(|command| command.name.starts_with(word));
    let own = own.map(|command| Completion {
        text: command.name.clone(),
        suffix: " ",
        help: command.description.clone(),
    });
    fitting
        .map(|s| Completion {
            text: s.name.to_owned(),
            suffix: after(s.argument),
            help: s.help.to_owned(),
        })
        .chain(own)
        .collect()
}

/// Returns the arguments of a command that start with `word`.
pub(super) fn complete_argument(
    command: &str,
    word: &str,
    agents: &[String],
    sessions: &[String],
) -> Vec<Completion> {
    let names: Vec<String> = match command {
        "/agent" => agents.to_vec(),
        "/sessions" => sessions.to_vec(),
        "/mode" => PermissionMode::ALL
            .map(|mode| mode.as_str().to_owned())
            .into(),
        "/queue" => QueueMode::ALL.map(|mode| mode.as_str().to_owned()).into(),
        _ => Vec::new(),
    };
    let fitting = names.into_iter().filter(|name| name.starts_with(word));
    fitting
        .map(|text| Completion {
            text,
            suffix: "",
            help: String::new(),
        })
        .collect()
}

/// Returns paths as completions. A path that ends in `/` can be continued.
pub(super) fn path_completions(found: Vec<String>) -> Vec<Completion> {
    let after = |path: &str| if path.ends_with('/') { "" } else { " " };
    found
        .into_iter()
        .map(|path| Completion {
            suffix: after(&path),
            text: format!("@{path}"),
            help: String::new(),
        })
        .collect()
}

/// The list of completions at the input.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct CompletionPopup {
    /// The start of the word.
    pub(super) start: usize,
    pub(super) completions: Vec<Completion>,
    pub(super) selected: usize,
    /// Whether Tab has already inserted the selected completion.
    pub(super) cycling: bool,
}

impl CompletionPopup {
    pub(super) fn new(start: usize, choices: Vec<Completion>) -> Option<Self> {
        (!choices.is_empty()).then_some(Self {
            start,
            completions: choices,
            selected: 0,
            cycling: false,
        })
    }

    /// Returns the paths that still match after more of the word was typed.
    pub(super) fn narrowed(self, query: &str) -> Option<Self> {
        let (dir, name) = query.rsplit_once('/').unwrap_or(("", query));
        let fits = |choice: &Completion| {
            choice
                .text
                .strip_prefix('@')
                .and_then(|path| path.strip_prefix(dir))
                .is_some_and(|rest| rest.contains(name))
        };
        Self::new(
            self.start,
            self.completions.into_iter().filter(fits).collect(),
        )
    }

    pub(super) fn selected_completion(&self) -> Option<&Completion> {
        self.completions.get(self.selected)
    }

    pub(super) fn next(&mut self) {
        self.selected = (self.selected + 1) % self.completions.len().max(1);
    }

    pub(super) fn previous(&mut self) {
        self.selected = self
            .selected
            .checked_sub(1)
            .unwrap_or(self.completions.len().saturating_sub(1));
    }
}

/// Returns the paths of the workspace that start with `query`, then files anywhere with names that
/// contain it. Directories end in `/`. Hidden names are offered only where a dot was typed.
pub(super) async fn find_paths(files: &dyn Vfs, query: &str) -> Vec<String> {
    let (dir, name) = query
        .rsplit_once('/')
        .map_or(("", query), |(dir, name)| (dir, name));
    let Ok(root) = VPath::parse(dir) else {
        return Vec::new();
    };
    let prefix = if dir.is_empty() && !query.starts_with('/') {
        String::new()
    } else {
        format!("{dir}/")
    };
    let entries = files.list(&root).await.unwrap_or_default();
    let shown = entries.iter().filter(|entry| entry.name.starts_with(name));
    let shown = shown.filter(|entry| name.starts_with('.') || !entry.name.starts_with('.'));
    let mut found: Vec<String> = shown
        .filter_map(|entry| match entry.kind {
            FileKind::Directory => Some(format!("{prefix}{}/", entry.name)),
            FileKind::File => Some(format!("{prefix}{}", entry.name)),
            FileKind::Other => None,
        })
        .take(MAX_PATHS)
        .collect();
    if name.is_empty() || dir.starts_with('/') || query.starts_with('/') {
        return found;
    }
    let pattern: String = name
        .chars()
        .map(|c| {
            if c.is_alphanumeric() {
                c.to_string()
            } else {
                "?".to_owned()
            }
        })
        .collect();
    let glob = GlobQuery {
        pattern: format!("*{pattern}*"),
        root,
    };
    let bounds = Bounds::new(MAX_PATHS, CancellationToken::new());
    let deeper = files
        .search()
        .glob(glob, bounds)
        .await
        .map(|result| result.paths)
        .unwrap_or_default();
    for path in deeper {
        let path = path.as_str().to_owned();
        if found.len() < MAX_PATHS && !found.contains(&path) {
            found.push(path);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    #[test]
    fn only_a_first_slash_word_and_at_words_are_completed() {
        let path = |start: usize, end: usize, text: &str| {
            Some((start..end, CompletionKind::Path(text.to_owned())))
        };
        let cases = [
            ("/st", 3, Some((0..3, CompletionKind::Command))),
            ("/", 1, Some((0..1, CompletionKind::Command))),
            ("/etc/x", 6, None),
            ("a /st", 5, None),
            (
                "/queue st",
                9,
                Some((7..9, CompletionKind::Argument("/queue"))),
            ),
            (
                "/agent ",
                7,
                Some((7..7, CompletionKind::Argument("/agent"))),
            ),
            ("/queue steer now", 16, None),
            ("@", 1, path(0, 1, "")),
            ("see\u{2003}@no and", 9, path(6, 9, "no")),
            ("bob@x", 5, None),
            ("", 0, None),
        ];
        for (text, cursor, want) in cases {
            assert_eq!(completion_target(text, cursor), want, "{text:?}");
        }
    }

    #[test]
    fn a_command_is_completed_with_what_it_takes() {
        let agents = ["build".to_owned(), "plan".to_owned()];
        let offered = |command: &str, word: &str| -> Vec<String> {
            complete_argument(command, word, &agents, &["s01a1".to_owned()])
                .into_iter()
                .map(|choice| choice.text)
                .collect()
        };
        assert_eq!(offered("/queue", "ste"), ["steer", "steer-backlog"]);
        assert_eq!(offered("/agent", ""), ["build", "plan"]);
        assert_eq!(offered("/mode", "ex"), ["explore"]);
        assert_eq!(offered("/sessions", "s0"), ["s01a1"]);
        assert!(offered("/new", "").is_empty());
    }

    #[tokio::test]
    async fn paths_are_found_by_their_beginning_then_by_any_part_of_the_name() {
        let dir = tempfile::tempdir().unwrap();
        for path in ["notes.md", "src/notes.rs", "src/main.rs", ".hidden"] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "x").unwrap();
        }
        let files = stead::vfs::LocalVfs::open(dir.path(), Arc::new(stead::store::OsDisk)).unwrap();
        let cases: [(&str, &[&str]); 8] = [
            ("", &["notes.md", "src/"]),
            ("no", &["notes.md", "src/notes.rs"]),
            ("src/", &["src/main.rs", "src/notes.rs"]),
            ("src/m", &["src/main.rs"]),
            (".h", &[".hidden"]),
            ("/n", &["/notes.md"]),
            ("nothing", &[]),
            ("../", &[]),
        ];
        for (query, want) in cases {
            assert_eq!(find_paths(&files, query).await, want, "{query:?}");
        }
    }
}
