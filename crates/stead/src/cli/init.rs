//! `stead init`: a new workspace.

use super::args::{Common, InitArgs};
use super::error::CliError;
use std::path::PathBuf;
use std::process::ExitCode;
use std::sync::Arc;
use stead::store::OsDisk;
use stead::vfs::{Expect, LocalVfs, VPath, Vfs, VfsError};
use stead::workspace::scaffold;

pub(crate) async fn init(common: &Common, args: &InitArgs) -> Result<ExitCode, CliError> {
    let dir = args.dir.clone().or_else(|| common.workspace.clone()).unwrap_or_else(|| PathBuf::from("."));
    std::fs::create_dir_all(&dir)?;
    let files = LocalVfs::open(&dir, Arc::new(OsDisk)).map_err(|error| CliError::Failed(error.into()))?;
    for file in scaffold() {
        let path = VPath::parse(file.path).map_err(|error| CliError::Failed(error.into()))?;
        match files.write(&path, file.content.into(), Expect::Absent).await {
            Ok(_) => println!("made {path}"),
            Err(VfsError::Exists(_)) => println!("kept {path}, it was there"),
            Err(error) => return Err(CliError::Failed(error.into())),
        }
    }
    println!("\n{} is a workspace. Write in AGENTS.md who the agent is, then:\n  stead chat -C {0}", dir.display());
    Ok(ExitCode::SUCCESS)
}
