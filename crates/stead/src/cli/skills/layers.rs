//! The layers of skills that a workspace has on this machine.

use crate::cli::args::Common;
use crate::cli::env::Env;
use crate::cli::error::CliError;
use crate::cli::open::{open_place, open_workspace, owner, store_place};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use stead::core::{Owner, Redactor, SessionId};
use stead::store::OsDisk;
use stead::vfs::{LocalVfs, Overlay, VPath, Vfs};
use stead::workspace::skills::{Flavor, Layer, SkillLayer, SkillLibrary};
use stead::workspace::{LocalPlace, Mode, Workspace};

/// Where skills of everybody and of other programs lie, below a home or a workspace.
const STEAD_SKILLS: &str = ".stead/skills";
const AGENTS_SKILLS: &str = ".agents/skills";

/// The trees that hold skills.
pub(crate) struct Places {
    /// The person's home, unless it is the workspace.
    home: Option<Arc<dyn Vfs>>,
    /// The workspace as all its users see it.
    shared: Arc<dyn Vfs>,
    /// A user's own part of it.
    own: Option<Arc<dyn Vfs>>,
    /// Where sources are installed: the user's view if there is a user, otherwise everybody's.
    pub(crate) installed: Arc<dyn Vfs>,
}

impl Places {
    pub(crate) async fn open(common: &Common, env: &Env) -> Result<Self, CliError> {
        let dir = super::workspace_dir(common, env)?;
        let workspace = open_workspace(&dir, env).await?;
        let owner = owner(common)?;
        let home = env.get("HOME").map(PathBuf::from).filter(|home| home.is_dir() && !is_same(home, &dir));
        let home = home.and_then(|home| LocalVfs::open(&home, Arc::new(OsDisk)).ok());
        let home = home.map(|files| Arc::new(files) as Arc<dyn Vfs>);
        let (shared, own) = trees(&dir, &workspace, common, &owner).await?;
        let installed = match own {
            None => shared.clone(),
            Some(_) => open_place(&dir, &workspace, Vec::new()).await?.files(&owner, &SessionId::outside(), None),
        };
        Ok(Self { home, shared, own, installed })
    }

    /// All layers, low to high.
    pub(crate) async fn layers(&self, library: &SkillLibrary) -> Result<Vec<SkillLayer>, CliError> {
        let layer = |layer, files: &Arc<dyn Vfs>, root: &str| -> Result<SkillLayer, CliError> {
            let root = VPath::parse(root).map_err(anyhow::Error::from)?;
            Ok(SkillLayer { layer, files: files.clone(), root, flavor: Flavor::Standard })
        };
        let mut layers = Vec::new();
        if let Some(home) = &self.home {
            layers.push(layer(Layer::Global, home, STEAD_SKILLS)?);
            layers.push(layer(Layer::Global, home, AGENTS_SKILLS)?);
        }
        layers.push(layer(Layer::Global, &self.shared, AGENTS_SKILLS)?);
        layers.extend(library.repositories(&self.installed).await?);
        layers.push(layer(Layer::Workspace, &self.shared, "skills")?);
        if let Some(own) = &self.own {
            layers.push(layer(Layer::User, own, "skills")?);
        }
        Ok(layers)
    }

    /// Where a path of a layer is, for people.
    pub(crate) fn shown(&self, files: &Arc<dyn Vfs>, path: &VPath) -> String {
        let is_home = self.home.as_ref().is_some_and(|home| Arc::ptr_eq(home, files));
        if is_home { format!("~/{path}") } else { path.to_string() }
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
    match workspace.config.filesystem.mode {
        Mode::Local => {
            let agent = workspace.config.agent();
            let place = LocalPlace::open(dir, agent, Arc::new(OsDisk), Redactor::default());
            let place = place.map_err(|error| CliError::usage(error.to_string()))?;
            let own = if has_user { Some(place.own(owner).map_err(anyhow::Error::from)?) } else { None };
            Ok((workspace.files.clone(), own))
        }
        Mode::Store => {
            let place = store_place(dir, workspace, Redactor::default()).await?;
            let template = Arc::new(place.template(owner));
            let own = has_user.then(|| Arc::new(place.own(owner, &SessionId::outside())) as Arc<dyn Vfs>);
            Ok((Arc::new(Overlay::new(template, workspace.files.clone())), own))
        }
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
