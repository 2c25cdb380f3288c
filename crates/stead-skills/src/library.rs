//! Finding skills, and caching what their files say.
//!
//! Effects: workspace files (reads).

use crate::catalogue::{Catalogue, Consequence, SkillFinding};
use crate::parse::{self, MAX_FILE_BYTES, parse_skill, too_large};
use crate::render::SkillBody;
use crate::source::{
    SourceError, install,
    manifest::{self, Manifest},
};
use crate::{SKILL_FILE, Skill, SkillFlavor, SkillHeader, SkillLayer, SkillOrigin, SkillProblem};
use futures_util::{StreamExt, stream};
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use stead_vfs::{DirEntry, FileKind, ReadRange, VPath, Version, Vfs, VfsError};

/// The maximum depth of a skill below the root of its layer.
const MAX_DEPTH: usize = 4;
/// The maximum number of directories that are searched below a root.
const MAX_DIRECTORIES: usize = 2000;
/// The number of files that are looked up concurrently.
const MAX_CONCURRENT_READS: usize = 16;
/// The number of cached files. Beyond it, those that the last merge did not see are dropped.
const MAX_CACHED_SKILLS: usize = 20_000;
/// The number of cached manifests: each user of a shared place may have one.
const MAX_CACHED_MANIFESTS: usize = 64;

/// Finds skills, and reads each SKILL.md again only when it has changed. A merge of known skills
/// only lists directories and compares versions.
#[derive(Debug, Default)]
pub struct SkillLibrary {
    cache: Mutex<HashMap<SkillCacheKey, CachedSkill>>,
    /// The manifests of installed sources by version, newest last.
    manifests: Mutex<Vec<(Version, Arc<Manifest>)>>,
    merges: AtomicU64,
}

/// The key of a cached file. Versions tell contents apart, so one key never means two texts.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct SkillCacheKey {
    layer: SkillOrigin,
    flavor: SkillFlavor,
    path: VPath,
    version: Version,
}

impl SkillCacheKey {
    fn of(skill: &Skill) -> Self {
        let layer = skill.origin.clone();
        let path = skill.file();
        let version = skill.version.clone();
        Self {
            layer,
            flavor: skill.flavor,
            path,
            version,
        }
    }
}

#[derive(Debug, Clone)]
struct CachedSkill {
    read: ParsedSkill,
    /// The text after the front matter, once it has been read.
    body: Option<SkillBody>,
    /// The number of the merge that saw the file last.
    merge: u64,
}

/// The outcome of reading a SKILL.md: its front matter and warnings, or why it cannot be used.
type ParsedSkill = Arc<Result<(Arc<SkillHeader>, Vec<SkillProblem>), SkillProblem>>;

/// A directory with a SKILL.md.
struct FoundSkill {
    dir: VPath,
    version: Version,
    size: u64,
}

impl SkillLibrary {
    /// Merges the skills of `layers`, lowest first.
    pub async fn catalogue(&self, layers: &[SkillLayer]) -> Catalogue {
        let merge = self.merges.fetch_add(1, Ordering::Relaxed);
        let mut catalogue = Catalogue::default();
        for layer in layers {
            let mut scan = SkillScan {
                layer,
                found: Vec::new(),
                findings: Vec::new(),
                dirs_scanned: 0,
                link_targets: BTreeSet::new(),
            };
            scan.run().await;
            catalogue.findings.append(&mut scan.findings);
            let mut found = std::mem::take(&mut scan.found);
            found.sort_by(|a, b| a.dir.cmp(&b.dir));
            let read: Vec<_> = stream::iter(found)
                .map(|found| async move { (self.read_cached(layer, &found, merge).await, found) })
                .buffered(MAX_CONCURRENT_READS)
                .collect()
                .await;
            let mut names = BTreeSet::new();
            for (read, found) in read {
                add_found(&mut catalogue, &mut names, layer, found, &read);
            }
        }
        self.evict_unseen(merge);
        catalogue
    }

    /// Returns a layer for each source that is installed in the workspace `files`, lowest first. The
    /// manifest is read again only when it has changed.
    pub async fn repositories(&self, files: &Arc<dyn Vfs>) -> Result<Vec<SkillLayer>, SourceError> {
        let version = match files.stat(&manifest::path()?).await {
            Ok(stat) => stat.version,
            Err(VfsError::NotFound(_)) => return Ok(Vec::new()),
            Err(error) => return Err(error.into()),
        };
        let known = {
            let manifests = self
                .manifests
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            manifests
                .iter()
                .find(|(known, _)| *known == version)
                .map(|(_, manifest)| manifest.clone())
        };
        let manifest = match known {
            Some(manifest) => manifest,
            None => {
                let (manifest, version) = manifest::read(&**files).await?;
                let manifest = Arc::new(manifest);
                let mut manifests = self
                    .manifests
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner);
                if manifests.len() == MAX_CACHED_MANIFESTS {
                    manifests.remove(0);
                }
                manifests.extend(version.map(|version| (version, manifest.clone())));
                manifest
            }
        };
        Ok(install::layers(files, &manifest))
    }

    async fn read_cached(&self, layer: &SkillLayer, found: &FoundSkill, merge: u64) -> ParsedSkill {
        let path = file_in(&found.dir);
        let layer_name = layer.origin.clone();
        let flavor = layer.flavor;
        let key = SkillCacheKey {
            layer: layer_name,
            flavor,
            path,
            version: found.version.clone(),
        };
        if let Some(known) = self
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&key)
        {
            known.merge = merge;
            return known.read.clone();
        }
        if found.size > MAX_FILE_BYTES {
            return Arc::new(Err(too_large(found.size)));
        }
        let range = ReadRange {
            offset: 0,
            len: MAX_FILE_BYTES + 1,
        };
        let (content, version) = match layer.files.read(&key.path, range).await {
            Ok(read) => read,
            // The file may exist again at the next merge.
            Err(error) => return Arc::new(Err(SkillProblem::whole_file(error.to_string()))),
        };
        let read = parse_skill(layer.flavor, found.dir.name(), &content);
        let read = Arc::new(read.map(|text| (Arc::new(text.header), text.warnings)));
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        known.insert(
            SkillCacheKey { version, ..key },
            CachedSkill {
                read: read.clone(),
                body: None,
                merge,
            },
        );
        read
    }

    pub(crate) fn cached_body(&self, skill: &Skill) -> Option<SkillBody> {
        self.cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(&SkillCacheKey::of(skill))?
            .body
            .clone()
    }

    pub(crate) fn cache_body(&self, skill: &Skill, body: SkillBody) {
        if let Some(known) = self
            .cache
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get_mut(&SkillCacheKey::of(skill))
        {
            known.body = Some(body);
        }
    }

    fn evict_unseen(&self, merge: u64) {
        let mut known = self.cache.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() > MAX_CACHED_SKILLS {
            known.retain(|_, known| known.merge == merge);
        }
    }
}

/// `names` holds the names of the skills that were found in the layer so far.
fn add_found(
    catalogue: &mut Catalogue,
    names: &mut BTreeSet<String>,
    layer: &SkillLayer,
    found: FoundSkill,
    read: &ParsedSkill,
) {
    let path = file_in(&found.dir);
    let mut tell = |problem: &SkillProblem, consequence| {
        let layer = layer.origin.clone();
        let path = path.clone();
        let problem = problem.clone();
        catalogue.findings.push(SkillFinding {
            origin: layer,
            path,
            problem,
            consequence,
        });
    };
    match &**read {
        Err(problem) => tell(problem, Consequence::Skipped),
        Ok((header, warnings)) => {
            warnings
                .iter()
                .for_each(|warning| tell(warning, Consequence::Used));
            let skill = Skill {
                header: header.clone(),
                origin: layer.origin.clone(),
                files: layer.files.clone(),
                dir: found.dir,
                version: found.version,
                flavor: layer.flavor,
            };
            if names.insert(header.name.clone()) {
                catalogue.insert(skill)
            } else {
                catalogue.insert_shadowed(skill)
            }
        }
    }
}

fn file_in(dir: &VPath) -> VPath {
    dir.join(SKILL_FILE).unwrap_or_else(|_| dir.clone())
}

/// The search through one layer.
struct SkillScan<'a> {
    layer: &'a SkillLayer,
    found: Vec<FoundSkill>,
    findings: Vec<SkillFinding>,
    dirs_scanned: usize,
    /// The targets of links that were followed, so that each is searched once.
    link_targets: BTreeSet<VPath>,
}

impl SkillScan<'_> {
    async fn run(&mut self) {
        let mut level = vec![self.layer.root.clone()];
        for depth in 0..MAX_DEPTH {
            let mut next = Vec::new();
            for dir in std::mem::take(&mut level) {
                let is_root = depth == 0;
                for child in self.directories(&dir, is_root).await {
                    if self.dirs_scanned == MAX_DIRECTORIES {
                        let message = format!(
                            "only {MAX_DIRECTORIES} directories are looked at; the rest is left out"
                        );
                        return self.note(dir, message);
                    }
                    self.dirs_scanned += 1;
                    next.push(child);
                }
            }
            level = self.partition_skills(next).await;
        }
    }

    /// Returns the directories in `dir` that may hold skills.
    async fn directories(&mut self, dir: &VPath, is_root: bool) -> Vec<VPath> {
        let entries = match self.layer.files.list(dir).await {
            Ok(entries) => entries,
            Err(VfsError::NotFound(_)) if is_root => return Vec::new(),
            Err(error) => {
                self.note(dir.clone(), error.to_string());
                return Vec::new();
            }
        };
        if !is_root
            && entries
                .iter()
                .any(|entry| entry.name == "skill.md" && entry.kind == FileKind::File)
        {
            self.note(
                dir.clone(),
                format!("skill.md must be called {SKILL_FILE}; rename it"),
            );
        }
        let mut children = Vec::new();
        for entry in entries.into_iter().filter(may_hold_skills) {
            let Ok(path) = dir.join(&entry.name) else {
                continue;
            };
            if self.layer.except.contains(&path) {
                continue;
            }
            if entry.link && !self.is_new_link_target(&path).await {
                continue;
            }
            children.push(path);
        }
        children
    }

    /// Returns whether the target of a link was not searched through another link and is not an
    /// ancestor of the link.
    async fn is_new_link_target(&mut self, link: &VPath) -> bool {
        match self.layer.files.resolve(link).await {
            Ok(end) => {
                !end.contains(link)
                    && !end.contains(&self.layer.root)
                    && self.link_targets.insert(end)
            }
            Err(_) => false,
        }
    }

    /// Records the skills among `dirs` and returns the other directories.
    async fn partition_skills(&mut self, dirs: Vec<VPath>) -> Vec<VPath> {
        let files = &self.layer.files;
        let asked: Vec<_> = stream::iter(dirs)
            .map(|dir| async move { (files.stat(&file_in(&dir)).await, dir) })
            .buffered(MAX_CONCURRENT_READS)
            .collect()
            .await;
        let mut rest = Vec::new();
        for (stat, dir) in asked {
            match stat {
                Ok(stat) if stat.kind == FileKind::File => {
                    self.found.push(FoundSkill {
                        dir,
                        version: stat.version,
                        size: stat.size,
                    });
                }
                Ok(_) => self.note(dir, format!("its {SKILL_FILE} is not a file")),
                Err(VfsError::NotFound(_)) => rest.push(dir),
                Err(error) => self.note(dir, error.to_string()),
            }
        }
        rest
    }

    fn note(&mut self, path: VPath, message: String) {
        let layer = self.layer.origin.clone();
        let problem = SkillProblem::whole_file(message);
        self.findings.push(SkillFinding {
            origin: layer,
            path,
            problem,
            consequence: Consequence::Skipped,
        });
    }
}

fn may_hold_skills(entry: &DirEntry) -> bool {
    entry.kind == FileKind::Directory
        && !entry.name.starts_with(['.', '_'])
        && entry.name != "node_modules"
}

/// Reads the current SKILL.md of a skill.
pub(crate) async fn read_skill(skill: &Skill) -> Result<(bytes::Bytes, parse::SkillText), String> {
    let path = skill.file();
    let range = ReadRange {
        offset: 0,
        len: MAX_FILE_BYTES + 1,
    };
    let (content, _) = skill
        .files
        .read(&path, range)
        .await
        .map_err(|error| error.to_string())?;
    let text = parse_skill(skill.flavor, skill.dir.name(), &content)
        .map_err(|problem| format!("{path}:{problem}"))?;
    Ok((content, text))
}
