//! Slash commands that a workspace defines as Markdown files: `commands/NAME.md`, and those written
//! for Claude Code in `.claude/commands/`.
//!
//! Effects: workspace files (reads).

use stead::vfs::{FileKind, ReadRange, VPath, Vfs};
use stead::workspace::FrontMatter;

/// The folders of commands. Where both define a command, the first counts.
const FOLDERS: [&str; 2] = ["commands", ".claude/commands"];
/// More files are not read.
const MAX_FILES: usize = 200;
/// Longer files are not read.
const MAX_FILE_BYTES: u64 = 256 * 1024;
/// The number of arguments that have a place of their own, `$1` to `$9`.
const MAX_PLACES: usize = 9;

/// A slash command that a file defines.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CustomCommand {
    /// The name with the slash: `/review`, or `/frontend:component` for a file in a folder.
    pub(super) name: String,
    pub(super) description: String,
    /// The arguments, in words.
    pub(super) argument: String,
    /// The file, as the workspace names it.
    pub(super) path: String,
    /// The text that is sent.
    text: String,
}

impl CustomCommand {
    fn parse(name: String, path: &VPath, content: &str) -> Self {
        // What is not closed is text.
        let split = FrontMatter::split(path.as_str(), content).ok();
        let header = split.and_then(|split| split.yaml).unwrap_or_default();
        let text = split.map_or(content, |split| split.body);
        let field = |key: &str| {
            let lines = header.lines();
            let value = lines
                .filter_map(|line| line.split_once(':'))
                .find(|(found, _)| found.trim() == key)?
                .1;
            let value = value.trim().trim_matches(['"', '\'']).to_owned();
            (!value.is_empty()).then_some(value)
        };
        let first_line = text.lines().find(|line| !line.trim().is_empty());
        let description = field("description")
            .or_else(|| first_line.map(|line| line.trim_start_matches(['#', ' ']).to_owned()));
        Self {
            name,
            description: description.unwrap_or_default(),
            argument: field("argument-hint").unwrap_or_default(),
            path: path.as_str().to_owned(),
            text: text.trim().to_owned(),
        }
    }

    /// Returns the input that the command stands for.
    pub(super) fn expanded(&self, arguments: &str) -> String {
        let arguments = arguments.trim();
        let words = split_words(arguments);
        let mut out = String::new();
        let mut rest = self.text.as_str();
        let mut is_used = false;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            if let Some(after) = rest.strip_prefix("ARGUMENTS") {
                out.push_str(arguments);
                (rest, is_used) = (after, true);
                continue;
            }
            let place = rest.chars().next().and_then(|digit| digit.to_digit(10));
            match place.map(|place| place as usize) {
                Some(place @ 1..=MAX_PLACES) => {
                    out.push_str(words.get(place - 1).map_or("", String::as_str));
                    (rest, is_used) = (&rest[1..], true);
                }
                Some(_) | None => out.push('$'),
            }
        }
        out.push_str(rest);
        if !is_used && !arguments.is_empty() {
            out.push_str(&format!("\n\nARGUMENTS: {arguments}"));
        }
        out
    }
}

/// Splits arguments at blanks; quotes keep words together.
fn split_words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut quote = None;
    for c in text.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '"' | '\'') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, c) if c.is_whitespace() => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    words.extend(word);
    words
}

/// Returns the commands of a workspace, by name. A file that cannot be read is left out.
pub(super) async fn load_commands(files: &dyn Vfs) -> Vec<CustomCommand> {
    let mut commands: Vec<CustomCommand> = Vec::new();
    for folder in FOLDERS {
        let Ok(root) = VPath::parse(folder) else {
            continue;
        };
        let Ok(walk) = files.walk(&root, None, MAX_FILES).await else {
            continue;
        };
        for (path, entry) in walk.entries {
            let Some(name) = command_name(&root, &path) else {
                continue;
            };
            if entry.kind != FileKind::File || commands.iter().any(|known| known.name == name) {
                continue;
            }
            let range = ReadRange {
                offset: 0,
                len: MAX_FILE_BYTES + 1,
            };
            if let Ok((bytes, _)) = files.read(&path, range).await
                && bytes.len() as u64 <= MAX_FILE_BYTES
                && let Ok(text) = std::str::from_utf8(&bytes)
            {
                commands.push(CustomCommand::parse(name, &path, text));
            }
        }
    }
    commands.sort_by(|one, other| one.name.cmp(&other.name));
    commands
}

/// Returns the name of the command in a file: folders are namespaces.
fn command_name(root: &VPath, path: &VPath) -> Option<String> {
    let rest = path.as_str().strip_prefix(root.as_str())?;
    let stem = rest.trim_start_matches('/').strip_suffix(".md")?;
    let is_fit = |c: char| c.is_alphanumeric() || matches!(c, '-' | '_' | '.' | '/');
    (!stem.is_empty() && stem.chars().all(is_fit)).then(|| format!("/{}", stem.replace('/', ":")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::Arc;

    fn command(text: &str) -> CustomCommand {
        let path = VPath::parse("commands/x.md").unwrap();
        CustomCommand::parse("/x".to_owned(), &path, text)
    }

    #[test]
    fn arguments_fill_their_places_and_are_never_lost() {
        let table = [
            ("Fix $ARGUMENTS now", "the tests", "Fix the tests now"),
            ("From $1 to $2", "a \"b c\"", "From a to b c"),
            ("From $1 to $2", "a", "From a to "),
            ("$9$1", "x", "x"),
            ("It costs $0 and $", "", "It costs $0 and $"),
            ("Review.", "src", "Review.\n\nARGUMENTS: src"),
            ("Review.", " ", "Review."),
            ("$ARGUMENTS", "$1 $ARGUMENTS", "$1 $ARGUMENTS"),
        ];
        for (text, arguments, want) in table {
            assert_eq!(
                command(text).expanded(arguments),
                want,
                "{text} {arguments}"
            );
        }
    }

    #[test]
    fn the_front_matter_describes_and_is_not_sent() {
        let text = "---\ndescription: \"Review a file\"\nargument-hint: [path]\nallowed-tools: Bash\n---\n\nReview $1.\n";
        let review = command(text);
        assert_eq!(
            (&*review.description, &*review.argument),
            ("Review a file", "[path]")
        );
        assert_eq!(review.expanded("a.rs"), "Review a.rs.");
        assert_eq!(command("# Tidy up\nAll.\n").description, "Tidy up");
    }

    #[tokio::test]
    async fn both_folders_are_read_and_folders_are_namespaces() {
        let dir = tempfile::tempdir().unwrap();
        for (path, text) in [
            ("commands/review.md", "own"),
            ("commands/notes.txt", "no command"),
            ("commands/bad name.md", "no command"),
            (".claude/commands/review.md", "claude"),
            (".claude/commands/frontend/component.md", "make"),
        ] {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        }
        let files = stead::vfs::LocalVfs::open(dir.path(), Arc::new(stead::store::OsDisk)).unwrap();
        let found = load_commands(&files).await;
        let shown: Vec<(&str, &str)> = found
            .iter()
            .map(|command| (command.name.as_str(), command.text.as_str()))
            .collect();
        assert_eq!(shown, [("/frontend:component", "make"), ("/review", "own")]);
    }
}
