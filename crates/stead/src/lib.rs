//! Stead: a folder of plain files becomes an agent.
//!
//! This crate is the façade: the rooms of the house, re-exported under one roof. The binary of the
//! same name is a thin layer over it.
//!
//! ```
//! use std::sync::Arc;
//! use stead::{agent::*, core::*, model::*, store::*, tools::*, vfs::*, workspace::*};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let folder = dir.path();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! std::fs::write(folder.join("AGENTS.md"), "You are a careful librarian.").unwrap();
//!
//! let disk: Arc<dyn Disk> = Arc::new(OsDisk);
//! let files = Arc::new(LocalVfs::open(folder, disk.clone()).unwrap());
//! let workspace = Workspace::open(files, &OpenOptions::default(), &|_| None).await.unwrap();
//! let place = LocalPlace::open(folder, workspace.config().agent(), disk, Redactor::default()).unwrap();
//! let script = "- calls: [{tool: write_file, args: {file_path: a.txt, content: hello}}]\n- text: Done.";
//! let agent = Agent::new(AgentParts {
//!     workspace,
//!     model: Arc::new(ScriptedModel::parse("demo", script).unwrap()),
//!     params: Params::default(),
//!     place: Arc::new(place),
//!     owner: Owner::default(),
//!     tools: Vec::new(),
//!     folder: VPath::root(),
//! })
//! .unwrap();
//!
//! let mut session = agent.session(SessionId::new("first").unwrap());
//! let report = session.run(vec![Block::text("Write hello to a.txt")], RunOptions::default()).await.unwrap();
//! assert_eq!((report.outcome, report.text.as_str()), (Outcome::Completed, "Done."));
//! assert_eq!(std::fs::read_to_string(folder.join("a.txt")).unwrap(), "hello");
//! # });
//! ```

pub use stead_agent as agent;
pub use stead_core as core;
pub use stead_model as model;
pub use stead_store as store;
pub use stead_tools as tools;
pub use stead_vfs as vfs;
pub use stead_workspace as workspace;
