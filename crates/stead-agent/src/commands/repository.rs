//! Part of the command rules: whether git in a folder only reads. It must find the repository of
//! the workspace, and nothing in that may name a program.
//!
//! Effects: workspace files (reads).

use stead_shell::{git_attributes_problem, git_config_problem};
use stead_vfs::{FileKind, ReadRange, VPath, Vfs};

const GIT: &str = ".git";
const ATTRIBUTES: &str = ".gitattributes";
/// The largest settings that are read.
const MAX_SETTINGS_BYTES: u64 = 256 * 1024;
/// The largest number of entries of the workspace among which attributes are looked for.
const MAX_ENTRIES: usize = 50_000;
/// Files of a repository that lead git elsewhere or start programs.
const FOREIGN: [&str; 4] = [
    ".git/commondir",
    ".git/config.worktree",
    ".git/hooks/post-index-change",
    ".gitmodules",
];

/// Returns why git in `folder` may do more than read the repository of the workspace.
pub(super) async fn repository_problem(files: &dyn Vfs, folder: &str) -> Option<String> {
    let Ok(mut inner) = VPath::parse(folder) else {
        return Some(format!("{folder} is not in the workspace"));
    };
    while !inner.is_root() {
        let git = inner.join(GIT).ok()?;
        if files.stat(&git).await.is_ok() {
            return Some(format!("{inner} is another repository than the workspace"));
        }
        inner = inner.parent()?;
    }
    let path = |text: &str| VPath::parse(text).ok();
    let git = path(GIT)?;
    let is_folder = files
        .stat(&git)
        .await
        .is_ok_and(|stat| stat.kind == FileKind::Directory);
    if !is_folder || files.resolve(&git).await.ok()? != git {
        return Some("the workspace is not a repository of its own".to_owned());
    }
    for name in FOREIGN {
        if files.stat(&path(name)?).await.is_ok() {
            return Some(format!("{name} may make git run something else"));
        }
    }
    match read_text(files, &path(".git/config")?).await {
        Err(why) => return Some(why),
        Ok(config) => {
            if let Some(setting) = git_config_problem(&config) {
                return Some(format!("`{setting}` in .git/config may start a program"));
            }
        }
    }
    attributes_problem(files).await
}

/// Returns the first attribute in the workspace that names a program.
async fn attributes_problem(files: &dyn Vfs) -> Option<String> {
    let Ok(walk) = files.walk(&VPath::root(), None, MAX_ENTRIES).await else {
        return Some("the workspace cannot be searched for .gitattributes".to_owned());
    };
    if walk.truncated {
        return Some("the workspace is too large to search for .gitattributes".to_owned());
    }
    let in_git = VPath::parse(".git/info/attributes").ok();
    let entries = walk.entries.into_iter().map(|(path, _)| path);
    let found = entries.filter(|path| path.name() == ATTRIBUTES || Some(path) == in_git.as_ref());
    for path in found.collect::<Vec<_>>() {
        match read_text(files, &path).await {
            Err(why) => return Some(why),
            Ok(text) => {
                if let Some(attribute) = git_attributes_problem(&text) {
                    return Some(format!("`{attribute}` in {path} may start a program"));
                }
            }
        }
    }
    None
}

async fn read_text(files: &dyn Vfs, path: &VPath) -> Result<String, String> {
    let unread = || format!("{path} cannot be read");
    let stat = files.stat(path).await.map_err(|_| unread())?;
    if stat.kind != FileKind::File || stat.size > MAX_SETTINGS_BYTES {
        return Err(unread());
    }
    let (bytes, _) = files
        .read(path, ReadRange::ALL)
        .await
        .map_err(|_| unread())?;
    String::from_utf8(bytes.to_vec()).map_err(|_| unread())
}
