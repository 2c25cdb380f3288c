//! Hooks: `hooks/*.yaml`, and the similar files of other layouts.
//!
//! This module loads and checks them; `stead-agent` asks them.
//!
//! Effects: none.

mod event;
mod load;
mod matcher;
mod raw;
mod spec;

pub use event::{HookEvent, HookTrigger, RunEndFilter};
pub use matcher::Matcher;
pub use spec::{Capability, Handler, HookSpec, HttpMethod, OnFailure, Program};

pub(crate) use load::{HookReferences, load_hooks};
