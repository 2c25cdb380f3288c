//! The arguments of tool calls in the order in which the tools name them. JSON objects here have
//! their fields in alphabetical order.
//!
//! Effects: none.

use serde_json::Value;
use stead::tools::builtin_tool;

/// Arguments in the order in which people read a call: what it is about, how it is done, and last
/// what is long.
const ORDER: [&str; 26] = [
    "agent",
    "description",
    "task_id",
    "to",
    "file_path",
    "path",
    "from",
    "name",
    "id",
    "query",
    "pattern",
    "glob",
    "command",
    "cwd",
    "timeout",
    "offset",
    "limit",
    "mode",
    "replace_all",
    "title",
    "old_string",
    "new_string",
    "message",
    "prompt",
    "text",
    "content",
];

/// Returns the arguments of a call in order: the subject of the call first, and unknown ones where
/// their values are short or long.
pub(crate) fn ordered_arguments<'a>(tool: &str, args: &'a Value) -> Vec<(&'a str, &'a Value)> {
    let subject = builtin_tool(tool).map_or(&[][..], |tool| tool.subject_arguments);
    let rank = |name: &str| {
        let at = |names: &[&str]| names.iter().position(|known| *known == name);
        match (at(subject), at(&ORDER)) {
            (Some(at), _) => (0, at),
            (None, Some(at)) => (1, at),
            (None, None) => (2, 0),
        }
    };
    let mut fields: Vec<(&str, &Value)> = args
        .as_object()
        .into_iter()
        .flatten()
        .map(|(name, value)| (name.as_str(), value))
        .collect();
    fields.sort_by_key(|(name, _)| rank(name));
    fields
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn what_a_call_is_about_comes_first_and_the_old_text_before_the_new() {
        let names = |tool: &str, args: Value| -> Vec<String> {
            let fields = ordered_arguments(tool, &args);
            fields
                .into_iter()
                .map(|(name, _)| name.to_owned())
                .collect()
        };
        let edit =
            json!({"file_path": "a", "new_string": "n", "old_string": "o", "replace_all": true});
        assert_eq!(
            names("edit_file", edit),
            ["file_path", "replace_all", "old_string", "new_string"]
        );
        assert_eq!(
            names(
                "grep_files",
                json!({"context": 1, "path": "a", "pattern": "b"})
            ),
            ["path", "pattern", "context"]
        );
        assert_eq!(
            names("made_up", json!({"zebra": 1, "apple": 2, "command": "x"})),
            ["command", "apple", "zebra"]
        );
        assert!(names("ls", Value::Null).is_empty());
    }
}
