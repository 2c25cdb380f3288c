//! The editor of the person, opened on a private copy of a text.
//!
//! Effects: randomness, the local disk (writes), processes.

use super::env::ProcessEnv;
use super::error::CliError;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use stead::core::SessionId;
use tokio::process::Command;

/// Returns the command of the editor: the value of `VISUAL`, or else of `EDITOR`.
pub(crate) fn editor_command(env: &ProcessEnv) -> Result<String, CliError> {
    let editor = env.get("VISUAL").or_else(|| env.get("EDITOR"));
    editor.ok_or_else(|| CliError::usage("set the variable EDITOR to the editor you use"))
}

/// Creates a copy that only its owner can read.
pub(crate) fn private_copy(env: &ProcessEnv, name: &str, text: &[u8]) -> Result<PathBuf, CliError> {
    let copy = env
        .temporary
        .join(format!("stead-{}-{name}", SessionId::fresh()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&copy)?;
    file.write_all(text)?;
    Ok(copy)
}

/// Opens a file in the editor and returns its new content. The editor may have arguments, so a shell
/// runs it.
pub(crate) async fn run_editor(editor: &str, copy: &Path) -> Result<Vec<u8>, CliError> {
    let status = Command::new("sh")
        .arg("-c")
        .arg(format!("{editor} \"$1\""))
        .arg("sh")
        .arg(copy)
        .status()
        .await?;
    if !status.success() {
        std::fs::remove_file(copy)?;
        return Err(CliError::Failed(anyhow::anyhow!(
            "{editor} ended with {status}; nothing was changed"
        )));
    }
    Ok(std::fs::read(copy)?)
}
