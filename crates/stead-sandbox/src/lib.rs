//! Where commands run.
//!
//! A [`Sandbox`] runs commands and says what it keeps them away from; [`Host`] is the machine
//! itself, which keeps them away from nothing. Output goes to a [`Sink`] as it comes. Whatever ends
//! a command, nothing that it started is left.
//!
//! ```
//! use futures_util::future::BoxFuture;
//! use std::time::Duration;
//! use stead_sandbox::{Ended, Exec, Host, Room, Sandbox, Sink};
//!
//! struct Said(Vec<u8>);
//!
//! impl Sink for Said {
//!     fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, Room> {
//!         self.0.extend_from_slice(piece);
//!         Box::pin(async { Room::Left })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let host = Host::new([("GREETING".to_owned(), "hello".to_owned())]);
//! let exec = Exec::new("echo $GREETING; echo bye >&2; exit 3", "/").within(Duration::from_secs(10));
//! let mut said = Said(Vec::new());
//! assert_eq!(host.exec(exec, &mut said).await.unwrap(), Ended::Exited(3));
//! assert_eq!(said.0, b"hello\nbye\n");
//! # });
//! ```
//!
//! [`capture`] does the same for any program, without a shell; [`converse`] gives one an input and
//! hears a short answer.

mod capture;
mod host;
mod orphans;
mod process_tree;
mod run_with_input;
mod sandbox;
mod sink;

pub use capture::{ExecLimits, capture};
pub use host::Host;
pub use process_tree::EXEC_ID_ENV;
pub use run_with_input::{CommandOutput, run_with_input};
pub use sandbox::{Access, Exec, ExecOutcome, Isolation, Sandbox, SandboxError, SandboxKind};
pub use sink::{OutputSink, SinkState};
