//! The changes of files by tool calls, as rows for people.
//!
//! Effects: the clock.

use serde_json::Value;
use stead::tools::{builtin_tool, line_diff};

/// The unchanged lines around a change.
const CONTEXT_LINES: usize = 3;

/// One row of a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ChangeRow<'a> {
    pub(crate) kind: ChangeKind,
    pub(crate) text: &'a str,
}

/// What a row of a change is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ChangeKind {
    Added,
    Removed,
    /// Where the lines below it are.
    Place,
    Unchanged,
}

/// Returns the rows of a unified diff of one file, whose name is shown above them.
pub(crate) fn change_rows(diff: &str) -> impl Iterator<Item = ChangeRow<'_>> {
    let is_header = |line: &str| line.starts_with("--- ") || line.starts_with("+++ ");
    let rows = diff.lines().enumerate();
    rows.filter(move |(at, line)| *at >= 2 || !is_header(line))
        .map(|(_, text)| ChangeRow {
            kind: match text.as_bytes().first() {
                Some(b'+') => ChangeKind::Added,
                Some(b'-') => ChangeKind::Removed,
                Some(b'@') => ChangeKind::Place,
                Some(_) | None => ChangeKind::Unchanged,
            },
            text,
        })
}

/// Returns the change that the arguments of a call describe, where the file as it was is not known:
/// what is replaced, or the text that is written.
pub(crate) fn change_of_arguments(tool: &str, args: &Value) -> Option<String> {
    let text = |name: &str| args.get(name).and_then(Value::as_str);
    let (before, after) = match builtin_tool(tool)?.name {
        "edit_file" => (text("old_string")?, text("new_string")?),
        "write_file" | "overwrite_file" => ("", text("content")?),
        _ => return None,
    };
    let diff = line_diff(before, after, CONTEXT_LINES, None);
    let rows = change_rows(&diff).filter(|row| row.kind != ChangeKind::Place);
    Some(rows.map(|row| format!("{}\n", row.text)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn the_names_of_the_file_are_left_out_and_lines_that_look_like_them_stay() {
        let diff = "--- a/x.md\n+++ b/x.md\n@@ -1,3 +1,3 @@\n a\n--- b\n+++ c\n";
        let rows: Vec<(ChangeKind, &str)> =
            change_rows(diff).map(|row| (row.kind, row.text)).collect();
        assert_eq!(
            rows,
            [
                (ChangeKind::Place, "@@ -1,3 +1,3 @@"),
                (ChangeKind::Unchanged, " a"),
                (ChangeKind::Removed, "--- b"),
                (ChangeKind::Added, "+++ c"),
            ]
        );
    }

    #[test]
    fn arguments_tell_what_is_replaced_or_written() {
        let table = [
            (
                "edit_file",
                json!({"file_path": "a", "old_string": "x\ny", "new_string": "x\nz"}),
                Some(" x\n-y\n\\ No newline at end of file\n+z\n\\ No newline at end of file\n"),
            ),
            (
                "Edit",
                json!({"file_path": "a", "old_string": "y\n", "new_string": "z\n"}),
                Some("-y\n+z\n"),
            ),
            (
                "write_file",
                json!({"file_path": "a", "content": "one\ntwo\n"}),
                Some("+one\n+two\n"),
            ),
            ("read_file", json!({"file_path": "a"}), None),
            ("edit_file", json!({"file_path": "a"}), None),
            ("no_such_tool", json!({}), None),
        ];
        for (tool, args, want) in table {
            assert_eq!(
                change_of_arguments(tool, &args),
                want.map(str::to_owned),
                "{tool} {args}"
            );
        }
    }
}
