//! Previews of file changes for a person: short, and compared with the current file.
//!
//! Effects: the clock, workspace files (reads).

use crate::line_diff;
use stead_vfs::{FileKind, ReadRange, VPath, Vfs, VfsError};

/// The most lines that are shown.
const MAX_LINES: usize = 200;
/// The most bytes that are shown.
const MAX_BYTES: usize = 16 * 1024;
/// Larger files are not compared.
const MAX_COMPARED_BYTES: u64 = 1024 * 1024;
/// Unchanged lines around a change.
const CONTEXT_LINES: usize = 3;
/// The most names of a directory that are shown.
const MAX_NAMES: usize = 20;

/// The current content of a file, as far as it can be compared.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum CurrentContent {
    Absent,
    Text(String),
    /// A description of something that has no lines to compare.
    Other(String),
}

impl CurrentContent {
    /// Loads what is at `path`.
    pub(super) async fn load(files: &dyn Vfs, path: &VPath) -> Self {
        match files.stat(path).await {
            Err(VfsError::NotFound(_)) => return Self::Absent,
            Err(error) => return Self::Other(error.to_string()),
            Ok(stat) => match stat.kind {
                FileKind::Directory => return Self::Other(format!("{path} is a directory")),
                FileKind::Other => return Self::Other(format!("{path} is no regular file")),
                FileKind::File if stat.size > MAX_COMPARED_BYTES => {
                    return Self::Other(format!(
                        "{path} has {} bytes, too many to compare",
                        stat.size
                    ));
                }
                FileKind::File => {}
            },
        }
        match files
            .read(
                path,
                ReadRange {
                    offset: 0,
                    len: MAX_COMPARED_BYTES + 1,
                },
            )
            .await
        {
            Ok((bytes, _)) => match String::from_utf8(bytes.into()) {
                Ok(text) => Self::Text(text),
                Err(error) => Self::Other(format!(
                    "{path} is binary, {} bytes",
                    error.as_bytes().len()
                )),
            },
            Err(VfsError::NotFound(_)) => Self::Absent,
            Err(error) => Self::Other(error.to_string()),
        }
    }
}

/// Formats the change of `path`. None means that the file does not exist before or after.
pub(super) fn diff(path: &VPath, before: Option<&str>, after: Option<&str>) -> String {
    let name = |side: &str, text: Option<&str>| {
        text.map_or("/dev/null".to_owned(), |_| format!("{side}/{path}"))
    };
    let old = name("a", before);
    let new = name("b", after);
    let before = before.unwrap_or("");
    let after = after.unwrap_or("");
    if before == after {
        return format!("--- {old}\n+++ {new}\n(no line changes)\n");
    }
    if after.len() as u64 > MAX_COMPARED_BYTES {
        return format!(
            "--- {old}\n+++ {new}\n({} bytes, too many to compare)\n",
            after.len()
        );
    }
    truncate(&line_diff(before, after, CONTEXT_LINES, Some((&old, &new))))
}

/// Returns the text, or its beginning and how much is left out.
pub(super) fn truncate(text: &str) -> String {
    let mut end = 0;
    for line in text.split_inclusive('\n').take(MAX_LINES) {
        if end + line.len() > MAX_BYTES {
            // Of a single line that is too long, at least the beginning is shown.
            if end == 0 {
                end = line.floor_char_boundary(MAX_BYTES);
            }
            break;
        }
        end += line.len();
    }
    if end == text.len() {
        return text.to_owned();
    }
    let (shown, rest) = text.split_at(end);
    let gap = if shown.ends_with('\n') { "" } else { "\n" };
    format!(
        "{shown}{gap}(… {} more lines, {} bytes)\n",
        rest.lines().count(),
        rest.len()
    )
}

/// Describes what removing `path` would remove.
pub(super) async fn preview_removal(files: &dyn Vfs, path: &VPath) -> String {
    match CurrentContent::load(files, path).await {
        CurrentContent::Text(text) => diff(path, Some(&text), None),
        CurrentContent::Absent => format!("would fail: {path} does not exist\n"),
        CurrentContent::Other(why) => match files.walk(path, None, MAX_NAMES + 1).await {
            Ok(walk) if !walk.entries.is_empty() => {
                let names = walk
                    .entries
                    .iter()
                    .take(MAX_NAMES)
                    .map(|(path, _)| format!("- {path}\n"));
                let more = if walk.entries.len() > MAX_NAMES {
                    "(… and more)\n"
                } else {
                    ""
                };
                truncate(&format!(
                    "delete {path}/ and all in it:\n{}{more}",
                    names.collect::<String>()
                ))
            }
            Ok(_) | Err(_) => format!("delete {path} ({why})\n"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_diff_names_both_sides_and_is_bounded() {
        let path = VPath::parse("a.txt").unwrap();
        assert_eq!(
            diff(&path, Some("x\ny\n"), Some("x\nz\n")),
            "--- a/a.txt\n+++ b/a.txt\n@@ -1,2 +1,2 @@\n x\n-y\n+z\n"
        );
        assert_eq!(
            diff(&path, None, Some("x\n")),
            "--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n"
        );
        assert_eq!(
            diff(&path, Some("x\n"), Some("x\n")),
            "--- a/a.txt\n+++ b/a.txt\n(no line changes)\n"
        );
        let many: String = (0..1000).map(|n| format!("line {n}\n")).collect();
        let shown = diff(&path, None, Some(&many));
        assert_eq!(shown.lines().count(), MAX_LINES + 1);
        assert!(
            shown.ends_with("+line 196\n(… 803 more lines, 8030 bytes)\n"),
            "{shown}"
        );
        let long = diff(&path, None, Some(&"é".repeat(100_000)));
        assert!(long.len() < MAX_BYTES + 100, "{}", long.len());
        let one = truncate(&"é".repeat(100_000));
        assert!(
            one.len() < MAX_BYTES + 100 && one.starts_with("éé"),
            "{}",
            one.len()
        );
    }
}
