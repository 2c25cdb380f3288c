//! Installing skills into a workspace, and removing them.
//!
//! Skills are written to a hidden folder first and moved as a whole; the manifest is written last
//! and makes them valid. If any step fails, the workspace is as it was before.
//!
//! Effects: the clock, randomness, workspace files (writes).

use super::bundle::{BundledSkill, BundledSkills};
use super::manifest::{self, InstalledSkill, InstalledSource, Manifest, SKILLS_DIR};
use super::progress::SkillPhase;
use super::{Bundle, BundleFile, FetchedSkills, SkillProgress, SkillSource, SourceError};
use crate::{SkillFlavor, SkillLayer, SkillOrigin};
use bytes::Bytes;
use futures_util::{StreamExt, stream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use stead_vfs::{Expect, VPath, Version, Vfs, VfsError};

/// The number of files that are written concurrently.
const MAX_CONCURRENT_WRITES: usize = 16;
/// The age after which leftovers of a killed installation are removed by a later one.
const ABANDONED_MS: i64 = 60 * 60 * 1000;
const STAGING: &str = ".staging-";

/// The sources that are installed in a workspace.
#[derive(Debug)]
pub struct Installation {
    files: Arc<dyn Vfs>,
    manifest: Manifest,
    version: Option<Version>,
}

/// The outcome of installing a source.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstallOutcome {
    /// The source is new.
    New,
    /// It replaced another revision of the same source.
    Updated,
    /// The same revision was installed already.
    Unchanged,
}

impl Installation {
    /// Reads what is installed in the workspace `files`.
    pub async fn open(files: Arc<dyn Vfs>) -> Result<Self, SourceError> {
        let (manifest, version) = manifest::read(&*files).await?;
        Ok(Self {
            files,
            manifest,
            version,
        })
    }

    /// Returns the installed sources in the order in which they were added.
    pub fn sources(&self) -> &[InstalledSource] {
        &self.manifest.sources
    }

    /// Returns the source called `name`.
    pub fn source(&self, name: &str) -> Result<&InstalledSource, SourceError> {
        self.manifest
            .sources
            .iter()
            .find(|source| source.name == name)
            .ok_or_else(|| {
                let names: Vec<&str> = self
                    .manifest
                    .sources
                    .iter()
                    .map(|source| source.name.as_str())
                    .collect();
                let known = if names.is_empty() {
                    "none is installed".to_owned()
                } else {
                    format!("there are {}", names.join(", "))
                };
                SourceError::Unknown {
                    name: name.to_owned(),
                    known,
                }
            })
    }

    /// Returns a layer for each source.
    pub fn layers(&self) -> Vec<SkillLayer> {
        layers(&self.files, &self.manifest)
    }

    /// Checks whether a new source may have this name.
    pub fn check_new(&self, name: &str) -> Result<(), SourceError> {
        manifest::check_name(name)?;
        match self.source(name) {
            Ok(_) => Err(SourceError::Exists(name.to_owned())),
            Err(_) => Ok(()),
        }
    }

    /// Installs fetched skills as the source `name`, replacing its earlier revision.
    pub async fn install(
        &mut self,
        name: &str,
        fetched: &FetchedSkills,
        progress: &SkillProgress,
    ) -> Result<InstallOutcome, SourceError> {
        manifest::check_name(name)?;
        let FetchedSkills {
            source,
            pinned,
            skills,
        } = fetched;
        let installed = InstalledSource {
            name: name.to_owned(),
            kind: source.kind,
            from: source.from.clone(),
            rev: source.rev.clone(),
            pinned: pinned.clone(),
            skills: skills.usable.iter().map(installed_skill).collect(),
        };
        let place = source_dir(name)?;
        let mut manifest = self.manifest.clone();
        let outcome = match manifest
            .sources
            .iter_mut()
            .find(|source| source.name == name)
        {
            Some(known)
                if *known == installed
                    && self.exists(&place).await?
                    && self.modified_skills(name).await?.is_empty() =>
            {
                return Ok(InstallOutcome::Unchanged);
            }
            Some(known) => {
                *known = installed;
                InstallOutcome::Updated
            }
            None => {
                manifest.sources.push(installed);
                InstallOutcome::New
            }
        };
        let before = self.missing_dirs().await?;
        let staging = Staging::new()?;
        let done = self
            .replace(&staging, &place, Some(skills), manifest, progress)
            .await;
        self.clean_up(&staging, before, &done).await;
        done.map(|()| outcome)
    }

    /// Removes the source `name` with its skills.
    pub async fn remove(&mut self, name: &str) -> Result<InstalledSource, SourceError> {
        let removed = self.source(name)?.clone();
        let mut manifest = self.manifest.clone();
        manifest.sources.retain(|source| source.name != name);
        let staging = Staging::new()?;
        let done = self
            .replace(
                &staging,
                &source_dir(name)?,
                None,
                manifest,
                &SkillProgress::default(),
            )
            .await;
        self.clean_up(&staging, MissingDirs::NONE, &done).await;
        done.map(|()| removed)
    }

    /// Returns the skills of the source `name` whose files were changed after installation.
    pub async fn modified_skills(&self, name: &str) -> Result<Vec<String>, SourceError> {
        let source = self.source(name)?;
        let place = source_dir(name)?;
        let mut changed = Vec::new();
        for skill in &source.skills {
            let dir = place.join(&skill.dir).map_err(VfsError::from)?;
            let files =
                match Bundle::from_files(&*self.files, &dir, &SkillProgress::default()).await {
                    Ok(bundle) => bundle.files,
                    Err(SourceError::Files(VfsError::NotFound(_))) => Default::default(),
                    Err(error) => return Err(error),
                };
            let now = BundledSkill {
                name: skill.name.clone(),
                dir: skill.dir.clone(),
                files,
            };
            if now.hash() != skill.hash {
                changed.push(skill.name.clone());
            }
        }
        Ok(changed)
    }

    /// Replaces the directory `place` by `skills`, or removes it, and then writes the manifest.
    async fn replace(
        &mut self,
        staging: &Staging,
        place: &VPath,
        skills: Option<&BundledSkills>,
        manifest: Manifest,
        progress: &SkillProgress,
    ) -> Result<(), SourceError> {
        if let Some(skills) = skills {
            self.stage(staging, skills, progress).await?;
        }
        let had_one = match self.files.rename(place, &staging.old).await {
            Ok(()) => true,
            Err(VfsError::NotFound(_)) => false,
            Err(error) => return Err(error.into()),
        };
        let mut done = match skills {
            Some(_) => self
                .files
                .rename(&staging.new, place)
                .await
                .map_err(SourceError::from),
            None => Ok(()),
        };
        if done.is_ok() {
            done = self.write_manifest(manifest).await;
            if done.is_err() && skills.is_some() {
                let _ = self.files.remove(place).await;
            }
        }
        if done.is_err() && had_one {
            // Report the failure that led here, not one of the cleanup.
            let _ = self.files.rename(&staging.old, place).await;
        }
        done
    }

    /// Writes the skills to a hidden folder beside their final one.
    async fn stage(
        &self,
        staging: &Staging,
        skills: &BundledSkills,
        progress: &SkillProgress,
    ) -> Result<(), SourceError> {
        let mut files = Vec::new();
        for skill in &skills.usable {
            let dir = staging.new.join(&skill.dir).map_err(VfsError::from)?;
            for (path, file) in &skill.files {
                files.push((dir.join(path.as_str()).map_err(VfsError::from)?, file));
            }
        }
        progress.enter(SkillPhase::Writing, files.len());
        let has_failed = AtomicBool::new(false);
        let written: Vec<Result<(), VfsError>> = stream::iter(files)
            .map(|(path, file)| {
                let has_failed = &has_failed;
                async move {
                    if has_failed.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    let written = self.write_file(&path, file).await;
                    has_failed.fetch_or(written.is_err(), Ordering::Relaxed);
                    progress.step();
                    written
                }
            })
            .buffer_unordered(MAX_CONCURRENT_WRITES)
            // Wait for all writes even if one failed: a detached write would continue during the
            // cleanup.
            .collect()
            .await;
        Ok(written.into_iter().collect::<Result<(), VfsError>>()?)
    }

    async fn write_file(&self, path: &VPath, file: &BundleFile) -> Result<(), VfsError> {
        self.files
            .write(path, file.content.clone(), Expect::Absent)
            .await?;
        self.files
            .set_mode(path, if file.executable { 0o755 } else { 0o644 })
            .await
    }

    /// Writes the manifest, unless another process changed it since it was read.
    async fn write_manifest(&mut self, manifest: Manifest) -> Result<(), SourceError> {
        let expect = self.version.clone().map_or(Expect::Absent, Expect::Version);
        let mut text = serde_json::to_string_pretty(&manifest).unwrap_or_default();
        text.push('\n');
        self.version = Some(
            self.files
                .write(&manifest::path()?, Bytes::from(text), expect)
                .await?,
        );
        self.manifest = manifest;
        Ok(())
    }

    async fn exists(&self, path: &VPath) -> Result<bool, VfsError> {
        match self.files.stat(path).await {
            Ok(_) => Ok(true),
            Err(VfsError::NotFound(_)) => Ok(false),
            Err(error) => Err(error),
        }
    }

    /// Returns which of the directories for installed skills exist already.
    async fn missing_dirs(&self) -> Result<MissingDirs, SourceError> {
        let all = own_directories()?;
        let mut missing = Vec::new();
        for dir in all {
            if !self.exists(&dir).await? {
                missing.push(dir);
            }
        }
        Ok(MissingDirs { missing })
    }

    /// Removes what is left of an operation, and old leftovers of killed ones.
    async fn clean_up(
        &mut self,
        staging: &Staging,
        before: MissingDirs,
        done: &Result<(), SourceError>,
    ) {
        // Failures are ignored: what remains is hidden, and a later operation removes it.
        for path in [&staging.new, &staging.old] {
            let _ = self.files.remove(path).await;
        }
        self.remove_abandoned().await;
        let made = if done.is_err() {
            before.missing
        } else {
            Vec::new()
        };
        let is_empty = self.manifest.sources.is_empty() && done.is_ok();
        if is_empty && let Ok(manifest) = manifest::path() {
            let _ = self.files.remove(&manifest).await;
            self.version = None;
        }
        let candidates = if is_empty {
            own_directories().unwrap_or_default()
        } else {
            made
        };
        for dir in candidates {
            if self
                .files
                .list(&dir)
                .await
                .is_ok_and(|entries| entries.is_empty())
            {
                let _ = self.files.remove(&dir).await;
            }
        }
    }

    async fn remove_abandoned(&self) {
        let Ok(dir) = VPath::parse(SKILLS_DIR) else {
            return;
        };
        let now = jiff::Timestamp::now().as_millisecond();
        for entry in self.files.list(&dir).await.unwrap_or_default() {
            let is_old = entry.name.starts_with(STAGING) && now - entry.modified_ms > ABANDONED_MS;
            if is_old && let Ok(path) = dir.join(&entry.name) {
                let _ = self.files.remove(&path).await;
            }
        }
    }
}

impl InstalledSource {
    /// Returns the source it came from.
    pub fn source(&self) -> SkillSource {
        SkillSource {
            kind: self.kind,
            from: self.from.clone(),
            rev: self.rev.clone(),
        }
    }
}

/// Returns a layer for each source of a manifest.
pub(crate) fn layers(files: &Arc<dyn Vfs>, manifest: &Manifest) -> Vec<SkillLayer> {
    let layer = |source: &InstalledSource| {
        let layer = SkillOrigin::Repository(source.name.clone());
        Some(SkillLayer {
            origin: layer,
            files: files.clone(),
            root: source_dir(&source.name).ok()?,
            except: Vec::new(),
            flavor: SkillFlavor::Standard,
        })
    };
    manifest.sources.iter().filter_map(layer).collect()
}

fn installed_skill(skill: &BundledSkill) -> InstalledSkill {
    InstalledSkill {
        name: skill.name.clone(),
        dir: skill.dir.clone(),
        hash: skill.hash(),
    }
}

/// Returns the directory of a source.
fn source_dir(name: &str) -> Result<VPath, VfsError> {
    Ok(VPath::parse(&format!("{SKILLS_DIR}/{name}"))?)
}

/// Returns the directories that exist only for installed skills, innermost first.
fn own_directories() -> Result<Vec<VPath>, VfsError> {
    let skills = VPath::parse(SKILLS_DIR)?;
    let above = skills.parent();
    Ok([skills].into_iter().chain(above).collect())
}

/// Returns the directories that did not exist before an operation, innermost first.
struct MissingDirs {
    missing: Vec<VPath>,
}

impl MissingDirs {
    const NONE: Self = Self {
        missing: Vec::new(),
    };
}

/// Returns a hidden directory for new files before they are moved and old ones before they are
/// removed. No skill is found in it.
struct Staging {
    new: VPath,
    old: VPath,
}

impl Staging {
    fn new() -> Result<Self, VfsError> {
        let id = uuid::Uuid::now_v7().simple();
        let path = |what: &str| VPath::parse(&format!("{SKILLS_DIR}/{STAGING}{what}-{id}"));
        Ok(Self {
            new: path("new")?,
            old: path("old")?,
        })
    }
}
