//! What every place must answer, in the simplest way to say it: a map from paths to contents.
//!
//! Nothing here uses the code under test, only its names for things.

use std::collections::BTreeMap;
use std::sync::Arc;

/// A tree of files. The root is there without an entry.
#[derive(Debug, Clone, Default)]
pub struct Oracle {
    pub(super) nodes: BTreeMap<String, Node>,
    /// Directories that cannot go away, nor can those above them.
    fixed: Vec<String>,
}

/// What is at a path.
#[derive(Debug, Clone)]
pub(super) enum Node {
    Directory,
    File {
        content: Arc<[u8]>,
        /// Known only once somebody set it.
        mode: Option<u32>,
    },
}

/// Why something does not work: the error's name and the path it carries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Failed(pub(super) String);

impl Failed {
    fn new(kind: &str, path: &str) -> Self {
        Self(format!(
            "{kind} {}",
            if path.is_empty() { "." } else { path }
        ))
    }
}

/// What a write asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Want {
    Any,
    Absent,
    /// The version that is there.
    Current,
    /// One that was there until another write.
    Stale,
    /// One that never was.
    Foreign,
}

impl Oracle {
    /// The same tree with directories that can be neither moved nor removed: mount points.
    pub fn with_fixed(mut self, directories: &[&str]) -> Self {
        for directory in directories {
            self.make_parents(directory);
            self.nodes.insert((*directory).to_owned(), Node::Directory);
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

    /// What is at `path`, or why nothing can be.
    pub(super) fn find(&self, path: &str) -> Result<Node, Failed> {
        if path.is_empty() {
            return Ok(Node::Directory);
        }
        match self.nodes.get(path) {
            Some(node) => Ok(node.clone()),
            None if self.is_below_file(path) => Err(Failed::new("NotDirectory", path)),
            None => Err(Failed::new("NotFound", path)),
        }
    }

    fn is_below_file(&self, path: &str) -> bool {
        parents(path).any(|parent| matches!(self.nodes.get(parent), Some(Node::File { .. })))
    }

    pub(super) fn file(&self, path: &str) -> Result<(Arc<[u8]>, Option<u32>), Failed> {
        match self.find(path)? {
            Node::File { content, mode } => Ok((content, mode)),
            Node::Directory => Err(Failed::new("IsDirectory", path)),
        }
    }

    /// Every entry below a directory, at any depth.
    pub(super) fn below(&self, path: &str) -> Result<Vec<(String, Node)>, Failed> {
        match self.find(path)? {
            Node::File { .. } => Err(Failed::new("NotDirectory", path)),
            Node::Directory => {
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
        want: Want,
    ) -> Result<(), Failed> {
        if path.is_empty() {
            return Err(Failed::new("IsDirectory", path));
        }
        if self.is_below_file(path) {
            return Err(Failed::new("NotDirectory", path));
        }
        let mode = match (self.nodes.get(path), want) {
            (None, Want::Any | Want::Absent) => None,
            (Some(_), Want::Absent) => return Err(Failed::new("Exists", path)),
            (Some(Node::Directory), Want::Any) => return Err(Failed::new("IsDirectory", path)),
            (Some(Node::File { mode, .. }), Want::Any | Want::Current) => *mode,
            (None | Some(Node::Directory), Want::Current) | (_, Want::Stale | Want::Foreign) => {
                return Err(Failed::new("Changed", path));
            }
        };
        self.make_parents(path);
        self.nodes
            .insert(path.to_owned(), Node::File { content, mode });
        Ok(())
    }

    fn make_parents(&mut self, path: &str) {
        parents(path)
            .map(str::to_owned)
            .collect::<Vec<_>>()
            .into_iter()
            .for_each(|parent| {
                self.nodes.insert(parent, Node::Directory);
            });
    }

    pub(super) fn remove(&mut self, path: &str) -> Result<(), Failed> {
        if self.is_fixed(path) {
            return Err(Failed::new("Denied", path));
        }
        self.find(path)?;
        self.nodes
            .retain(|other, _| other != path && !is_below(path, other));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &str, to: &str) -> Result<(), Failed> {
        if self.is_fixed(from) {
            return Err(Failed::new("Denied", from));
        }
        self.find(from)?;
        if from == to {
            return Err(Failed::new("Exists", to));
        }
        if is_below(from, to) {
            return Err(Failed::new("Io(InvalidInput)", from));
        }
        if to.is_empty() {
            return Err(Failed::new("Denied", to));
        }
        if self.is_below_file(to) {
            return Err(Failed::new("NotDirectory", to));
        }
        if self.nodes.contains_key(to) {
            return Err(Failed::new("Exists", to));
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

    pub(super) fn mkdir(&mut self, path: &str) -> Result<(), Failed> {
        match self.find(path) {
            Ok(Node::Directory) => Ok(()),
            Ok(Node::File { .. }) => Err(Failed::new("NotDirectory", path)),
            Err(failed) if self.is_below_file(path) => Err(failed),
            Err(_) => {
                self.make_parents(path);
                self.nodes.insert(path.to_owned(), Node::Directory);
                Ok(())
            }
        }
    }

    pub(super) fn set_mode(&mut self, path: &str, bits: u32) -> Result<(), Failed> {
        self.file(path)?;
        if let Some(Node::File { mode, .. }) = self.nodes.get_mut(path) {
            *mode = Some(bits);
        }
        Ok(())
    }
}

/// The directories above `path`, the root left out.
pub(super) fn parents(path: &str) -> impl Iterator<Item = &str> {
    path.match_indices('/').map(|(at, _)| &path[..at])
}

/// Whether `other` lies below `directory`.
pub(super) fn is_below(directory: &str, other: &str) -> bool {
    other
        .strip_prefix(directory)
        .is_some_and(|rest| rest.starts_with('/'))
}
