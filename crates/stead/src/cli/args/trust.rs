//! The arguments of `stead trust` and `stead auth`.
//!
//! Effects: none.

use clap::{Args, Subcommand};
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct TrustArgs {
    #[command(subcommand)]
    pub(crate) command: TrustCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum TrustCommand {
    /// Trust a folder as it is now; a change of what acts in it asks again
    #[command(after_help = "Examples:
  stead trust show downloaded-agent      look first
  stead trust add downloaded-agent
  stead trust add                        the workspace of the current folder")]
    Add(TrustDirArgs),
    /// List the folders that you decided about
    #[command(after_help = "Examples:
  stead trust list
  stead trust list --json | jq -r .path")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Forget the decision about a folder
    #[command(after_help = "Example:\n  stead trust remove downloaded-agent")]
    Remove(TrustDirArgs),
    /// Show what in a folder acts by itself, and whether you trust it
    #[command(after_help = "Examples:
  stead trust show
  stead trust show downloaded-agent --json")]
    Show {
        #[command(flatten)]
        dir: TrustDirArgs,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

#[derive(Debug, Args)]
pub(crate) struct TrustDirArgs {
    /// The folder [default: the workspace]
    pub(crate) dir: Option<PathBuf>,
}

#[derive(Debug, Args)]
pub(crate) struct AuthArgs {
    #[command(subcommand)]
    pub(crate) command: AuthCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum AuthCommand {
    /// Store the key of a provider, from standard input or a prompt that does not show it
    #[command(after_help = "Examples:
  stead auth add anthropic
  pass show anthropic | stead auth add anthropic")]
    Add {
        /// The provider
        provider: String,
    },
    /// List the providers whose key is stored; no key is shown
    #[command(after_help = "Examples:
  stead auth list
  stead auth list --json")]
    List {
        /// Print one JSON object per line
        #[arg(long)]
        json: bool,
    },
    /// Remove the stored key of a provider
    #[command(after_help = "Example:\n  stead auth remove anthropic")]
    Remove {
        /// The provider
        provider: String,
    },
}
