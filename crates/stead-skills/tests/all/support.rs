//! Test support: places, trees and skills.

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stead_skills::{SkillFlavor, SkillLayer, SkillOrigin};
use stead_store::OsDisk;
use stead_vfs::*;

/// Every file of a tree with its content and whether it can be run, and every directory.
pub(crate) type Tree = BTreeMap<String, Option<(Vec<u8>, bool)>>;

pub(crate) fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

pub(crate) async fn put(files: &dyn Vfs, name: &str, content: impl Into<Bytes>) {
    files
        .write(&path(name), content.into(), Expect::Any)
        .await
        .unwrap();
}

/// A SKILL.md.
pub(crate) fn skill_md(name: &str, body: &str) -> String {
    format!("---\nname: {name}\ndescription: About {name}.\n---\n{body}\n")
}

pub(crate) async fn tree(files: &dyn Vfs) -> Tree {
    let mut tree = Tree::new();
    for (path, entry) in files
        .walk(&VPath::root(), None, 100_000)
        .await
        .unwrap()
        .entries
    {
        let content = match entry.kind {
            FileKind::File => {
                let executable = entry.mode.is_some_and(|mode| mode & 0o111 != 0);
                Some((
                    files.read(&path, ReadRange::ALL).await.unwrap().0.to_vec(),
                    executable,
                ))
            }
            FileKind::Directory | FileKind::Other => None,
        };
        tree.insert(path.as_str().to_owned(), content);
    }
    tree
}

/// A folder of the disk, which goes away in the end.
pub(crate) struct Folder {
    pub(crate) dir: tempfile::TempDir,
    pub(crate) files: Arc<dyn Vfs>,
}

impl Folder {
    pub(crate) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let files = Arc::new(LocalVfs::open(dir.path(), Arc::new(OsDisk)).unwrap());
        Self { dir, files }
    }

    pub(crate) fn path(&self) -> &str {
        self.dir.path().to_str().unwrap()
    }
}

pub(crate) fn layer(layer: SkillOrigin, files: &Arc<dyn Vfs>, root: &str) -> SkillLayer {
    SkillLayer {
        origin: layer,
        files: files.clone(),
        root: path(root),
        except: Vec::new(),
        flavor: SkillFlavor::Standard,
    }
}

/// Counts the files that are read, and fails the writes that it is told to.
#[derive(Debug)]
pub(crate) struct Counting {
    pub(crate) files: Arc<dyn Vfs>,
    pub(crate) reads: AtomicUsize,
    pub(crate) changes: AtomicUsize,
    /// From this change on, all fail.
    pub(crate) fail_from: AtomicUsize,
}

impl Counting {
    pub(crate) fn new(files: Arc<dyn Vfs>) -> Self {
        let (reads, changes, fail_from) = Default::default();
        let counting = Self {
            files,
            reads,
            changes,
            fail_from,
        };
        counting.fail_from.store(usize::MAX, Ordering::Relaxed);
        counting
    }

    pub(crate) fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Fails the `n`th change from now, once: cleaning up must still be possible.
    fn change(&self, path: &VPath) -> Result<(), VfsError> {
        let n = self.changes.fetch_add(1, Ordering::Relaxed);
        if n == self.fail_from.load(Ordering::Relaxed) {
            Err(VfsError::NoSpace(path.clone()))
        } else {
            Ok(())
        }
    }
}

impl Vfs for Counting {
    fn stat<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Stat, VfsError>> {
        self.files.stat(path)
    }
    fn list<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<Vec<DirEntry>, VfsError>> {
        self.files.list(path)
    }
    fn read<'a>(
        &'a self,
        path: &'a VPath,
        range: ReadRange,
    ) -> BoxFuture<'a, Result<(Bytes, Version), VfsError>> {
        self.reads.fetch_add(1, Ordering::Relaxed);
        self.files.read(path, range)
    }
    fn write<'a>(
        &'a self,
        path: &'a VPath,
        data: Bytes,
        expect: Expect,
    ) -> BoxFuture<'a, Result<Version, VfsError>> {
        Box::pin(async move {
            self.change(path)?;
            self.files.write(path, data, expect).await
        })
    }
    fn remove<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.files.remove(path)
    }
    fn rename<'a>(&'a self, from: &'a VPath, to: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.change(from)?;
            self.files.rename(from, to).await
        })
    }
    fn mkdir<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<(), VfsError>> {
        self.files.mkdir(path)
    }
    fn set_mode<'a>(&'a self, path: &'a VPath, mode: u32) -> BoxFuture<'a, Result<(), VfsError>> {
        Box::pin(async move {
            self.change(path)?;
            self.files.set_mode(path, mode).await
        })
    }
    fn resolve<'a>(&'a self, path: &'a VPath) -> BoxFuture<'a, Result<VPath, VfsError>> {
        self.files.resolve(path)
    }
    fn search(&self) -> &dyn Search {
        self.files.search()
    }
}
