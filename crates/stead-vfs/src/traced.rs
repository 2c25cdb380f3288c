//! A file system that remembers what was read, so that changes of it can be found later.
//!
//! Effects: workspace files (reads).

use crate::{DirEntry, Expect, ReadRange, Search, Stat, VPath, Version, Vfs, VfsError};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A read-only view of `inner` that remembers the files and directories that were looked at.
#[derive(Debug)]
pub struct Traced {
    inner: Arc<dyn Vfs>,
    seen: Mutex<BTreeMap<VPath, Seen>>,
}

/// What was seen at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Seen {
    /// A file or directory that was looked at, with its version; none if it was absent or could not
    /// be read.
    Entry(Option<Version>),
    /// The names in a directory; none if it was absent or could not be listed.
    Names(Option<Vec<String>>),
}

/// The files and directories that something was made from.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ReadTrace {
    seen: BTreeMap<VPath, Seen>,
}

impl Traced {
    /// Returns a view of `inner` that has seen nothing.
    pub fn new(inner: Arc<dyn Vfs>) -> Self {
        Self {
            inner,
            seen: Mutex::default(),
        }
    }

    /// Returns what was looked at so far.
    pub fn trace(&self) -> ReadTrace {
        ReadTrace {
            seen: self.lock().clone(),
        }
    }

    /// Remembers an entry, unless the names in it are known already.
    fn see(&self, path: &VPath, version: Option<Version>) {
        self.lock()
            .entry(path.clone())
            .or_insert(Seen::Entry(version));
    }

    fn lock(&self) -> MutexGuard<'_, BTreeMap<VPath, Seen>> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadTrace {
    /// Returns the paths of the files that were read, and of those that were looked for.
    pub fn paths(&self) -> impl Iterator<Item = &VPath> {
        self.seen.keys()
    }

    /// Returns the first path whose file, or names of entries, are not as they were.
    pub async fn first_change(&self, files: &dyn Vfs) -> Option<VPath> {
        for (path, seen) in &self.seen {
            let now = match seen {
                Seen::Entry(_) => Seen::Entry(files.stat(path).await.ok().map(|stat| stat.version)),
                Seen::Names(_) => Seen::Names(files.list(path).await.ok().map(names)),
            };
            if now != *seen {
                return Some(path.clone());
            }
        }
        None
    }
}

fn names(entries: Vec<DirEntry>) -> Vec<String> {
    entries.into_iter().map(|entry| entry.name).collect()
}

impl Vfs for Traced {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        Box::pin(async move {
            let stat = self.inner.stat(path).await;
            let version = stat.as_ref().ok().map(|stat| stat.version.clone());
            self.see(path, version);
            stat
        })
    }

    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        Box::pin(async move {
            let listed = self.inner.list(path).await;
            let seen = Seen::Names(listed.as_ref().ok().cloned().map(names));
            self.lock().insert(path.clone(), seen);
            listed
        })
    }

    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        Box::pin(async move {
            let read = self.inner.read(path, range).await;
            let version = read.as_ref().ok().map(|(_, version)| version.clone());
            self.see(path, version);
            read
        })
    }

    fn write<'a>(
        &'a self,
        path: &'a VPath,
        _: Bytes,
        _: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move { Err(VfsError::ReadOnly(path.clone())) })
    }

    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move { Err(VfsError::ReadOnly(path.clone())) })
    }

    fn rename<'a>(&'a self, from: &'a VPath, _: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move { Err(VfsError::ReadOnly(from.clone())) })
    }

    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move { Err(VfsError::ReadOnly(path.clone())) })
    }

    fn set_mode<'a>(&'a self, path: &'a VPath, _: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move { Err(VfsError::ReadOnly(path.clone())) })
    }

    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        self.inner.resolve(path)
    }

    fn search(&self) -> &dyn Search {
        self.inner.search()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::LocalVfs;
    use stead_store::OsDisk;

    #[test]
    fn a_change_of_what_was_read_is_found_and_nothing_else() {
        let dir = tempfile::tempdir().unwrap();
        let put = |path: &str, text: &str| {
            let path = dir.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        let path = |text: &str| VPath::parse(text).unwrap();
        put("agent.yaml", "name: a");
        put("hooks/one.yaml", "1");
        put("notes.md", "not read");
        tokio::runtime::Builder::new_current_thread()
            .build()
            .unwrap()
            .block_on(async {
                let files: Arc<dyn Vfs> =
                    Arc::new(LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap());
                let traced = Traced::new(files.clone());
                let whole = ReadRange::ALL;
                traced.read(&path("agent.yaml"), whole).await.unwrap();
                traced.list(&path("hooks")).await.unwrap();
                assert!(traced.stat(&path("absent.json")).await.is_err());
                let trace = traced.trace();
                put("notes.md", "changed");
                assert_eq!(trace.first_change(&*files).await, None);
                put("absent.json", "{}");
                let changed = trace.first_change(&*files).await;
                assert_eq!(changed, Some(path("absent.json")));
                std::fs::remove_file(dir.path().join("absent.json")).unwrap();
                put("hooks/two.yaml", "2");
                assert_eq!(trace.first_change(&*files).await, Some(path("hooks")));
                std::fs::remove_file(dir.path().join("hooks/two.yaml")).unwrap();
                put("agent.yaml", "name: changed");
                let changed = trace.first_change(&*files).await;
                assert_eq!(changed, Some(path("agent.yaml")));
            });
    }
}
