//! The host: sessions that clients can address with commands and subscriptions.
//!
//! A run is not a function that somebody awaits: a session is an actor, and whoever wants something
//! of it sends a [`Command`](stead_core::Command) and subscribes to what happens. [`Host`]
//! implements the [`Client`](stead_core::Client) contract in this process.
//!
//! - One actor per active session owns its [`Session`](stead_agent::Session). It exists while
//!   somebody holds a [`SessionHandle`] or a run is going on.
//! - Only the process that holds the session's lock or lease writes its journal. A command that
//!   reaches another process is a row of the session's durable inbox; the holder takes it over. If
//!   the holder dies, whoever sent the command takes the session up and goes on.
//! - A subscription reads the journal, so it has no gaps whichever process writes it. Live events
//!   travel over the store's bus and may be lost.
//!
//! ```
//! use stead_agent::Agent;
//! use stead_core::{
//!     Block, Client, Command, Cursor, Entry, InputCommand, Presence, SessionEventBody, SessionId,
//! };
//! use stead_host::{Host, SessionOptions};
//! use stead_model::ScriptedModel;
//!
//! # let dir = tempfile::tempdir().unwrap();
//! # let folder = dir.path();
//! # tokio::runtime::Builder::new_multi_thread().enable_all().build().unwrap().block_on(async {
//! std::fs::write(folder.join("AGENTS.md"), "You are brief.").unwrap();
//! let model = ScriptedModel::parse("demo", "- text: Hello.").unwrap();
//! let agent = Agent::builder().workspace(folder).model_of(model).build().await.unwrap();
//!
//! let host = Host::new();
//! host.add_agent("greeter", agent);
//! let greeter = host.address("greeter", SessionId::new("first").unwrap()).await.unwrap();
//! let session = host.open(&greeter, SessionOptions::default()).await.unwrap();
//! let mut events = host.subscribe(&greeter, Cursor::Start, Presence::Watches).await.unwrap();
//! let input = InputCommand::new(vec![Block::text("Hi")]);
//! let receipt = host.send(&greeter, Command::Input(input), None).await.unwrap();
//! assert_eq!(receipt.seq, Some(2));
//! loop {
//!     let event = events.next().await.unwrap();
//!     if let SessionEventBody::Entry(line) = event.body && let Entry::End(end) = &line.entry {
//!         assert_eq!(end.outcome.as_str(), "completed");
//!         break;
//!     }
//! }
//! # drop(session);
//! # });
//! ```
//!
//! Effects: none.

mod actor;
mod answers;
mod approver;
mod changes;
mod disposition;
mod error;
mod feed;
mod handle;
mod host;
mod intake;
mod link;
mod mailbox;
mod options;
mod registry;
mod reply;
mod rows;
mod run_progress;
mod settlement;
mod subscription;

pub use handle::SessionHandle;
pub use host::Host;
pub use options::{QueuePolicy, SessionOptions};
pub use subscription::SessionSubscription;
