//! Control groups: limits of the kernel for a command with everything it starts.
//!
//! Version 2 is used where its controllers can be used, version 1 elsewhere. Which of them a machine
//! has is found by trying: a group is made, and its limits are written.
//!
//! Effects: the clock, randomness, the local disk (writes).

use crate::ResourceLimits;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};
use uuid::Uuid;

/// Where the kernel shows its control groups.
const ROOT: &str = "/sys/fs/cgroup";
/// How the names of our groups begin. The number of the process that made the group follows.
const PREFIX: &str = "stead-";
/// The controllers that limits need, with version 1 each in a tree of its own.
const CONTROLLERS: [&str; 2] = ["memory", "pids"];
/// The time that the kernel may take to forget the processes of a group.
const REMOVE_WAIT: Duration = Duration::from_millis(500);
/// The time between two attempts.
const REMOVE_INTERVAL: Duration = Duration::from_millis(5);

/// The place of control groups that this process can use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CgroupParents {
    version: Version,
    /// The folders in which groups are made: one with version 2, one for each controller with
    /// version 1.
    folders: Vec<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Version {
    One,
    Two,
}

/// A control group. It is removed when this value is dropped.
#[derive(Debug)]
pub(crate) struct Cgroup {
    folders: Vec<PathBuf>,
}

impl CgroupParents {
    /// Finds the control groups of this process that it can divide further.
    pub(crate) fn find() -> Result<Self, String> {
        let own = fs::read_to_string("/proc/self/cgroup")
            .map_err(|error| format!("/proc/self/cgroup: {error}"))?;
        let mut reasons = Vec::new();
        for parents in candidates(&own, Path::new(ROOT)) {
            match parents.create(&ResourceLimits::DEFAULT) {
                Ok(_) => return Ok(parents),
                Err(error) => reasons.push(format!("{}: {error}", parents.shown())),
            }
        }
        match reasons.is_empty() {
            true => Err(format!("no control groups are mounted at {ROOT}")),
            false => Err(reasons.join("; ")),
        }
    }

    /// Makes a group with limits.
    pub(crate) fn create(&self, limits: &ResourceLimits) -> io::Result<Cgroup> {
        let maker = std::process::id();
        let name = format!("{PREFIX}{maker}-{}", Uuid::new_v4().simple());
        let mut group = Cgroup {
            folders: Vec::with_capacity(self.folders.len()),
        };
        for parent in &self.folders {
            let folder = parent.join(&name);
            fs::create_dir(&folder)?;
            group.folders.push(folder);
        }
        for (file, value) in settings(self.version, limits) {
            group.set(file, value)?;
        }
        Ok(group)
    }

    /// Removes the groups of processes that have ended.
    pub(crate) fn remove_orphans(&self) {
        for parent in &self.folders {
            let entries = fs::read_dir(parent).into_iter().flatten().flatten();
            let orphans = entries.filter(|entry| {
                let name = entry.file_name();
                name.to_str()
                    .and_then(maker_of)
                    .is_some_and(|maker| !has_process(maker))
            });
            for entry in orphans {
                // Fails if something runs in it.
                let _ = fs::remove_dir(entry.path());
            }
        }
    }

    /// Returns a short description of the mechanism.
    pub(crate) fn mechanism(&self) -> &'static str {
        match self.version {
            Version::One => "control groups (version 1)",
            Version::Two => "control groups",
        }
    }

    fn shown(&self) -> String {
        let shown: Vec<String> = self
            .folders
            .iter()
            .map(|folder| folder.display().to_string())
            .collect();
        shown.join(", ")
    }
}

impl Cgroup {
    /// Returns the files to which a process writes its number in order to join.
    pub(crate) fn join_files(&self) -> impl Iterator<Item = PathBuf> {
        self.folders
            .iter()
            .map(|folder| folder.join("cgroup.procs"))
    }

    /// Writes a limit to the folder that has its file.
    fn set(&self, file: &str, value: u64) -> io::Result<()> {
        let files = self.folders.iter().map(|folder| folder.join(file));
        let Some(path) = files.into_iter().find(|path| path.exists()) else {
            return Err(io::Error::other(format!("there is no {file}")));
        };
        fs::write(path, value.to_string())
    }

    /// Returns whether the kernel has ended a process of the group because of the limit of memory.
    pub(crate) fn ran_out_of_memory(&self) -> bool {
        ["memory.events", "memory.oom_control"].iter().any(|file| {
            self.folders.iter().any(|folder| {
                let text = fs::read_to_string(folder.join(file)).unwrap_or_default();
                kills(&text) > 0
            })
        })
    }
}

impl Drop for Cgroup {
    fn drop(&mut self) {
        let end = Instant::now() + REMOVE_WAIT;
        for folder in &self.folders {
            while fs::remove_dir(folder).is_err() && folder.exists() && Instant::now() < end {
                std::thread::sleep(REMOVE_INTERVAL);
            }
        }
    }
}

/// Returns the number of the process that made a group of ours.
fn maker_of(name: &str) -> Option<u32> {
    name.strip_prefix(PREFIX)?.split('-').next()?.parse().ok()
}

fn has_process(number: u32) -> bool {
    Path::new("/proc").join(number.to_string()).exists()
}

/// Returns the number of processes that were ended, as a file of events says.
fn kills(events: &str) -> u64 {
    events
        .lines()
        .filter_map(|line| line.strip_prefix("oom_kill "))
        .filter_map(|count| count.trim().parse::<u64>().ok())
        .sum()
}

/// Returns the limits as files and their content.
fn settings(version: Version, limits: &ResourceLimits) -> [(&'static str, u64); 2] {
    let memory = match version {
        Version::One => "memory.limit_in_bytes",
        Version::Two => "memory.max",
    };
    [(memory, limits.memory), ("pids.max", limits.processes)]
}

/// Returns the places to try, from `/proc/self/cgroup`: version 2 with its controllers, then
/// version 1.
fn candidates(own: &str, root: &Path) -> Vec<CgroupParents> {
    let mut found = Vec::new();
    let paths: Vec<(&str, &str)> = own
        .lines()
        .filter_map(|line| line.split_once(':')?.1.split_once(':'))
        .collect();
    let below = |folder: PathBuf, path: &str| folder.join(path.trim_start_matches('/'));
    for (_, path) in paths.iter().filter(|(names, _)| names.is_empty()) {
        found.push(CgroupParents {
            version: Version::Two,
            folders: vec![below(root.to_owned(), path)],
        });
    }
    let first = CONTROLLERS.iter().map(|controller| {
        let has = |names: &str| names.split(',').any(|name| name == *controller);
        let (names, path) = paths.iter().find(|(names, _)| has(names))?;
        let tree = [names, controller]
            .into_iter()
            .map(|name| root.join(name))
            .find(|tree| tree.is_dir())?;
        Some(below(tree, path))
    });
    if let Some(folders) = first.collect::<Option<Vec<PathBuf>>>() {
        found.push(CgroupParents {
            version: Version::One,
            folders,
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_two_is_tried_before_version_one() {
        let root = tempfile::tempdir().unwrap();
        for controller in ["memory", "pids"] {
            fs::create_dir(root.path().join(controller)).unwrap();
        }
        let own = "9:pids:/a\n4:cpu,cpuacct:/\n3:memory:/b/c\n0::/user.slice\n";
        assert_eq!(
            candidates(own, root.path()),
            [
                CgroupParents {
                    version: Version::Two,
                    folders: vec![root.path().join("user.slice")],
                },
                CgroupParents {
                    version: Version::One,
                    folders: vec![root.path().join("memory/b/c"), root.path().join("pids/a")],
                },
            ]
        );
        assert_eq!(candidates("4:cpu:/\n", root.path()), []);
    }

    #[test]
    fn the_name_of_a_group_tells_which_process_made_it() {
        assert_eq!(maker_of("stead-12-ab34"), Some(12));
        assert_eq!(maker_of("stead-ab34"), None);
        assert_eq!(maker_of("user.slice"), None);
    }

    #[test]
    fn ended_processes_are_counted_in_both_versions() {
        assert_eq!(kills("low 0\nmax 3\noom 1\noom_kill 2\n"), 2);
        assert_eq!(kills("oom_kill_disable 0\nunder_oom 0\noom_kill 1\n"), 1);
        assert_eq!(kills("oom_kill_disable 0\n"), 0);
    }
}
