//! Running the commands of agents: the contract of a sandbox, and the machine itself.
//!
//! A [`Sandbox`] runs commands and declares their [`Isolation`]; [`Host`] is the machine itself,
//! without isolation, and [`Bubblewrap`] puts up walls of the kernel around each command. Output
//! goes to an [`OutputSink`] as it arrives.
//!
//! Guarantees:
//! - When a command has ended, timed out, was cancelled or was dropped, the processes it started
//!   are killed, including those that left its process group but kept the variable [`EXEC_ID_ENV`].
//!   This also holds if this process is killed.
//! - A command gets only the environment variables that it is given, and no input.
//! - Nothing else is guaranteed by [`Host`]: its [`Isolation`] is [`Isolation::NONE`].
//!
//! ```
//! use futures_util::future::BoxFuture;
//! use std::time::Duration;
//! use stead_sandbox::{Exec, ExecOutcome, Host, OutputSink, Sandbox, SinkState};
//!
//! struct Collected(Vec<u8>);
//!
//! impl OutputSink for Collected {
//!     fn write<'a>(&'a mut self, piece: &'a [u8]) -> BoxFuture<'a, SinkState> {
//!         self.0.extend_from_slice(piece);
//!         Box::pin(async { SinkState::Accepting })
//!     }
//! }
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let host = Host::new([("GREETING".to_owned(), "hello".to_owned())]);
//! let exec = Exec::new("echo $GREETING; echo bye >&2; exit 3", "/").with_timeout(Duration::from_secs(10));
//! let mut output = Collected(Vec::new());
//! assert_eq!(host.exec(exec, &mut output).await.unwrap(), ExecOutcome::Exited(3));
//! assert_eq!(output.0, b"hello\nbye\n");
//! # });
//! ```
//!
//! [`capture()`] runs any program without a shell; [`run_with_input()`] passes an input and
//! collects a short output.
//!
//! Effects: none.

mod bubblewrap;
mod capture;
mod cgroup;
mod host;
mod inside;
mod limits;
mod mounts;
mod namespaces;
mod network;
mod orphans;
mod process_tree;
mod proxy;
mod run_with_input;
mod sandbox;
mod sink;

pub use bubblewrap::{Bubblewrap, BubblewrapError, BubblewrapSettings, Walls};
pub use capture::{ExecLimits, capture};
pub use host::Host;
pub use inside::{HELPER_ARGUMENT, run_helper};
pub use limits::ResourceLimits;
pub use mounts::{Mount, MountAccess, Mounts};
pub use network::{AllowedHosts, HostPattern, HostPatternError};
pub use process_tree::EXEC_ID_ENV;
pub use run_with_input::{CommandOutput, run_with_input};
pub use sandbox::{Access, Exec, ExecOutcome, Isolation, Sandbox, SandboxError};
pub use sink::{OutputSink, SinkState};
