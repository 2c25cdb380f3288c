//! The layers of skills that a workspace has on this machine.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (reads), the
//! local disk (writes), the network.

use crate::cli::args::GlobalArgs;
use crate::cli::env::ProcessEnv;
use crate::cli::error::CliError;
use crate::cli::locate::{open_options, workspace_dir};
use crate::cli::open_agent::{open_place, open_workspace, owner, variable, without_model};
use std::path::Path;
use std::sync::Arc;
use stead::core::{Owner, Redactor, SessionId};
use stead::place::{FilesystemMode, LocalPlace, PlaceSettings, open_store_place};
use stead::skills::{SkillLayer, SkillLibrary};
use stead::store::OsDisk;
use stead::vfs::{Overlay, VPath, Vfs};
use stead::workspace::{SkillTrees, Workspace};

/// The trees that hold skills.
pub(crate) struct SkillContext {
    workspace: Workspace,
    owner: Owner,
    /// The workspace as all its users see it.
    shared_files: Arc<dyn Vfs>,
    /// The user's own part of the workspace.
    user_files: Option<Arc<dyn Vfs>>,
    /// The tree that sources are installed in: the user's own if there is a user, otherwise the
    /// shared one.
    pub(crate) installed_files: Arc<dyn Vfs>,
}

impl SkillContext {
    pub(crate) async fn open(common: &GlobalArgs, env: &ProcessEnv) -> Result<Self, CliError> {
        let dir = workspace_dir(common, env)?;
        let workspace =
            open_workspace(&dir, without_model(open_options(common, env, &dir)?), env).await?;
        let owner = owner(common)?;
        let (shared, own) = open_trees(&dir, &workspace, common, &owner).await?;
        let installed = match own {
            None => shared.clone(),
            Some(_) => open_place(&dir, &workspace, Vec::new()).await?.files(
                &owner,
                &SessionId::sessionless(),
                None,
            ),
        };
        Ok(Self {
            workspace,
            owner,
            shared_files: shared,
            user_files: own,
            installed_files: installed,
        })
    }

    /// Returns the reader of skills.
    pub(crate) fn library(&self) -> &SkillLibrary {
        &self.workspace.library
    }

    /// Returns all layers, lowest first.
    pub(crate) async fn layers(&self) -> Result<Vec<SkillLayer>, CliError> {
        let skills = self.workspace.definition.home().join("skills");
        let skills = skills.map_err(anyhow::Error::from)?;
        let definition = &self.workspace.definition;
        let folder = stead::agent::user_folder(definition, &self.owner, &*self.shared_files).await;
        let overrides = folder
            .and_then(|folder| folder.join("skills").ok())
            .map(|folder| (self.shared_files.clone(), folder));
        let own = overrides
            .into_iter()
            .chain(
                self.user_files
                    .iter()
                    .map(|files| (files.clone(), skills.clone())),
            )
            .collect();
        let trees = SkillTrees {
            shared: &self.shared_files,
            installed: &self.installed_files,
            owner_dirs: own,
        };
        Ok(self.workspace.skill_layers(trees).await?)
    }

    /// Returns a variable of the workspace's own `.env`, or of the process.
    pub(crate) fn variable(&self, env: &ProcessEnv, name: &str) -> Option<String> {
        variable(&self.workspace, env, name)
    }

    /// Returns the path of a file in a layer, as shown to people.
    pub(crate) fn display_path(&self, files: &Arc<dyn Vfs>, path: &VPath) -> String {
        let is_home = self
            .workspace
            .home
            .as_ref()
            .is_some_and(|home| Arc::ptr_eq(home, files));
        if is_home {
            format!("~/{path}")
        } else {
            path.to_string()
        }
    }
}

/// Opens the shared tree of the workspace, and the user's own part.
async fn open_trees(
    dir: &Path,
    workspace: &Workspace,
    common: &GlobalArgs,
    owner: &Owner,
) -> Result<(Arc<dyn Vfs>, Option<Arc<dyn Vfs>>), CliError> {
    let has_user = common.user.is_some();
    match workspace.config().filesystem.mode {
        FilesystemMode::Local => {
            let agent = workspace.config().agent_id();
            let settings = PlaceSettings::local(dir, agent);
            let place = LocalPlace::open(&settings, Arc::new(OsDisk), Redactor::default());
            let place = place.map_err(|error| CliError::usage(error.to_string()))?;
            let own = if has_user {
                Some(place.owner_files(owner).map_err(anyhow::Error::from)?)
            } else {
                None
            };
            Ok((workspace.files.clone(), own))
        }
        FilesystemMode::Store => {
            let place =
                open_store_place(&workspace.place_settings(dir), Redactor::default()).await?;
            let template = Arc::new(place.template(owner));
            let own = has_user.then(|| {
                Arc::new(place.scope_files(owner, &SessionId::sessionless())) as Arc<dyn Vfs>
            });
            Ok((
                Arc::new(Overlay::new(template, workspace.files.clone())),
                own,
            ))
        }
    }
}
