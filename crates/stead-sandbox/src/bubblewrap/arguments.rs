//! The arguments of `bwrap` for a command.
//!
//! Effects: the local disk (reads).

use super::system::SystemPart;
use crate::inside::{BEGUN_FILE, HELPER_ARGUMENT, SETUP_FILE};
use crate::{MountAccess, Mounts, ResourceLimits};
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Where things of ours are in a sandbox.
pub(super) const OURS: &str = "/run/stead";
/// The home of the user in a sandbox.
pub(super) const HOME: &str = "/home/agent";
/// The number of the user and of the group in a sandbox.
const USER: &str = "1000";

/// What a sandbox is made of.
#[derive(Debug)]
pub(super) struct View<'a> {
    pub(super) system: &'a [SystemPart],
    /// Folders with further programs, read-only, at the same path.
    pub(super) tools: &'a [PathBuf],
    /// The mounts of the command.
    pub(super) mounts: &'a Mounts,
    /// The home on this machine.
    pub(super) home: &'a Path,
    /// The folder with what belongs to the command alone: [`OWN_FILES`].
    pub(super) own: &'a Path,
    /// The helper.
    pub(super) helper: &'a Path,
    /// The folder in which the command begins.
    pub(super) cwd: &'a Path,
    pub(super) limits: &'a ResourceLimits,
    pub(super) walls: MountWalls,
}

/// Whether the mounts are walls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum MountWalls {
    /// They are.
    On,
    /// The whole machine is mounted, for tests of the other walls.
    Off,
}

/// Files that belong to a command alone, and where it finds them.
pub(super) const OWN_FILES: [(&str, &str); 5] = [
    ("passwd", "/etc/passwd"),
    ("group", "/etc/group"),
    ("hosts", "/etc/hosts"),
    ("setup", SETUP_FILE),
    (BEGUN, BEGUN_FILE),
];
/// The name of the file that tells that all walls are up.
pub(super) const BEGUN: &str = "begun";
/// The name of the file that stands in place of a hidden one.
pub(super) const HIDDEN: &str = "hidden";
/// The name of the socket of the proxy.
pub(super) const PROXY: &str = "proxy";

/// Returns the arguments.
pub(super) fn arguments(view: &View<'_>) -> Vec<OsString> {
    let mut all = Arguments(Vec::new());
    all.words(&[
        "--unshare-user",
        "--unshare-pid",
        "--unshare-ipc",
        "--unshare-uts",
        "--unshare-net",
        "--unshare-cgroup-try",
        "--disable-userns",
        "--uid",
        USER,
        "--gid",
        USER,
        "--cap-drop",
        "ALL",
        "--hostname",
        "sandbox",
    ]);
    match view.walls {
        MountWalls::On => all.system(view),
        MountWalls::Off => all.words(&["--bind", "/", "/"]),
    }
    all.words(&["--proc", "/proc", "--dev", "/dev"]);
    for folder in ["/tmp", "/var/tmp"] {
        all.word("--size").word(view.limits.temporary.to_string());
        all.words(&["--perms", "1777", "--tmpfs", folder]);
    }
    all.words(&["--perms", "0755", "--tmpfs", OURS]);
    all.pair("--bind", view.home, HOME);
    for folder in view.tools {
        all.pair("--ro-bind-try", folder, folder);
    }
    all.mounts(view);
    all.pair("--ro-bind", view.helper, format!("{OURS}/helper"));
    for (name, target) in OWN_FILES {
        let bind = match name {
            BEGUN => "--bind",
            _ => "--ro-bind",
        };
        all.pair(bind, view.own.join(name), target);
    }
    all.pair(
        "--ro-bind-try",
        view.own.join(PROXY),
        format!("{OURS}/{PROXY}"),
    );
    all.word("--chdir").word(view.cwd).word("--");
    all.word(format!("{OURS}/helper"));
    all.word(HELPER_ARGUMENT);
    all.0
}

struct Arguments(Vec<OsString>);

impl Arguments {
    fn word(&mut self, word: impl Into<OsString>) -> &mut Self {
        self.0.push(word.into());
        self
    }

    fn words(&mut self, words: &[&str]) {
        self.0.extend(words.iter().map(OsString::from));
    }

    fn pair(&mut self, option: &str, source: impl Into<OsString>, target: impl Into<OsString>) {
        self.0.extend([option.into(), source.into(), target.into()]);
    }

    fn system(&mut self, view: &View<'_>) {
        self.words(&["--perms", "0755", "--dir", "/etc"]);
        for part in view.system {
            match part {
                SystemPart::Shown(path) => self.pair("--ro-bind", path, path),
                SystemPart::Link { at, to } => self.pair("--symlink", to, at),
            }
        }
    }

    fn mounts(&mut self, view: &View<'_>) {
        for mount in view.mounts.with_fixed_parents().iter() {
            match mount.access {
                MountAccess::Writable => self.pair("--bind", &mount.source, &mount.target),
                MountAccess::ReadOnly => self.pair("--ro-bind", &mount.source, &mount.target),
                MountAccess::Hidden if mount.source.is_dir() => {
                    self.words(&["--perms", "0000"]);
                    self.word("--tmpfs").word(&mount.target);
                    self.word("--remount-ro").word(&mount.target);
                }
                MountAccess::Hidden => {
                    self.pair("--ro-bind", view.own.join(HIDDEN), &mount.target);
                }
            }
        }
    }
}
