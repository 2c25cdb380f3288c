//! `.stead/skills.json`, the manifest: which sources are installed.
//!
//! Effects: workspace files (reads).

use super::{SourceError, SourceKind};
use serde::{Deserialize, Serialize};
use stead_vfs::{ReadRange, VPath, Version, Vfs, VfsError};

/// The path of the manifest.
pub const MANIFEST: &str = ".stead/skills.json";
/// The directory that holds one directory per source.
pub const SKILLS_DIR: &str = ".stead/skills";
/// The current version of the format.
const FORMAT: u32 = 1;
const MAX_BYTES: u64 = 4 * 1024 * 1024;

/// The installed sources in the order of installation. Of two skills with the same name, the later
/// one is used.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) version: u32,
    pub(crate) sources: Vec<InstalledSource>,
}

/// An installed source.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledSource {
    /// Its name.
    pub name: String,
    /// The kind of source.
    pub kind: SourceKind,
    /// Its address, with variables instead of secrets.
    pub from: String,
    /// The branch, tag or commit that was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rev: Option<String>,
    /// The installed revision: a commit, or a hash of the content.
    pub pinned: String,
    /// Its skills.
    pub skills: Vec<InstalledSkill>,
}

/// An installed skill.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct InstalledSkill {
    /// Its name.
    pub name: String,
    /// Its directory below that of its source.
    pub dir: String,
    /// A hash of its files as they were installed.
    pub hash: String,
}

pub(crate) fn path() -> Result<VPath, VfsError> {
    Ok(VPath::parse(MANIFEST)?)
}

/// Reads the manifest of a workspace and its version; none if there is no manifest.
pub(crate) async fn read(files: &dyn Vfs) -> Result<(Manifest, Option<Version>), SourceError> {
    let range = ReadRange {
        offset: 0,
        len: MAX_BYTES,
    };
    let (content, version) = match files.read(&path()?, range).await {
        Ok(read) => read,
        Err(VfsError::NotFound(_)) => {
            return Ok((
                Manifest {
                    version: FORMAT,
                    sources: Vec::new(),
                },
                None,
            ));
        }
        Err(error) => return Err(error.into()),
    };
    let manifest: Manifest =
        serde_json::from_slice(&content).map_err(|error| SourceError::Manifest {
            line: error.line(),
            column: error.column(),
            reason: error.to_string(),
        })?;
    let broken = |reason: String| SourceError::Manifest {
        line: 1,
        column: 1,
        reason,
    };
    if manifest.version > FORMAT {
        return Err(broken(
            "it was written by a newer version of stead; use that version".to_owned(),
        ));
    }
    // Names become paths, so they are checked.
    for name in manifest.sources.iter().map(|source| &source.name) {
        check_name(name).map_err(|_| broken(format!("{name:?} is not the name of a source")))?;
    }
    // The manifest is part of the workspace and may come from somebody else, so addresses are
    // checked like typed ones.
    for source in &manifest.sources {
        let again = super::SkillSource::parse(&source.source().display_address(), "/");
        let same = again.is_ok_and(|again| again == source.source());
        if !same {
            return Err(broken(format!(
                "{}: `from` and `rev` are not the address of a source",
                source.name
            )));
        }
    }
    Ok((manifest, Some(version)))
}

/// Returns whether a text can be the name of a source, and so of a directory.
pub(crate) fn check_name(name: &str) -> Result<(), SourceError> {
    let fits =
        |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_' | '.');
    let begins = name.starts_with(|c: char| c.is_ascii_lowercase() || c.is_ascii_digit());
    if begins && name.len() <= 64 && name.chars().all(fits) {
        Ok(())
    } else {
        Err(SourceError::Name(name.to_owned()))
    }
}
