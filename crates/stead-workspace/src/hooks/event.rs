//! The events that hooks are asked about.
//!
//! Effects: none.

use serde::Deserialize;
use stead_core::RunOutcome;

/// A point of a session at which hooks are asked.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// A process opens a session.
    SessionStart,
    /// A process closes a session.
    SessionEnd,
    /// A person sends an input, which is not recorded yet.
    PromptSubmit,
    /// The input is recorded, and the run starts.
    RunStart,
    /// The end of the run is recorded.
    RunEnd,
    /// The messages for the model are about to be assembled.
    BeforeContextBuild,
    /// The messages for the model are assembled.
    AfterContextBuild,
    /// The model is about to be called.
    BeforeModelCall,
    /// The model has answered, and nothing was done with the answer yet.
    AfterModelCall,
    /// A tool call is about to go through the gate.
    BeforeToolCall,
    /// A tool call has its result, which was not reported yet.
    AfterToolCall,
    /// A tool call needs a person's approval.
    PermissionRequest,
    /// The context is about to be compacted.
    BeforeCompaction,
    /// The context was compacted.
    AfterCompaction,
    /// A person should be notified.
    Notification,
}

impl HookEvent {
    /// All events.
    pub const ALL: [Self; 15] = [
        Self::SessionStart,
        Self::SessionEnd,
        Self::PromptSubmit,
        Self::RunStart,
        Self::RunEnd,
        Self::BeforeContextBuild,
        Self::AfterContextBuild,
        Self::BeforeModelCall,
        Self::AfterModelCall,
        Self::BeforeToolCall,
        Self::AfterToolCall,
        Self::PermissionRequest,
        Self::BeforeCompaction,
        Self::AfterCompaction,
        Self::Notification,
    ];

    /// Returns the name in files, journals and the input of hooks.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SessionStart => "session_start",
            Self::SessionEnd => "session_end",
            Self::PromptSubmit => "prompt_submit",
            Self::RunStart => "run_start",
            Self::RunEnd => "run_end",
            Self::BeforeContextBuild => "before_context_build",
            Self::AfterContextBuild => "after_context_build",
            Self::BeforeModelCall => "before_model_call",
            Self::AfterModelCall => "after_model_call",
            Self::BeforeToolCall => "before_tool_call",
            Self::AfterToolCall => "after_tool_call",
            Self::PermissionRequest => "permission_request",
            Self::BeforeCompaction => "before_compaction",
            Self::AfterCompaction => "after_compaction",
            Self::Notification => "notification",
        }
    }

    /// Returns the name in OpenHarness, where it has another.
    pub fn openharness_name(self) -> &'static str {
        match self {
            Self::BeforeToolCall => "before_tool_dispatch",
            Self::AfterToolCall => "after_tool_dispatch",
            Self::BeforeCompaction => "before_context_compact",
            Self::AfterCompaction => "after_context_compact",
            Self::SessionStart
            | Self::SessionEnd
            | Self::PromptSubmit
            | Self::RunStart
            | Self::RunEnd
            | Self::BeforeContextBuild
            | Self::AfterContextBuild
            | Self::BeforeModelCall
            | Self::AfterModelCall
            | Self::PermissionRequest
            | Self::Notification => self.as_str(),
        }
    }

    /// Whether a hook can block the event.
    pub fn can_be_blocked(self) -> bool {
        match self {
            Self::PromptSubmit
            | Self::RunStart
            | Self::BeforeContextBuild
            | Self::AfterContextBuild
            | Self::BeforeModelCall
            | Self::AfterModelCall
            | Self::BeforeToolCall
            | Self::AfterToolCall
            | Self::PermissionRequest
            | Self::BeforeCompaction => true,
            Self::SessionStart
            | Self::SessionEnd
            | Self::RunEnd
            | Self::AfterCompaction
            | Self::Notification => false,
        }
    }

    /// Whether a failing hook blocks the event by default. This holds for events before an action
    /// that would otherwise happen unguarded.
    pub fn fails_closed(self) -> bool {
        match self {
            Self::PromptSubmit
            | Self::BeforeContextBuild
            | Self::BeforeModelCall
            | Self::BeforeToolCall
            | Self::PermissionRequest
            | Self::BeforeCompaction => true,
            Self::SessionStart
            | Self::SessionEnd
            | Self::RunStart
            | Self::RunEnd
            | Self::AfterContextBuild
            | Self::AfterModelCall
            | Self::AfterToolCall
            | Self::AfterCompaction
            | Self::Notification => false,
        }
    }
}

/// An event that triggers a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookTrigger {
    /// The event.
    pub event: HookEvent,
    /// The filter for the ends of runs, for the event of that kind.
    pub run_end: RunEndFilter,
}

/// The ends of runs that trigger a hook.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEndFilter {
    /// All ends.
    Any,
    /// Runs that ended with an answer.
    Completed,
    /// Runs that failed without being stopped by a person.
    Failed,
}

impl RunEndFilter {
    /// Whether a run with this outcome is covered.
    pub fn covers(self, outcome: RunOutcome) -> bool {
        match (self, outcome) {
            (Self::Any, _) => true,
            (Self::Completed, outcome) => outcome == RunOutcome::Completed,
            (
                Self::Failed,
                RunOutcome::Failed
                | RunOutcome::StepLimit
                | RunOutcome::Budget
                | RunOutcome::TimedOut,
            ) => true,
            (Self::Failed, RunOutcome::Completed | RunOutcome::Cancelled | RunOutcome::Parked) => {
                false
            }
        }
    }
}

/// The name of an event in files: stead's own, or that of another system.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum HookEventName {
    #[serde(alias = "SessionStart")]
    SessionStart,
    #[serde(alias = "SessionEnd")]
    SessionEnd,
    #[serde(alias = "UserPromptSubmit")]
    PromptSubmit,
    RunStart,
    RunEnd,
    #[serde(alias = "Stop")]
    RunCompleted,
    RunFailed,
    BeforeContextBuild,
    AfterContextBuild,
    BeforeModelCall,
    AfterModelCall,
    #[serde(alias = "before_tool_dispatch", alias = "PreToolUse")]
    BeforeToolCall,
    #[serde(alias = "after_tool_dispatch", alias = "PostToolUse")]
    AfterToolCall,
    #[serde(alias = "PermissionRequest")]
    PermissionRequest,
    #[serde(alias = "before_context_compact", alias = "PreCompact")]
    BeforeCompaction,
    #[serde(alias = "after_context_compact")]
    AfterCompaction,
    #[serde(alias = "Notification")]
    Notification,
}

impl HookEventName {
    /// Returns the trigger that the name stands for.
    pub(super) fn trigger(self) -> HookTrigger {
        let ended = match self {
            Self::RunCompleted => RunEndFilter::Completed,
            Self::RunFailed => RunEndFilter::Failed,
            _ => RunEndFilter::Any,
        };
        let event = match self {
            Self::SessionStart => HookEvent::SessionStart,
            Self::SessionEnd => HookEvent::SessionEnd,
            Self::PromptSubmit => HookEvent::PromptSubmit,
            Self::RunStart => HookEvent::RunStart,
            Self::RunEnd | Self::RunCompleted | Self::RunFailed => HookEvent::RunEnd,
            Self::BeforeContextBuild => HookEvent::BeforeContextBuild,
            Self::AfterContextBuild => HookEvent::AfterContextBuild,
            Self::BeforeModelCall => HookEvent::BeforeModelCall,
            Self::AfterModelCall => HookEvent::AfterModelCall,
            Self::BeforeToolCall => HookEvent::BeforeToolCall,
            Self::AfterToolCall => HookEvent::AfterToolCall,
            Self::PermissionRequest => HookEvent::PermissionRequest,
            Self::BeforeCompaction => HookEvent::BeforeCompaction,
            Self::AfterCompaction => HookEvent::AfterCompaction,
            Self::Notification => HookEvent::Notification,
        };
        HookTrigger {
            event,
            run_end: ended,
        }
    }
}
