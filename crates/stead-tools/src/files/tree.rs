//! The `tree` tool: the files below a directory, as an indented tree.
//!
//! Effects: the clock, workspace files (reads).

use super::{MAX_OUTPUT_CHARS, explain_error, here, parse_path};
use crate::{CallPlan, Output, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use stead_core::{ArgumentAliases, Exposure, Risk, ToolKind, counted};
use stead_vfs::{Bounds, FileSearchError, GlobQuery, GlobResult, VPath};

/// `tree`: shows the files below a directory.
const TREE: ToolIdentity = ToolIdentity::new("tree", ToolKind::FileRead)
    .aliases(&["directory_tree"])
    .subject(&["path"])
    .exposed(Exposure::OnDemand);

/// The most files that are looked at.
const MAX_FILES: usize = 20_000;
/// The most rows that are shown.
const MAX_ROWS: usize = 1000;
/// The levels that are shown by default.
const DEFAULT_DEPTH: usize = 2;

pub(super) struct ShowTree;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(super) struct TreeArgs {
    /// Directory, relative to the workspace.
    #[serde(default = "here")]
    path: String,
    /// Levels to show. Of deeper directories only the number of files is told.
    #[serde(default = "default_depth")]
    #[schemars(range(min = 1))]
    depth: usize,
}

fn default_depth() -> usize {
    DEFAULT_DEPTH
}

impl TypedTool for ShowTree {
    type Args = TreeArgs;
    const DEF: ToolDef = ToolDef::new(
        TREE,
        Risk::READS,
        "Shows the files below a directory as a tree. Hidden and ignored files (.gitignore) and \
        empty directories are left out.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases::of_names(&[
        ("directory", "path"),
        ("max_depth", "depth"),
    ]));

    fn plan(&self, args: &TreeArgs) -> CallPlan {
        CallPlan::reads(&args.path)
    }

    async fn call(&self, cx: &ToolCx, args: TreeArgs) -> Result<Output, ToolError> {
        let root = parse_path(&args.path)?;
        let query = GlobQuery {
            pattern: "*".to_owned(),
            root: root.clone(),
        };
        let bounds = Bounds::new(MAX_FILES, cx.cancel.clone());
        let found = match cx.vfs.search().glob(query, bounds).await {
            Ok(found) => found,
            Err(FileSearchError::Vfs(error)) => return Err(explain_error(cx, error).await),
            Err(
                error @ (FileSearchError::Pattern(_)
                | FileSearchError::Glob { .. }
                | FileSearchError::FileType(_)
                | FileSearchError::Cancelled),
            ) => return Err(ToolError::RespondToModel(error.to_string())),
        };
        if found.paths.is_empty() && found.needs_approval == 0 {
            return Ok(Output::text(format!("[there are no files in {root}]")));
        }
        let mut lines = shorten(tree_rows(&root, &found.paths, args.depth.max(1)));
        lines.extend(notices(&found));
        Ok(Output::text(lines.join("\n")))
    }
}

/// One row of a tree: a file, or a directory.
struct TreeRow<'a> {
    level: usize,
    name: &'a str,
    kind: TreeRowKind,
}

enum TreeRowKind {
    File,
    Directory {
        /// The number of files below it that have no rows.
        hidden_files: usize,
    },
}

/// Returns the rows of the tree of `paths`, which are sorted and lie below `root`.
fn tree_rows<'a>(root: &VPath, paths: &'a [VPath], depth: usize) -> Vec<TreeRow<'a>> {
    let skipped = root.parts().count();
    let mut rows: Vec<TreeRow<'a>> = Vec::new();
    let mut open: Vec<&str> = Vec::new();
    for path in paths {
        let mut directories: Vec<&str> = path.parts().skip(skipped).collect();
        let Some(name) = directories.pop() else {
            continue;
        };
        let is_shown = directories.len() < depth;
        directories.truncate(depth);
        let same = open.iter().zip(&directories).take_while(|(a, b)| a == b);
        let known = same.count();
        for (level, &name) in directories.iter().enumerate().skip(known) {
            let kind = TreeRowKind::Directory { hidden_files: 0 };
            rows.push(TreeRow { level, name, kind });
        }
        let level = directories.len();
        open = directories;
        if is_shown {
            let kind = TreeRowKind::File;
            rows.push(TreeRow { level, name, kind });
        } else if let Some(TreeRow {
            // Nothing is shown below a directory of the last level, so its row is still the last.
            kind: TreeRowKind::Directory { hidden_files },
            ..
        }) = rows.last_mut()
        {
            *hidden_files += 1;
        }
    }
    rows
}

impl TreeRow<'_> {
    fn render(&self) -> String {
        let indent = "  ".repeat(self.level);
        let name = self.name;
        match self.kind {
            TreeRowKind::File => format!("{indent}{name}"),
            TreeRowKind::Directory { hidden_files: 0 } => format!("{indent}{name}/"),
            TreeRowKind::Directory { hidden_files } => {
                format!("{indent}{name}/  ({})", counted(hidden_files, "file"))
            }
        }
    }
}

/// Returns as many lines as one call may return, and how many are missing.
fn shorten(rows: Vec<TreeRow<'_>>) -> Vec<String> {
    let mut chars = 0;
    let fits = |line: &String| {
        chars += line.chars().count() + 1;
        chars <= MAX_OUTPUT_CHARS
    };
    let mut lines: Vec<String> = rows
        .iter()
        .take(MAX_ROWS)
        .map(TreeRow::render)
        .take_while(fits)
        .collect();
    if lines.len() < rows.len() {
        let left_out = counted(rows.len() - lines.len(), "row");
        lines.push(format!(
            "[{left_out} left out; set a smaller depth or name a directory as path]"
        ));
    }
    lines
}

/// Returns what may be missing in the tree.
fn notices(found: &GlobResult) -> Vec<String> {
    let mut notices = Vec::new();
    if found.truncated {
        notices.push(format!(
            "[only the first {MAX_FILES} files were looked at; name a directory as path]"
        ));
    }
    if found.timed_out {
        notices.push("[the time was up, so files may be missing; name a directory as path]".into());
    }
    if found.needs_approval > 0 {
        let left_out = counted(found.needs_approval, "file");
        notices.push(format!(
            "[{left_out} left out, because a person must be asked first; name the directory as path]"
        ));
    }
    let failed = found.failed.iter();
    notices.extend(failed.map(|part| format!("[files may be missing: {part}]")));
    notices
}
