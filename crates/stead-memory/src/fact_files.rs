//! The files of a memory: curated memory, facts by day, quarantine, archive.
//!
//! Effects: randomness, the environment, workspace files (writes).

use crate::error::MemoryError;
use crate::fact::{Fact, normalised};
use crate::fact_document::FactDocument;
use jiff::Timestamp;
use jiff::civil::Date;
use std::collections::HashSet;
use std::sync::Arc;
use stead_vfs::{Expect, FileKind, ReadRange, VPath, Version, Vfs, VfsError};
use stead_workspace::Definition;

/// The size of the largest memory file that is changed.
const MAX_FILE_BYTES: u64 = 64 * 1024 * 1024;
/// How many times a change is tried if others change the same file.
const MAX_TRIES: usize = 50;

/// The files of a memory.
#[derive(Debug, Clone)]
pub struct FactFiles {
    pub(crate) files: Arc<dyn Vfs>,
    /// The file of curated memory.
    pub(crate) memory: VPath,
    /// The folder with a file of facts for each day.
    pub(crate) days: VPath,
    zone: Option<String>,
}

impl FactFiles {
    /// The memory files in the tree `files`, at the paths of the layout.
    pub fn new(definition: &Definition, files: Arc<dyn Vfs>) -> Result<Self, MemoryError> {
        let none = || MemoryError::NoMemory(definition.layout.to_string());
        let memory = definition.paths.memory.clone().ok_or_else(none)?;
        let beside = || memory.parent().filter(|folder| !folder.is_root());
        let days = definition
            .paths
            .daily_facts
            .clone()
            .or_else(beside)
            .ok_or_else(none)?;
        Ok(Self {
            files,
            memory,
            days,
            zone: definition.config.timezone.clone(),
        })
    }

    /// The same paths in another tree.
    pub(crate) fn with_files(&self, files: Arc<dyn Vfs>) -> Self {
        Self {
            files,
            ..self.clone()
        }
    }

    /// Returns the date of `time` in the time zone of the agent.
    pub(crate) fn date(&self, time: Timestamp) -> Date {
        let zone = self
            .zone
            .as_deref()
            .and_then(|name| jiff::tz::TimeZone::get(name).ok());
        time.to_zoned(zone.unwrap_or_else(jiff::tz::TimeZone::system))
            .date()
    }

    /// Returns the file of the facts of a day.
    pub(crate) fn day(&self, date: Date) -> Result<VPath, MemoryError> {
        self.at(&format!("{date}.md"))
    }

    /// Returns the file of the quarantined facts of a day.
    pub(crate) fn quarantine(&self, date: Date) -> Result<VPath, MemoryError> {
        self.at(&format!("quarantine/{date}.md"))
    }

    /// Returns the file of rejected facts, which the agent cannot reach, either.
    pub(crate) fn rejected(&self) -> Result<VPath, MemoryError> {
        self.at("quarantine/rejected.md")
    }

    /// Returns a file of the archive.
    pub(crate) fn archive(&self, name: &str) -> Result<VPath, MemoryError> {
        self.at(&format!("archive/{name}.md"))
    }

    fn at(&self, name: &str) -> Result<VPath, MemoryError> {
        self.days
            .join(name)
            .map_err(|error| MemoryError::Files(error.into()))
    }

    /// Returns the dates that have a file in `folder`, oldest first.
    pub(crate) async fn dates(&self, folder: &str) -> Result<Vec<Date>, MemoryError> {
        let folder = if folder.is_empty() {
            self.days.clone()
        } else {
            self.at(folder)?
        };
        let entries = match self.files.list(&folder).await {
            Ok(entries) => entries,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let files = entries.iter().filter(|entry| entry.kind == FileKind::File);
        let mut dates: Vec<Date> = files.filter_map(|entry| date_of(&entry.name)).collect();
        dates.sort();
        Ok(dates)
    }

    /// Reads a file and its version; the version is `None` if there is no file.
    pub(crate) async fn read(
        &self,
        path: &VPath,
    ) -> Result<(FactDocument, Option<Version>), MemoryError> {
        let (bytes, version) = match self
            .files
            .read(
                path,
                ReadRange {
                    offset: 0,
                    len: MAX_FILE_BYTES + 1,
                },
            )
            .await
        {
            Ok(read) => read,
            Err(VfsError::NotFound(_) | VfsError::NotDirectory(_)) => {
                return Ok((FactDocument::default(), None));
            }
            Err(error) => return Err(error.into()),
        };
        if bytes.len() as u64 > MAX_FILE_BYTES {
            let path = path.clone();
            let size = bytes.len() as u64;
            return Err(VfsError::TooLarge {
                path,
                size,
                limit: MAX_FILE_BYTES,
            }
            .into());
        }
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok((FactDocument::parse(text), Some(version))),
            Err(error) => {
                let line = bytes[..error.valid_up_to()]
                    .iter()
                    .filter(|byte| **byte == b'\n')
                    .count()
                    + 1;
                Err(MemoryError::NotText {
                    path: path.clone(),
                    line,
                })
            }
        }
    }

    /// Changes a file. If others change it at the same time, `change` is called again with the new
    /// content. A file that stays the same is not written.
    pub(crate) async fn change<T>(
        &self,
        path: &VPath,
        mut change: impl FnMut(&mut FactDocument) -> T,
    ) -> Result<T, MemoryError> {
        for _ in 0..MAX_TRIES {
            let (before, version) = self.read(path).await?;
            let mut after = before.clone();
            let outcome = change(&mut after);
            if after == before {
                return Ok(outcome);
            }
            match self.write(path, &after, version).await {
                Ok(_) => return Ok(outcome),
                Err(VfsError::Changed(_) | VfsError::Exists(_)) => {}
                Err(error) => return Err(error.into()),
            }
        }
        Err(MemoryError::Contended(path.clone()))
    }

    /// Writes a file if it still has this version.
    pub(crate) async fn write(
        &self,
        path: &VPath,
        document: &FactDocument,
        version: Option<Version>,
    ) -> Result<Version, VfsError> {
        self.files
            .write(
                path,
                document.text().into(),
                version.map_or(Expect::Absent, Expect::Version),
            )
            .await
    }

    /// Adds facts to a file, except those that it contains already or that were forgotten or
    /// rejected.
    pub(crate) async fn append(&self, path: &VPath, facts: &[Fact]) -> Result<usize, MemoryError> {
        if facts.is_empty() {
            return Ok(0);
        }
        let mut excluded: HashSet<String> = HashSet::new();
        for excluded_file in [self.archive(FORGOTTEN)?, self.rejected()?] {
            if excluded_file == *path {
                continue;
            }
            match self.read(&excluded_file).await {
                Ok((document, _)) => excluded.extend(document.ids()),
                // The file is hidden from the agent, so for its own saves it counts as empty.
                Err(MemoryError::Files(VfsError::Denied(_))) => {}
                Err(error) => return Err(error),
            }
        }
        self.change(path, |document| {
            let known = document.ids().union(&excluded).cloned().collect();
            document.append(facts, &known)
        })
        .await
    }

    /// Quarantines facts, except those whose text is quarantined already or was rejected.
    pub(crate) async fn quarantine_facts(
        &self,
        date: Date,
        facts: &[Fact],
    ) -> Result<usize, MemoryError> {
        let mut known_texts: HashSet<String> = HashSet::new();
        for path in [self.rejected()?, self.quarantine(date)?] {
            known_texts.extend(
                self.read(&path)
                    .await?
                    .0
                    .facts()
                    .map(|(_, fact)| normalised(&fact.text)),
            );
        }
        let new_facts: Vec<Fact> = facts
            .iter()
            .filter(|fact| known_texts.insert(normalised(&fact.text)))
            .cloned()
            .collect();
        self.append(&self.quarantine(date)?, &new_facts).await
    }
}

/// The archive file of forgotten facts.
pub(crate) const FORGOTTEN: &str = "forgotten";

/// Returns the date in the name of a file.
fn date_of(name: &str) -> Option<Date> {
    let date: Date = name.strip_suffix(".md")?.parse().ok()?;
    (format!("{date}.md") == name).then_some(date)
}
