//! `stead memory edit`: editing curated memory in the editor of the person.
//!
//! Effects: the clock, randomness, the terminal, workspace files (writes), the local disk (writes),
//! processes.

use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::external_editor::{editor_command, private_copy, run_editor};
use crate::cli::print::outln;
use std::process::ExitCode;
use stead::agent::Agent;
use stead::core::SessionId;
use stead::vfs::{Expect, ReadRange, VfsError};

pub(super) async fn edit(agent: &Agent, env: &ProcessEnv) -> Result<ExitCode, CliError> {
    let Some(path) = agent.workspace().definition.paths.memory.clone() else {
        return Err(CliError::usage("this workspace has no memory"));
    };
    let editor = editor_command(env)?;
    let files = agent
        .place()
        .files(agent.owner(), &SessionId::sessionless(), None);
    let (before, expect) = match files.read(&path, ReadRange::ALL).await {
        Ok((bytes, version)) => (bytes.to_vec(), Expect::Version(version)),
        Err(VfsError::NotFound(_)) => (Vec::new(), Expect::Absent),
        Err(error) => return Err(anyhow::Error::from(error).into()),
    };
    let copy = private_copy(env, path.name(), &before)?;
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
