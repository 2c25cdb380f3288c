//! What hooks are asked about.

use serde::Deserialize;
use stead_core::RunOutcome;

/// Something that a hook can be asked about.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum HookEvent {
    /// A process takes a session up.
    SessionStart,
    /// A process is done with a session.
    SessionEnd,
    /// A person says something; nothing of it is on record yet.
    PromptSubmit,
    /// The input is on record, and work begins.
    RunStart,
    /// How the run ended is on record.
    RunEnd,
    /// What the model is to be sent is about to be put together.
    BeforeContextBuild,
    /// It is put together.
    AfterContextBuild,
    /// The model is about to be asked.
    BeforeModelCall,
    /// It has answered, and nothing of it was acted on.
    AfterModelCall,
    /// A call is about to go through the gate.
    BeforeToolCall,
    /// It has its result, which nobody was told.
    AfterToolCall,
    /// A call needs a person's yes.
    PermissionRequest,
    /// The model is about to be shown less of the conversation.
    BeforeCompaction,
    /// It is.
    AfterCompaction,
    /// A person should know something.
    Notification,
}

impl HookEvent {
    /// All of them.
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

    /// Its name in files, journals and what hooks are told.
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

    /// Its name in OpenHarness, where it has another.
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

    /// Whether a hook can stop what it is asked about.
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

    /// Whether a hook that fails here stops things unless it says otherwise: it stands before
    /// something that would happen unguarded.
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

/// An event that a hook listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HookTrigger {
    /// The event.
    pub event: HookEvent,
    /// Which ends of runs, where the event is one.
    pub run_end: RunEndFilter,
}

/// Which ends of runs a hook listens to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RunEndFilter {
    /// All.
    Any,
    /// Those that came to an answer.
    Completed,
    /// Those that did not, though nobody stopped them.
    Failed,
}

impl RunEndFilter {
    /// Whether a run that ended so is one of them.
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

/// An event as it is written: by our names, or by those of other systems.
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
    /// What it means.
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
