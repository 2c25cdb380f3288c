//! Publishing skills to a store that a team shares.
//!
//! Effects: the clock, randomness, workspace files (writes), the local disk (reads).

use super::progress::SkillPhase;
use super::{Bundle, SkillProgress, SourceError};
use crate::validate;
use std::path::Path;
use std::sync::Arc;
use stead_store::{OsDisk, Space, Store};
use stead_vfs::{Expect, LocalVfs, VPath, Vfs, VfsError};

/// Returns the tree of skills that were published to `store`. It is separate from all workspaces.
pub fn published_tree(store: Arc<dyn Store>) -> stead_vfs::StoreVfs {
    stead_vfs::StoreVfs::new(store, Space::new(["published-skills"]))
}

/// Publishes the skills of the local directory `dir` to `to` and returns their names. Each replaces
/// its earlier version as a whole; other skills stay. All skills must be valid.
pub async fn publish(
    dir: &str,
    to: &dyn Vfs,
    progress: &SkillProgress,
) -> Result<Vec<String>, SourceError> {
    progress.enter(SkillPhase::Fetching, 0);
    let files = LocalVfs::open(Path::new(dir), Arc::new(OsDisk))?;
    let bundle = Bundle::from_files(&files, &VPath::root(), progress).await?;
    let last = dir.trim_end_matches('/').rsplit('/').next().unwrap_or(dir);
    let skills = bundle.skills(last)?;
    if let Some((path, problem)) = skills.broken.into_iter().next() {
        let reason = format!("cannot be published: SKILL.md:{problem}");
        return Err(SourceError::Content { path, reason });
    }
    if skills.usable.is_empty() {
        return Err(SourceError::NoSkills(dir.to_owned(), String::new()));
    }
    for skill in &skills.usable {
        let text = &skill.files[&VPath::parse(crate::SKILL_FILE).map_err(VfsError::from)?].content;
        let problems = std::str::from_utf8(text)
            .map(|text| validate(&skill.dir, text))
            .unwrap_or_default();
        if let Some(problem) = problems.into_iter().next() {
            let path = VPath::parse(&skill.dir).map_err(VfsError::from)?;
            return Err(SourceError::Content {
                path,
                reason: format!("cannot be published: SKILL.md:{problem}"),
            });
        }
    }
    progress.enter(
        SkillPhase::Writing,
        skills.usable.iter().map(|skill| skill.files.len()).sum(),
    );
    let id = uuid::Uuid::now_v7().simple();
    for skill in &skills.usable {
        let place = VPath::parse(&skill.dir).map_err(VfsError::from)?;
        let staging = VPath::parse(&format!("_new-{id}-{}", skill.dir)).map_err(VfsError::from)?;
        let old = VPath::parse(&format!("_old-{id}-{}", skill.dir)).map_err(VfsError::from)?;
        let written = write(to, &staging, skill, progress).await;
        let moved = match written {
            Ok(()) => swap(to, &staging, &place, &old).await,
            Err(error) => Err(error),
        };
        for rest in [&staging, &old] {
            // Report the failure that led here, if any, not one of the cleanup.
            let _ = to.remove(rest).await;
        }
        moved?;
    }
    Ok(skills.usable.into_iter().map(|skill| skill.name).collect())
}

async fn write(
    to: &dyn Vfs,
    staging: &VPath,
    skill: &super::BundledSkill,
    progress: &SkillProgress,
) -> Result<(), VfsError> {
    for (path, file) in &skill.files {
        let path = staging.join(path.as_str())?;
        to.write(&path, file.content.clone(), Expect::Absent)
            .await?;
        to.set_mode(&path, if file.executable { 0o755 } else { 0o644 })
            .await?;
        progress.step();
    }
    Ok(())
}

/// Moves `new` to `place`, and what was there to `old`.
async fn swap(to: &dyn Vfs, new: &VPath, place: &VPath, old: &VPath) -> Result<(), VfsError> {
    let had_one = match to.rename(place, old).await {
        Ok(()) => true,
        Err(VfsError::NotFound(_)) => false,
        Err(error) => return Err(error),
    };
    let moved = to.rename(new, place).await;
    if moved.is_err() && had_one {
        let _ = to.rename(old, place).await;
    }
    moved
}
