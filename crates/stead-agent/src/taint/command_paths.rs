//! The paths that a command line names, as far as they can be told before it runs.
//!
//! Effects: none.

use stead_shell::{CommandTarget, TargetRole, command_targets};
use stead_vfs::VPath;

/// The characters with which a part of a word begins whose value the shell computes.
const EXPANDED: [char; 6] = ['*', '?', '[', '{', '$', '`'];
/// Those of them that mean names of files.
const PATTERNS: [char; 4] = ['*', '?', '[', '{'];

/// A word of a command line, as a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct NamedPath {
    /// The word.
    pub(crate) word: String,
    /// What the word may be.
    pub(crate) role: TargetRole,
    /// The path that it means, if it is a valid one.
    pub(crate) path: Option<VPath>,
    /// Where that path begins.
    pub(crate) certainty: PathCertainty,
    /// Whether it is the path, or the folder in which files are chosen by a pattern.
    pub(crate) form: PathForm,
}

/// How a word of a command means a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathForm {
    /// The word is the path.
    Whole,
    /// The word is a pattern for names in the folder.
    Pattern,
}

/// Where a path of a command begins.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PathCertainty {
    /// In the workspace.
    Workspace,
    /// Somewhere on the machine, which may be the workspace too.
    Elsewhere,
}

/// Returns the paths that a command in the folder `cwd` names.
pub(crate) fn named_paths(command: &str, cwd: &str) -> Vec<NamedPath> {
    let cwd = VPath::parse(cwd).unwrap_or(VPath::root());
    command_targets(command)
        .into_iter()
        .map(|target| named_path(target, &cwd))
        .collect()
}

fn named_path(target: CommandTarget, cwd: &VPath) -> NamedPath {
    let CommandTarget { word, role } = target;
    // Of a pattern, the folder before it is known.
    let known = match word.find(EXPANDED) {
        Some(at) => word[..at].rfind('/').map_or(".", |end| &word[..end.max(1)]),
        None => word.as_str(),
    };
    let is_elsewhere = known.starts_with(['/', '~']) || known.split('/').any(|name| name == "..");
    let (path, certainty) = match is_elsewhere {
        true => {
            let from_known = known.rsplit("..").next().unwrap_or(known);
            let path = VPath::parse(from_known.trim_start_matches(['~', '/']));
            (path, PathCertainty::Elsewhere)
        }
        false => (cwd.join(known), PathCertainty::Workspace),
    };
    NamedPath {
        path: path.ok(),
        form: match word.contains(PATTERNS) {
            true => PathForm::Pattern,
            false => PathForm::Whole,
        },
        word,
        role,
        certainty,
    }
}
