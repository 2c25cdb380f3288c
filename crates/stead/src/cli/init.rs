//! `stead init`: a new workspace.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes).

use super::args::{GlobalArgs, InitArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::locate::named_workspace;
use super::print::outln;
use super::trust::trust_made;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use stead::core::counted;
use stead::store::{OsDisk, move_agents};
use stead::vfs::{Expect, LocalVfs, VPath, Vfs, VfsError};
use stead::workspace::{Layout, ScaffoldChoices, configured_scaffold, try_detect_layout};

pub(crate) async fn init(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: &InitArgs,
) -> Result<ExitCode, CliError> {
    let given = match (&args.path, &args.dir) {
        (Some(path), Some(dir)) => Some(path.join(dir)),
        (_, dir) => dir.clone(),
    };
    let dir = given
        .or_else(|| named_workspace(common, env))
        .unwrap_or_else(|| PathBuf::from("."));
    let layout = common.layout.unwrap_or_default();
    let def = layout.def();
    if let Some(check) = def.check_name {
        let whole = std::path::absolute(&dir)?;
        let name = whole.file_name().unwrap_or_default().to_string_lossy();
        check(&name).map_err(|error| CliError::usage(format!("{name}: {error}")))?;
    }
    let choices = ScaffoldChoices {
        model: args.model.clone(),
        channel: args.channel.clone(),
    };
    let scaffold = configured_scaffold(layout, &choices).map_err(CliError::usage)?;
    let dir = match def.nested_dir {
        Some(nested) if !dir.ends_with(nested) => dir.join(nested),
        Some(_) | None => dir,
    };
    let made = std::fs::create_dir_all(&dir);
    made.map_err(|error| CliError::usage(format!("{} cannot be created: {error}", dir.display())))?;
    let files =
        LocalVfs::open(&dir, Arc::new(OsDisk)).map_err(|error| CliError::Failed(error.into()))?;
    if let Some(other) = try_detect_layout(&files)
        .await
        .filter(|other| *other != layout && def.nested_dir.is_none())
        .filter(|other| other.def().home_dir.is_empty())
    {
        let dir = dir.display();
        return Err(CliError::usage(format!(
            "{dir} is a workspace already, of the {other} layout; use another folder"
        )));
    }
    for folder in def.scaffold_dirs {
        let path = VPath::parse(folder).map_err(|error| CliError::Failed(error.into()))?;
        let made = files.mkdir(&path).await;
        made.map_err(|error| CliError::Failed(error.into()))?;
        outln!("made {path}/");
    }
    let mut created = Vec::new();
    for (path, content) in scaffold {
        let path = VPath::parse(path).map_err(|error| CliError::Failed(error.into()))?;
        match files.write(&path, content.into(), Expect::Absent).await {
            Ok(_) => {
                outln!("made {path}");
                created.push(path.to_string());
            }
            Err(VfsError::Exists(_)) => outln!("kept {path}, which exists"),
            Err(error) => return Err(CliError::Failed(error.into())),
        }
    }
    if layout.protected().runtime().is_empty() {
        adopt_project_state(&dir)?;
    }
    let common = GlobalArgs {
        layout: Some(layout),
        ..common.clone()
    };
    trust_made(&common, env, &dir, &created).await?;
    let persona = def.persona;
    outln!(
        "\n{} is a workspace. Write in {persona} who the agent is, then:\n  stead chat -C {0}",
        dir.display()
    );
    Ok(ExitCode::SUCCESS)
}

/// Moves the state that an agent has had in an ordinary project to where a workspace keeps it.
fn adopt_project_state(dir: &Path) -> Result<(), CliError> {
    for home in Layout::ALL.map(|layout| layout.def().home_dir) {
        if home.is_empty() {
            continue;
        }
        let moved = move_agents(&OsDisk, &dir.join(home).join("agents"), &dir.join("agents"))?;
        if !moved.agents.is_empty() {
            let sessions = counted(moved.sessions, "session");
            outln!("moved {sessions} from {home}/agents/ to agents/");
        }
    }
    Ok(())
}
