//! The expected behaviour of every place, in its simplest form: a map from paths to contents.
//!
//! Nothing here uses the code under test, except for its types.
//!
//! Effects: test support.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A tree of files. The root exists without an entry.
#[derive(Debug, Clone, Default)]
pub struct VfsOracle {
    pub(super) nodes: BTreeMap<String, OracleNode>,
    /// Directories that cannot be moved or removed, and neither can their parents.
    fixed: Vec<String>,
}

/// The content of a path.
#[derive(Debug, Clone)]
pub(super) enum OracleNode {
    Directory,
    File {
        content: Arc<[u8]>,
        /// The mode bits, known once they were set.
        mode: Option<u32>,
    },
}

/// The reason of a failure: the error's name and its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct OracleError(pub(super) String);

impl OracleError {
    fn new(kind: &str, path: &str) -> Self {
        Self(format!(
            "{kind} {}",
            if path.is_empty() { "." } else { path }
        ))
    }
}

/// The expectation of a write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WriteExpectation {
    Any,
    Absent,
    /// The current version.
    Current,
    /// A version that another write has replaced.
    Stale,
    /// A version that never existed.
    Foreign,
}

impl VfsOracle {
    /// Returns the tree with directories that can be neither moved nor removed: mount points.
    pub fn with_fixed(mut self, directories: &[&str]) -> Self {
        for directory in directories {
            self.make_parents(directory);
            self.nodes
                .insert((*directory).to_owned(), OracleNode::Directory);
        }
        self.fixed = directories
            .iter()
            .map(|directory| (*directory).to_owned())
            .collect();
        self
    }

    fn is_fixed(&self, path: &str) -> bool {
        path.is_empty()
            || self
                .fixed
                .iter()
                .any(|fixed| fixed == path || is_below(path, fixed))
    }

    /// Returns what is at `path`, or the error.
    pub(super) fn find(&self, path: &str) -> Result<OracleNode, OracleError> {
        if path.is_empty() {
            return Ok(OracleNode::Directory);
        }
        match self.nodes.get(path) {
            Some(node) => Ok(node.clone()),
            None if self.is_below_file(path) => Err(OracleError::new("NotDirectory", path)),
            None => Err(OracleError::new("NotFound", path)),
        }
    }

    fn is_below_file(&self, path: &str) -> bool {
        parents(path).any(|parent| matches!(self.nodes.get(parent), Some(OracleNode::File { .. })))
    }

    pub(super) fn file(&self, path: &str) -> Result<(Arc<[u8]>, Option<u32>), OracleError> {
        match self.find(path)? {
            OracleNode::File { content, mode } => Ok((content, mode)),
            OracleNode::Directory => Err(OracleError::new("IsDirectory", path)),
        }
    }

    /// Returns every entry below a directory, at any depth.
    pub(super) fn below(&self, path: &str) -> Result<Vec<(String, OracleNode)>, OracleError> {
        match self.find(path)? {
            OracleNode::File { .. } => Err(OracleError::new("NotDirectory", path)),
            OracleNode::Directory => {
                let below = |other: &str| path.is_empty() || is_below(path, other);
                Ok(self
                    .nodes
                    .iter()
                    .filter(|(p, _)| below(p))
                    .map(|(p, n)| (p.clone(), n.clone()))
                    .collect())
            }
        }
    }

    pub(super) fn write(
        &mut self,
        path: &str,
        content: Arc<[u8]>,
        want: WriteExpectation,
    ) -> Result<(), OracleError> {
        if path.is_empty() {
            return Err(OracleError::new("IsDirectory", path));
        }
        if self.is_below_file(path) {
            return Err(OracleError::new("NotDirectory", path));
        }
        let mode = match (self.nodes.get(path), want) {
            (None, WriteExpectation::Any | WriteExpectation::Absent) => None,
            (Some(_), WriteExpectation::Absent) => return Err(OracleError::new("Exists", path)),
            (Some(OracleNode::Directory), WriteExpectation::Any) => {
                return Err(OracleError::new("IsDirectory", path));
            }
            (
                Some(OracleNode::File { mode, .. }),
                WriteExpectation::Any | WriteExpectation::Current,
            ) => *mode,
            (None | Some(OracleNode::Directory), WriteExpectation::Current)
            | (_, WriteExpectation::Stale | WriteExpectation::Foreign) => {
                return Err(OracleError::new("Changed", path));
            }
        };
        self.make_parents(path);
        self.nodes
            .insert(path.to_owned(), OracleNode::File { content, mode });
        Ok(())
    }

    fn make_parents(&mut self, path: &str) {
        parents(path)
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|parent| {
                self.nodes.insert(parent, OracleNode::Directory);
            });
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<(), OracleError> {
        if self.is_fixed(path) {
            return Err(OracleError::new("Denied", path));
        }
        self.find(path)?;
        self.nodes
            .retain(|other, _| other != path && !is_below(path, other));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), OracleError> {
        if self.is_fixed(from) {
            return Err(OracleError::new("Denied", from));
        }
        self.find(from)?;
        if from == to {
            return Err(OracleError::new("Exists", to));
        }
        if is_below(from, to) {
            return Err(OracleError::new("Io(InvalidInput)", from));
        }
        if to.is_empty() {
            return Err(OracleError::new("Denied", to));
        }
        if self.is_below_file(to) {
            return Err(OracleError::new("NotDirectory", to));
        }
        if self.nodes.contains_key(to) {
            return Err(OracleError::new("Exists", to));
        }
        self.make_parents(to);
        let moved: Vec<String> = self
            .nodes
            .keys()
            .filter(|p| *p == from || is_below(from, p))
            .cloned()
            .collect();
        for path in moved {
            if let Some(node) = self.nodes.remove(&path) {
                self.nodes
                    .insert(format!("{to}{}", &path[from.len()..]), node);
            }
        }
        Ok(())
    }

    pub(super) fn mkdir(&mut self, path: &str) -> Result<(), OracleError> {
        match self.find(path) {
            Ok(OracleNode::Directory) => Ok(()),
            Ok(OracleNode::File { .. }) => Err(OracleError::new("NotDirectory", path)),
            Err(failed) if self.is_below_file(path) => Err(failed),
            Err(_) => {
                self.make_parents(path);
                self.nodes.insert(path.to_owned(), OracleNode::Directory);
                Ok(())
            }
        }
    }

    pub(super) fn set_mode(&mut self, path: &str, bits: u32) -> Result<(), OracleError> {
        self.file(path)?;
        if let Some(OracleNode::File { mode, .. }) = self.nodes.get_mut(path) {
            *mode = Some(bits);
        }
        Ok(())
    }
}

/// Returns the directories above `path`, without the root.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Whether `other` is below `directory`.
pub(super) fn is_below(directory: &str, other: &str) -> bool {
    other
        .strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}
