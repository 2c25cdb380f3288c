//! Glob patterns with the guarantees of [`Search`](crate::Search).
//!
//! Effects: none.

use crate::FileSearchError;
use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

/// A compiled pattern.
#[derive(Debug)]
pub(crate) struct PathGlob {
    set: GlobSet,
    scope: GlobScope,
    dot_files: DotFiles,
}

/// The part of a path that a pattern is matched with.
#[derive(Debug)]
enum GlobScope {
    /// The name, at any depth.
    Name,
    /// The path from the search root.
    Path {
        /// The directories that every match is in, from the search root.
        prefix: Vec<String>,
        /// The number of names in the longest path that can match; `None` with `**`.
        depth: Option<usize>,
    },
}

/// The treatment of names that begin with a dot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum DotFiles {
    /// They are skipped.
    Hidden,
    /// They are treated as any other name.
    Shown,
}

impl PathGlob {
    /// Compiles a pattern. A leading `/` or `./` means the search root.
    pub(crate) fn new(pattern: &str) -> Result<Self, FileSearchError> {
        let wrong = |reason: String| FileSearchError::Glob {
            pattern: pattern.to_owned(),
            reason,
        };
        let anchored = pattern.starts_with('/') || pattern.starts_with("./");
        let text = pattern.trim_start_matches("./").trim_start_matches('/');
        if text.is_empty() {
            return Err(wrong("it is empty; use `**` for every file".to_owned()));
        }
        if text.split('/').any(|segment| segment == "..") {
            return Err(wrong(
                "`..` cannot leave the search root; give another `path`".to_owned(),
            ));
        }
        let glob = GlobBuilder::new(&with_literal_braces(text))
            .literal_separator(true)
            .empty_alternates(true)
            .build()
            .map_err(|error| wrong(error.kind().to_string()))?;
        let set = GlobSetBuilder::new()
            .add(glob)
            .build()
            .map_err(|error| wrong(error.kind().to_string()))?;
        let scope = if anchored || text.contains('/') {
            GlobScope::path(text)
        } else {
            GlobScope::Name
        };
        Ok(Self {
            set,
            scope,
            dot_files: DotFiles::named_in(text),
        })
    }

    /// Returns whether names that begin with a dot are searched.
    pub(crate) fn dot_files(&self) -> DotFiles {
        self.dot_files
    }

    /// Returns whether a file matches, by its path from the search root.
    pub(crate) fn matches(&self, path: &str) -> bool {
        match &self.scope {
            GlobScope::Name => self.set.is_match(path.rsplit('/').next().unwrap_or(path)),
            GlobScope::Path { .. } => self.set.is_match(path),
        }
    }

    /// Returns whether a match can be below a directory, by its path from the search root.
    pub(crate) fn may_enter(&self, directory: &str) -> bool {
        match &self.scope {
            GlobScope::Name => true,
            GlobScope::Path { prefix, depth } => {
                let names = directory.split('/');
                depth.is_none_or(|depth| names.clone().count() < depth)
                    && names.zip(prefix).all(|(name, wanted)| name == wanted)
            }
        }
    }
}

/// Returns the pattern with braces escaped that hold no alternatives, as shells read them: `{x}` is
/// a name with braces.
fn with_literal_braces(pattern: &str) -> String {
    let mut out = String::with_capacity(pattern.len());
    let mut rest = pattern;
    while let Some(start) = rest.find('{') {
        let inner = &rest[start + 1..];
        let end = inner.find(['{', '}']);
        let alone =
            end.filter(|end| inner[*end..].starts_with('}') && !inner[..*end].contains(','));
        let escaped = rest[..start].ends_with('\\') || in_class(&rest[..start]);
        match alone.filter(|_| !escaped) {
            Some(end) => {
                out.push_str(&rest[..start]);
                out.push_str("[{]");
                out.push_str(&inner[..end]);
                out.push_str("[}]");
                rest = &inner[end + 1..];
            }
            None => {
                out.push_str(&rest[..=start]);
                rest = inner;
            }
        }
    }
    out.push_str(rest);
    out
}

/// Whether the text ends inside a `[…]`.
fn in_class(text: &str) -> bool {
    text.rfind('[') > text.rfind(']')
}

impl GlobScope {
    fn path(text: &str) -> Self {
        let plain = |segment: &&str| !segment.contains(['*', '?', '[', ']', '{', '}', '\\', ',']);
        let directories = text
            .rsplit_once('/')
            .map_or("", |(directories, _)| directories);
        let prefix = directories
            .split('/')
            .take_while(plain)
            .filter(|s| !s.is_empty())
            .map(str::to_owned)
            .collect();
        // A slash inside braces would make the number of segments uncertain.
        let fixed = !text.contains("**") && !text.contains('{');
        Self::Path {
            prefix,
            depth: fixed.then(|| text.split('/').count()),
        }
    }
}

impl DotFiles {
    fn named_in(pattern: &str) -> Self {
        let starts = std::iter::once('/').chain(pattern.chars());
        let named = starts
            .zip(pattern.chars())
            .any(|(before, c)| c == '.' && matches!(before, '/' | '{' | ','));
        if named { Self::Shown } else { Self::Hidden }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_promised() {
        #[rustfmt::skip]
        let cases: &[(&str, &[&str], &[&str])] = &[
            ("*.rs", &["a.rs", "x/y/a.rs"], &["a.rst", "rs"]),
            ("/*.rs", &["a.rs"], &["x/a.rs"]),
            ("./a?.rs", &["ab.rs"], &["x/ab.rs", "a.rs"]),
            ("src/*.rs", &["src/a.rs"], &["a.rs", "src/b/a.rs", "x/src/a.rs"]),
            ("src/**/*.rs", &["src/a.rs", "src/b/c/a.rs"], &["x/src/a.rs"]),
            ("**/test/*.{js,ts}", &["test/a.ts", "x/test/b.js"], &["test/a.py", "test/x/a.js"]),
            ("[!a]*.txt", &["b.txt"], &["a.txt"]),
            ("a{b/c,d}/e", &["ab/c/e", "ad/e"], &["ab/e"]),
            ("{x}.py", &["{x}.py"], &["x.py"]),
            ("{a,{b}}.py", &["a.py", "{b}.py"], &["b.py"]),
            ("[{]x.py", &["{x.py"], &["x.py"]),
            ("**", &["a", "a/b"], &[]),
        ];
        for (pattern, yes, no) in cases {
            let glob = PathGlob::new(pattern).unwrap();
            for path in *yes {
                assert!(glob.matches(path), "{pattern} should match {path}");
                let parents = path.match_indices('/').map(|(at, _)| &path[..at]);
                assert!(
                    parents.clone().all(|p| glob.may_enter(p)),
                    "{pattern} should enter the parents of {path}"
                );
            }
            no.iter()
                .for_each(|path| assert!(!glob.matches(path), "{pattern} should not match {path}"));
        }
    }

    #[test]
    fn directories_without_a_possible_match_are_not_entered() {
        let glob = PathGlob::new("src/*/mod.rs").unwrap();
        assert_eq!(
            ["src", "src/a", "src/a/b", "doc"].map(|d| glob.may_enter(d)),
            [true, true, false, false]
        );
    }

    #[test]
    fn dot_names_show_only_when_a_segment_names_one() {
        for (pattern, dots) in [
            ("*.yml", DotFiles::Hidden),
            ("a.b/c", DotFiles::Hidden),
            ("./a", DotFiles::Hidden),
            (".*", DotFiles::Shown),
            (".github/**", DotFiles::Shown),
            ("**/.env", DotFiles::Shown),
            ("{a,.b}", DotFiles::Shown),
        ] {
            assert_eq!(
                PathGlob::new(pattern).unwrap().dot_files(),
                dots,
                "{pattern}"
            );
        }
    }

    #[test]
    fn bad_patterns_say_why() {
        for (pattern, reason) in [
            ("", "empty"),
            ("../x", "`..`"),
            ("a/../../x", "`..`"),
            ("[a", "unclosed"),
            ("{a", "unclosed"),
        ] {
            let text = PathGlob::new(pattern).unwrap_err().to_string();
            assert!(text.contains(reason), "{pattern}: {text}");
        }
    }
}
