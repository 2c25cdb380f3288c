//! The files of a source of skills, held in memory until all of them are checked.
//!
//! Effects: workspace files (reads).

use super::archive::{MAX_ENTRIES, MAX_UNPACKED_BYTES, case_folded};
use super::{SkillProgress, SourceError};
use crate::parse::parse_skill;
use crate::{SKILL_FILE, SkillFlavor, SkillProblem};
use bytes::Bytes;
use sha2::{Digest, Sha256};
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write;
use stead_vfs::{ContentHash, FileKind, ReadRange, VPath, Vfs, VfsError, is_secret};

/// The maximum depth of a skill in a source. Archives often have one directory around everything.
const MAX_DEPTH: usize = 6;

/// The names of a repository, at any depth. Some file systems take the last two for the first.
const REPOSITORY: [&str; 3] = [".git", "git~1", ".git."];
/// The files and folders at the root of a skill that would be the settings of a workspace.
const SETTINGS: [&str; 9] = [
    "agent.yaml",
    "tools.json",
    "hooks",
    "crons",
    ".stead",
    ".openharness",
    ".deepagents",
    ".agentscope",
    ".mcp",
];

/// The files of a source.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Bundle {
    pub(crate) files: BTreeMap<VPath, BundleFile>,
    /// Links. They are not followed, and refused only in a skill.
    pub(crate) links: Vec<VPath>,
}

/// A file of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundleFile {
    /// Its content.
    pub content: Bytes,
    /// Whether it is executable.
    pub executable: bool,
}

/// How links are treated.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LinkPolicy {
    /// A link makes the whole source invalid.
    Refuse,
    /// Links are recorded and left out.
    Record,
}

/// A skill of a source.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BundledSkill {
    /// Its name.
    pub name: String,
    /// The directory it is installed in.
    pub dir: String,
    /// Its files, by their paths in that directory.
    pub files: BTreeMap<VPath, BundleFile>,
}

impl BundledSkill {
    /// Returns a hash of the files.
    pub fn hash(&self) -> String {
        let mut all = Sha256::new();
        for (path, file) in &self.files {
            all.update((path.as_str().len() as u64).to_le_bytes());
            all.update(path.as_str());
            all.update([u8::from(file.executable)]);
            all.update(ContentHash::of(&file.content).0);
        }
        hex(&all.finalize())
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut hex, byte| {
        let _ = write!(hex, "{byte:02x}");
        hex
    })
}

/// The skills of a source, and the directories that cannot be used.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct BundledSkills {
    pub(crate) usable: Vec<BundledSkill>,
    pub(crate) broken: Vec<(VPath, SkillProblem)>,
}

impl BundledSkills {
    /// Returns a hash of the skills.
    pub(crate) fn hash(&self) -> String {
        let mut all = Sha256::new();
        for skill in &self.usable {
            all.update(format!("{}\n{}\n", skill.dir, skill.hash()));
        }
        hex(&all.finalize())
    }
}

impl Bundle {
    /// Returns the files by their paths, which are relative to the root of the source.
    pub fn files(&self) -> &BTreeMap<VPath, BundleFile> {
        &self.files
    }

    /// Reads the files below `root`, except for the folders of git and package managers.
    pub(crate) async fn from_files(
        files: &dyn Vfs,
        root: &VPath,
        progress: &SkillProgress,
    ) -> Result<Self, SourceError> {
        let mut bundle = Self::default();
        let mut bytes = 0;
        let mut open = vec![root.clone()];
        let mut entries = 0;
        while let Some(dir) = open.pop() {
            for entry in files.list(&dir).await? {
                if is_ignored_dir(&entry.name) {
                    continue;
                }
                let path = dir.join(&entry.name).map_err(VfsError::from)?;
                let inside = relative_to(root, &path)?;
                entries += 1;
                if entries > MAX_ENTRIES {
                    let reason =
                        format!("has more than {MAX_ENTRIES} entries; name a smaller directory");
                    return Err(SourceError::Content {
                        path: root.clone(),
                        reason,
                    });
                }
                match entry.kind {
                    _ if entry.link => bundle.links.push(inside),
                    FileKind::Directory => open.push(path),
                    FileKind::Other => bundle.links.push(inside),
                    FileKind::File => {
                        let range = ReadRange {
                            offset: 0,
                            len: MAX_UNPACKED_BYTES - bytes + 1,
                        };
                        let content = files.read(&path, range).await?.0;
                        bytes += content.len() as u64;
                        if bytes > MAX_UNPACKED_BYTES {
                            let reason = format!(
                                "has more than {MAX_UNPACKED_BYTES} bytes; name a smaller directory"
                            );
                            return Err(SourceError::Content {
                                path: root.clone(),
                                reason,
                            });
                        }
                        let executable = entry.mode.is_some_and(|mode| mode & 0o111 != 0);
                        bundle.files.insert(
                            inside,
                            BundleFile {
                                content,
                                executable,
                            },
                        );
                        progress.step();
                    }
                }
            }
        }
        Ok(bundle)
    }

    /// Returns the skills in it. A skill at the root is named `name`.
    pub(crate) fn skills(&self, name: &str) -> Result<BundledSkills, SourceError> {
        let mut skills = BundledSkills::default();
        for dir in self.skill_dirs() {
            let files: BTreeMap<VPath, BundleFile> = self
                .files
                .iter()
                .filter(|(path, _)| dir.contains(path))
                .map(|(path, file)| Ok((relative_to(&dir, path)?, file.clone())))
                .collect::<Result<_, SourceError>>()?;
            if let Some(link) = self.links.iter().find(|link| dir.contains(link)) {
                let reason =
                    "is a link or not a regular file, and skills must be plain files".to_owned();
                return Err(SourceError::Content {
                    path: link.clone(),
                    reason,
                });
            }
            refuse_protected(&dir, &files)?;
            refuse_collisions(&dir, &files)?;
            let text = &self.files[&dir.join(SKILL_FILE).map_err(VfsError::from)?].content;
            let dir_name = if dir.is_root() { name } else { dir.name() };
            match parse_skill(SkillFlavor::Standard, dir_name, text) {
                Ok(text) => {
                    // The root is named after the archive; the name in the front matter is better.
                    let dir = if dir.is_root() {
                        root_name(&text.header.name, name)
                    } else {
                        dir_name.to_owned()
                    };
                    skills.usable.push(BundledSkill {
                        name: text.header.name,
                        dir,
                        files,
                    });
                }
                Err(problem) => skills.broken.push((dir, problem)),
            }
        }
        skills.usable.sort_by(|a, b| a.dir.cmp(&b.dir));
        let twice = skills
            .usable
            .windows(2)
            .find(|pair| case_folded(&pair[0].dir) == case_folded(&pair[1].dir));
        if let Some([skill, _]) = twice {
            let path = VPath::parse(&skill.dir).map_err(VfsError::from)?;
            return Err(SourceError::Content {
                path,
                reason: "is there twice; give the part that is meant".to_owned(),
            });
        }
        Ok(skills)
    }

    /// Returns the directories with a SKILL.md that are not inside another such directory.
    fn skill_dirs(&self) -> Vec<VPath> {
        let mut dirs: Vec<VPath> = Vec::new();
        let candidates: BTreeSet<VPath> = self
            .files
            .keys()
            .filter(|path| path.name() == SKILL_FILE && path.parts().count() <= MAX_DEPTH)
            .filter(|path| !path.parts().any(is_ignored_dir))
            .filter_map(VPath::parent)
            .collect();
        for dir in candidates {
            if !dirs.iter().any(|above| above.contains(&dir)) {
                dirs.push(dir);
            }
        }
        dirs
    }
}

fn root_name(name: &str, otherwise: &str) -> String {
    let fits = !name.starts_with(['.', '_'])
        && VPath::parse(name).is_ok_and(|path| path.as_str() == name)
        && !name.contains('/');
    if fits {
        name.to_owned()
    } else {
        otherwise.to_owned()
    }
}

fn is_ignored_dir(name: &str) -> bool {
    matches!(name, ".git" | "node_modules") || name.starts_with('_')
}

/// Refuses a skill with a repository, secrets or the settings of a workspace in it: `.git` and
/// hooks say what programs run.
fn refuse_protected(dir: &VPath, files: &BTreeMap<VPath, BundleFile>) -> Result<(), SourceError> {
    let is_one_of =
        |name: &str, names: &[&str]| names.iter().any(|one| name.eq_ignore_ascii_case(one));
    for path in files.keys() {
        let first = path.parts().next().unwrap_or_default();
        let reason = if path.parts().any(|name| is_one_of(name, &REPOSITORY)) {
            "is part of a repository, whose settings start programs"
        } else if is_secret(path) {
            "is a place for secrets, which agents never read"
        } else if is_one_of(first, &SETTINGS) {
            "holds settings of a workspace, which decide what runs"
        } else {
            continue;
        };
        return Err(SourceError::Content {
            path: dir.join(path.as_str()).map_err(VfsError::from)?,
            reason: format!(
                "{reason}, and skills must not contain such files; remove it from the source"
            ),
        });
    }
    Ok(())
}

fn refuse_collisions(dir: &VPath, files: &BTreeMap<VPath, BundleFile>) -> Result<(), SourceError> {
    let mut seen = BTreeMap::new();
    for path in files.keys() {
        if let Some(other) = seen.insert(case_folded(path.as_str()), path) {
            let reason = format!("would be one file with {other} where case does not matter");
            return Err(SourceError::Content {
                path: dir.join(path.as_str()).map_err(VfsError::from)?,
                reason,
            });
        }
    }
    Ok(())
}

/// Returns `path` relative to `dir`, which contains it.
fn relative_to(dir: &VPath, path: &VPath) -> Result<VPath, SourceError> {
    Ok(VPath::parse(&path.as_str()[dir.as_str().len()..]).map_err(VfsError::from)?)
}
