//! The data that describes a tool and what its calls touch.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::fmt;
use std::sync::Arc;

/// What a tool is: everything that is known about it before a call.
///
/// A spec is data. What one call would do is the tool's plan, which only the tool can make.
#[derive(Debug, Clone, PartialEq)]
pub struct ToolSpec {
    /// The canonical, snake_case name.
    pub name: String,
    /// Other names under which it may be called or listed.
    pub aliases: Vec<String>,
    /// The description that the model reads.
    pub description: String,
    /// The JSON schema of the arguments. It is shared: a thousand sessions use one copy.
    pub parameters: Arc<Value>,
    /// What a call can do.
    pub risk: Risk,
    /// What the tool is to the harness.
    pub kind: ToolKind,
    /// How long results may be.
    pub length: OutputLength,
    /// Who carries calls out.
    pub executor: Executor,
    /// Whether results carry content from outside.
    pub content: ResultContent,
    /// The canonical name of a tool whose rules hold for this one too.
    pub follows_rules_of: Option<String>,
    /// Other spellings of arguments, which are translated before the schema is checked.
    pub argument_aliases: ArgumentAliases,
    /// How the tool is shown on the title surface, if differently.
    pub title: Option<TitleForm>,
    /// The arguments that say what a call is about, for a one-line display.
    pub subject_arguments: &'static [&'static str],
    /// Which models are shown the tool.
    pub exposure: Exposure,
}

impl ToolSpec {
    /// A tool without arguments, of kind [`ToolKind::Other`], that the harness executes. The other
    /// fields are set with the `with_` methods or directly.
    pub fn new(name: impl Into<String>, description: impl Into<String>, risk: Risk) -> Self {
        let parameters =
            serde_json::json!({"type": "object", "properties": {}, "additionalProperties": false});
        Self {
            name: name.into(),
            aliases: Vec::new(),
            description: description.into(),
            parameters: Arc::new(parameters),
            risk,
            kind: ToolKind::Other,
            length: OutputLength::default(),
            executor: Executor::default(),
            content: ResultContent::default(),
            follows_rules_of: None,
            argument_aliases: ArgumentAliases::default(),
            title: None,
            subject_arguments: &[],
            exposure: Exposure::default(),
        }
    }

    /// Returns the spec with another exposure.
    pub fn with_exposure(self, exposure: Exposure) -> Self {
        Self { exposure, ..self }
    }

    /// Returns the spec with this JSON schema of the arguments.
    pub fn with_parameters(self, parameters: impl Into<Arc<Value>>) -> Self {
        Self {
            parameters: parameters.into(),
            ..self
        }
    }

    /// Returns the spec with these other names.
    pub fn with_aliases<A: Into<String>>(self, aliases: impl IntoIterator<Item = A>) -> Self {
        Self {
            aliases: aliases.into_iter().map(Into::into).collect(),
            ..self
        }
    }

    /// Returns the spec of a tool that says itself whether its results carry content from outside.
    pub fn with_content(self, content: ResultContent) -> Self {
        Self { content, ..self }
    }

    /// Whether results carry content from outside: as the tool says, or else if it reaches other
    /// machines or runs commands.
    pub fn carries_outside_content(&self) -> bool {
        match (self.content, self.risk.effect) {
            (ResultContent::Outside, _)
            | (ResultContent::ByEffect, ToolEffect::Network | ToolEffect::Executes) => true,
            (ResultContent::Own, _)
            | (ResultContent::ByEffect, ToolEffect::Reads | ToolEffect::Writes) => false,
        }
    }

    /// Returns the spec with another kind.
    pub fn with_kind(self, kind: ToolKind) -> Self {
        Self { kind, ..self }
    }
}

/// What a tool is to the harness. Decisions that differ between tools match on the kind, never on
/// a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToolKind {
    /// Reads, lists or searches files of the workspace.
    FileRead,
    /// Creates, changes, moves or deletes files of the workspace that its arguments name.
    FileWrite,
    /// Runs a shell command.
    Command,
    /// Begins plan mode.
    PlanEnter,
    /// Writes the plan.
    PlanWrite,
    /// Offers the plan to a person and ends plan mode.
    PlanExit,
    /// Keeps the list of things to do in a conversation.
    Todo,
    /// Reads or changes the list of tasks that outlive conversations.
    Task,
    /// Loads a skill.
    Skill,
    /// Searches memory or conversations and repeats what it finds.
    Lookup,
    /// Adds a fact to long-term memory. In a tainted session the fact is quarantined.
    MemorySave,
    /// Removes a fact from long-term memory.
    MemoryForget,
    /// Hands work to subagents, or controls work that was handed over.
    Delegation,
    /// Lets another agent continue the conversation.
    SwitchAgent,
    /// Executed by the client that runs the agent.
    Client,
    /// Sends a message to people outside the conversation, such as on a chat channel.
    Message,
    /// Everything else, such as tools of the embedding program.
    Other,
}

impl ToolKind {
    /// Whether calls are allowed in plan mode although they do more than read.
    pub fn is_part_of_planning(self) -> bool {
        match self {
            Self::PlanEnter | Self::PlanWrite | Self::PlanExit | Self::Todo => true,
            Self::FileRead
            | Self::FileWrite
            | Self::Command
            | Self::Task
            | Self::Skill
            | Self::Lookup
            | Self::MemorySave
            | Self::MemoryForget
            | Self::Delegation
            | Self::SwitchAgent
            | Self::Client
            | Self::Message
            | Self::Other => false,
        }
    }
}

/// Which models are shown a tool. Every tool can be called; one that is not shown is found with
/// `tool_search`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Exposure {
    /// Every model.
    #[default]
    Always,
    /// Models whose context window is not small.
    Usually,
    /// No model, unless it is asked for.
    OnDemand,
}

/// How long the results of a tool may be.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OutputLength {
    /// Any length: a long result is moved to a file, and the model is shown its two ends.
    #[default]
    Any,
    /// Never too long: the tool limits its results itself and says how to continue. They are always
    /// shown whole.
    Bounded,
}

/// Who carries a call out.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Executor {
    /// The harness.
    #[default]
    Harness,
    /// The client that runs the agent: the call waits, and the client answers with the result.
    Client,
}

/// Other spellings of a tool's arguments. The model is not told of them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ArgumentAliases {
    /// Pairs of another name and the parameter's name.
    pub names: &'static [(&'static str, &'static str)],
    /// Triples of the parameter's name, another value and the value it stands for.
    pub values: &'static [(&'static str, &'static str, &'static str)],
    /// Pairs of another name and the switch whose opposite it is.
    pub opposites: &'static [(&'static str, &'static str)],
    /// Triples of another name, the parameter's name and the number of its units in one of the
    /// other's.
    pub scaled: &'static [(&'static str, &'static str, u32)],
    /// Pairs of a name and a text parameter: where both are given, their texts are joined.
    pub joined: &'static [(&'static str, &'static str)],
    /// Pairs of a parameter and the value it has where another harness has no such parameter.
    pub defaults: &'static [(&'static str, &'static str)],
    /// Pairs of a parameter and a number that means the same as leaving it out.
    pub unset: &'static [(&'static str, u64)],
    /// Other spellings in the items of a list.
    pub items: &'static [ItemAliases],
    /// Names that have no meaning here.
    pub ignored: &'static [&'static str],
}

/// Other spellings in the items of a list parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ItemAliases {
    /// The parameter's name.
    pub list: &'static str,
    /// Pairs of another name and the name of a field.
    pub names: &'static [(&'static str, &'static str)],
    /// Pairs of a field and the value it has if it is left out.
    pub defaults: &'static [(&'static str, &'static str)],
}

impl ArgumentAliases {
    /// No other spellings.
    pub const NONE: Self = Self {
        names: &[],
        values: &[],
        opposites: &[],
        scaled: &[],
        joined: &[],
        defaults: &[],
        unset: &[],
        items: &[],
        ignored: &[],
    };

    /// Other names of parameters, and nothing else.
    pub const fn of_names(names: &'static [(&'static str, &'static str)]) -> Self {
        Self {
            names,
            ..Self::NONE
        }
    }

    /// Adds names that have no meaning here.
    pub const fn with_ignored(self, ignored: &'static [&'static str]) -> Self {
        Self { ignored, ..self }
    }
}

/// A tool as the title surface shows it: another name and other parameters for the same work.
#[derive(Clone)]
pub struct TitleForm {
    /// The name on the title surface, which is one of the tool's aliases.
    pub name: &'static str,
    /// The description that the model reads.
    pub description: &'static str,
    /// The JSON schema of the arguments.
    pub parameters: Arc<Value>,
    /// Other spellings of the arguments.
    pub argument_aliases: ArgumentAliases,
    /// Translates valid arguments of the form into those of the tool, or says in words for the
    /// model why it cannot.
    pub translate: fn(Value) -> Result<Value, String>,
}

impl PartialEq for TitleForm {
    /// A form is identified by its data; `translate` follows from the name.
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
            && self.description == other.description
            && self.parameters == other.parameters
            && self.argument_aliases == other.argument_aliases
    }
}

impl fmt::Debug for TitleForm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("TitleForm").field(&self.name).finish()
    }
}

/// What a call of a tool can do to the world.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Risk {
    /// The strongest thing it can do.
    pub effect: ToolEffect,
    /// Whether it may run beside other calls of the same step.
    pub parallel_safe: bool,
    /// Whether running it twice has the same effect as running it once, so that an interrupted call
    /// may be run again.
    pub repeatable: bool,
}

/// Whether the results of a tool carry content from outside: words of other machines or programs,
/// which nobody vouched for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash)]
pub enum ResultContent {
    /// They do if the tool reaches other machines or runs commands.
    #[default]
    ByEffect,
    /// They do not: a tool that only sends, or whose source the program vouches for.
    Own,
    /// They do, whatever the effect is.
    Outside,
}

/// The strongest thing a call can do, weakest first.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ToolEffect {
    /// Changes nothing.
    Reads,
    /// Changes files of the workspace.
    Writes,
    /// Reaches out to other machines.
    Network,
    /// Runs commands.
    Executes,
}

impl PathAccess {
    /// Reading what `path` leads to.
    pub fn read(path: impl Into<String>) -> Self {
        Self {
            path: path.into(),
            kind: AccessKind::Read,
            scope: PathScope::Content,
        }
    }

    /// Changing what `path` leads to.
    pub fn write(path: impl Into<String>) -> Self {
        Self {
            kind: AccessKind::Write,
            ..Self::read(path)
        }
    }

    /// Returns the access with another scope.
    pub fn with_scope(self, scope: PathScope) -> Self {
        Self { scope, ..self }
    }
}

impl Risk {
    /// The risk of a tool that only reads: calls run in parallel and may be repeated.
    pub const READS: Self = Self {
        effect: ToolEffect::Reads,
        parallel_safe: true,
        repeatable: true,
    };
    /// The risk of a tool that changes files: calls run one at a time and are never repeated
    /// automatically.
    pub const WRITES: Self = Self {
        effect: ToolEffect::Writes,
        parallel_safe: false,
        repeatable: false,
    };
}

/// One path that a call would touch, for the gate. The text is as the model wrote it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PathAccess {
    /// The path argument.
    pub path: String,
    /// The kind of access.
    pub kind: AccessKind,
    /// The extent of the access.
    pub scope: PathScope,
}

/// How much of a path a call touches.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PathScope {
    /// The target of the path, with links followed.
    Content,
    /// The path itself without following a link, and everything below it.
    Tree,
    /// The path itself, and below it every name that is now below `from`: the destination of a
    /// move.
    Arrival {
        /// The source of the move.
        from: String,
    },
}

/// The kind of access to a path.
#[derive(
    Debug,
    Clone,
    Copy,
    PartialEq,
    Eq,
    PartialOrd,
    Ord,
    Hash,
    Serialize,
    Deserialize,
    schemars::JsonSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum AccessKind {
    /// Its content, or names below it, are read.
    Read,
    /// It is created, changed, moved or removed.
    Write,
}

/// Returns a short hash of arguments, independent of the order of keys. Intents and approvals are
/// bound to it.
pub fn args_hash(args: &Value) -> String {
    // serde_json's map is sorted by key, so its text is canonical.
    let digest = Sha256::digest(args.to_string().as_bytes());
    digest
        .iter()
        .take(8)
        .fold(String::with_capacity(16), |mut hex, byte| {
            use std::fmt::Write;
            let _ = write!(hex, "{byte:02x}");
            hex
        })
}
