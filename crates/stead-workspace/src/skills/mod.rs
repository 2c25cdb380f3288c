//! Skills: instructions that an agent looks up when it needs them, as the Agent Skills standard
//! describes them.
//!
//! A skill is a directory with a SKILL.md. [`SkillLayer`]s are directories of skills, low to high;
//! a [`SkillLibrary`] merges them into a [`Catalogue`], which a prompt shows and [`load_skill`]
//! loads from.
//!
//! ```
//! use std::sync::Arc;
//! use stead_vfs::{Expect, StoreVfs, VPath, Vfs};
//! use stead_workspace::skills::{Flavor, Layer, SkillLayer, SkillLibrary};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let files: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
//! let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext.";
//! files.write(&VPath::parse("skills/pdf/SKILL.md")?, text.into(), Expect::Absent).await?;
//!
//! let own = SkillLayer { layer: Layer::Workspace, files, root: VPath::parse("skills")?, flavor: Flavor::Standard };
//! let catalogue = SkillLibrary::default().catalogue(&[own]).await;
//! assert!(catalogue.available(16_000).unwrap().text.contains("<name>pdf</name>"));
//! # Ok::<(), stead_vfs::VfsError>(()) }).unwrap();
//! ```
//!
//! - [`validate`]: whether a SKILL.md is what the standard says. - [`load`]: what can be made of it
//!   in any case.
//! - [`Source`], [`Installation`]: skills of others, installed into a workspace. - [`publish`]:
//!   sharing one's own.

mod catalogue;
mod check;
mod library;
mod parse;
mod problem;
mod render;
mod skill;
mod source;
mod tool;
mod validate;
mod yaml;

pub use catalogue::{Catalogue, Consequence, Shadowed, SkillFinding};
pub use library::SkillLibrary;
pub use parse::{SkillFlavor, SkillHeader, SkillText, parse_skill};
pub use problem::SkillProblem;
pub use render::SkillPrompt;
pub use skill::{SKILL_FILE, Skill, SkillLayer, SkillOrigin};
pub use source::{
    ArchiveError, ArchiveFormat, Bundle, BundleFile, BundledSkill, FetchedSkills, InstallOutcome,
    Installation, InstalledSkill, InstalledSource, MANIFEST, SKILLS_DIR, SkillProgress,
    SkillSource, SourceError, SourceKind, publish, published_tree,
};
pub use tool::load_skill;
pub use validate::{MAX_COMPATIBILITY_CHARS, MAX_DESCRIPTION_CHARS, MAX_NAME_CHARS, validate};
