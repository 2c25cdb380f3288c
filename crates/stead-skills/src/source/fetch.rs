//! Fetching skills from a repository, a directory, an archive or a store.
//!
//! Effects: the clock, randomness, the environment, workspace files (reads), the local disk
//! (writes), the network, processes.

use super::archive::{ArchiveFormat, MAX_PACKED_BYTES};
use super::bundle::{Bundle, BundledSkills};
use super::progress::SkillPhase;
use super::{
    ArchiveError, SkillProgress, SkillSource, SourceError, SourceKind, git, published_tree,
};
use std::path::Path;
use std::sync::Arc;
use stead_store::OsDisk;
use stead_vfs::{LocalVfs, ReadRange, VPath, Vfs, VfsError};

/// The skills of a source, in memory and checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FetchedSkills {
    /// The source.
    pub source: SkillSource,
    /// The exact revision: a commit, or a hash of the content.
    pub pinned: String,
    pub(crate) skills: BundledSkills,
}

impl SkillSource {
    /// Fetches and checks everything; nothing is installed yet. Variables of the address come from
    /// `lookup`; `name` is what the source will be called.
    pub async fn fetch(
        &self,
        name: &str,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
        progress: &SkillProgress,
    ) -> Result<FetchedSkills, SourceError> {
        progress.enter(SkillPhase::Fetching, 0);
        let (address, secrets) = self.resolve_address(lookup)?;
        let (bundle, commit) = match self.kind {
            SourceKind::Git => {
                let (bundle, commit) = git::fetch(&address, self.rev.as_deref(), &secrets).await?;
                (bundle, Some(commit))
            }
            SourceKind::Directory => {
                let files = open_local_dir(&address)?;
                (
                    Bundle::from_files(&files, &VPath::root(), progress).await?,
                    None,
                )
            }
            SourceKind::Archive => (read_archive(&address, progress).await?, None),
            SourceKind::Store => {
                require_file(&address).await?;
                let files = self.open_store(lookup).await?;
                (
                    Bundle::from_files(&files, &VPath::root(), progress).await?,
                    None,
                )
            }
        };
        progress.enter(SkillPhase::Checking, 0);
        let skills = bundle.skills(name)?;
        if skills.usable.is_empty() {
            let broken = skills
                .broken
                .iter()
                .map(|(dir, problem)| format!("; {dir}/SKILL.md:{problem}"));
            return Err(SourceError::NoSkills(self.from.clone(), broken.collect()));
        }
        let pinned = commit.unwrap_or_else(|| format!("sha256:{}", skills.hash()));
        Ok(FetchedSkills {
            source: self.clone(),
            pinned,
            skills,
        })
    }
}

impl SkillSource {
    /// Returns the skills that were published to this store.
    pub async fn open_store(
        &self,
        lookup: &(dyn Fn(&str) -> Option<String> + Sync),
    ) -> Result<stead_vfs::StoreVfs, SourceError> {
        if self.kind != SourceKind::Store {
            let text = format!(
                "{} is no store; there are sqlite:, postgres://, mysql:// and redis://",
                self.from
            );
            return Err(SourceError::Address(text));
        }
        Ok(published_tree(
            stead_store::connect(&self.resolve_address(lookup)?.0).await?,
        ))
    }
}

impl FetchedSkills {
    /// Returns what cannot be used: directory, line, column and reason.
    pub fn broken_skills(&self) -> Vec<String> {
        self.skills
            .broken
            .iter()
            .map(|(dir, problem)| format!("{dir}/SKILL.md:{problem}"))
            .collect()
    }
}

fn open_local_dir(dir: &str) -> Result<LocalVfs, SourceError> {
    LocalVfs::open(Path::new(dir), Arc::new(OsDisk)).map_err(|error| match error {
        VfsError::NotFound(_) => SourceError::Address(format!("there is no directory {dir}")),
        VfsError::NotDirectory(_) => SourceError::Address(format!(
            "{dir} is a file, and not a .zip, .tar, .tar.gz or .tgz"
        )),
        error => error.into(),
    })
}

/// Refuses a file store that does not exist, because connecting would create it.
async fn require_file(address: &str) -> Result<(), SourceError> {
    let Some(path) = address.strip_prefix("sqlite:") else {
        return Ok(());
    };
    let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
    let name = name.split('?').next().unwrap_or(name);
    match open_local_dir(if dir.is_empty() { "/" } else { dir })?
        .stat(&VPath::parse(name).map_err(VfsError::from)?)
        .await
    {
        Ok(_) => Ok(()),
        Err(VfsError::NotFound(_)) => {
            Err(SourceError::Address(format!("there is no store {path}")))
        }
        Err(error) => Err(error.into()),
    }
}

async fn read_archive(path: &str, progress: &SkillProgress) -> Result<Bundle, SourceError> {
    let (dir, name) = path.rsplit_once('/').unwrap_or((".", path));
    let Some(format) = ArchiveFormat::of_name(name) else {
        return Err(SourceError::Address(format!(
            "{path} is not a .zip, .tar, .tar.gz or .tgz"
        )));
    };
    let files = open_local_dir(if dir.is_empty() { "/" } else { dir })?;
    let file = VPath::parse(name).map_err(VfsError::from)?;
    let range = ReadRange {
        offset: 0,
        len: MAX_PACKED_BYTES + 1,
    };
    let packed = match files.read(&file, range).await {
        Ok((packed, _)) => packed,
        Err(VfsError::NotFound(_)) => {
            return Err(SourceError::Address(format!("there is no file {path}")));
        }
        Err(error) => return Err(error.into()),
    };
    progress.enter(SkillPhase::Checking, 0);
    // Unpacking blocks, and progress is shown from this thread too.
    let unpacked = tokio::task::spawn_blocking(move || Bundle::from_archive(format, &packed)).await;
    Ok(unpacked.map_err(|error| ArchiveError::Damaged(error.to_string()))??)
}
