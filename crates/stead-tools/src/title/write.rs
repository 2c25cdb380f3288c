//! The `Write` and `Edit` tools of the title surface.
//!
//! Effects: none.

use super::TypedTitleForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stead_core::ArgumentAliases;

const FILE_PATH: ArgumentAliases = ArgumentAliases::of_names(&[("path", "file_path")]);

pub(crate) struct WriteForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct WriteFormArgs {
    /// Path of the file; a leading `/` means the workspace. Missing directories are made.
    file_path: String,
    /// The whole text of the file.
    content: String,
}

impl TypedTitleForm for WriteForm {
    type Args = WriteFormArgs;
    const DESCRIPTION: &'static str = "Writes a file. One that exists already is replaced only if you have read it and it \
        has not changed since; to change a part of it use Edit.";
    const ARGUMENT_ALIASES: ArgumentAliases = FILE_PATH;

    fn to_canonical(args: WriteFormArgs) -> Value {
        json!({"file_path": args.file_path, "content": args.content, "mode": "known"})
    }
}

pub(crate) struct EditForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct EditFormArgs {
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

impl TypedTitleForm for EditForm {
    type Args = EditFormArgs;
    const DESCRIPTION: &'static str = "Replaces exact text in a file. Refused if the file changed since you last read \
        it, or if the text is not found or not unique.";
    const ARGUMENT_ALIASES: ArgumentAliases = FILE_PATH;

    fn to_canonical(args: EditFormArgs) -> Value {
        let EditFormArgs {
            file_path,
            old_string,
            new_string,
            replace_all,
        } = args;
        json!({"file_path": file_path, "old_string": old_string, "new_string": new_string, "replace_all": replace_all})
    }
}
