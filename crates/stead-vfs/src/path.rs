//! Validated, normalised paths below a root.
//!
//! Effects: none.

use std::fmt;

/// The maximum length of a path and of a component in bytes, which every backend supports.
const MAX_PATH_BYTES: usize = 4096;
const MAX_NAME_BYTES: usize = 255;

/// A path relative to the root of a [`Vfs`](crate::Vfs): no `.`, no `..`, no empty parts, no NUL.
/// The root itself is the empty path and displays as `.`.
///
/// ```
/// use stead_vfs::VPath;
/// assert_eq!(VPath::parse("/notes/./today.md").unwrap().as_str(), "notes/today.md");
/// assert!(VPath::parse("../etc/passwd").is_err());
/// ```
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct VPath(Box<str>);

/// The reason why a text is not a valid path.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PathError {
    /// `..` in the path.
    #[error("{0:?} contains `..`; paths cannot leave the workspace")]
    Parent(String),
    /// A first component `~`.
    #[error("{0:?} starts at `~`; use a path relative to the workspace")]
    Home(String),
    /// A NUL or other control character.
    #[error("{0:?} contains a control character")]
    Control(String),
    /// Too long for a backend to hold.
    #[error(
        "the path is too long: at most {MAX_PATH_BYTES} bytes, and {MAX_NAME_BYTES} for one name"
    )]
    TooLong,
}

impl VPath {
    /// The maximum length of a path in bytes.
    pub const MAX_BYTES: usize = MAX_PATH_BYTES;

    /// Returns the root.
    pub fn root() -> Self {
        Self("".into())
    }

    /// Parses text written by a person or a model. A leading `/` means the root.
    pub fn parse(text: &str) -> Result<Self, PathError> {
        if text.len() > MAX_PATH_BYTES {
            return Err(PathError::TooLong);
        }
        if text.chars().any(char::is_control) {
            return Err(PathError::Control(text.to_owned()));
        }
        let mut parts = Vec::new();
        for part in text.split('/') {
            match part {
                "" | "." => {}
                ".." => return Err(PathError::Parent(text.to_owned())),
                "~" if parts.is_empty() => return Err(PathError::Home(text.to_owned())),
                name if name.len() > MAX_NAME_BYTES => return Err(PathError::TooLong),
                name => parts.push(name),
            }
        }
        Ok(Self(parts.join("/").into()))
    }

    /// Returns the normalised text, which is empty for the root.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns whether this is the root.
    pub fn is_root(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the last name, which is empty for the root.
    pub fn name(&self) -> &str {
        self.0.rsplit('/').next().unwrap_or("")
    }

    /// Returns the parent directory, or `None` for the root.
    pub fn parent(&self) -> Option<Self> {
        if self.is_root() {
            return None;
        }
        let parent = self.0.rsplit_once('/').map_or("", |(parent, _)| parent);
        Some(Self(parent.into()))
    }

    /// Returns the names from the root down.
    pub fn parts(&self) -> impl DoubleEndedIterator<Item = &str> {
        self.0.split('/').filter(|part| !part.is_empty())
    }

    /// Returns this path with `rest` appended.
    pub fn join(&self, rest: &str) -> Result<Self, PathError> {
        Self::parse(&format!("{}/{rest}", self.0))
    }

    /// Returns whether `other` is this path or below it.
    pub fn contains(&self, other: &Self) -> bool {
        self.is_root()
            || other
                .0
                .strip_prefix(&*self.0)
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
    }
}

impl fmt::Display for VPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.is_root() { "." } else { &self.0 })
    }
}

impl fmt::Debug for VPath {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "VPath({self})")
    }
}

impl std::str::FromStr for VPath {
    type Err = PathError;
    fn from_str(text: &str) -> Result<Self, PathError> {
        Self::parse(text)
    }
}
