//! `stead memory edit`: editing curated memory in the editor of the person.
//!
//! Effects: randomness, the terminal, workspace files (writes), the local disk (writes), processes.

use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::print::outln;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use stead::agent::Agent;
use stead::core::SessionId;
use stead::vfs::{Expect, ReadRange, VPath, VfsError};
use tokio::process::Command;

pub(super) async fn edit(agent: &Agent, env: &ProcessEnv) -> Result<ExitCode, CliError> {
    let Some(path) = agent.workspace().definition.paths.memory.clone() else {
        return Err(CliError::usage("this workspace has no memory"));
    };
    let editor = env.get("VISUAL").or_else(|| env.get("EDITOR"));
    let editor =
        editor.ok_or_else(|| CliError::usage("set the variable EDITOR to the editor you use"))?;
    let files = agent
        .place()
        .files(agent.owner(), &SessionId::sessionless(), None);
    let (before, expect) = match files.read(&path, ReadRange::ALL).await {
        Ok((bytes, version)) => (bytes.to_vec(), Expect::Version(version)),
        Err(VfsError::NotFound(_)) => (Vec::new(), Expect::Absent),
        Err(error) => return Err(anyhow::Error::from(error).into()),
    };
    let copy = private_copy(env, &path, &before)?;
    let after = run_editor(&editor, &copy).await?;
    if after == before {
        std::fs::remove_file(&copy)?;
        outln!("{path} stays as it is");
        return Ok(ExitCode::SUCCESS);
    }
    if let Err(error) = files.write(&path, after.into(), expect).await {
        return Err(CliError::Failed(anyhow::anyhow!(
            "{error}; your text is kept in {}",
            copy.display()
        )));
    }
    std::fs::remove_file(&copy)?;
    outln!("{path} is written");
    Ok(ExitCode::SUCCESS)
}

/// Creates a copy that only its owner can read.
fn private_copy(env: &ProcessEnv, path: &VPath, text: &[u8]) -> Result<PathBuf, CliError> {
    let copy = env
        .temporary
        .join(format!("stead-{}-{}", SessionId::fresh(), path.name()));
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&copy)?;
    file.write_all(text)?;
    Ok(copy)
}

/// Opens a file in the editor and returns its new content. `$EDITOR` may have arguments, so a shell
/// runs it.
async fn run_editor(editor: &str, copy: &Path) -> Result<Vec<u8>, CliError> {
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
