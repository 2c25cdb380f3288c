//! The `Glob` and `Grep` tools of the title surface.
//!
//! Effects: none.

use super::TypedTitleForm;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use stead_core::ArgumentAliases;

/// The limit that `head_limit: 0`, which asks for everything, stands for.
const UNLIMITED: usize = 100_000;

pub(crate) struct GlobForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GlobFormArgs {
    /// Without `/` it matches names at any depth (`*.rs`); with `/` paths below `path`
    /// (`src/**/*.{js,ts}`).
    pattern: String,
    /// Directory to search; left out, the workspace.
    #[serde(default)]
    path: Option<String>,
}

impl TypedTitleForm for GlobForm {
    type Args = GlobFormArgs;
    const DESCRIPTION: &'static str = "Finds files by pattern, sorted by path. Ignored files (.gitignore) are left out, \
        and hidden ones unless the pattern names a segment with a dot (`.github/**`).";

    fn to_canonical(args: GlobFormArgs) -> Value {
        json!({"pattern": args.pattern, "path": args.path})
    }
}

pub(crate) struct GrepForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct GrepFormArgs {
    /// Regular expression (Rust syntax) to find, within a line unless `multiline` is set.
    pattern: String,
    /// File or directory to search; left out, the workspace.
    #[serde(default)]
    path: Option<String>,
    /// Only files that match this, as in Glob.
    #[serde(default)]
    glob: Option<String>,
    /// Only files of this type: rust, py, js, ts, go, java, md …
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    /// content: matching lines; files_with_matches: paths of files with a match; count: matching
    /// lines per file.
    #[serde(default)]
    output_mode: GrepFormOutputMode,
    /// With content: lines to show after each match.
    #[serde(default, rename = "-A")]
    #[schemars(range(max = 50))]
    after: Option<usize>,
    /// With content: lines to show before each match.
    #[serde(default, rename = "-B")]
    #[schemars(range(max = 50))]
    before: Option<usize>,
    /// With content: lines to show before and after each match.
    #[serde(default, rename = "-C")]
    #[schemars(range(max = 50))]
    context: Option<usize>,
    /// With content: show line numbers.
    #[serde(default = "yes", rename = "-n")]
    line_numbers: bool,
    /// Let upper and lower case match each other.
    #[serde(default, rename = "-i")]
    ignore_case: bool,
    /// Let a match span lines; `.` takes line ends too.
    #[serde(default)]
    multiline: bool,
    /// Most matching lines, or files, to give; 0 = all.
    #[serde(default = "head_limit")]
    head_limit: usize,
    /// Matching lines, or files, to skip first.
    #[serde(default)]
    offset: usize,
}

#[derive(Default, Clone, Copy, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum GrepFormOutputMode {
    Content,
    #[default]
    FilesWithMatches,
    Count,
}

fn yes() -> bool {
    true
}

fn head_limit() -> usize {
    250
}

impl TypedTitleForm for GrepForm {
    type Args = GrepFormArgs;
    const DESCRIPTION: &'static str = "Searches the content of files. Binary files and ignored ones (.gitignore) are \
        left out, and hidden ones unless `glob` names a segment with a dot.";
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases {
        names: &[
            ("context", "-C"),
            ("n", "-n"),
            ("i", "-i"),
            ("case_insensitive", "-i"),
            ("include", "glob"),
            ("file_pattern", "glob"),
            ("context_lines", "-C"),
        ],
        values: &[("output_mode", "files", "files_with_matches")],
        opposites: &[("case_sensitive", "-i")],
        ..ArgumentAliases::NONE
    };

    fn to_canonical(args: GrepFormArgs) -> Value {
        let output_mode = match args.output_mode {
            GrepFormOutputMode::Content => "content",
            GrepFormOutputMode::FilesWithMatches => "files",
            GrepFormOutputMode::Count => "count",
        };
        json!({
            "pattern": args.pattern,
            "path": args.path,
            "glob": args.glob,
            "type": args.file_type,
            "output_mode": output_mode,
            "after": args.after,
            "before": args.before,
            "context": args.context,
            "line_numbers": args.line_numbers,
            "ignore_case": args.ignore_case,
            "multiline": args.multiline,
            "max_matches": if args.head_limit == 0 { UNLIMITED } else { args.head_limit },
            "offset": args.offset,
        })
    }
}
