//! The place of a workspace: its file tree, sessions and other state, for each owner.
//!
//! A [`Place`] gives each owner a file tree, sessions, an undo log, durable state, a search index
//! and a usage log. There are three: [`LocalPlace`] is a folder of this machine, [`StorePlace`] is a
//! store that several machines may share, and [`EphemeralPlace`] keeps sessions in memory over the
//! files of another place. [`open_place`] opens the one that a [`PlaceSettings`] value names.
//!
//! ```
//! use stead_core::{AgentId, Owner, Redactor, SessionId, UserId};
//! use stead_place::{PlaceSettings, open_place};
//! use stead_vfs::{Expect, ReadRange, VPath};
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! let settings = PlaceSettings::local(dir.path(), AgentId::main());
//! let place = open_place(&settings, Redactor::default()).await?;
//!
//! let ann = Owner { user: UserId::new("ann").unwrap(), ..Owner::default() };
//! let session = SessionId::new("first").unwrap();
//! let note = VPath::parse("note.md")?;
//! place.files(&ann, &session, None).write(&note, "hers".into(), Expect::Absent).await?;
//!
//! // What one user writes, another does not see.
//! let others = place.files(&Owner::default(), &session, None);
//! assert!(others.read(&note, ReadRange::ALL).await.is_err());
//! # Ok::<(), Box<dyn std::error::Error>>(()) }).unwrap();
//! ```
//!
//! Effects: none.

mod earlier_state;
mod ephemeral;
mod error;
mod local;
mod open;
mod owner_cache;
mod place;
mod settings;
mod state_links;
mod store;
mod store_url;
mod template;

pub use earlier_state::{LocalSessions, local_sessions};
pub use ephemeral::EphemeralPlace;
pub use error::PlaceError;
pub use local::{HOME_GITIGNORE, LocalPlace};
pub use open::{
    DefaultDir, PlaceSettings, SessionPersistence, SurroundingProject, open_place, open_store_place,
};
pub use place::{OwnerState, PROJECT, Place, PlaceKind, ProjectAccess};
pub use settings::{
    FilesystemMode, FilesystemSettings, IsolationScope, Project, ProjectSettings, SessionSettings,
};
pub use store::StorePlace;
pub use store_url::{StorePathBase, connect_store};
