//! The place for tests of every field of OpenHarness files: its effect, or a note that it is not
//! supported yet.

use super::*;
use stead_workspace::{AgentMode, FeatureSwitch, Policy};

/// What a line of front matter comes to: the effect, in words, or what is told.
async fn effect(line: &str, more: &[(&str, &str)]) -> Vec<String> {
    let model = if line.contains("model") {
        ""
    } else {
        "model: platform/claude\n"
    };
    let agent = format!("---\n{model}{line}\n---\nHi.\n");
    let others = [
        (
            ".openharness/agents/helper.md",
            "---\nmode: subagent\nmodel: platform/claude\n---\nHi.\n",
        ),
        (
            ".openharness/agents/plan.md",
            "---\nmodel: platform/claude\n---\nHi.\n",
        ),
        (
            ".openharness/settings.yaml",
            "default_agent: build\nmodels:\n  quick: {ref: platform/claude, max_tokens: 9}\n",
        ),
        (
            ".openharness/actions/a/ACTION.yaml",
            "name: act\ndescription: x\nentry: {command: x}\n",
        ),
        (".openharness/skills/sk/SKILL.md", "x"),
        (
            ".openharness/tools/settings.yaml",
            "srv: {url: 'http://x'}\n",
        ),
    ];
    let definition = with_agent(&agent, &[&others, more].concat())
        .await
        .map_err(|all| lines(&all))
        .unwrap();
    let spec = definition.active_spec().unwrap();
    let mut told: Vec<String> = Vec::new();
    let mut is = |what: String, usual: &str| (what != usual).then(|| told.push(what));
    is(
        format!("mode {:?}", spec.mode),
        &format!("mode {:?}", AgentMode::Primary),
    );
    is(
        format!("description {:?}", spec.description),
        "description None",
    );
    let model = spec.model.clone().unwrap();
    is(
        format!("model {}", model.name),
        "model anthropic:claude-sonnet-4-5",
    );
    is(
        format!("temperature {:?}", model.temperature),
        "temperature None",
    );
    is(
        format!("max_tokens {:?}", model.max_output_tokens),
        "max_tokens None",
    );
    is(
        format!("tools {:?}", definition.tools[0].allow),
        "tools Some([])",
    );
    is(format!("deny {:?}", definition.tools[0].deny), "deny []");
    is(format!("skills {:?}", spec.skills), "skills Some([])");
    is(format!("actions {:?}", spec.actions), "actions Some([])");
    is(format!("servers {:?}", spec.servers), "servers Some([])");
    is(format!("switch {:?}", spec.switch_targets), "switch []");
    is(
        format!("subagents {:?}", spec.subagents),
        "subagents Some([])",
    );
    is(format!("hidden {}", spec.hidden), "hidden false");
    is(
        format!("background {}", spec.background),
        "background false",
    );
    is(
        format!("reminder {:?}", spec.system_reminder),
        "reminder None",
    );
    is(
        format!("{:?}", definition.config.policy),
        &format!("{:?}", Policy::default()),
    );
    let about = own(&definition.findings).into_iter().filter_map(|line| {
        Some(
            line.strip_prefix(".openharness/agents/build.md:")?
                .splitn(3, ": ")
                .skip(1)
                .collect::<Vec<_>>()
                .join(": "),
        )
    });
    told.extend(about);
    told
}

#[tokio::test]
async fn every_field_of_an_agent_has_an_effect_or_is_told_to_have_none_yet() {
    let policy = |change: fn(&mut Policy)| {
        let mut policy = Policy::default();
        change(&mut policy);
        format!("{policy:?}")
    };
    let later = |text: &str| format!("not active yet: {text}");
    let text = str::to_owned;
    let cases: Vec<(&str, Vec<String>)> = vec![
        ("mode: primary", vec![]),
        ("mode: all", vec![text("mode All")]),
        (
            "description: Does it",
            vec![text("description Some(\"Does it\")")],
        ),
        (
            "model: {model_ref: platform/openai-default}",
            vec![text("model openai:gpt-5")],
        ),
        (
            "model: platform/openai-default",
            vec![text("model openai:gpt-5")],
        ),
        ("model: quick", vec![text("max_tokens Some(9)")]),
        (
            "model: {alias: quick, max_tokens: 7}",
            vec![text("max_tokens Some(7)")],
        ),
        (
            "model: {model_ref: platform/claude, temperature: 0.5}",
            vec![text("temperature Some(0.5)")],
        ),
        ("temperature: 0.5", vec![text("temperature Some(0.5)")]),
        ("max_tokens: 100", vec![text("max_tokens Some(100)")]),
        (
            "top_p: 0.5",
            vec![later("top_p: is sent to models in a later version")],
        ),
        (
            "model: {model_ref: platform/claude, top_p: 0.5}",
            vec![later("model.top_p: is sent to models in a later version")],
        ),
        (
            "system_reminder: Now you.",
            vec![text("reminder Some(\"Now you.\")")],
        ),
        (
            "tools: {native: [Read, grep_files]}",
            vec![text("tools Some([\"Read\", \"grep_files\"])")],
        ),
        ("tools: {native: []}", vec![]),
        ("tools:", vec![]),
        (
            "tools: {native: [Bash, WebFetch, TodoWrite]}",
            vec![
                text("tools Some([\"Bash\", \"WebFetch\", \"TodoWrite\"])"),
                later("tools.native: WebFetch comes in a later version"),
            ],
        ),
        (
            "tools: {actions: [act]}",
            vec![
                text("actions Some([\"act\"])"),
                later("tools.actions: actions run in a later version"),
            ],
        ),
        (
            "actions: [act]",
            vec![
                text("actions Some([\"act\"])"),
                later("actions: actions run in a later version"),
            ],
        ),
        (
            "tools: {skills: [sk]}",
            vec![
                text("tools Some([\"load_skill\"])"),
                text("skills Some([\"sk\"])"),
            ],
        ),
        (
            "skills: [sk]",
            vec![
                text("tools Some([\"load_skill\"])"),
                text("skills Some([\"sk\"])"),
            ],
        ),
        (
            "tools: {external: [srv]}",
            vec![
                text("servers Some([\"srv\"])"),
                later("tools.external: tool servers are connected in a later version"),
            ],
        ),
        (
            "disallowed: {tools: {native: [Write]}}",
            vec![text("deny [\"Write\"]")],
        ),
        (
            "disallowed: {tools: {external: [srv]}, actions: [act], skills: [sk]}",
            vec![
                later("disallowed.actions: actions run in a later version"),
                later("disallowed.tools.external: tool servers are connected in a later version"),
            ],
        ),
        (
            "switch: [plan]",
            vec![
                text("tools Some([\"switch_agent\"])"),
                text("switch [\"plan\"]"),
            ],
        ),
        (
            "subagents: [helper]",
            vec![
                text(
                    "tools Some([\"task\", \"agent_send\", \"agent_list\", \"delegation_output\", \"delegation_list\", \"delegation_cancel\", \"delegation_wait\"])",
                ),
                text("subagents Some([\"helper\"])"),
            ],
        ),
        (
            "policy: {max_steps: 40}",
            vec![policy(|p| p.max_steps = 40)],
        ),
        (
            "policy: {run_timeout_seconds: 1800}",
            vec![policy(|p| p.run_timeout_seconds = 1800)],
        ),
        (
            "policy: {tool_timeout_seconds: 60}",
            vec![policy(|p| p.tool_timeout_seconds = 60)],
        ),
        ("policy: {parallel_tool_calls: true}", vec![]),
        (
            "policy: {parallel_tool_calls: false}",
            vec![policy(|p| p.parallel_tool_calls = 1)],
        ),
        (
            "policy: {max_concurrent_subagents: 3}",
            vec![policy(|p| p.max_concurrent_subagents = 3)],
        ),
        ("hidden: true", vec![text("hidden true")]),
        ("background: true", vec![text("background true")]),
        (
            "color: red",
            vec![later("color: agents have colours in a later version")],
        ),
    ];
    for (line, expected) in cases {
        assert_eq!(effect(line, &[]).await, expected, "{line}");
    }
}

#[tokio::test]
async fn every_setting_has_an_effect_or_is_told_to_have_none_yet() {
    const AGENT: &str = "---\nmodel: platform/claude\n---\nHi.\n";
    let opened = async |settings: &str| {
        let definition = with_agent(AGENT, &[(".openharness/settings.yaml", settings)]).await;
        definition.map_err(|all| lines(&all)).unwrap()
    };
    for (settings, disabled, memory) in [
        ("", vec![], true),
        (
            "engine: {compact: {enabled: false}}",
            vec![FeatureSwitch::Compaction],
            true,
        ),
        (
            "engine: {workspace_memory: {enabled: false}}",
            vec![FeatureSwitch::MemoryHooks, FeatureSwitch::MemoryTools],
            false,
        ),
        ("engine: {workspace_memory: {enabled: true}}", vec![], true),
    ] {
        let definition = opened(settings).await;
        let switches: Vec<FeatureSwitch> = definition.config.disable.0.iter().copied().collect();
        assert_eq!(
            (switches, definition.paths.memory.is_some()),
            (disabled, memory),
            "{settings}"
        );
    }
    let told = own(&opened("skill_dirs: [a/b, ./c]\nblueprint: x\n")
        .await
        .findings);
    assert_eq!(
        told,
        [
            ".openharness/settings.yaml:2:1: not active yet: blueprint: templates of workspaces come in a later version",
            ".openharness/settings.yaml:1:14: warning: skill_dirs: there is no folder a/b in the workspace",
            ".openharness/settings.yaml:1:19: warning: skill_dirs: there is no folder ./c in the workspace",
        ]
    );
    let skills = opened("skill_dirs: [a/b, ./c]").await.paths.skills;
    assert_eq!(
        skills.iter().map(ToString::to_string).collect::<Vec<_>>(),
        ["c", "a/b", ".openharness/skills"]
    );
}

#[tokio::test]
async fn prompts_are_said_in_their_order_and_the_model_goes_before_its_provider() {
    let said = async |settings: &str, prompts: &str| {
        let agent = "---\nmodel: platform/claude\n---\nAgent.\n";
        let mut files = vec![
            (".openharness/settings.yaml", settings),
            ("notes/x.md", " From a file. \n"),
        ];
        if !prompts.is_empty() {
            files.push((".openharness/prompts.yaml", prompts));
        }
        let definition = with_agent(agent, &files)
            .await
            .map_err(|all| lines(&all))
            .unwrap();
        let texts = definition
            .texts
            .iter()
            .map(|text| format!("{} {}", text.order, text.text));
        (texts.collect::<Vec<_>>(), definition.paths.context.len())
    };
    let both = "llm_optimized: {providers: {anthropic: {inline: P}}, models: {platform/claude: {inline: M}}}\n";
    let provider = "llm_optimized: {providers: {anthropic: {inline: P}, openai: {inline: O}}}\n";
    #[rustfmt::skip]
    let cases: Vec<(&str, String, &[&str], usize)> = vec![
        ("", String::new(), &["120 Agent."], 1),
        ("system_prompt: B", String::new(), &["100 B", "120 Agent."], 1),
        ("system_prompt: {base: {file: ./notes/x.md}}", String::new(), &["100 From a file.", "120 Agent."], 1),
        ("", format!("base: {{inline: B}}\n{both}"), &["100 B", "101 M", "120 Agent."], 1),
        ("", provider.to_owned(), &["101 P", "120 Agent."], 1),
        ("", format!("base: {{inline: B}}\n{both}compose: {{order: [agent, project_agents_md, base]}}"), &["100 Agent.", "301 B"], 1),
        ("", "base: {inline: B}\ncompose: {order: [skills, agent]}".to_owned(), &["701 Agent."], 0),
    ];
    for (settings, prompts, expected, files) in cases {
        let expected: Vec<String> = expected.iter().map(|&text| text.to_owned()).collect();
        assert_eq!(
            said(settings, &prompts).await,
            (expected, files),
            "{settings} {prompts}"
        );
    }
}

#[tokio::test]
async fn providers_of_models_are_ours_and_keys_may_be_missing() {
    let models = "a: {provider: gemini, name: g, key: literal-key}\nb: {provider: ollama, name: l}\n\
        c: {provider: openai-compatible, name: o/x, url: 'http://127.0.0.1/v1', key: '${PLATFORM_KEY}'}\n";
    for (reference, name, url, key) in [
        ("workspace/a", "gemini:g", None, Some("literal-key")),
        ("workspace/b", "ollama:l", None, None),
        (
            "workspace/c",
            "openai-compatible:o/x",
            Some("http://127.0.0.1/v1"),
            Some("sk-platform"),
        ),
    ] {
        let agent = format!("---\nmodel: {reference}\n---\nHi.\n");
        let definition = with_agent(&agent, &[(".openharness/models/m.yaml", models)])
            .await
            .unwrap();
        let model = definition.config.model.unwrap();
        assert_eq!(
            (
                model.name.as_str(),
                model.base_url.as_deref(),
                model.api_key.as_deref()
            ),
            (name, url, key)
        );
        // No key is ever written down, used or not.
        assert!(
            definition
                .config
                .secrets
                .contains(&"literal-key".to_owned())
        );
    }
}

#[tokio::test]
async fn a_variable_that_is_not_set_matters_only_to_those_who_use_its_model() {
    let shared =
        "good: {provider: ollama, name: l}\nbad: {provider: openai, name: x, key: '${env.GONE}'}\n";
    let platform = place(&[("models/m.yaml", shared)]).await;
    let own = (
        "w: {provider: openai, name: x, key: '${GONE}'}\n",
        ".openharness/models/w.yaml",
    );
    let unset = "the variable GONE is not set; set it, or write";
    let of_platform =
        format!("platform/models/m.yaml:2:34: warning: {unset} ${{env.GONE:-a default}}");
    let of_folder = format!(".openharness/models/w.yaml:1:32: {unset} ${{GONE:-a default}}");
    let used = |reference: &str| {
        let message = format!("the model `{reference}` needs the variable GONE, which is not set");
        format!(".openharness/agents/a.md:2:1: model: {message}")
    };
    let opened = async |reference: &str, more: &[(&str, &str)], model: Option<&str>| {
        let agent = format!("---\nmodel: {reference}\n---\nHi.\n");
        let files = place(&[&[(".openharness/agents/a.md", agent.as_str())], more].concat()).await;
        let model = model.map(str::to_owned);
        let options = OpenOptions {
            platform: Some(platform.clone()),
            model,
            ..OpenOptions::default()
        };
        open(files, &options)
            .await
            .map(|definition| lines(&definition.findings))
            .map_err(|all| lines(&all))
    };
    assert_eq!(
        opened("platform/good", &[], None).await,
        Ok(vec![of_platform.clone()])
    );
    assert_eq!(
        opened("platform/bad", &[], None).await,
        Err(vec![used("platform/bad")])
    );
    let more = [(own.1, own.0)];
    assert_eq!(
        opened("platform/good", &more, None).await,
        Err(vec![of_folder.clone()])
    );
    // Another model is used anyway.
    let told = opened("workspace/w", &more, Some("scripted:x")).await;
    assert_eq!(told, Ok(vec![of_platform, of_folder, used("workspace/w")]));
}
