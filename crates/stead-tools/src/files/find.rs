//! The `glob_files` and `grep_files` tools: find files by name, and lines by pattern.
//!
//! Effects: the clock, workspace files (reads).

use super::{MAX_OUTPUT_CHARS, explain_error, here, parse_path};
use crate::title;
use crate::{CallPlan, Output, Surface, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{ArgumentAliases, Exposure, Risk, ToolKind, counted};
use stead_vfs::{
    Bounds, Case, FileMatches, FileSearchError, GlobQuery, GrepLine, GrepMode, GrepQuery,
    GrepResult, LineKind, Syntax, UnsearchedPart,
};

/// `glob_files`: finds files by pattern.
pub const GLOB_FILES: ToolIdentity = ToolIdentity::new("glob_files", ToolKind::FileRead)
    .aliases(&["glob", "Glob"])
    .title("Glob")
    .subject(&["path", "pattern"])
    .exposed(Exposure::Usually);
/// `grep_files`: searches the content of files.
pub const GREP_FILES: ToolIdentity = ToolIdentity::new("grep_files", ToolKind::FileRead)
    .aliases(&["grep", "Grep"])
    .title("Grep")
    .subject(&["path", "pattern"]);

/// The most paths that one glob returns.
const MAX_PATHS: usize = 1000;

pub(super) struct GlobFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GlobArgs {
    /// `*.rs` matches names at any depth, `src/**/*.{js,ts}` paths below `path`.
    pattern: String,
    #[serde(default = "here")]
    path: String,
}

impl TypedTool for GlobFiles {
    type Args = GlobArgs;
    const DEF: ToolDef = ToolDef::new(
        GLOB_FILES,
        Risk::READS,
        "Finds files by name. Leaves out ignored ones (.gitignore), and hidden ones unless the \
        pattern names them (`.github/**`).",
    )
    .bounded()
    .title_form::<title::GlobForm>();

    fn plan(&self, args: &GlobArgs) -> CallPlan {
        CallPlan::reads(&args.path)
    }

    async fn call(&self, cx: &ToolCx, args: GlobArgs) -> Result<Output, ToolError> {
        let query = GlobQuery {
            pattern: args.pattern.clone(),
            root: parse_path(&args.path)?,
        };
        let found = match cx
            .vfs
            .search()
            .glob(query, Bounds::new(MAX_PATHS, cx.cancel.clone()))
            .await
        {
            Ok(found) => found,
            Err(error) => return Err(search_error(cx, error).await),
        };
        let mut rows: Vec<String> = found.paths.iter().map(ToString::to_string).collect();
        if rows.is_empty() {
            rows.push(format!(
                "No files match {:?} in {}",
                args.pattern, args.path
            ));
        }
        if found.truncated {
            rows.push(format!(
                "[more than {MAX_PATHS} files match; narrow the pattern or the path]"
            ));
        }
        rows.extend(timeout_notice(found.timed_out));
        rows.extend(needs_approval_notice(found.needs_approval));
        rows.extend(found.failed.iter().map(unsearched_notice));
        Ok(Output::text(rows.join("\n")))
    }
}

pub(super) struct GrepFiles;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct GrepArgs {
    /// Regular expression (Rust syntax), or with `literal` plain text.
    pattern: String,
    /// Directory or file.
    #[serde(default = "here")]
    path: String,
    /// As in glob_files.
    #[serde(default)]
    glob: Option<String>,
    /// Of files: rust, py, js, md …
    #[serde(default, rename = "type")]
    file_type: Option<String>,
    #[serde(default)]
    literal: bool,
    /// Matching lines (default), paths of files, or matching lines per file.
    #[serde(default)]
    output_mode: OutputMode,
    /// Lines to show around a match.
    #[serde(default)]
    #[schemars(range(max = 50))]
    context: usize,
    #[serde(default)]
    #[schemars(range(max = 50))]
    before: Option<usize>,
    #[serde(default)]
    #[schemars(range(max = 50))]
    after: Option<usize>,
    #[serde(default = "yes")]
    line_numbers: bool,
    #[serde(default)]
    ignore_case: bool,
    /// Let a match span lines.
    #[serde(default)]
    multiline: bool,
    #[serde(default = "default_max_matches")]
    #[schemars(range(min = 1))]
    max_matches: usize,
    /// Matches to skip.
    #[serde(default)]
    offset: usize,
}

#[derive(Default, Clone, Copy, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
enum OutputMode {
    #[default]
    Content,
    Files,
    Count,
}

fn default_max_matches() -> usize {
    1000
}

fn yes() -> bool {
    true
}

impl GrepArgs {
    /// Returns the number of lines to show before and after each match.
    fn context_lines(&self) -> (usize, usize) {
        (
            self.before.unwrap_or(self.context),
            self.after.unwrap_or(self.context),
        )
    }

    fn syntax(&self) -> Result<Syntax, ToolError> {
        match (self.literal, self.multiline) {
            (true, true) => Err(ToolError::RespondToModel(
                "literal and multiline do not go together; leave one out".to_owned(),
            )),
            (true, false) => Ok(Syntax::Literal),
            (false, true) => Ok(Syntax::Multiline),
            (false, false) => Ok(Syntax::Regex),
        }
    }
}

impl TypedTool for GrepFiles {
    type Args = GrepArgs;
    const DEF: ToolDef = ToolDef::new(
        GREP_FILES,
        Risk::READS,
        "Searches the content of files. Leaves out binary and ignored ones (.gitignore), and \
        hidden ones unless `glob` names them.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases {
        names: &[
            ("file_path", "path"),
            ("-i", "ignore_case"),
            ("-C", "context"),
            ("-B", "before"),
            ("-A", "after"),
            ("-n", "line_numbers"),
            ("head_limit", "max_matches"),
            ("max_count", "max_matches"),
            ("include", "glob"),
            ("file_pattern", "glob"),
            ("context_lines", "context"),
        ],
        values: &[("output_mode", "files_with_matches", "files")],
        opposites: &[("case_sensitive", "ignore_case")],
        ..ArgumentAliases::NONE
    })
    .title_form::<title::GrepForm>();

    fn plan(&self, args: &GrepArgs) -> CallPlan {
        CallPlan::reads(&args.path)
    }

    async fn call(&self, cx: &ToolCx, args: GrepArgs) -> Result<Output, ToolError> {
        let (before, after) = args.context_lines();
        let query = GrepQuery {
            pattern: args.pattern.clone(),
            syntax: args.syntax()?,
            case: if args.ignore_case {
                Case::Insensitive
            } else {
                Case::Sensitive
            },
            root: parse_path(&args.path)?,
            glob: args.glob.clone(),
            file_type: args.file_type.clone(),
            mode: match args.output_mode {
                OutputMode::Content => GrepMode::Content { before, after },
                OutputMode::Files => GrepMode::Files,
                OutputMode::Count => GrepMode::Count,
            },
        };
        let limit = args.max_matches.saturating_add(args.offset);
        match cx
            .vfs
            .search()
            .grep(query, Bounds::new(limit, cx.cancel.clone()))
            .await
        {
            Ok(mut found) => {
                skip(&mut found.files, &args);
                Ok(Output::text(render(cx.surface, &args, &found)))
            }
            Err(error) => Err(search_error(cx, error).await),
        }
    }
}

/// Removes the first matching lines, or files, so that the rest begins where a search with that limit
/// ends.
fn skip(files: &mut Vec<FileMatches>, args: &GrepArgs) {
    let mut room = args.offset;
    match args.output_mode {
        OutputMode::Files | OutputMode::Count => drop(files.drain(..room.min(files.len()))),
        OutputMode::Content => files.retain_mut(|file| {
            let matching = file
                .lines
                .iter()
                .enumerate()
                .filter(|(_, line)| line.kind == LineKind::Match);
            let starts: Vec<usize> = matching.map(|(at, _)| at).collect();
            let Some(&start) = starts.get(room) else {
                room -= starts.len();
                return false;
            };
            if room > 0 {
                file.lines.drain(..start);
                room = 0;
            }
            true
        }),
    }
}

fn render(surface: Surface, args: &GrepArgs, found: &GrepResult) -> String {
    let mut rows: Vec<String> = match args.output_mode {
        OutputMode::Content => found
            .files
            .iter()
            .flat_map(|file| render_lines(file, args))
            .collect(),
        OutputMode::Files => found
            .files
            .iter()
            .map(|file| file.path.to_string())
            .collect(),
        OutputMode::Count => found
            .files
            .iter()
            .map(|file| format!("{}: {}", file.path, file.count))
            .collect(),
    };
    if rows.is_empty() {
        let more = if args.offset > 0 {
            format!(" after the first {}", args.offset)
        } else {
            String::new()
        };
        rows.push(format!(
            "No matches for {:?} in {}{more}",
            args.pattern, args.path
        ));
    }
    let mut chars = 0;
    let fits = |row: &&String| {
        chars += row.chars().count() + 1;
        chars <= MAX_OUTPUT_CHARS
    };
    let fitting = rows.iter().take_while(fits).count();
    if fitting < rows.len() {
        rows.truncate(fitting);
        let files = match surface {
            Surface::Snake => "files",
            Surface::Title => "files_with_matches",
        };
        rows.push(format!(
            "[the rest is too long to be shown; narrow the pattern, the path or the glob, or use output_mode \"{files}\"]"
        ));
    } else if found.truncated {
        let limit = match surface {
            Surface::Snake => format!("max_matches={}", args.max_matches),
            Surface::Title => format!("head_limit={}", args.max_matches),
        };
        rows.push(format!(
            "[there are more than {limit}; narrow the pattern, the path or the glob]"
        ));
    }
    rows.extend(timeout_notice(found.timed_out));
    rows.extend(needs_approval_notice(found.needs_approval));
    rows.extend(found.failed.iter().map(unsearched_notice));
    if found.unreadable > 0 {
        rows.push(format!(
            "[{} could not be read, or has a line of more than 32 MiB]",
            counted(found.unreadable, "file")
        ));
    }
    rows.join("\n")
}

/// Formats the lines of a file, with `--` between places that do not adjoin.
fn render_lines(file: &FileMatches, args: &GrepArgs) -> Vec<String> {
    let apart = args.context_lines() != (0, 0);
    let mut rows = Vec::with_capacity(file.lines.len());
    let mut last: Option<u64> = None;
    for GrepLine { number, text, kind } in &file.lines {
        if apart && last.is_some_and(|last| last + 1 < *number) {
            rows.push("--".to_owned());
        }
        last = Some(*number);
        rows.push(match (kind, args.line_numbers) {
            (LineKind::Match, true) => format!("{}:{number}: {text}", file.path),
            (LineKind::Context, true) => format!("{}-{number}- {text}", file.path),
            (LineKind::Match, false) => format!("{}: {text}", file.path),
            (LineKind::Context, false) => format!("{}- {text}", file.path),
        });
    }
    if apart {
        rows.push("--".to_owned());
    }
    rows
}

fn timeout_notice(timed_out: bool) -> Option<String> {
    timed_out.then(|| {
        "[the search ran out of time, so results may be missing; narrow the path or the glob]"
            .to_owned()
    })
}

fn unsearched_notice(part: &UnsearchedPart) -> String {
    format!("[results may be missing: {part}]")
}

fn needs_approval_notice(files: usize) -> Option<String> {
    let left_out = counted(files, "file");
    (files > 0).then(|| {
        format!("[{left_out} left out, because a person must be asked first; name the file or its directory as path]")
    })
}

async fn search_error(cx: &ToolCx, error: FileSearchError) -> ToolError {
    match error {
        FileSearchError::Vfs(error) => explain_error(cx, error).await,
        FileSearchError::Pattern(_) => ToolError::RespondToModel(match cx.surface {
            Surface::Snake => format!("{error}. Set literal to search for plain text"),
            Surface::Title => format!(
                "{error}. Put a backslash before each of .+*?()|[]{{}}^$\\ to find it as it is"
            ),
        }),
        FileSearchError::FileType(_) => {
            ToolError::RespondToModel(format!("{error}; use glob instead, for example \"*.ext\""))
        }
        FileSearchError::Glob { .. } | FileSearchError::Cancelled => {
            ToolError::RespondToModel(error.to_string())
        }
    }
}
