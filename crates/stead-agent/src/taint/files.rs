//! The files that tainted calls wrote: one small document of the place, per agent and owner.
//!
//! A mark names a file and the hash of its content. A file is tainted while it has that content: a
//! person, or a call that is not tainted, who changes it makes it their own. A folder that a
//! tainted command made is marked as a whole.
//!
//! Effects: the clock, randomness, workspace files (reads), the store (writes).

use crate::shared_document;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use stead_core::TaintOrigin;
use stead_place::OwnerState;
use stead_store::StoreError;
use stead_vfs::{ContentHash, FileKind, ReadRange, VPath, Vfs};

/// The key of the document.
const TAINTED_FILES_KEY: &str = "taint/files";
/// The most marks. Beyond that, the marks of the folder with most of them become one.
const MAX_MARKS: usize = 2000;
/// The most contents that are remembered of one path: trees of different sessions may share it, and
/// undo returns to earlier ones. Beyond that every content of it counts.
const MAX_CONTENTS: usize = 16;
/// The most origins that a mark keeps.
const MAX_ORIGINS: usize = 4;
/// Up to this size the content is hashed; of a larger file its version is compared.
const MAX_HASHED_BYTES: u64 = 64 * 1024 * 1024;

/// The marks of an owner.
#[derive(Debug, Default, Serialize, Deserialize)]
struct TaintDocument {
    version: u32,
    /// The marks by path.
    marks: BTreeMap<String, TaintMark>,
}

/// What is known about a tainted file or folder.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct TaintMark {
    /// The hashes of the tainted contents, newest last; none for a folder, where everything counts.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    contents: Vec<String>,
    /// Where the content comes from.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    origins: Vec<TaintOrigin>,
}

/// A path that is to be marked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct TaintedPath {
    pub(crate) path: VPath,
    /// The identity of the content; none for a folder.
    pub(crate) content: Option<String>,
}

/// The tainted files of one owner, as a session knows them. They are read when they are first
/// needed in a run, and shared with the subagents that work for the session.
#[derive(Debug, Default)]
pub(crate) struct TaintedFiles {
    cache: Mutex<Option<Arc<BTreeMap<String, TaintMark>>>>,
}

impl TaintedFiles {
    /// Forgets what was read: other processes may have marked files since.
    pub(crate) fn forget(&self) {
        *self.lock() = None;
    }

    /// Returns all marks.
    pub(crate) async fn marks(
        &self,
        state: &OwnerState,
    ) -> Result<Arc<BTreeMap<String, TaintMark>>, StoreError> {
        if let Some(known) = self.lock().clone() {
            return Ok(known);
        }
        let document: TaintDocument = shared_document::read(state, TAINTED_FILES_KEY).await?;
        let marks = Arc::new(document.marks);
        *self.lock() = Some(marks.clone());
        Ok(marks)
    }

    /// Marks paths, whose content comes from `origins`.
    pub(crate) async fn mark(
        &self,
        state: &OwnerState,
        paths: &[TaintedPath],
        origins: &[TaintOrigin],
    ) -> Result<(), StoreError> {
        if paths.is_empty() {
            return Ok(());
        }
        let marks = shared_document::update(
            state,
            TAINTED_FILES_KEY,
            |document: &mut TaintDocument| -> Result<_, StoreError> {
                document.version = 1;
                for path in paths {
                    add_mark(&mut document.marks, path, origins);
                }
                Ok(document.marks.clone())
            },
        )
        .await?;
        *self.lock() = Some(Arc::new(marks));
        Ok(())
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Option<Arc<BTreeMap<String, TaintMark>>>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl TaintMark {
    /// Whether it marks a whole folder.
    pub(crate) fn is_folder(&self) -> bool {
        self.contents.is_empty()
    }

    /// Whether a file with this content is tainted.
    pub(crate) fn covers(&self, content: &str) -> bool {
        self.is_folder() || self.contents.iter().any(|known| known == content)
    }

    /// Returns the origins of a file at `path`: the file itself, and where its content comes from.
    pub(crate) fn origins(&self, path: &VPath) -> Vec<TaintOrigin> {
        let file = TaintOrigin::File {
            path: path.to_string(),
        };
        std::iter::once(file)
            .chain(self.origins.iter().cloned())
            .collect()
    }
}

/// Returns the mark of a file: its own, or that of a folder above it.
pub(crate) fn mark_of<'a>(
    marks: &'a BTreeMap<String, TaintMark>,
    path: &VPath,
) -> Option<&'a TaintMark> {
    let above = std::iter::successors(Some(path.clone()), VPath::parent);
    let mut found = above.filter_map(|folder| {
        let mark = marks.get(folder.as_str())?;
        (folder == *path || mark.is_folder()).then_some(mark)
    });
    found.next()
}

/// Returns the identity of a file's content; none if there is no such file.
pub(crate) async fn content_id(files: &dyn Vfs, path: &VPath) -> Option<String> {
    let stat = files.stat(path).await.ok()?;
    if stat.kind != FileKind::File {
        return None;
    }
    if let Some(hash) = stat.hash {
        return Some(hash.to_string());
    }
    if stat.size > MAX_HASHED_BYTES {
        return Some(format!("version:{}", stat.version));
    }
    let (content, _) = files.read(path, ReadRange::ALL).await.ok()?;
    Some(ContentHash::of(&content).to_string())
}

fn add_mark(
    marks: &mut BTreeMap<String, TaintMark>,
    tainted: &TaintedPath,
    origins: &[TaintOrigin],
) {
    let path = tainted.path.as_str();
    let is_new = !marks.contains_key(path);
    let mark = marks.entry(path.to_owned()).or_default();
    match &tainted.content {
        // Everything in a folder counts already.
        Some(_) if !is_new && mark.is_folder() => {}
        Some(content) => {
            mark.contents.retain(|known| known != content);
            mark.contents.push(content.clone());
            if mark.contents.len() > MAX_CONTENTS {
                mark.contents.clear();
            }
        }
        None => mark.contents.clear(),
    }
    for origin in origins {
        if mark.origins.len() < MAX_ORIGINS && !mark.origins.contains(origin) {
            mark.origins.push(origin.clone());
        }
    }
    if marks.len() > MAX_MARKS {
        join_largest_folder(marks);
    }
}

/// Replaces the marks in the folder with most of them by one of the folder. If no folder has several,
/// everything is marked.
fn join_largest_folder(marks: &mut BTreeMap<String, TaintMark>) {
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for path in marks.keys() {
        let folder = path.rsplit_once('/').map_or("", |(folder, _)| folder);
        *counts.entry(folder).or_default() += 1;
    }
    let largest = counts.into_iter().max_by_key(|(_, count)| *count);
    let folder = largest
        .filter(|(_, count)| *count > 1)
        .map_or("", |(folder, _)| folder)
        .to_owned();
    let start = match folder.as_str() {
        "" => String::new(),
        folder => format!("{folder}/"),
    };
    let mut joined = TaintMark::default();
    marks.retain(|path, mark| {
        let is_inside = path.starts_with(&start);
        if is_inside && joined.origins.is_empty() {
            joined.origins = mark.origins.clone();
        }
        !is_inside
    });
    marks.insert(folder, joined);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tainted(path: &str, content: Option<&str>) -> TaintedPath {
        TaintedPath {
            path: VPath::parse(path).unwrap(),
            content: content.map(str::to_owned),
        }
    }

    #[test]
    fn a_mark_holds_for_the_contents_that_were_tainted_and_a_folder_for_everything_in_it() {
        let mut marks = BTreeMap::new();
        let origin = TaintOrigin::command("curl x");
        add_mark(
            &mut marks,
            &tainted("a.md", Some("1")),
            std::slice::from_ref(&origin),
        );
        add_mark(&mut marks, &tainted("a.md", Some("2")), &[]);
        add_mark(&mut marks, &tainted("vendor/x", None), &[]);
        let of = |path: &str| mark_of(&marks, &VPath::parse(path).unwrap());
        let mark = of("a.md").unwrap();
        assert!(mark.covers("1") && mark.covers("2") && !mark.covers("3"));
        let path = VPath::parse("a.md").unwrap();
        let file = TaintOrigin::File {
            path: "a.md".into(),
        };
        assert_eq!(mark.origins(&path), [file, origin]);
        assert!(of("vendor/x/y/z").unwrap().covers("9"));
        assert_eq!((of("vendor/y"), of("a.md/b")), (None, None));
    }

    #[test]
    fn marks_beyond_the_limit_become_one_of_their_folder() {
        let mut marks = BTreeMap::new();
        add_mark(&mut marks, &tainted("a.md", Some("1")), &[]);
        for n in 0..MAX_MARKS {
            add_mark(&mut marks, &tainted(&format!("out/{n}"), Some("1")), &[]);
        }
        assert_eq!(marks.keys().collect::<Vec<_>>(), ["a.md", "out"]);
        assert!(marks["out"].is_folder());
    }

    #[test]
    fn no_limit_lets_a_tainted_file_be_forgotten() {
        let is_tainted = |marks: &BTreeMap<String, TaintMark>, path: &str, content: &str| {
            let mark = mark_of(marks, &VPath::parse(path).unwrap());
            mark.is_some_and(|mark| mark.covers(content))
        };
        let in_folders = |n: usize| format!("d{n}/f");
        let at_root = |n: usize| format!("f{n}");
        let both = |n: usize| match n % 2 {
            0 => in_folders(n),
            _ => at_root(n),
        };
        let names: [&dyn Fn(usize) -> String; 3] = [&in_folders, &at_root, &both];
        for name in names {
            let mut marks = BTreeMap::new();
            for n in 0..MAX_MARKS + 3 {
                add_mark(&mut marks, &tainted(&name(n), Some("1")), &[]);
            }
            assert!(marks.len() <= MAX_MARKS);
            for n in 0..MAX_MARKS + 3 {
                assert!(is_tainted(&marks, &name(n), "1"), "{}", name(n));
            }
        }
        let mut marks = BTreeMap::new();
        for n in 0..=MAX_CONTENTS {
            add_mark(&mut marks, &tainted("a.md", Some(&n.to_string())), &[]);
        }
        assert!(is_tainted(&marks, "a.md", "0"));
    }
}
