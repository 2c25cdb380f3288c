//! The expected results of searches, computed the slow way: every file, every rule, every line.
//!
//! Effects: test support.

use super::oracle::{OracleError, OracleNode, VfsOracle, parents};

/// A search text, in a form that needs no regular expression.
#[derive(Debug, Clone, Copy)]
pub(super) enum Needle {
    Contains(&'static str),
    Begins(&'static str),
    Ends(&'static str),
}

/// What a search reports for each file.
#[derive(Debug, Clone, Copy)]
pub(super) enum SearchReport {
    Lines(usize),
    Files,
    Count,
}

impl Needle {
    fn is_in(self, line: &str, any_case: AnyCase) -> bool {
        let fold = |text: &str| match any_case {
            AnyCase::Yes => text.to_lowercase(),
            AnyCase::No => text.to_owned(),
        };
        let line = fold(line);
        match self {
            Self::Contains(text) => line.contains(&fold(text)),
            Self::Begins(text) => line.starts_with(&fold(text)),
            Self::Ends(text) => line.ends_with(&fold(text)),
        }
    }
}

/// Whether case is ignored.
#[derive(Debug, Clone, Copy)]
pub(super) enum AnyCase {
    Yes,
    No,
}

impl VfsOracle {
    /// Returns the files below `root` with a matching path, sorted.
    pub(super) fn glob(&self, pattern: &str, root: &str) -> Result<Vec<String>, OracleError> {
        let files = self.searched(root, shows_dots(pattern))?;
        Ok(files
            .into_iter()
            .filter(|file| selected(pattern, relative(root, file)))
            .collect())
    }

    /// Returns one line of report for each file that matches.
    pub(super) fn grep(
        &self,
        needle: Needle,
        any_case: AnyCase,
        report: SearchReport,
        glob: Option<&str>,
        root: &str,
        limit: usize,
    ) -> Result<(Vec<String>, bool), OracleError> {
        let files = match self.find(root)? {
            OracleNode::File { .. } => {
                let name = root.rsplit('/').next().unwrap_or(root);
                if glob.is_none_or(|glob| selected(glob, name)) {
                    vec![root.to_owned()]
                } else {
                    Vec::new()
                }
            }
            OracleNode::Directory => {
                let files = self.searched(root, glob.is_some_and(shows_dots))?;
                files
                    .into_iter()
                    .filter(|file| glob.is_none_or(|glob| selected(glob, relative(root, file))))
                    .collect()
            }
        };
        let mut shown = Vec::new();
        let mut room = limit;
        for path in files {
            let (content, _) = self.file(&path)?;
            if content.contains(&0) {
                continue;
            }
            let text = String::from_utf8_lossy(&content).into_owned();
            let lines: Vec<&str> = text
                .split_terminator('\n')
                .map(|l| l.strip_suffix('\r').unwrap_or(l))
                .collect();
            let hits: Vec<usize> = (0..lines.len())
                .filter(|&i| needle.is_in(lines[i], any_case))
                .collect();
            if hits.is_empty() {
                continue;
            }
            if room == 0 {
                return Ok((shown, true));
            }
            match report {
                SearchReport::Files => shown.push(format!("{path} x1")),
                SearchReport::Count => shown.push(format!("{path} x{}", hits.len())),
                SearchReport::Lines(context) => {
                    let kept = hits.len().min(room);
                    let end = hits.get(room).copied().unwrap_or(lines.len());
                    let near = |i: usize| hits.iter().any(|hit| hit.abs_diff(i) <= context);
                    let lines = (0..end).filter(|i| near(*i)).map(|i| {
                        let mark = if hits.contains(&i) { ':' } else { '-' };
                        format!("{}{mark}{}", i + 1, lines[i])
                    });
                    shown.push(format!(
                        "{path} x{kept} {}",
                        lines.collect::<Vec<_>>().join("|")
                    ));
                    if hits.len() > room {
                        return Ok((shown, true));
                    }
                    room -= kept;
                    continue;
                }
            }
            room -= 1;
        }
        Ok((shown, false))
    }

    /// Returns the files below `root` that searches consider.
    fn searched(&self, root: &str, dots: bool) -> Result<Vec<String>, OracleError> {
        let all = self.below(root)?;
        let files = all
            .iter()
            .filter(|(_, node)| matches!(node, OracleNode::File { .. }));
        let left_in = |path: &&String| {
            let within = parents(path).filter(|parent| parent.len() > root.len());
            within.chain([path.as_str()]).all(|part| {
                let name = part.rsplit('/').next().unwrap_or(part);
                name != ".git" && (dots || !name.starts_with('.')) && !self.is_ignored(part)
            })
        };
        Ok(files
            .map(|(path, _)| path)
            .filter(left_in)
            .cloned()
            .collect())
    }

    /// Whether the ignore files above `path` ignore it. Nearer files come first, and `.ignore`
    /// before `.gitignore`.
    fn is_ignored(&self, path: &str) -> bool {
        let is_directory = matches!(self.nodes.get(path), Some(OracleNode::Directory));
        let mut levels: Vec<&str> = parents(path).collect();
        levels.reverse();
        levels.push("");
        let verdict = |level: &str, name: &str| {
            let file = if level.is_empty() {
                name.to_owned()
            } else {
                format!("{level}/{name}")
            };
            let (content, _) = self.file(&file).ok()?;
            let text = String::from_utf8_lossy(&content).into_owned();
            let rest = relative(level, path);
            text.lines()
                .rev()
                .find_map(|line| rule(line, rest, is_directory))
        };
        if let Some(verdict) = levels.iter().find_map(|level| verdict(level, ".ignore")) {
            return verdict;
        }
        for level in levels {
            if let Some(verdict) = verdict(level, ".gitignore") {
                return verdict;
            }
            let git = if level.is_empty() {
                ".git".to_owned()
            } else {
                format!("{level}/.git")
            };
            if self.nodes.contains_key(&git) {
                return false;
            }
        }
        false
    }
}

/// Applies one line of an ignore file to a path: ignore it, keep it, or neither.
fn rule(line: &str, path: &str, is_directory: bool) -> Option<bool> {
    let line = line.trim_end();
    if line.is_empty() || line.starts_with('#') {
        return None;
    }
    let (ignored, line) = line
        .strip_prefix('!')
        .map_or((true, line), |line| (false, line));
    let (only_directories, line) = line
        .strip_suffix('/')
        .map_or((false, line), |line| (true, line));
    if only_directories && !is_directory {
        return None;
    }
    let hit = match line.contains('/') {
        true => matches(line.trim_start_matches('/'), path),
        false => matches(line, path.rsplit('/').next().unwrap_or(path)),
    };
    hit.then_some(ignored)
}

/// Whether a search pattern selects a path from the search root.
fn selected(pattern: &str, path: &str) -> bool {
    let anchored = pattern.starts_with('/') || pattern.starts_with("./");
    let text = pattern.trim_start_matches("./").trim_start_matches('/');
    match anchored || text.contains('/') {
        true => matches(text, path),
        false => matches(text, path.rsplit('/').next().unwrap_or(path)),
    }
}

fn shows_dots(pattern: &str) -> bool {
    let text = pattern.trim_start_matches("./").trim_start_matches('/');
    text.starts_with('.') || ["/.", "{.", ",."].iter().any(|named| text.contains(named))
}

fn relative<'a>(root: &str, path: &'a str) -> &'a str {
    if root.is_empty() {
        path
    } else {
        &path[root.len() + 1..]
    }
}

/// Matches a glob by trying everything: braces are expanded, then characters are compared from the
/// left.
fn matches(pattern: &str, path: &str) -> bool {
    if let Some((open, close)) = pattern.find('{').zip(pattern.find('}')) {
        let head = &pattern[..open];
        let tail = &pattern[close + 1..];
        return pattern[open + 1..close]
            .split(',')
            .any(|choice| matches(&format!("{head}{choice}{tail}"), path));
    }
    let pattern: Vec<char> = pattern.chars().collect();
    let path: Vec<char> = path.chars().collect();
    step(&pattern, &path, true)
}

fn step(pattern: &[char], path: &[char], at_start: bool) -> bool {
    match pattern {
        [] => path.is_empty(),
        ['*', '*', '/', rest @ ..] if at_start => {
            step(rest, path, true)
                || (0..path.len()).any(|i| path[i] == '/' && step(rest, &path[i + 1..], true))
        }
        ['*', '*'] if at_start => true,
        ['*', rest @ ..] => {
            let name = path.iter().position(|c| *c == '/').unwrap_or(path.len());
            (0..=name).any(|i| step(rest, &path[i..], false))
        }
        ['?', rest @ ..] => matches!(path, [c, tail @ ..] if *c != '/' && step(rest, tail, false)),
        ['[', rest @ ..] => {
            let Some(end) = rest.iter().position(|c| *c == ']') else {
                return false;
            };
            let (negated, set) = if rest[0] == '!' {
                (true, &rest[1..end])
            } else {
                (false, &rest[..end])
            };
            let within = |c: char| match set {
                [low, '-', high] => (*low..=*high).contains(&c),
                set => set.contains(&c),
            };
            matches!(path, [c, tail @ ..] if *c != '/' && within(*c) != negated && step(&rest[end + 1..], tail, false))
        }
        [c, rest @ ..] => {
            matches!(path, [first, tail @ ..] if first == c && step(rest, tail, *c == '/'))
        }
    }
}
