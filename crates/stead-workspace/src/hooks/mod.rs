//! What is to be done when something happens: `hooks/*.yaml`, and what other layouts have of the
//! kind.
//!
//! Here they are read and checked; whoever drives an agent asks them.

mod event;
mod load;
mod matcher;
mod raw;
mod spec;

pub use event::{HookEvent, HookTrigger, RunEndFilter};
pub use matcher::Matcher;
pub use spec::{Capability, Handler, HookSpec, HttpMethod, OnFailure, Program};

pub(crate) use load::{HookReferences, load_hooks};
