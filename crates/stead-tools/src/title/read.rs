//! The `Read` and `LS` tools of the title surface.
//!
//! Effects: none.

use super::TypedTitleForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stead_core::ArgumentAliases;

pub(crate) struct ReadForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadFormArgs {
    /// Path of the file; a leading `/` means the workspace.
    file_path: String,
    /// Line to begin with, counted from 1.
    #[serde(default = "first")]
    #[schemars(range(min = 1))]
    offset: u64,
    /// Most lines to read.
    #[serde(default = "limit")]
    #[schemars(range(min = 1))]
    limit: usize,
    /// Characters to skip in the first line, to go on in a long one.
    #[serde(default)]
    #[schemars(range(max = 5_000_000))]
    column: usize,
}

fn first() -> u64 {
    1
}

fn limit() -> usize {
    2000
}

impl TypedTitleForm for ReadForm {
    type Args = ReadFormArgs;
    const DESCRIPTION: &'static str = "Reads a file. Text comes with line numbers, which are not part of the file; \
        use offset and limit to page through a long one. Images, PDF, audio and video are shown as such.";
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases::of_names(&[("path", "file_path")]);

    fn to_canonical(args: ReadFormArgs) -> Value {
        json!({"file_path": args.file_path, "offset": args.offset.saturating_sub(1), "limit": args.limit, "column": (args.column > 0).then_some(args.column)})
    }
}

pub(crate) struct LsForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LsFormArgs {
    /// Directory; left out, the workspace.
    #[serde(default)]
    path: Option<String>,
}

impl TypedTitleForm for LsForm {
    type Args = LsFormArgs;
    const DESCRIPTION: &'static str = "Lists a directory, hidden files included, with sizes and times of change. Directories end with `/`.";

    fn to_canonical(args: LsFormArgs) -> Value {
        json!({"path": args.path})
    }
}
