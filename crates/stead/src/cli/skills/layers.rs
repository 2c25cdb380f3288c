//! The layers of skills that a workspace has on this machine.

use crate::cli::args::Common;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::locate::{open_options, workspace_dir};
use crate::cli::open::{open_place, open_workspace, owner, variable, without_model};
use std::path::Path;
use std::sync::Arc;
use stead::core::{Owner, Redactor, SessionId};
use stead::store::OsDisk;
use stead::vfs::{Overlay, VPath, Vfs};
use stead::workspace::skills::{SkillLayer, SkillLibrary};
use stead::workspace::{LocalPlace, Mode, SkillTrees, Workspace, open_store_place};

/// The trees that hold skills.
pub(crate) struct Places {
    workspace: Workspace,
    owner: Owner,
    /// The workspace as all its users see it.
    shared: Arc<dyn Vfs>,
    /// A user's own part of it.
    own: Option<Arc<dyn Vfs>>,
    /// Where sources are installed: the user's view if there is a user, otherwise everybody's.
    pub(crate) installed: Arc<dyn Vfs>,
}

impl Places {
    pub(crate) async fn open(common: &Common, env: &Env) -> Result<Self, CliError> {
        let dir = workspace_dir(common, env)?;
        let workspace =
            open_workspace(&dir, without_model(open_options(common, env)?), env).await?;
        let owner = owner(common)?;
        let (shared, own) = trees(&dir, &workspace, common, &owner).await?;
        let installed = match own {
            None => shared.clone(),
            Some(_) => open_place(&dir, &workspace, Vec::new()).await?.files(
                &owner,
                &SessionId::outside(),
                None,
            ),
        };
        Ok(Self {
            workspace,
            owner,
            shared,
            own,
            installed,
        })
    }

    /// What reads skills.
    pub(crate) fn library(&self) -> &SkillLibrary {
        &self.workspace.library
    }

    /// All layers, low to high.
    pub(crate) async fn layers(&self) -> Result<Vec<SkillLayer>, CliError> {
        let skills = VPath::parse("skills").map_err(anyhow::Error::from)?;
        let folder = stead::agent::own_folder(&self.owner, &*self.shared).await;
        let overrides = folder
            .and_then(|folder| folder.join("skills").ok())
            .map(|folder| (self.shared.clone(), folder));
        let own = overrides
            .into_iter()
            .chain(self.own.iter().map(|files| (files.clone(), skills.clone())))
            .collect();
        let trees = SkillTrees {
            shared: &self.shared,
            installed: &self.installed,
            own,
        };
        Ok(self.workspace.skill_layers(trees).await?)
    }

    /// A variable: of the workspace's own `.env`, or else of the process.
    pub(crate) fn variable(&self, env: &Env, name: &str) -> Option<String> {
        variable(&self.workspace, env, name)
    }

    /// Where a path of a layer is, for people.
    pub(crate) fn shown(&self, files: &Arc<dyn Vfs>, path: &VPath) -> String {
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

/// The workspace as all see it, and the part that is a user's own.
async fn trees(
    dir: &Path,
    workspace: &Workspace,
    common: &Common,
    owner: &Owner,
) -> Result<(Arc<dyn Vfs>, Option<Arc<dyn Vfs>>), CliError> {
    let has_user = common.user.is_some();
    match workspace.config().filesystem.mode {
        Mode::Local => {
            let agent = workspace.config().agent();
            let place = LocalPlace::open(dir, agent, Arc::new(OsDisk), Redactor::default());
            let place = place.map_err(|error| CliError::usage(error.to_string()))?;
            let own = if has_user {
                Some(place.own(owner).map_err(anyhow::Error::from)?)
            } else {
                None
            };
            Ok((workspace.files.clone(), own))
        }
        Mode::Store => {
            let place = open_store_place(dir, workspace, Redactor::default()).await?;
            let template = Arc::new(place.template(owner));
            let own =
                has_user.then(|| Arc::new(place.own(owner, &SessionId::outside())) as Arc<dyn Vfs>);
            Ok((
                Arc::new(Overlay::new(template, workspace.files.clone())),
                own,
            ))
        }
    }
}
