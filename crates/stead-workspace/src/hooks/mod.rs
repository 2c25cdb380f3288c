//! What is to be done when something happens: `hooks/*.yaml`, and what other layouts have of the
//! kind.
//!
//! Here they are read and checked; whoever drives an agent asks them.

mod event;
mod matcher;
mod raw;
mod read;
mod spec;

pub use event::{HookEvent, HookTrigger, RunEndFilter};
pub use matcher::Matcher;
pub use spec::{Capability, Handler, HookSpec, HttpMethod, OnFailure, Program};

pub(crate) use read::{HookReferences, load_hooks};
