//! `Read` and `LS`.

use super::Titled;
use crate::Spellings;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};

pub(crate) struct Read;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadArgs {
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
}

fn first() -> u64 {
    1
}

fn limit() -> usize {
    2000
}

impl Titled for Read {
    type Args = ReadArgs;
    const NAME: &'static str = "Read";
    const DESCRIPTION: &'static str = "Reads a file. Text comes with line numbers, which are not part of the file; \
        use offset and limit to page through a long one. Images, PDF, audio and video are shown as such.";
    const SPELLINGS: Spellings = Spellings {
        names: &[("path", "file_path")],
        values: &[],
    };

    fn canonical(args: ReadArgs) -> Value {
        json!({"file_path": args.file_path, "offset": args.offset.saturating_sub(1), "limit": args.limit})
    }
}

pub(crate) struct Ls;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct LsArgs {
    /// Directory; left out, the workspace.
    #[serde(default)]
    path: Option<String>,
}

impl Titled for Ls {
    type Args = LsArgs;
    const NAME: &'static str = "LS";
    const DESCRIPTION: &'static str =
        "Lists a directory, hidden files included. Directories end with `/`.";

    fn canonical(args: LsArgs) -> Value {
        json!({"path": args.path})
    }
}
