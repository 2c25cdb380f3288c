//! The place for tests of the VFS contract on the local backend and on servers; this file has their
//! shared support.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/backends.rs"]
mod backends;
#[path = "all/concurrent_writers.rs"]
mod concurrent_writers;
#[path = "all/default_dir.rs"]
mod default_dir;
#[path = "all/disk_faults.rs"]
mod disk_faults;
#[path = "all/file_operations.rs"]
mod file_operations;
#[path = "all/frozen.rs"]
mod frozen;
#[path = "all/glob_and_grep.rs"]
mod glob_and_grep;
#[path = "all/guarded.rs"]
mod guarded;
#[path = "all/large_files.rs"]
mod large_files;
#[path = "all/path_attacks.rs"]
mod path_attacks;
#[path = "all/paths.rs"]
mod paths;
#[path = "all/rights.rs"]
mod rights;
#[path = "all/server_backends.rs"]
mod server_backends;
#[path = "all/symlink_races.rs"]
mod symlink_races;
#[path = "all/unlisted.rs"]
mod unlisted;

use bytes::Bytes;
use futures_util::future::BoxFuture;
use std::path::Path;
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::{
    Bounds, Expect, FileSearchError, GlobQuery, GrepQuery, LineRange, LocalVfs, ReadRange, Search,
    VPath, Vfs, VfsError,
};
use tokio_util::sync::CancellationToken;

/// A workspace in a directory that has a secret file beside it.
struct World {
    temp: tempfile::TempDir,
    vfs: LocalVfs,
}

impl World {
    fn new() -> Self {
        let temp = tempfile::tempdir().unwrap();
        std::fs::create_dir(temp.path().join("root")).unwrap();
        std::fs::create_dir(temp.path().join("outside")).unwrap();
        std::fs::write(temp.path().join("outside/secret"), "secret").unwrap();
        let vfs = LocalVfs::open(&temp.path().join("root"), Arc::new(OsDisk)).unwrap();
        Self { temp, vfs }
    }

    fn root(&self) -> std::path::PathBuf {
        self.temp.path().join("root")
    }

    fn outside(&self) -> std::path::PathBuf {
        self.temp.path().join("outside")
    }

    fn put(&self, path: &str, content: impl AsRef<[u8]>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }

    fn link(&self, path: &str, target: impl AsRef<Path>) {
        let path = self.root().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::os::unix::fs::symlink(target, path).unwrap();
    }

    fn content(&self, path: &str) -> String {
        std::fs::read_to_string(self.root().join(path)).unwrap()
    }

    /// Returns every name below the root, sorted. Fails if a temporary file is left.
    fn names(&self) -> Vec<String> {
        fn collect(dir: &Path, prefix: &str, names: &mut Vec<String>) {
            for entry in std::fs::read_dir(dir).unwrap().map(Result::unwrap) {
                let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
                if entry.file_type().unwrap().is_dir() {
                    collect(&entry.path(), &format!("{name}/"), names);
                }
                names.push(name);
            }
        }
        let mut names = Vec::new();
        collect(&self.root(), "", &mut names);
        names.sort();
        names
    }
}

fn p(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

fn bounds() -> Bounds {
    Bounds::new(100, CancellationToken::new())
}

fn grep_for(pattern: &str, root: &str) -> GrepQuery {
    GrepQuery::new(pattern, p(root))
}

const WINDOW: LineRange = LineRange {
    skip: 0,
    take: 10,
    max_line_bytes: 100,
    max_bytes: 1000,
};

/// The result of an operation: the error, or what it returned.
type Told = Result<String, VfsError>;
type Operation = fn(LocalVfs, VPath) -> BoxFuture<'static, Told>;

/// Every operation on one path, so that each attack is tried with all of them.
const OPERATIONS: &[(&str, Operation)] = &[
    ("stat", |vfs, path| {
        Box::pin(async move { vfs.stat(&path).await.map(|s| format!("{:?}", s.kind)) })
    }),
    ("list", |vfs, path| {
        Box::pin(async move { vfs.list(&path).await.map(|l| format!("{l:?}")) })
    }),
    ("read", |vfs, path| {
        Box::pin(async move { vfs.read(&path, ReadRange::ALL).await.map(|(b, _)| text(&b)) })
    }),
    ("read_lines", |vfs, path| {
        Box::pin(async move {
            vfs.read_lines(&path, WINDOW)
                .await
                .map(|l| format!("{:?}", l.lines))
        })
    }),
    ("write", |vfs, path| {
        Box::pin(async move {
            vfs.write(&path, "w".into(), Expect::Any)
                .await
                .map(|_| String::new())
        })
    }),
    ("create", |vfs, path| {
        Box::pin(async move {
            vfs.write(&path, "w".into(), Expect::Absent)
                .await
                .map(|_| String::new())
        })
    }),
    ("remove", |vfs, path| {
        Box::pin(async move { vfs.remove(&path).await.map(|()| String::new()) })
    }),
    ("rename from", |vfs, path| {
        Box::pin(async move {
            vfs.rename(&path, &p("moved/away"))
                .await
                .map(|()| String::new())
        })
    }),
    ("rename to", |vfs, path| {
        Box::pin(async move { vfs.rename(&p("plain"), &path).await.map(|()| String::new()) })
    }),
    ("mkdir", |vfs, path| {
        Box::pin(async move { vfs.mkdir(&path).await.map(|()| String::new()) })
    }),
    ("resolve", |vfs, path| {
        Box::pin(async move { vfs.resolve(&path).await.map(|r| r.to_string()) })
    }),
    ("glob", |vfs, path| {
        Box::pin(async move {
            let query = GlobQuery {
                pattern: "**".into(),
                root: path,
            };
            vfs.glob(query, bounds())
                .await
                .map(|r| format!("{:?}", r.paths))
                .map_err(place_error)
        })
    }),
    ("grep", |vfs, path| {
        Box::pin(async move {
            let query = GrepQuery {
                root: path,
                ..grep_for("", ".")
            };
            vfs.grep(query, bounds())
                .await
                .map(|r| format!("{:?}", r.files))
                .map_err(place_error)
        })
    }),
];

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn place_error(error: FileSearchError) -> VfsError {
    match error {
        FileSearchError::Vfs(error) => error,
        other => panic!("{other}"),
    }
}
