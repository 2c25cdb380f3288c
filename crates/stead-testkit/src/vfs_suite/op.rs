//! One operation, done on a place and on the oracle, each with its answer as text.
//!
//! The answer leaves out what may differ between places: versions, times, and mode bits that were
//! not set.
//!
//! Effects: test support.

use super::oracle::{OracleError, OracleNode, VfsOracle, WriteExpectation};
use super::oracle_search::{AnyCase, Needle, SearchReport};
use std::sync::Arc;
use stead_vfs::{
    Bounds, Case, ContentHash, Expect, FileKind, FileMatches, FileSearchError, GlobQuery, GrepMode,
    GrepQuery, LineKind, LineRange, ReadRange, Syntax, VPath, Version, Vfs, VfsError,
};
use tokio_util::sync::CancellationToken;

/// An operation.
#[derive(Debug, Clone)]
pub(super) enum VfsOp {
    Stat(String),
    List(String),
    Walk {
        path: String,
        after: Option<String>,
        limit: usize,
    },
    Read {
        path: String,
        offset: u64,
        len: u64,
    },
    Lines {
        path: String,
        range: LineRange,
    },
    Write {
        path: String,
        content: Arc<[u8]>,
        want: WriteExpectation,
    },
    Remove(String),
    Rename {
        from: String,
        to: String,
    },
    Mkdir(String),
    SetMode {
        path: String,
        mode: u32,
    },
    Resolve(String),
    Glob {
        pattern: String,
        root: String,
        limit: usize,
    },
    Grep {
        needle: Needle,
        any_case: AnyCase,
        report: SearchReport,
        glob: Option<String>,
        root: String,
        limit: usize,
    },
}

/// Performs the operation on a place. `oracle` has the state before it, which decides what can be
/// compared.
pub(super) async fn on_place(vfs: &dyn Vfs, op: &VfsOp, oracle: &VfsOracle) -> String {
    match try_place(vfs, op, oracle).await {
        Ok(answer) => answer,
        Err(error) => error_text(&error),
    }
}

async fn try_place(vfs: &dyn Vfs, op: &VfsOp, oracle: &VfsOracle) -> Result<String, VfsError> {
    Ok(match op {
        VfsOp::Stat(path) => {
            let stat = vfs.stat(&p(path)).await?;
            let mode = match oracle.find(path) {
                Ok(OracleNode::File {
                    content,
                    mode: known,
                }) => {
                    check_hash(path, stat.hash, &content);
                    // A place may keep no mode bits; if it keeps any, it must keep these.
                    known.map_or(String::new(), |bits| {
                        format!(" {:o}", stat.mode.unwrap_or(bits))
                    })
                }
                Ok(OracleNode::Directory) | Err(_) => String::new(),
            };
            format!("{} {}{mode}", kind(stat.kind), stat.size)
        }
        VfsOp::List(path) => {
            let entries = vfs.list(&p(path)).await?;
            let shown = entries
                .iter()
                .map(|entry| format!("{} {} {}", entry.name, kind(entry.kind), entry.size));
            shown.collect::<Vec<_>>().join(", ")
        }
        VfsOp::Walk { path, after, limit } => {
            let after = after.as_deref().map(p);
            let walk = vfs.walk(&p(path), after.as_ref(), *limit).await?;
            for (path, entry) in &walk.entries {
                if let Ok((content, _)) = oracle.file(path.as_str()) {
                    check_hash(path.as_str(), entry.hash, &content);
                }
                assert_eq!(entry.name, path.name());
            }
            let shown = walk
                .entries
                .iter()
                .map(|(path, entry)| format!("{path} {} {}", kind(entry.kind), entry.size));
            format!(
                "{}{}",
                shown.collect::<Vec<_>>().join(", "),
                more(walk.truncated)
            )
        }
        VfsOp::Read { path, offset, len } => {
            let (bytes, version) = vfs
                .read(
                    &p(path),
                    ReadRange {
                        offset: *offset,
                        len: *len,
                    },
                )
                .await?;
            assert_eq!(
                version,
                vfs.stat(&p(path)).await?.version,
                "read and stat of {path} disagree"
            );
            bytes_text(&bytes)
        }
        VfsOp::Lines { path, range } => {
            let lines = vfs.read_lines(&p(path), *range).await?;
            let shown = lines
                .lines
                .iter()
                .map(|line| format!("{}+{}", bytes_text(&line.text), line.dropped_bytes));
            lines_text(shown, lines.total, lines.binary, lines.size)
        }
        VfsOp::Write {
            path,
            content,
            want,
        } => write(vfs, path, content, *want).await?,
        VfsOp::Remove(path) => vfs.remove(&p(path)).await.map(|()| String::new())?,
        VfsOp::Rename { from, to } => vfs.rename(&p(from), &p(to)).await.map(|()| String::new())?,
        VfsOp::Mkdir(path) => vfs.mkdir(&p(path)).await.map(|()| String::new())?,
        VfsOp::SetMode { path, mode } => vfs
            .set_mode(&p(path), *mode)
            .await
            .map(|()| String::new())?,
        VfsOp::Resolve(path) => vfs.resolve(&p(path)).await?.to_string(),
        VfsOp::Glob {
            pattern,
            root,
            limit,
        } => {
            let query = GlobQuery {
                pattern: pattern.clone(),
                root: p(root),
            };
            let found = vfs
                .search()
                .glob(query, bounds(*limit))
                .await
                .map_err(place_error)?;
            assert_eq!((found.timed_out, found.failed), (false, vec![]));
            let shown: Vec<_> = found.paths.iter().map(ToString::to_string).collect();
            format!("{}{}", shown.join(", "), more(found.truncated))
        }
        VfsOp::Grep {
            needle,
            any_case,
            report,
            glob,
            root,
            limit,
        } => {
            let query = grep_query(*needle, *any_case, *report, glob.clone(), root);
            let found = vfs
                .search()
                .grep(query, bounds(*limit))
                .await
                .map_err(place_error)?;
            assert_eq!(
                (found.timed_out, found.failed, found.unreadable),
                (false, vec![], 0)
            );
            let shown: Vec<_> = found.files.iter().map(file_text).collect();
            format!("{}{}", shown.join(", "), more(found.truncated))
        }
    })
}

/// Writes with an expectation that certainly holds or fails, however the place creates versions.
async fn write(
    vfs: &dyn Vfs,
    path: &str,
    content: &Arc<[u8]>,
    want: WriteExpectation,
) -> Result<String, VfsError> {
    let none = Version("no such version".into());
    let here = match vfs.stat(&p(path)).await {
        Ok(stat) if stat.kind == FileKind::File => Some(stat.version),
        Ok(_) | Err(_) => None,
    };
    let expect = match (want, here) {
        (WriteExpectation::Any, _) => Expect::Any,
        (WriteExpectation::Absent, _) => Expect::Absent,
        (WriteExpectation::Current, Some(version)) => Expect::Version(version),
        (WriteExpectation::Stale, Some(version)) => {
            let (content, _) = vfs.read(&p(path), ReadRange::ALL).await?;
            let newer = vfs.write(&p(path), content, Expect::Any).await?;
            assert_ne!(newer, version, "{path}: a write keeps the version");
            Expect::Version(version)
        }
        (WriteExpectation::Current | WriteExpectation::Stale, None)
        | (WriteExpectation::Foreign, _) => Expect::Version(none),
    };
    let version = vfs.write(&p(path), content.to_vec().into(), expect).await?;
    assert_eq!(
        vfs.stat(&p(path)).await?.version,
        version,
        "{path}: not the version that the write gave"
    );
    Ok(String::new())
}

/// Performs the operation on the oracle.
pub(super) fn on_oracle(oracle: &mut VfsOracle, op: &VfsOp) -> String {
    try_oracle(oracle, op).unwrap_or_else(|OracleError(text)| text)
}

fn try_oracle(oracle: &mut VfsOracle, op: &VfsOp) -> Result<String, OracleError> {
    Ok(match op {
        VfsOp::Stat(path) => match oracle.find(path)? {
            OracleNode::Directory => "dir 0".to_owned(),
            OracleNode::File { content, mode } => {
                format!(
                    "file {}{}",
                    content.len(),
                    mode.map_or(String::new(), |bits| format!(" {bits:o}"))
                )
            }
        },
        VfsOp::List(path) => {
            let start = if path.is_empty() { 0 } else { path.len() + 1 };
            let below = oracle.below(path)?;
            let mut names: Vec<_> = below
                .iter()
                .filter(|(p, _)| !p[start..].contains('/'))
                .collect();
            names.sort_by(|a, b| a.0.cmp(&b.0));
            names
                .iter()
                .map(|(p, node)| format!("{} {}", &p[start..], node_text(node)))
                .collect::<Vec<_>>()
                .join(", ")
        }
        VfsOp::Walk { path, after, limit } => {
            let all = oracle.below(path)?;
            let rest: Vec<_> = all
                .iter()
                .filter(|(p, _)| after.as_ref().is_none_or(|after| p > after))
                .collect();
            let shown = rest
                .iter()
                .take(*limit)
                .map(|(p, node)| format!("{p} {}", node_text(node)));
            format!(
                "{}{}",
                shown.collect::<Vec<_>>().join(", "),
                more(rest.len() > *limit)
            )
        }
        VfsOp::Read { path, offset, len } => {
            let (content, _) = oracle.file(path)?;
            let rest = content.get(*offset as usize..).unwrap_or(&[]);
            bytes_text(&rest[..rest.len().min(usize::try_from(*len).unwrap_or(usize::MAX))])
        }
        VfsOp::Lines { path, range } => oracle_lines(&oracle.file(path)?.0, range),
        VfsOp::Write {
            path,
            content,
            want,
        } => oracle
            .write(path, Arc::clone(content), *want)
            .map(|()| String::new())?,
        VfsOp::Remove(path) => oracle.remove(path).map(|()| String::new())?,
        VfsOp::Rename { from, to } => oracle.rename(from, to).map(|()| String::new())?,
        VfsOp::Mkdir(path) => oracle.mkdir(path).map(|()| String::new())?,
        VfsOp::SetMode { path, mode } => oracle.set_mode(path, *mode).map(|()| String::new())?,
        VfsOp::Resolve(path) => {
            if path.is_empty() {
                ".".to_owned()
            } else {
                path.clone()
            }
        }
        VfsOp::Glob {
            pattern,
            root,
            limit,
        } => {
            let found = oracle.glob(pattern, root)?;
            let shown: Vec<_> = found.iter().take(*limit).cloned().collect();
            format!("{}{}", shown.join(", "), more(found.len() > *limit))
        }
        VfsOp::Grep {
            needle,
            any_case,
            report,
            glob,
            root,
            limit,
        } => {
            let (found, truncated) =
                oracle.grep(*needle, *any_case, *report, glob.as_deref(), root, *limit)?;
            format!("{}{}", found.join(", "), more(truncated))
        }
    })
}

fn oracle_lines(content: &[u8], range: &LineRange) -> String {
    let size = content.len() as u64;
    if content.iter().take(8 * 1024).any(|byte| *byte == 0) {
        return lines_text(std::iter::empty(), None, true, size);
    }
    let mut all: Vec<&[u8]> = content.split(|byte| *byte == b'\n').collect();
    if all.last().is_some_and(|last| last.is_empty()) {
        all.pop();
    }
    let mut shown = Vec::new();
    let mut kept = 0;
    for line in all.iter().skip(range.skip as usize) {
        if shown.len() == range.take || (kept >= range.max_bytes && !shown.is_empty()) {
            break;
        }
        let end = line.len().min(range.max_line_bytes);
        kept += end;
        shown.push(format!("{}+{}", bytes_text(&line[..end]), line.len() - end));
    }
    lines_text(shown.into_iter(), Some(all.len() as u64), false, size)
}

fn lines_text(
    lines: impl Iterator<Item = String>,
    total: Option<u64>,
    binary: bool,
    size: u64,
) -> String {
    format!(
        "{} of {total:?} binary={binary} size={size}",
        lines.collect::<Vec<_>>().join("|")
    )
}

fn grep_query(
    needle: Needle,
    any_case: AnyCase,
    report: SearchReport,
    glob: Option<String>,
    root: &str,
) -> GrepQuery {
    let (pattern, syntax) = match needle {
        Needle::Contains(text) => (text.to_owned(), Syntax::Literal),
        Needle::Begins(text) => (format!("^{text}"), Syntax::Regex),
        Needle::Ends(text) => (format!("{text}$"), Syntax::Regex),
    };
    let case = match any_case {
        AnyCase::Yes => Case::Insensitive,
        AnyCase::No => Case::Sensitive,
    };
    let mode = match report {
        SearchReport::Lines(context) => GrepMode::Content {
            before: context,
            after: context,
        },
        SearchReport::Files => GrepMode::Files,
        SearchReport::Count => GrepMode::Count,
    };
    GrepQuery {
        pattern,
        syntax,
        case,
        root: p(root),
        glob,
        file_type: None,
        mode,
    }
}

fn file_text(file: &FileMatches) -> String {
    let lines = file.lines.iter().map(|line| {
        let mark = match line.kind {
            LineKind::Match => ':',
            LineKind::Context => '-',
        };
        format!("{}{mark}{}", line.number, line.text)
    });
    let lines: Vec<_> = lines.collect();
    let gap = if lines.is_empty() { "" } else { " " };
    format!("{} x{}{gap}{}", file.path, file.count, lines.join("|"))
}

fn node_text(node: &OracleNode) -> String {
    match node {
        OracleNode::Directory => "dir 0".to_owned(),
        OracleNode::File { content, .. } => format!("file {}", content.len()),
    }
}

fn kind(kind: FileKind) -> &'static str {
    match kind {
        FileKind::File => "file",
        FileKind::Directory => "dir",
        FileKind::Other => "other",
    }
}

fn more(truncated: bool) -> &'static str {
    if truncated { " and more" } else { "" }
}

/// Returns short contents as text, and long ones as a hash.
pub(super) fn bytes_text(bytes: &[u8]) -> String {
    match bytes.len() {
        0..=80 => format!("\"{}\"", bytes.escape_ascii()),
        len => format!("{len}:{}", ContentHash::of(bytes)),
    }
}

fn check_hash(path: &str, told: Option<ContentHash>, content: &[u8]) {
    if let Some(told) = told {
        assert_eq!(
            told,
            ContentHash::of(content),
            "the hash of {path} is another content's"
        );
    }
}

/// Returns the error's name and its path.
pub(super) fn error_text(error: &VfsError) -> String {
    match error {
        VfsError::Path(error) => format!("Path({error:?})"),
        VfsError::NotFound(path) => format!("NotFound {path}"),
        VfsError::Exists(path) => format!("Exists {path}"),
        VfsError::Changed(path) => format!("Changed {path}"),
        VfsError::IsDirectory(path) => format!("IsDirectory {path}"),
        VfsError::NotDirectory(path) => format!("NotDirectory {path}"),
        VfsError::Special(path) => format!("Special {path}"),
        VfsError::Escapes(path) => format!("Escapes {path}"),
        VfsError::Denied(path) => format!("Denied {path}"),
        VfsError::ReadOnly(path) => format!("ReadOnly {path}"),
        VfsError::Unavailable { path, cause } => format!("Unavailable {path} {cause}"),
        VfsError::Fenced(path) => format!("Fenced {path}"),
        VfsError::TooLarge { path, size, limit } => format!("TooLarge {path} {size} {limit}"),
        VfsError::NoSpace(path) => format!("NoSpace {path}"),
        VfsError::Io { path, source } => format!("Io({:?}) {path}", source.kind()),
    }
}

fn place_error(error: FileSearchError) -> VfsError {
    match error {
        FileSearchError::Vfs(error) => error,
        other => panic!("{other}"),
    }
}

pub(super) fn bounds(limit: usize) -> Bounds {
    Bounds::new(limit, CancellationToken::new())
}

pub(super) fn p(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}
