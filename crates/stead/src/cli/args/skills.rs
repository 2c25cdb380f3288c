//! The arguments of `stead skills`.
//!
//! Effects: none.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct SkillsArgs {
    #[command(subcommand)]
    pub(crate) command: SkillsCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum SkillsCommand {
    /// Install the skills of a repository, a directory, an archive or a store
    #[command(after_help = "Examples:
  stead skills add https://git.example/team/skills.git#v1.2   a branch, tag or commit
  stead skills add 'https://${TOKEN}@git.example/team/skills.git'
  stead skills add ../shared-skills                           a directory
  stead skills add skills.tar.gz --name team                  an archive
  stead skills add 'postgres://me:${PW}@db.example/team'      what was published to a store

A secret is named, never written: ${VARIABLE} is kept, its value is not (quote it, or the shell fills
it in). What is installed lies in .stead/skills/, and .stead/skills.json says where it came from.")]
    Add {
        /// The source: URL[#REV], a path, or the URL of a store
        source: String,
        /// The name of the source [default: the last part of its address]
        #[arg(long)]
        name: Option<String>,
    },
    /// List skills with their sources, hidden duplicates and problems
    List {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Remove an installed source with its skills
    Remove {
        /// The source, as `list` names it
        name: String,
    },
    /// Fetch installed sources again
    #[command(after_help = "Examples:
  stead skills update          all sources
  stead skills update team     one of them")]
    Update {
        /// The source [default: all]
        name: Option<String>,
    },
    /// Put the skills of a directory into a store, for others to add from there
    #[command(after_help = "Examples:
  stead skills publish skills sqlite:/srv/team/skills.db
  stead skills publish skills 'postgres://me:${PW}@db.example/team'")]
    Publish {
        /// The directory
        dir: PathBuf,
        /// The store: sqlite:FILE, postgres://…, mysql://… or redis://…
        #[arg(value_name = "STORE_URL")]
        store: String,
    },
    /// Check all skills strictly against the Agent Skills standard; exit code 2 if the workspace's
    /// own are not valid
    Check {
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

impl SkillsCommand {
    /// Whether the command changes nothing.
    pub(crate) fn only_shows(&self) -> bool {
        match self {
            Self::List { .. } | Self::Check { .. } => true,
            Self::Add { .. } | Self::Remove { .. } | Self::Update { .. } | Self::Publish { .. } => {
                false
            }
        }
    }
}
