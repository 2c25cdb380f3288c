//! AgentScope's workspaces: the tree of the stead layout, in `.agentscope/workspace/` of a project.
//! Only an entry of the table of layouts: what is read, the stead layout reads.
//!
//! Effects: the environment, workspace files (reads).

use super::{LayoutDef, stead};
use crate::{EmptyAllow, FlushAfter};

/// The entry of the table of layouts. Such a workspace is recognised by its path alone.
pub(super) static DEF: LayoutDef = LayoutDef {
    reserved: &[".agentscope"],
    nested_dir: Some(".agentscope/workspace"),
    protected: stead::PROTECTED,
    profiles_dir: stead::PROFILES_DIR,
    scaffold: &stead::SCAFFOLD,
    configure_scaffold: Some(stead::configure_scaffold),
    empty_allow: EmptyAllow::Everything,
    built_in_surface: super::BuiltInSurface::Applies,
    memory_flush: true,
    // AgentScope's own trigger is ALWAYS.
    memory_flush_after: FlushAfter::Run,
    ..LayoutDef::new("agentscope", |layout, cx| {
        Box::pin(stead::load(layout, cx, stead::Extras::Ignored))
    })
};
