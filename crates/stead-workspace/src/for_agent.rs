//! The definition of a workspace in the role of one of its agents.
//!
//! Effects: none.

use crate::{
    AgentMode, AgentRole, AgentSpec, AgentToolLists, Definition, FeatureSwitch, FixedText, Policy,
    SpecPolicy, SubagentIsolation, ToolLists, section_order,
};
use stead_core::ToolKind;
use stead_model::ModelSettings;
use stead_tools::builtin_tools;

const GENERAL_PURPOSE: &str = "general-purpose";
const BUILT_IN: &str = "built in";

impl AgentSpec {
    /// Whether the agent is [`general_purpose`], and not an agent of the workspace with that name.
    pub fn is_general_purpose(&self) -> bool {
        self.name == GENERAL_PURPOSE && self.source == BUILT_IN
    }
}

/// Returns the built-in subagent that every workspace has unless it is switched off. It equals the
/// agent that delegates to it, with a session of its own.
pub fn general_purpose() -> AgentSpec {
    AgentSpec {
        name: GENERAL_PURPOSE.to_owned(),
        mode: AgentMode::Subagent,
        description: Some(
            "Any task of several steps, with the same tools. Give it work whose details need not be seen here."
                .to_owned(),
        ),
        source: BUILT_IN.to_owned(),
        isolation: SubagentIsolation::Shared,
        prompt: "You work for another agent, which gave you the task in the first message and sees nothing but your last \
                 one. Do the whole task yourself. End with a report that stands on its own: what you did, what you found, \
                 and where it lies."
            .to_owned(),
        ..AgentSpec::default()
    }
}

impl Definition {
    /// Returns the definition in the role of `spec`: its prompt, model, limits and tools replace those
    /// of the main agent.
    pub fn for_agent(&self, spec: &AgentSpec, part: AgentRole) -> Self {
        let mut role = self.clone();
        role.agents.insert(spec.name.clone(), spec.clone());
        role.active = Some(spec.name.clone());
        role.config.model = model(spec.model.as_ref(), self.config.model.as_ref());
        role.config.policy = policy(&spec.policy, &self.config.policy);
        role.texts = self.prompt_texts_for(spec);
        role.tools = self.tool_lists_for(spec);
        match part {
            AgentRole::Main => {}
            // Memory about a person is for the agent that talks to that person.
            AgentRole::Child => {
                let own = [role.paths.memory.take(), role.paths.daily_facts.take()];
                role.paths
                    .memory_of_parent
                    .extend(own.into_iter().flatten());
                role.config.memory.flush = Some(false);
                // An agent may write definitions of subagents.
                let own_steps = &mut role.config.policy.max_steps;
                *own_steps = self.config.policy.max_steps.min(*own_steps);
                role.config.system_prompt = None;
                role.config.description = None;
                // A command would not see the files of an isolated subagent.
                if spec.isolation == SubagentIsolation::Isolated {
                    role.config.disable.0.insert(FeatureSwitch::Shell);
                }
            }
        }
        role
    }

    fn prompt_texts_for(&self, spec: &AgentSpec) -> Vec<FixedText> {
        if !spec.texts.is_empty() {
            return spec.texts.clone();
        }
        let own = FixedText {
            title: format!("agent {}", spec.name),
            order: section_order::PERSONA,
            source: spec.source.clone(),
            text: spec.prompt.clone(),
            tag: None,
        };
        let shared = self
            .texts
            .iter()
            .filter(|text| text.order != section_order::PERSONA)
            .cloned();
        shared.chain([own]).collect()
    }

    fn tool_lists_for(&self, spec: &AgentSpec) -> Vec<ToolLists> {
        let own = ToolLists {
            allow: spec
                .tools
                .clone()
                .map(|tools| with_implied_tools(tools, spec)),
            deny: spec.denied_tools.clone(),
        };
        match self.layout.def().agent_tool_lists {
            AgentToolLists::Replaced if spec.source != BUILT_IN => vec![own],
            AgentToolLists::Replaced | AgentToolLists::Added => {
                self.tools.iter().cloned().chain([own]).collect()
            }
        }
    }
}

/// Adds the tools that the other settings of an agent imply.
pub(crate) fn with_implied_tools(mut tools: Vec<String>, spec: &AgentSpec) -> Vec<String> {
    let delegates = spec
        .subagents
        .as_ref()
        .is_some_and(|names| !names.is_empty());
    let switches = !spec.switch_targets.is_empty();
    let skills = spec.skills.as_ref().is_some_and(|names| !names.is_empty());
    let implied = builtin_tools().filter(|tool| match tool.kind {
        ToolKind::Delegation => delegates,
        ToolKind::SwitchAgent => switches,
        ToolKind::Skill => skills,
        ToolKind::FileRead
        | ToolKind::FileWrite
        | ToolKind::Command
        | ToolKind::PlanEnter
        | ToolKind::PlanWrite
        | ToolKind::PlanExit
        | ToolKind::Todo
        | ToolKind::Task
        | ToolKind::Lookup
        | ToolKind::MemorySave
        | ToolKind::MemoryForget
        | ToolKind::Client
        | ToolKind::Message
        | ToolKind::Other => false,
    });
    tools.extend(implied.map(|tool| tool.name.to_owned()));
    tools
}

/// Returns the model of an agent: its own, or that of the workspace with its settings.
fn model(own: Option<&ModelSettings>, base: Option<&ModelSettings>) -> Option<ModelSettings> {
    match (own, base) {
        (Some(own), _) if own.name.contains(':') => Some(own.clone()),
        // A name without a provider means the provider of the workspace's model.
        (Some(own), Some(base)) if !own.name.is_empty() => {
            let provider = base.name.split(':').next().unwrap_or_default();
            let name = format!("{provider}:{}", own.name);
            Some(ModelSettings {
                name,
                temperature: own.temperature.or(base.temperature),
                ..base.clone()
            })
        }
        (Some(own), Some(base)) => Some(ModelSettings {
            temperature: own.temperature.or(base.temperature),
            ..base.clone()
        }),
        (Some(own), None) => Some(own.clone()),
        (None, base) => base.cloned(),
    }
}

/// Returns the limits of an agent; those of the workspace apply where it sets none.
pub(crate) fn policy(own: &SpecPolicy, base: &Policy) -> Policy {
    Policy {
        max_steps: own.max_steps.unwrap_or(base.max_steps),
        run_timeout_seconds: own.run_timeout_seconds.unwrap_or(base.run_timeout_seconds),
        tool_timeout_seconds: own
            .tool_timeout_seconds
            .unwrap_or(base.tool_timeout_seconds),
        parallel_tool_calls: match own.parallel_tool_calls {
            Some(false) => 1,
            Some(true) | None => base.parallel_tool_calls,
        },
        max_concurrent_subagents: own
            .max_concurrent_subagents
            .unwrap_or(base.max_concurrent_subagents),
        ..base.clone()
    }
}
