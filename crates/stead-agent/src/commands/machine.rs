//! Part of the command rules: where the workspace lies on this machine, and what its sessions wrote
//! there.
//!
//! Effects: the local disk (reads), the store (reads).

use crate::AgentError;
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_place::{PROJECT, Place};
use stead_shell::join_folder;
use stead_store::UndoLog;
use stead_vfs::{ChangeRecord, VPath};

/// How the sessions of subagents are named.
const SUBAGENT_PREFIX: &str = "sub-";
/// Paths by which a process reaches its own folder and the root of the machine.
const OWN_FOLDER: [&str; 2] = ["/proc/self/cwd", "/proc/thread-self/cwd"];
const OWN_ROOT: [&str; 2] = ["/proc/self/root", "/proc/thread-self/root"];

/// The workspace as the commands of a session find it on this machine.
#[derive(Debug)]
pub(crate) struct MachineView {
    /// The folders of this machine that are shown in the workspace, and where. Empty if the
    /// workspace is not a folder.
    mounts: Vec<(PathBuf, VPath)>,
    changes: Arc<dyn UndoLog>,
    /// The session, and the one at the top of its tree.
    sessions: [SessionId; 2],
}

/// The paths of the workspace that a word may mean.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct NamedPlaces {
    /// Paths of the workspace: as it is written, and with links followed.
    pub(crate) inside: Vec<VPath>,
    /// Whether it may also be a path outside of the workspace.
    pub(crate) outside: Option<OutsidePath>,
}

/// A path that is not in the workspace.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OutsidePath;

impl MachineView {
    pub(crate) fn new(
        place: &dyn Place,
        owner: &Owner,
        session: &SessionId,
        tree: &SessionId,
    ) -> Self {
        let project = VPath::parse(PROJECT)
            .ok()
            .filter(|_| place.project_access().is_some());
        let folders = std::iter::once(VPath::root()).chain(project);
        let mounts = folders.filter_map(|path| Some((place.local_dir(owner, tree, &path)?, path)));
        Self {
            mounts: mounts.collect(),
            changes: place.changes(owner),
            sessions: [session.clone(), tree.clone()],
        }
    }

    /// Returns the paths that a word of a command in `folder` may mean, as it is written and after
    /// links are followed.
    pub(crate) async fn locate(&self, folder: &str, word: &str) -> NamedPlaces {
        let mut places = NamedPlaces::default();
        let word = without_process_paths(word);
        let real = self.real_path(folder, &word);
        if !word.starts_with('/') {
            let lexical = join_folder(folder, &word).and_then(|path| VPath::parse(&path).ok());
            places.add(lexical);
        }
        let Some(real) = real else {
            return places;
        };
        if word.starts_with('/') {
            places.add(self.inside(&normalized(&real)));
        }
        places.add(self.inside(&followed(&real).await));
        places
    }

    /// Returns the path on this machine that a word of a command in `folder` names.
    fn real_path(&self, folder: &str, word: &str) -> Option<PathBuf> {
        if word.starts_with('/') {
            return (!self.mounts.is_empty()).then(|| PathBuf::from(word));
        }
        let folder = VPath::parse(folder).ok()?;
        let mount = self.mounts.iter().rev();
        let (real, mount) = mount.into_iter().find(|(_, path)| path.contains(&folder))?;
        let below = folder.parts().skip(mount.parts().count());
        Some(
            below
                .fold(real.clone(), |dir, name| dir.join(name))
                .join(word),
        )
    }

    /// Returns a path of this machine as a path of the workspace.
    fn inside(&self, real: &Path) -> Option<VPath> {
        self.mounts.iter().find_map(|(dir, mount)| {
            let below = real.strip_prefix(dir).ok()?.to_str()?;
            match below {
                "" => Some(mount.clone()),
                below => mount.join(below).ok(),
            }
        })
    }

    /// Returns which of these files a session of the same tree wrote, or one of a subagent.
    pub(crate) async fn written(&self, files: &[VPath]) -> Result<Option<VPath>, AgentError> {
        if files.is_empty() {
            return Ok(None);
        }
        let is_ours = |session: &SessionId| {
            self.sessions.contains(session) || session.as_str().starts_with(SUBAGENT_PREFIX)
        };
        let runs = self.changes.runs().await?.into_iter();
        for run in runs.filter(|run| is_ours(&run.key.session)) {
            for line in self.changes.records(&run.key).await? {
                // A line that cannot be read may be about any file.
                let Ok(record) = serde_json::from_str::<ChangeRecord>(&line) else {
                    return Ok(files.first().cloned());
                };
                let changed = changed_paths(record);
                // A folder that was made or moved counts with everything in it.
                let is_changed = |file: &&VPath| changed.iter().any(|path| path.contains(file));
                if let Some(file) = files.iter().find(is_changed) {
                    return Ok(Some(file.clone()));
                }
            }
        }
        Ok(None)
    }
}

fn changed_paths(record: ChangeRecord) -> Vec<VPath> {
    match record {
        ChangeRecord::Change { paths, .. } => {
            let paths = paths.iter().map(|change| VPath::parse(&change.path));
            paths.filter_map(Result::ok).collect()
        }
        ChangeRecord::Undone | ChangeRecord::Void { .. } => Vec::new(),
    }
}

impl NamedPlaces {
    fn add(&mut self, path: Option<VPath>) {
        match path {
            Some(path) if self.inside.contains(&path) => {}
            Some(path) => self.inside.push(path),
            None => self.outside = Some(OutsidePath),
        }
    }
}

/// Returns a word without the paths by which a process reaches its own folder.
fn without_process_paths(word: &str) -> String {
    let below = |starts: [&str; 2]| {
        let rest = starts.iter().find_map(|start| word.strip_prefix(start));
        rest.filter(|rest| rest.is_empty() || rest.starts_with('/'))
    };
    match (below(OWN_FOLDER), below(OWN_ROOT)) {
        (Some(rest), _) => format!(".{rest}"),
        (None, Some(rest)) => format!("/{}", rest.trim_start_matches('/')),
        (None, None) => word.to_owned(),
    }
}

/// Returns a path without `.` and `..`, by its names alone.
fn normalized(path: &Path) -> PathBuf {
    let mut plain = PathBuf::new();
    for part in path.components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => {
                plain.pop();
            }
            Component::Prefix(_) | Component::RootDir | Component::Normal(_) => plain.push(part),
        }
    }
    plain
}

/// Returns a path with links followed, as far as it exists.
async fn followed(path: &Path) -> PathBuf {
    let mut missing: Vec<&std::ffi::OsStr> = Vec::new();
    let mut known = path;
    loop {
        if let Ok(real) = tokio::fs::canonicalize(known).await {
            let names = missing.iter().rev();
            return normalized(&names.fold(real, |dir, name| dir.join(name)));
        }
        match (known.parent(), known.file_name()) {
            (Some(parent), Some(name)) => {
                missing.push(name);
                known = parent;
            }
            // It ends with `..` in a folder that does not exist.
            (_, _) => return normalized(path),
        }
    }
}
