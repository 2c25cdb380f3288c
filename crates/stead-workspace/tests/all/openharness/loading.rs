//! The place for tests of loading a whole OpenHarness workspace.

use super::*;
use std::collections::BTreeMap;
use stead_core::AccessKind::{Read, Write};
use stead_model::ModelSettings;
use stead_vfs::Rules;
use stead_workspace::{
    AgentConfig, AgentMode, AgentSpec, ContextFile, FixedText, MemorySettings, Policy, SpecPolicy,
    SubagentIsolation, Surface, ToolLists, section_order,
};

fn names(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

fn gpt(temperature: f64) -> ModelSettings {
    ModelSettings {
        name: "openai:gpt-5".to_owned(),
        reference: Some("platform/openai-default".to_owned()),
        api_key: Some("sk-platform".to_owned()),
        temperature: Some(temperature),
        ..ModelSettings::default()
    }
}

/// An agent that may do nothing.
fn agent(name: &str, source: &str) -> AgentSpec {
    AgentSpec {
        name: name.to_owned(),
        source: format!("{source}{name}.md"),
        tools: Some(Vec::new()),
        skills: Some(Vec::new()),
        actions: Some(Vec::new()),
        servers: Some(Vec::new()),
        subagents: Some(Vec::new()),
        isolation: SubagentIsolation::Shared,
        ..AgentSpec::default()
    }
}

const PLANNER: &str = "# Planner\n\nUnderstand what is asked, look at the code, and write down the steps.\n\
    When the plan stands, switch to the builder.";

fn agents() -> BTreeMap<String, AgentSpec> {
    let own = ".openharness/agents/";
    let plan = AgentSpec {
        description: Some("Analyses a task and writes a plan".to_owned()),
        model: Some(gpt(0.3)),
        tools: Some(names(&["Read", "Glob", "Grep"])),
        switch_targets: names(&["build"]),
        prompt: PLANNER.to_owned(),
        ..agent("plan", own)
    };
    let build = AgentSpec {
        description: Some("Changes the workspace".to_owned()),
        model: Some(ModelSettings {
            max_output_tokens: Some(4096),
            ..gpt(0.2)
        }),
        system_reminder: Some("You are the builder now.\n".to_owned()),
        tools: Some(names(&["Bash", "Read", "Write", "Edit", "Glob", "Grep"])),
        denied_tools: names(&["LS"]),
        skills: Some(names(&["repo.explorer"])),
        actions: Some(names(&["code.review"])),
        servers: Some(names(&["docs-server"])),
        switch_targets: names(&["plan"]),
        subagents: Some(names(&["reviewer"])),
        policy: SpecPolicy {
            max_steps: Some(40),
            run_timeout_seconds: Some(1800),
            tool_timeout_seconds: Some(60),
            parallel_tool_calls: Some(false),
            max_concurrent_subagents: Some(3),
        },
        prompt: "# Builder\n\nMake the change, then ask the reviewer.".to_owned(),
        ..agent("build", own)
    };
    let reviewer = AgentSpec {
        mode: AgentMode::Subagent,
        description: Some("Reviews changes".to_owned()),
        model: Some(ModelSettings {
            name: "openai-compatible:qwen/qwen3".to_owned(),
            reference: Some("workspace/本地".to_owned()),
            base_url: Some("http://127.0.0.1:8000/v1".to_owned()),
            temperature: Some(0.1),
            ..ModelSettings::default()
        }),
        tools: Some(names(&["Read", "Glob", "Grep"])),
        hidden: true,
        prompt: "# Reviewer\n\nLook for mistakes and cases nobody thought of. Say what you found, the worst first."
            .to_owned(),
        ..agent("reviewer", own)
    };
    // Of the platform's agents `build` is hidden by the workspace's; the other stays.
    let helper = AgentSpec {
        mode: AgentMode::All,
        description: Some("Helps with anything".to_owned()),
        model: Some(ModelSettings {
            name: "anthropic:claude-sonnet-4-5".to_owned(),
            reference: Some("platform/claude".to_owned()),
            ..ModelSettings::default()
        }),
        actions: Some(names(&["deploy"])),
        prompt: "You help.".to_owned(),
        ..agent("helper", "platform/agents/")
    };
    [plan, build, reviewer, helper]
        .into_iter()
        .map(|spec| (spec.name.clone(), spec))
        .collect()
}

fn text(title: &str, order: u16, source: &str, text: &str) -> FixedText {
    let title = title.to_owned();
    let source = source.to_owned();
    let text = text.to_owned();
    FixedText {
        title,
        order,
        source,
        text,
        tag: None,
    }
}

fn without_texts(spec: &AgentSpec) -> AgentSpec {
    AgentSpec {
        texts: Vec::new(),
        ..spec.clone()
    }
}

#[tokio::test]
async fn every_part_of_a_workspace_arrives_where_it_belongs() {
    let definition = open(fixture("workspace"), &on_platform())
        .await
        .map_err(|all| lines(&all))
        .unwrap();
    let spoken = definition.agents["build"]
        .texts
        .iter()
        .map(|text| text.title.as_str())
        .collect::<Vec<_>>();
    assert_eq!(spoken, ["base", "agent build", "for this model"]);
    let bare: BTreeMap<String, AgentSpec> = definition
        .agents
        .iter()
        .map(|(name, spec)| (name.clone(), without_texts(spec)))
        .collect();
    assert_eq!(bare, agents());
    assert_eq!(definition.active.as_deref(), Some("plan"));
    let memory = MemorySettings {
        flush: Some(true),
        ..MemorySettings::default()
    };
    let secrets = definition.config.secrets.clone();
    let config = AgentConfig {
        model: Some(gpt(0.3)),
        memory,
        secrets,
        ..AgentConfig::default()
    };
    assert_eq!(definition.config, config);
    let mut secrets = definition.config.secrets.clone();
    secrets.sort();
    secrets.dedup();
    assert_eq!(secrets, ["review-token", "sk-platform"]);
    assert_eq!(
        definition.tools,
        [ToolLists {
            allow: Some(names(&["Read", "Glob", "Grep", "switch_agent"])),
            deny: Vec::new()
        }]
    );
    assert_eq!(definition.surface, Surface::Title);
    assert_eq!(
        definition.texts,
        [
            text(
                "base",
                100,
                ".openharness/prompts.yaml",
                "You work in this workspace. ${HOME} is not for you."
            ),
            text("agent plan", 101, ".openharness/agents/plan.md", PLANNER),
            text(
                "for this model",
                section_order::CONTEXT + 1,
                ".openharness/prompts.yaml",
                "Call tools with short arguments."
            ),
        ]
    );
    let tree = &definition.paths;
    let path = |text: &str| VPath::parse(text).unwrap();
    let project = ContextFile::new(path("AGENTS.md"), "agents_context");
    assert_eq!(tree.context, [project]);
    assert_eq!(tree.memory, Some(path(".openharness/memory/MEMORY.md")));
    assert_eq!(
        tree.skills,
        [path("shared/skills"), path(".openharness/skills")]
    );
    assert_eq!(
        (tree.flavor, &tree.runtime),
        (
            stead_skills::SkillFlavor::OpenHarness,
            &path(".openharness/data")
        )
    );
    assert_eq!(
        (
            &tree.daily_facts,
            &tree.knowledge,
            &tree.subagents,
            &tree.tools
        ),
        (&None, &None, &None, &None)
    );
    let rules = Rules::new(&[], tree.protected).unwrap();
    let allowed =
        |kind, text| rules.decide(kind, &path(text)).kind == stead_core::VerdictKind::Allow;
    assert!(
        !allowed(Write, ".openharness/agents/plan.md")
            && allowed(Read, ".openharness/agents/plan.md")
    );
    assert!(allowed(Write, ".openharness/memory/MEMORY.md") && allowed(Write, "src/main.rs"));
}

#[tokio::test]
async fn another_agent_of_the_workspace_brings_its_own_model_bounds_and_tools() {
    let options = OpenOptions {
        agent: Some("build".to_owned()),
        ..on_platform()
    };
    let definition = open(fixture("workspace"), &options).await.unwrap();
    assert_eq!(
        definition.active_spec().map(without_texts).as_ref(),
        Some(&agents()["build"])
    );
    assert_eq!(definition.config.model, agents()["build"].model);
    let policy = Policy {
        max_steps: 40,
        run_timeout_seconds: 1800,
        tool_timeout_seconds: 60,
        parallel_tool_calls: 1,
        max_concurrent_subagents: 3,
        ..Policy::default()
    };
    assert_eq!(definition.config.policy, policy);
    // Tools to switch, to load skills and to hand work over come with whom and what it may.
    let hands = [
        "task",
        "agent_send",
        "agent_list",
        "delegation_output",
        "delegation_list",
        "delegation_cancel",
        "delegation_wait",
    ];
    let own = [
        "Bash",
        "Read",
        "Write",
        "Edit",
        "Glob",
        "Grep",
        "switch_agent",
        "load_skill",
    ];
    let allow = names(&[&own[..], &hands].concat());
    assert_eq!(
        definition.tools,
        [ToolLists {
            allow: Some(allow),
            deny: names(&["LS"])
        }]
    );
    let origin = |key: &str| {
        let origin = &definition.origins[key];
        format!("{}:{}", origin.source, origin.place.unwrap().line)
    };
    assert_eq!(
        origin("policy.max_steps"),
        ".openharness/agents/build.md:32"
    );
    assert_eq!(origin("model.name"), ".openharness/agents/build.md:5");
    assert_eq!(
        origin("model.max_output_tokens"),
        ".openharness/agents/build.md:6"
    );
}

#[tokio::test]
async fn what_comes_later_is_told_with_its_place() {
    let definition = open(fixture("workspace"), &on_platform()).await.unwrap();
    #[rustfmt::skip]
    let expected = [
        ".openharness/settings.yaml:3:1: not active yet: runtime: templates of workspaces come in a later version",
        ".openharness/settings.yaml:18:1: not active yet: imports: templates of workspaces come in a later version",
        ".openharness/models/local.yaml:5:3: not active yet: 本地.metadata: is used in a later version",
        ".openharness/agents/build.md:38:1: not active yet: color: agents have colours in a later version",
        ".openharness/agents/reviewer.md:6:1: not active yet: top_p: is sent to models in a later version",
        ".openharness/actions/code-review/ACTION.yaml:1:1: not active yet: the action `code.review`: actions run in a later version",
        ".openharness/tools/settings.yaml:1:1: not active yet: docs-server: tool servers are connected in a later version",
        ".openharness/agents/build.md:17:3: not active yet: tools.actions: actions run in a later version",
        ".openharness/agents/build.md:21:3: not active yet: tools.external: tool servers are connected in a later version",
        "platform/agents/helper.md:6:13: warning: tools.actions: there is no action `deploy`; there are: code.review",
        "platform/agents/helper.md:6:3: not active yet: tools.actions: actions run in a later version",
        ".openharness/prompts.yaml:13:3: not active yet: compose.include_environment: the date and the session are always told, last",
    ];
    assert_eq!(lines(&definition.findings), expected);
}

#[tokio::test]
async fn without_its_platform_a_workspace_is_refused_unless_a_model_is_given() {
    let alone = OpenOptions::default();
    let errors = lines(&open(fixture("workspace"), &alone).await.unwrap_err());
    let missing =
        "there is no model `platform/openai-default`, for no platform with models is given";
    let of_main = format!(".openharness/agents/plan.md:5:3: model.model_ref: {missing}");
    assert_eq!(errors, [of_main.as_str()]);
    let all = [
        format!(".openharness/settings.yaml:6:5: models.careful: {missing}"),
        format!(
            ".openharness/agents/build.md:5:3: model.alias: the model `careful` is `platform/openai-default`: {missing}"
        ),
        of_main,
    ];
    assert_eq!(checked(fixture("workspace"), &alone).await, all);
    let given = OpenOptions {
        model: Some("scripted:x.yaml".to_owned()),
        ..alone
    };
    let definition = open(fixture("workspace"), &given).await.unwrap();
    let lax: Vec<_> = definition
        .findings
        .iter()
        .filter(|f| f.severity == stead_workspace::Severity::NonFatal)
        .collect();
    assert_eq!(lax.iter().map(ToString::to_string).collect::<Vec<_>>(), all);
    // What is said to one model alone is not said to another.
    assert_eq!(
        definition
            .texts
            .iter()
            .map(|text| text.title.as_str())
            .collect::<Vec<_>>(),
        ["base", "agent plan"]
    );
}

#[tokio::test]
async fn the_scaffold_is_a_workspace() {
    let files: Vec<(&str, &str)> = stead_workspace::scaffold(stead_workspace::Layout::Openharness)
        .into_iter()
        .map(|file| (file.path, file.content))
        .collect();
    let definition = open(place(&files).await, &OpenOptions::default())
        .await
        .map_err(|all| lines(&all))
        .unwrap();
    assert_eq!(definition.active.as_deref(), Some("plan"));
    assert_eq!(
        definition.agents.keys().collect::<Vec<_>>(),
        ["build", "plan", "reviewer"]
    );
    assert_eq!(
        definition.config.model.unwrap().name,
        "anthropic:claude-sonnet-4-5"
    );
    let inactive = |finding: &&Finding| finding.severity == stead_workspace::Severity::Inactive;
    assert_eq!(
        definition.findings.iter().filter(|f| !inactive(f)).count(),
        0,
        "{:?}",
        lines(&definition.findings)
    );
}
