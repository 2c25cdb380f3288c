//! The folder of the local bus's sockets:
//! `<runtime dir>/stead-<uid>/<channel><realm>/<pid>-<bus>-<n>.sock`.
//!
//! Whoever can write into it can listen, so it must belong to this user alone.
//!
//! Effects: the environment, the local disk (writes).

use crate::{Disk, OsDisk, StoreError};
use rustix::fs::{AtFlags, CWD, FileType};
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixDatagram;
use std::path::{Path, PathBuf};

const FOLDER_MODE: u32 = 0o700;
/// The longest path of a socket, in bytes, on all systems.
const MAX_SOCKET_PATH_BYTES: usize = 107;
pub(super) const SOCKET_SUFFIX: &str = ".sock";
/// The number of topics that one sweep looks at.
const SWEPT_TOPICS: usize = 1000;

/// The folder of all sockets of one user.
#[derive(Debug)]
pub(super) struct RuntimeDir {
    root: PathBuf,
}

/// Whether the folder can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum FolderState {
    Absent,
    Private,
    /// Others could write into it.
    Foreign,
}

impl RuntimeDir {
    pub(super) fn new(runtime_dir: &Path) -> Self {
        let uid = rustix::process::geteuid().as_raw();
        Self {
            root: runtime_dir.join(format!("stead-{uid}")),
        }
    }

    /// Returns the folder of a topic. Half of each hash is enough to tell the topics of one user
    /// apart, and the path of a socket must be short.
    pub(super) fn topic(&self, channel: &str, realm: &str) -> PathBuf {
        let half = |hash: &str| hash.get(..16).unwrap_or_default().to_owned();
        self.root.join(half(channel) + &half(realm))
    }

    /// Returns whether the folder is there and belongs to this user alone.
    pub(super) fn state(&self) -> FolderState {
        let Ok(stat) = rustix::fs::statat(CWD, &self.root, AtFlags::SYMLINK_NOFOLLOW) else {
            return FolderState::Absent;
        };
        let is_dir = FileType::from_raw_mode(stat.st_mode) == FileType::Directory;
        let is_ours = stat.st_uid == rustix::process::geteuid().as_raw();
        if is_dir && is_ours && stat.st_mode & 0o077 == 0 {
            FolderState::Private
        } else {
            FolderState::Foreign
        }
    }

    /// Creates the folder of a topic.
    pub(super) fn create_topic(&self, topic: &Path) -> Result<(), StoreError> {
        create(&self.root).map_err(|cause| StoreError::io(&self.root, cause))?;
        if self.state() != FolderState::Private {
            return Err(StoreError::Setup(format!(
                "{} must be a folder that belongs to this user alone (mode 0700): remove it, or set another runtime folder",
                self.root.display()
            )));
        }
        create(topic).map_err(|cause| StoreError::io(topic, cause))
    }

    /// Removes the sockets of processes that ended without removing them, and empty folders.
    pub(super) fn sweep(&self) {
        if self.state() != FolderState::Private {
            return;
        }
        let Ok(topics) = std::fs::read_dir(&self.root) else {
            return;
        };
        for topic in topics.flatten().take(SWEPT_TOPICS) {
            let topic = topic.path();
            for socket in sockets(&topic) {
                if is_dead(&socket) {
                    remove(&socket);
                }
            }
            remove_topic(&topic);
        }
    }
}

/// Returns the sockets in the folder of a topic.
pub(super) fn sockets(topic: &Path) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(topic) else {
        return Vec::new();
    };
    entries
        .flatten()
        .map(|entry| entry.path())
        .filter(|path| path.to_string_lossy().ends_with(SOCKET_SUFFIX))
        .collect()
}

/// Checks that a path can be the address of a socket.
pub(super) fn check_length(socket: &Path) -> Result<(), StoreError> {
    let bytes = socket.as_os_str().len();
    if bytes <= MAX_SOCKET_PATH_BYTES {
        return Ok(());
    }
    Err(StoreError::Setup(format!(
        "{} has {bytes} bytes, and the path of a socket may have {MAX_SOCKET_PATH_BYTES}: set a shorter runtime folder",
        socket.display()
    )))
}

/// Removes a socket. One that is gone already is no failure.
pub(super) fn remove(socket: &Path) {
    if let Err(error) = OsDisk.remove(CWD, socket, AtFlags::empty())
        && error.kind() != ErrorKind::NotFound
    {
        tracing::debug!(%error, socket = %socket.display(), "a socket was not removed");
    }
}

/// Removes the folder of a topic, unless someone listens.
pub(super) fn remove_topic(topic: &Path) {
    let _ = OsDisk.remove(CWD, topic, AtFlags::REMOVEDIR);
}

/// Returns whether nobody listens on a socket.
fn is_dead(socket: &Path) -> bool {
    let connected = UnixDatagram::unbound().and_then(|from| from.connect(socket));
    connected.is_err_and(|error| error.kind() == ErrorKind::ConnectionRefused)
}

fn create(dir: &Path) -> io::Result<()> {
    match OsDisk.create_dir(CWD, dir, FOLDER_MODE) {
        Err(error) if error.kind() == ErrorKind::AlreadyExists => Ok(()),
        created => created,
    }
}
