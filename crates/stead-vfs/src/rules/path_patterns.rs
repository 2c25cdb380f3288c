//! A list of path patterns without operations, for settings that only name files.
//!
//! Effects: none.

use super::pattern::PathPattern;
use crate::VPath;

/// A list of path patterns, as in the file rules.
///
/// ```
/// use stead_vfs::{PathPatterns, VPath};
///
/// let vendored = PathPatterns::new(&["vendor/**", "*.lock"])?;
/// assert!(vendored.covers(&VPath::parse("vendor/a/b.c").unwrap()));
/// assert!(!vendored.covers(&VPath::parse("src/a.lock").unwrap()));
/// # Ok::<(), (usize, String)>(())
/// ```
#[derive(Debug, Clone, Default)]
pub struct PathPatterns(Vec<PathPattern>);

impl PathPatterns {
    /// Compiles the patterns. The error is the number of the first invalid one, counted from 0, and
    /// what is wrong with it.
    pub fn new<P: AsRef<str>>(patterns: &[P]) -> Result<Self, (usize, String)> {
        let compile = |(i, text): (usize, &P)| {
            PathPattern::new(text.as_ref()).map_err(|problem| (i, problem))
        };
        let all: Result<Vec<_>, _> = patterns.iter().enumerate().map(compile).collect();
        all.map(Self)
    }

    /// Whether a pattern covers `path`.
    pub fn covers(&self, path: &VPath) -> bool {
        let names: Vec<&str> = path.parts().collect();
        self.0.iter().any(|pattern| pattern.covers(&names))
    }
}
