//! `Write` and `Edit`.

use super::Titled;
use crate::Spellings;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

const FILE_PATH: Spellings = Spellings {
    names: &[("path", "file_path")],
    values: &[],
};

pub(crate) struct Write;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteArgs {
    /// Path of the file; a leading `/` means the workspace. Missing directories are made.
    file_path: String,
    /// The whole text of the file.
    content: String,
}

impl Titled for Write {
    type Args = WriteArgs;
    const NAME: &'static str = "Write";
    const DESCRIPTION: &'static str = "Writes a file. One that exists already is replaced only if you have read it and it \
        has not changed since; to change a part of it use Edit.";
    const SPELLINGS: Spellings = FILE_PATH;

    fn canonical(args: WriteArgs) -> Value {
        json!({"file_path": args.file_path, "content": args.content, "mode": "known"})
    }
}

pub(crate) struct Edit;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditArgs {
    /// Path of the file; a leading `/` means the workspace.
    file_path: String,
    /// The exact text to replace, without line numbers; it must occur exactly once unless
    /// replace_all is set.
    old_string: String,
    /// The text to put in its place.
    new_string: String,
    /// Replace every occurrence.
    #[serde(default)]
    replace_all: bool,
}

impl Titled for Edit {
    type Args = EditArgs;
    const NAME: &'static str = "Edit";
    const DESCRIPTION: &'static str = "Replaces exact text in a file. Refused if the file changed since you last read \
        it, or if the text is not found or not unique.";
    const SPELLINGS: Spellings = FILE_PATH;

    fn canonical(args: EditArgs) -> Value {
        let EditArgs {
            file_path,
            old_string,
            new_string,
            replace_all,
        } = args;
        json!({"file_path": file_path, "old_string": old_string, "new_string": new_string, "replace_all": replace_all})
    }
}
