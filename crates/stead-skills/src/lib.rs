//! Agent Skills: instructions that an agent loads when it needs them.
//!
//! A skill is a folder with a `SKILL.md`, as the Agent Skills standard describes it. A
//! [`SkillLayer`] is a folder of skills. A [`SkillLibrary`] merges layers, lowest first, into a
//! [`Catalogue`], which the prompt shows and the tool [`load_skill`] loads from.
//!
//! ```
//! use std::sync::Arc;
//! use stead_skills::{SkillFlavor, SkillLayer, SkillLibrary, SkillOrigin};
//! use stead_vfs::{Expect, StoreVfs, VPath, Vfs};
//!
//! # tokio::runtime::Builder::new_current_thread().build().unwrap().block_on(async {
//! let files: Arc<dyn Vfs> = Arc::new(StoreVfs::in_memory());
//! let text = "---\nname: pdf\ndescription: Reads PDF files.\n---\nUse pdftotext.";
//! files.write(&VPath::parse("skills/pdf/SKILL.md")?, text.into(), Expect::Absent).await?;
//!
//! let layer = SkillLayer {
//!     origin: SkillOrigin::Workspace,
//!     files,
//!     root: VPath::parse("skills")?,
//!     except: Vec::new(),
//!     flavor: SkillFlavor::Standard,
//! };
//! let catalogue = SkillLibrary::default().catalogue(&[layer]).await;
//! assert_eq!(catalogue.skills().count(), 1);
//! # Ok::<(), stead_vfs::VfsError>(()) }).unwrap();
//! ```
//!
//! - [`validate`] checks a `SKILL.md` against the standard; [`parse_skill`] reads as much of it as
//!   can be read.
//! - [`SkillSource`] and [`Installation`] install skills from folders, archives, git repositories
//!   and stores; [`publish`] shares one's own.
//!
//! Effects: none.

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
pub use parse::{SkillFlavor, SkillHeader, SkillText, parse_skill, quote_colon_values};
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
