//! The memory files that are searched. Quarantined facts are not.
//!
//! Effects: the clock, workspace files (reads), the local disk (writes).

use super::{LookupError, SyncedScope};
use crate::Agent;
use crate::features::user_folder;
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use std::collections::BTreeMap;
use std::sync::Arc;
use stead_core::{Owner, SessionId};
use stead_memory::without_sources;
use stead_place::IsolationScope;
use stead_search::{Index, SearchScope, SearchSource, SearchSourceKind, SourceLine};
use stead_vfs::{DirEntry, FileKind, ReadRange, VPath, Vfs, VfsError};
use stead_workspace::Workspace;

/// The bytes of one file that are searched.
const MAX_FILE_BYTES: u64 = 32 * 1024 * 1024;
/// The number of files that are searched; the others are reported as unread.
const MAX_FILES: usize = 10_000;
/// The file of forgotten facts, below the folder of daily fact files.
const FORGOTTEN: &str = "archive/forgotten.md";
/// The folder of archived days, below the folder of daily fact files.
const ARCHIVE: &str = "archive";

/// The memory files of a workspace, without `quarantine/`.
#[derive(Debug, Clone)]
pub struct MemoryFiles {
    files: Arc<dyn Vfs>,
    /// The memory of the workspace, and that in the folder of the user.
    parts: Vec<MemoryPart>,
    /// The prefix of source names if each session has files of its own.
    prefix: String,
}

/// Curated memory and the folder of daily facts.
#[derive(Debug, Clone)]
struct MemoryPart {
    curated: Option<VPath>,
    days: Option<VPath>,
}

impl MemoryPart {
    /// Whether `path` is one of the files.
    fn contains(&self, path: &VPath) -> bool {
        if self.curated.as_ref() == Some(path) {
            return true;
        }
        let Some(rest) = self
            .days
            .as_ref()
            .and_then(|days| path.as_str().strip_prefix(&format!("{days}/")))
        else {
            return false;
        };
        // Forgotten facts are not found.
        if rest == FORGOTTEN {
            return false;
        }
        let archived = rest
            .strip_prefix(ARCHIVE)
            .is_some_and(|rest| rest.starts_with('/'));
        is_text(rest) && (archived || !rest.contains('/'))
    }
}

impl MemoryFiles {
    /// The memory of `workspace` in the tree `files`, as `session` sees it; `None` if the layout
    /// has none.
    pub fn for_session(
        workspace: &Workspace,
        session: &SessionId,
        files: Arc<dyn Vfs>,
    ) -> Option<Self> {
        let tree = &workspace.definition.paths;
        if tree.memory.is_none() && tree.daily_facts.is_none() {
            return None;
        }
        let prefix = match workspace.config().filesystem.scope {
            IsolationScope::Session => format!("{session}:"),
            IsolationScope::User | IsolationScope::Agent | IsolationScope::Global => String::new(),
        };
        let part = MemoryPart {
            curated: tree.memory.clone(),
            days: tree.daily_facts.clone(),
        };
        Some(Self {
            files,
            parts: vec![part],
            prefix,
        })
    }

    /// Adds the memory in a user's folder of the workspace.
    pub(crate) fn with_user_folder(mut self, folder: Option<&VPath>) -> Self {
        let (Some(folder), Some(shared)) = (folder, self.parts.first()) else {
            return self;
        };
        let below = |path: &Option<VPath>| folder.join(path.as_ref()?.as_str()).ok();
        let own = MemoryPart {
            curated: below(&shared.curated),
            days: below(&shared.days),
        };
        self.parts.push(own);
        self
    }

    /// The memory of `owner` outside any session, as far as the file rules show it; `None` if the
    /// layout has none.
    pub async fn for_owner(agent: &Agent, owner: &Owner) -> Option<Self> {
        let session = SessionId::sessionless();
        let files = agent.place().files(owner, &session, None);
        let files = agent.workspace().prompt_files(&files);
        let folder = user_folder(&agent.workspace().definition, owner, &*files).await;
        let memory = Self::for_session(agent.workspace(), &session, files)?;
        Some(memory.with_user_folder(folder.as_ref()))
    }

    /// Returns the path of a source of this memory.
    pub fn path<'a>(&self, source: &'a str) -> &'a str {
        source.strip_prefix(&self.prefix).unwrap_or(source)
    }

    /// Whether `path` is one of the files.
    pub fn contains(&self, path: &VPath) -> bool {
        self.parts.iter().any(|part| part.contains(path))
    }

    /// Updates `index` with the files.
    pub(super) async fn sync(&self, index: &Index) -> Result<SyncedScope, LookupError> {
        let known = index.sources(SearchSourceKind::Memory).await?;
        let (files, mut unread) = self.list().await?;
        let mut names = Vec::new();
        for (path, version) in files {
            let name = format!("{}{path}", self.prefix);
            if known.get(&name) != Some(&version) {
                let source = SearchSource::new(SearchSourceKind::Memory, &name);
                match self
                    .files
                    .read(
                        &path,
                        ReadRange {
                            offset: 0,
                            len: MAX_FILE_BYTES,
                        },
                    )
                    .await
                {
                    Ok((bytes, _)) => {
                        let lines = lines(&path, &String::from_utf8_lossy(&bytes));
                        index.sync(&source, &version, &lines).await?;
                    }
                    // It was removed, or hidden by a rule, since it was listed.
                    Err(VfsError::NotFound(_) | VfsError::Denied(_)) => continue,
                    Err(error @ VfsError::Unavailable { .. }) => return Err(error.into()),
                    Err(error) => {
                        unread.push(error.to_string());
                        continue;
                    }
                }
            }
            names.push(name);
        }
        for gone in known
            .keys()
            .filter(|name| !names.contains(name) && self.is_own(name))
        {
            index
                .remove(&SearchSource::new(SearchSourceKind::Memory, gone))
                .await?;
        }
        Ok(SyncedScope {
            scope: SearchScope::Sources(SearchSourceKind::Memory, names),
            unread,
        })
    }

    /// Whether a source belongs to this memory, and not to that of another session.
    fn is_own(&self, source: &str) -> bool {
        let path = source.strip_prefix(&self.prefix).map(VPath::parse);
        matches!(path, Some(Ok(path)) if self.contains(&path))
    }

    /// Returns the files with their versions, sorted by path.
    async fn list(&self) -> Result<(BTreeMap<VPath, String>, Vec<String>), VfsError> {
        let mut all = BTreeMap::new();
        let mut unread = Vec::new();
        for part in &self.parts {
            self.list_part(part, &mut all, &mut unread).await?;
        }
        Ok((all, unread))
    }

    async fn list_part(
        &self,
        part: &MemoryPart,
        all: &mut BTreeMap<VPath, String>,
        unread: &mut Vec<String>,
    ) -> Result<(), VfsError> {
        if let Some(path) = &part.curated {
            match self.files.stat(path).await {
                Ok(stat) if stat.kind == FileKind::File => {
                    drop(all.insert(path.clone(), stat.version.to_string()))
                }
                Ok(_) | Err(VfsError::NotFound(_) | VfsError::Denied(_)) => {}
                Err(error) => return Err(error),
            }
        }
        if let Some(days) = &part.days {
            for entry in absent_is_empty(self.files.list(days).await)? {
                if let Ok(path) = days.join(&entry.name) {
                    self.add_if_memory(all, path, &entry);
                }
            }
            if let Ok(archive) = days.join(ARCHIVE) {
                let walk = self.files.walk(&archive, None, MAX_FILES).await;
                let walk = absent_is_empty(walk.map(|walk| {
                    if walk.truncated {
                        unread.push(format!(
                            "{archive} has more than {MAX_FILES} files; the rest is not searched"
                        ));
                    }
                    walk.entries
                }))?;
                walk.iter()
                    .for_each(|(path, entry)| self.add_if_memory(all, path.clone(), entry));
            }
        }
        Ok(())
    }

    fn add_if_memory(&self, all: &mut BTreeMap<VPath, String>, path: VPath, entry: &DirEntry) {
        if entry.kind == FileKind::File && self.contains(&path) {
            let hash = entry.hash.map_or(String::new(), |hash| hash.to_string());
            all.insert(path, format!("{}:{}:{hash}", entry.size, entry.modified_ms));
        }
    }
}

fn is_text(name: &str) -> bool {
    name.ends_with(".md") || name.ends_with(".txt")
}

fn absent_is_empty<T>(listed: Result<Vec<T>, VfsError>) -> Result<Vec<T>, VfsError> {
    match listed {
        Err(VfsError::NotFound(_) | VfsError::NotDirectory(_) | VfsError::Denied(_)) => {
            Ok(Vec::new())
        }
        listed => listed,
    }
}

/// Returns the lines of a file that are not empty, each with its day: the one that the line names,
/// or else that of the file.
fn lines(path: &VPath, text: &str) -> Vec<SourceLine> {
    let day = date_in(path.name());
    let numbered = text
        .lines()
        .zip(1..)
        .filter(|(line, _)| line.chars().any(char::is_alphanumeric));
    let line = |(text, place): (&str, u64)| {
        let line = SourceLine::note(place, without_sources(text).trim());
        match date_in(text).or(day) {
            Some(at) => line.at(at),
            None => line,
        }
    };
    numbered.map(line).collect()
}

/// Returns the beginning of the first day, `YYYY-MM-DD`, that a text names.
fn date_in(text: &str) -> Option<Timestamp> {
    const LENGTH: usize = "YYYY-MM-DD".len();
    let bytes = text.as_bytes();
    let looks_like = |at: usize| {
        let window = &bytes[at..at + LENGTH];
        let before = at == 0 || !bytes[at - 1].is_ascii_alphanumeric();
        before && window[4] == b'-' && window[7] == b'-' && window[0].is_ascii_digit()
    };
    let places = (0..bytes.len().saturating_sub(LENGTH - 1)).filter(|&at| looks_like(at));
    let mut dates = places.filter_map(|at| text.get(at..at + LENGTH)?.parse::<Date>().ok());
    Some(dates.next()?.to_zoned(TimeZone::UTC).ok()?.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_is_of_the_day_it_names_or_of_its_files() {
        let day = |text: &str| Some(format!("{text}T00:00:00Z").parse::<Timestamp>().unwrap());
        let of = |path: &str, text: &str| lines(&VPath::parse(path).unwrap(), text);
        assert_eq!(
            of("MEMORY.md", "\n# A\n---\nb")[1],
            SourceLine::note(4, "b")
        );
        let dated = of(
            "memory/2026-11-02.md",
            "a\nsince 2025-01-31: b\n(2026-13-45) c\nx2025-01-31\n2026-13-45 or 2025-01-31",
        );
        assert_eq!(
            dated.iter().map(|line| line.at).collect::<Vec<_>>(),
            [
                day("2026-11-02"),
                day("2025-01-31"),
                day("2026-11-02"),
                day("2026-11-02"),
                day("2025-01-31")
            ]
        );
    }
}
