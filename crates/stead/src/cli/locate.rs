//! Finding the workspace of a command.
//!
//! Effects: the environment, the local disk (reads).

use super::args::GlobalArgs;
use super::env::ProcessEnv;
use super::error::CliError;
use super::personal::PersonalFolder;
use super::trust::folder_judge;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead::store::OsDisk;
use stead::vfs::{LocalVfs, VPath, Vfs};
use stead::workspace::{Layout, MarkStrength, ModelUse, OpenOptions};

/// Returns the workspace at a fixed path below the project `dir`, if there is one, with its layout.
pub(crate) fn nested_workspace(dir: &Path) -> Option<(PathBuf, Layout)> {
    Layout::ALL.into_iter().find_map(|layout| {
        let inner = dir.join(layout.def().nested_dir?);
        inner.is_dir().then_some((inner, layout))
    })
}

/// Whether a folder has one of the marks of this strength.
fn has_mark(dir: &Path, strength: MarkStrength) -> bool {
    Layout::marks_of(strength).any(|mark| dir.join(mark).exists())
}

/// Returns the folder that the flag or a variable names.
pub(crate) fn named_workspace(common: &GlobalArgs, env: &ProcessEnv) -> Option<PathBuf> {
    let set = || {
        ["STEAD_WORKSPACE", "AGENTSCOPE_WORKSPACE"]
            .iter()
            .find_map(|name| env.get(name).filter(|value| !value.trim().is_empty()))
    };
    let given = common.workspace.clone();
    given.or_else(|| set().map(PathBuf::from))
}

/// Returns the folder of the workspace. Sources are tried in this order: the flag, the variable,
/// the nearest workspace from the current folder upward.
pub(crate) fn workspace_dir(common: &GlobalArgs, env: &ProcessEnv) -> Result<PathBuf, CliError> {
    let Some(dir) = named_workspace(common, env) else {
        return Ok(nearest_workspace(env)?.unwrap_or_else(|| PathBuf::from(".")));
    };
    if !dir.is_dir() {
        let dir = dir.display();
        return Err(CliError::usage(format!(
            "{dir} is not a folder; `stead init {dir}` makes it a workspace"
        )));
    }
    // The folder of a project stands for the workspace in it.
    if has_mark(&dir, MarkStrength::Strong) || has_mark(&dir, MarkStrength::Weak) {
        return Ok(dir);
    }
    Ok(nested_workspace(&dir).map_or(dir, |(inner, _)| inner))
}

/// Returns the nearest workspace from the current folder upward. A folder of another user is never
/// taken, and a workspace within another must be named: an agent of the outer one could have
/// created it.
fn nearest_workspace(env: &ProcessEnv) -> Result<Option<PathBuf>, CliError> {
    let home = env.home();
    let above =
        |dir: &&Path| dir.parent().is_some() && home.as_deref().is_none_or(|home| *dir != home);
    let folders = env
        .folder
        .ancestors()
        .take_while(above)
        .filter(|dir| *dir == env.folder || is_owned_by_user(dir));
    let folders: Vec<&Path> = folders.collect();
    let marked = |strength: MarkStrength| -> Vec<PathBuf> {
        let workspace = |dir: &&Path| match has_mark(dir, strength) {
            true => Some(workspace_root(dir.to_path_buf())),
            false => nested_workspace(dir).map(|(inner, _)| inner),
        };
        let mut found: Vec<PathBuf> = folders.iter().filter_map(workspace).collect();
        found.dedup();
        found
    };
    let found = match marked(MarkStrength::Strong).as_slice() {
        [inner, outer, ..] => {
            let inner = inner.display();
            let outer = outer.display();
            return Err(CliError::usage(format!(
                "{inner} is a workspace inside another one, {outer}; say which is meant with -C DIR"
            )));
        }
        [only] => Some(only.clone()),
        [] => {
            let agent = folders.iter().find(|dir| is_agent(dir));
            let agent = agent.map(|dir| workspace_root(dir.to_path_buf()));
            agent.or_else(|| project_root(&folders).map(Path::to_owned))
        }
    };
    // A relative path keeps messages short.
    Ok(found.map(|found| {
        if found == env.folder {
            PathBuf::from(".")
        } else {
            found
        }
    }))
}

/// Whether a folder has a weak mark of a layout in which the whole folder is the agent's.
fn is_agent(dir: &Path) -> bool {
    let layouts = Layout::ALL.into_iter();
    let layouts = layouts.filter(|layout| layout.def().home_dir.is_empty());
    layouts.flat_map(|layout| layout.def().marks).any(|mark| {
        let void = mark.unless.is_some_and(|other| dir.join(other).exists());
        mark.locates == MarkStrength::Weak && !void && dir.join(mark.path).exists()
    })
}

/// Returns the root of the ordinary project around the first of `folders`: the nearest folder with
/// state of an agent or a git repository, or else the nearest with rules for agents.
fn project_root<'a>(folders: &[&'a Path]) -> Option<&'a Path> {
    let has_home = |dir: &Path| {
        let homes = Layout::ALL.into_iter().map(|layout| layout.def().home_dir);
        homes
            .filter(|home| !home.is_empty())
            .any(|home| dir.join(home).is_dir())
    };
    let root = folders
        .iter()
        .find(|dir| has_home(dir) || dir.join(".git").exists());
    let ruled = || folders.iter().find(|dir| has_mark(dir, MarkStrength::Weak));
    root.or_else(ruled).copied()
}

/// Whether a folder belongs to the current user.
fn is_owned_by_user(dir: &Path) -> bool {
    use std::os::unix::fs::MetadataExt;
    dir.metadata()
        .is_ok_and(|metadata| metadata.uid() == rustix::process::geteuid().as_raw())
}

/// Returns the workspace that `dir` is a part of, for layouts with folders that look like
/// workspaces. Otherwise returns `dir`.
fn workspace_root(dir: PathBuf) -> PathBuf {
    let around = Layout::ALL.into_iter().find_map(|layout| {
        let inner = layout.def().inner_dirs?;
        let name = dir.file_name()?.to_str()?;
        let around = dir.parent()?;
        (inner.names.contains(&name) && around.join(inner.mark).exists()).then(|| around.to_owned())
    });
    around.unwrap_or(dir)
}

/// Returns the current folder, relative to the workspace.
pub(crate) fn working_folder(dir: &Path, env: &ProcessEnv) -> VPath {
    let (Ok(dir), Ok(here)) = (dir.canonicalize(), env.folder.canonicalize()) else {
        return VPath::root();
    };
    let below = here.strip_prefix(&dir).ok().and_then(Path::to_str);
    below
        .and_then(|below| VPath::parse(below).ok())
        .unwrap_or(VPath::root())
}

/// Returns the options for opening the folder `dir`, from the flags and the environment.
pub(crate) fn open_options(
    common: &GlobalArgs,
    env: &ProcessEnv,
    dir: &Path,
) -> Result<OpenOptions, CliError> {
    Ok(OpenOptions {
        layout: common.layout,
        agent: common.agent.clone(),
        folder: None,
        model: common.model.clone(),
        model_use: ModelUse::Required,
        platform: platform_files(env)?,
        memory: common.context_files.clone(),
        skills: common.skills.clone(),
        home: home_files(env, dir),
        cache: env.cache(),
        trust: Some(folder_judge(common, env, dir)),
        keys: Arc::new(env.key_policy()),
        private_paths: personal_path(env, dir).into_iter().collect(),
        profiles: env.personal.profiles.clone(),
    })
}

/// Returns the path of the person's configuration folder in the folder `dir`, if it lies there.
fn personal_path(env: &ProcessEnv, dir: &Path) -> Option<VPath> {
    let personal = PersonalFolder::new(env).real_path()?;
    let below = personal.strip_prefix(dir.canonicalize().ok()?).ok()?;
    VPath::parse(below.to_str()?).ok()
}

/// Opens the platform, which many workspaces share: `$STEAD_PLATFORM`, or `~/.stead/platform` if it
/// exists.
fn platform_files(env: &ProcessEnv) -> Result<Option<Arc<dyn Vfs>>, CliError> {
    let (dir, named) = match (env.get("STEAD_PLATFORM"), env.home()) {
        (Some(dir), _) => (PathBuf::from(dir), true),
        (None, Some(home)) => (home.join(".stead/platform"), false),
        (None, None) => return Ok(None),
    };
    if !named && !dir.is_dir() {
        return Ok(None);
    }
    let files = LocalVfs::open(&dir, Arc::new(OsDisk));
    let files = files
        .map_err(|error| CliError::usage(format!("STEAD_PLATFORM: {}: {error}", dir.display())))?;
    Ok(Some(Arc::new(files)))
}

/// Opens the home folder, unless it is the workspace.
fn home_files(env: &ProcessEnv, dir: &Path) -> Option<Arc<dyn Vfs>> {
    let home = env.home()?;
    let is_workspace = dir.canonicalize().ok() == home.canonicalize().ok();
    let files = (!is_workspace).then(|| LocalVfs::open(&home, Arc::new(OsDisk)).ok())??;
    Some(Arc::new(files))
}
