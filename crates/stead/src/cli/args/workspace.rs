//! The arguments of `stead workspace`, the commands that copy a workspace between folders and
//! stores.
//!
//! Effects: none.

use clap::{Args, Subcommand};

#[derive(Debug, Args)]
pub(crate) struct WorkspaceArgs {
    #[command(subcommand)]
    pub(crate) command: WorkspaceCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum WorkspaceCommand {
    /// Copy this folder to the store: its files become the shared template; sessions are copied too
    #[command(after_help = "Examples:
  stead workspace push --dry-run                     to the store that agent.yaml names
  stead workspace push postgres://db.local/agents    to another one")]
    Push {
        /// The store [default: filesystem.url of agent.yaml]
        url: Option<String>,
        #[command(flatten)]
        how: CopyArgs,
    },
    /// Make this folder like the store
    Pull {
        /// The store [default: filesystem.url of agent.yaml]
        url: Option<String>,
        #[command(flatten)]
        how: CopyArgs,
    },
    /// Make one place like another; a place is a folder or the URL of a store
    #[command(after_help = "Examples:
  stead workspace copy my-agent sqlite:/var/lib/agents.db
  stead workspace copy redis://old/ postgres://new/agents --dry-run")]
    Copy {
        /// The source
        #[arg(value_name = "SRC")]
        from: String,
        /// The destination
        #[arg(value_name = "DST")]
        to: String,
        #[command(flatten)]
        how: CopyArgs,
    },
}

/// The flags of a copy.
#[derive(Debug, Clone, Args)]
pub(crate) struct CopyArgs {
    /// Show what would be done, and do nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
    /// The agent in the store [default: name in the workspace's agent.yaml]
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// The namespace in the store [default: filesystem.namespace in agent.yaml]
    #[arg(long, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// Leave sessions where they are
    #[arg(long)]
    pub(crate) no_sessions: bool,
    /// Print JSON
    #[arg(long)]
    pub(crate) json: bool,
}
