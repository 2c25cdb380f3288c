//! The folders of this machine that a command sees, and as what.
//!
//! Effects: none.

use std::path::{Path, PathBuf};

/// A file or folder of this machine as a command sees it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mount {
    /// Where it is on this machine. The path has no symbolic links.
    pub source: PathBuf,
    /// Where the command finds it.
    pub target: PathBuf,
    /// What the command can do with it and everything below.
    pub access: MountAccess,
}

/// What a command can do with a file or folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MountAccess {
    /// Read and change it.
    Writable,
    /// Read it.
    ReadOnly,
    /// See that it exists. Its content cannot be read.
    Hidden,
}

/// Everything that a command sees beside the system's own programs and libraries.
///
/// A mount holds for everything below it, except where a longer one says otherwise.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Mounts {
    /// Sorted by target, so that a folder comes before what is in it.
    sorted: Vec<Mount>,
}

impl Mounts {
    /// Collects mounts. Of several with one target, the strictest holds.
    pub fn new(mounts: impl IntoIterator<Item = Mount>) -> Self {
        let mut sorted: Vec<Mount> = mounts.into_iter().collect();
        sorted.sort_by(|a, b| {
            let by_target = a.target.cmp(&b.target);
            by_target.then(strictness(b.access).cmp(&strictness(a.access)))
        });
        sorted.dedup_by(|later, first| later.target == first.target);
        Self { sorted }
    }

    /// Returns the mounts, a folder before what is in it.
    pub fn iter(&self) -> impl Iterator<Item = &Mount> {
        self.sorted.iter()
    }

    /// Returns the mounts with the folders between a writable folder and a mount inside it, as
    /// writable mounts of their own. A folder that is a mount cannot be renamed, and so a mount
    /// cannot be moved away from its path by renaming a folder above it.
    #[must_use]
    pub fn with_fixed_parents(&self) -> Self {
        let mut all = self.sorted.clone();
        for mount in &self.sorted {
            let Some(outer) = self.enclosing(&mount.target) else {
                continue;
            };
            if outer.access != MountAccess::Writable {
                continue;
            }
            let between = mount.target.ancestors().skip(1);
            for parent in between.take_while(|parent| *parent != outer.target) {
                let Ok(below) = parent.strip_prefix(&outer.target) else {
                    break;
                };
                all.push(Mount {
                    source: outer.source.join(below),
                    target: parent.to_owned(),
                    access: MountAccess::Writable,
                });
            }
        }
        Self::new(all)
    }

    /// Returns the nearest mount above `target`.
    fn enclosing(&self, target: &Path) -> Option<&Mount> {
        let above = self
            .sorted
            .iter()
            .filter(|mount| mount.target != target && target.starts_with(&mount.target));
        above.max_by_key(|mount| mount.target.as_os_str().len())
    }
}

fn strictness(access: MountAccess) -> u8 {
    match access {
        MountAccess::Writable => 0,
        MountAccess::ReadOnly => 1,
        MountAccess::Hidden => 2,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use MountAccess::{Hidden, ReadOnly, Writable};

    fn mount(target: &str, access: MountAccess) -> Mount {
        Mount {
            source: Path::new("/host").join(target.trim_start_matches('/')),
            target: target.into(),
            access,
        }
    }

    fn shown(mounts: &Mounts) -> Vec<(String, MountAccess)> {
        let shown = |mount: &Mount| (mount.target.display().to_string(), mount.access);
        mounts.iter().map(shown).collect()
    }

    #[test]
    fn a_folder_comes_before_what_is_in_it_and_the_strictest_of_one_target_holds() {
        let mounts = Mounts::new([
            mount("/w/a/b", ReadOnly),
            mount("/w", Writable),
            mount("/w/a/b", Hidden),
            mount("/w/a/b", Writable),
        ]);
        assert_eq!(
            shown(&mounts),
            [("/w".to_owned(), Writable), ("/w/a/b".to_owned(), Hidden)]
        );
    }

    #[test]
    fn folders_above_a_stricter_mount_become_mounts() {
        let mounts = Mounts::new([
            mount("/w", Writable),
            mount("/w/a/b/c", ReadOnly),
            mount("/w/a/b/c/d/e", Hidden),
            mount("/w/top", ReadOnly),
        ]);
        assert_eq!(
            shown(&mounts.with_fixed_parents()),
            [
                ("/w".to_owned(), Writable),
                ("/w/a".to_owned(), Writable),
                ("/w/a/b".to_owned(), Writable),
                ("/w/a/b/c".to_owned(), ReadOnly),
                ("/w/a/b/c/d/e".to_owned(), Hidden),
                ("/w/top".to_owned(), ReadOnly),
            ]
        );
    }
}
