//! The place for tests of loading OpenPaw workspaces.

use super::{Tree, failing, files, fixture, lines, open, path, tree};
use stead_core::AgentId;
use stead_model::ModelSettings;
use stead_workspace::{
    AgentConfig, ContextFile, ContextRendering, FeatureSwitch, Layout, OpenOptions, Policy,
    QueueMode, QueueSettings, SkillMode, SkillSettings, ToolLists, WorkspacePaths as Parts,
};

fn options() -> OpenOptions {
    OpenOptions {
        folder: Some("gilfoyle".to_owned()),
        ..OpenOptions::default()
    }
}

/// The same files in the older form.
fn flat(nested: &Tree) -> Tree {
    let at_root = |path: &str| {
        path.strip_prefix("agent/")
            .or(path.strip_prefix("config/"))
            .unwrap_or(path)
            .to_owned()
    };
    nested
        .iter()
        .map(|(path, content)| (at_root(path), content.clone()))
        .collect()
}

#[tokio::test]
async fn persona_model_limits_and_secrets_arrive_where_they_should() {
    let definition = open(&fixture("openpaw"), &options()).await.unwrap();
    let model = ModelSettings {
        name: "anthropic:claude-sonnet-4-20250514".to_owned(),
        api_key: Some("sk-ant-fixture".to_owned()),
        temperature: Some(0.5),
        ..ModelSettings::default()
    };
    let mut config = definition.config.clone();
    config.secrets.sort();
    config.secrets.dedup();
    let variables = [
        ("ANTHROPIC_API_KEY", "sk-ant-fixture"),
        ("DEFAULT_PROJECT", "ClientX"),
        ("TELEGRAM_BOT_TOKEN", "12345:fixture"),
    ];
    let expected = AgentConfig {
        name: Some(AgentId::new("gilfoyle").unwrap()),
        description: Some("Sarcastic systems architect".to_owned()),
        model: Some(model),
        timezone: Some("America/Denver".to_owned()),
        policy: Policy {
            max_steps: 40,
            run_timeout_seconds: 300,
            ..Policy::default()
        },
        queue: QueueSettings {
            mode: QueueMode::Steer,
            debounce_ms: 500,
            ..QueueSettings::default()
        },
        skills: SkillSettings {
            mode: Some(SkillMode::Full),
            dirs: Vec::new(),
        },
        secrets: vec!["12345:fixture".to_owned(), "sk-ant-fixture".to_owned()],
        variables: variables
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .into(),
        ..AgentConfig::default()
    };
    assert_eq!(config, expected);
    let shown = |file: &str, tag: &str| ContextFile::new(path(file), tag);
    let parts = Parts {
        memory_of_parent: Vec::new(),
        context: vec![
            shown("agent/SOUL.md", "soul"),
            shown("agent/AGENT.md", "agent"),
            shown("agent/USER.md", "user"),
            ContextFile {
                rendering: ContextRendering::Notes,
                ..shown("agent/HEARTBEAT.md", "heartbeat")
            },
        ],
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: vec![path("agent/skills")],
        flavor: stead_skills::SkillFlavor::OpenPaw,
        subagents: None,
        tools: None,
        runtime: path("data"),
        usage: Some(path("data/token_usage.jsonl")),
        conversations: Some(path("memory/conversations")),
        tasks: Some(path("data/TASKS.yaml")),
        default_dir: Some(path("workspace")),
        protected: Layout::Openpaw.protected(),
    };
    assert_eq!(definition.paths, parts);
    assert_eq!(
        (definition.layout, definition.tools),
        (Layout::Openpaw, vec![ToolLists::default()])
    );
    let expected = [
        "config/agent.yaml:12:1: not active yet: channel: channels come in a later version",
        "config/agent.yaml:23:3: not active yet: builtins.allow: builtins that are not here yet come in a later version",
        "config/agent.yaml:27:1: not active yet: heartbeat: check-ins come in a later version",
        "config/crons/daily-summary.yaml:2:1: not active yet: schedules are carried out in a later version",
        "config/crons/weekly.yml:2:1: not active yet: schedules are carried out in a later version",
        "agent/tools/calendar.py:1:1: not active yet: custom tools run in a later version",
        "agent/tools/requirements.txt:1:1: not active yet: packages of custom tools are installed in a later version",
    ];
    assert_eq!(lines(&definition.findings), expected);
    let origin = &definition.origins["policy.max_steps"];
    assert_eq!(
        (origin.source.as_str(), origin.place.unwrap().line),
        ("config/agent.yaml", 10)
    );
}

#[tokio::test]
async fn the_older_form_gives_the_same_definition() {
    let nested = fixture("openpaw");
    let flat = open(&flat(&nested), &options()).await.unwrap();
    let nested = open(&nested, &options()).await.unwrap();
    let mut moved = nested;
    let at_root = |text: &str| {
        text.strip_prefix("agent/")
            .or(text.strip_prefix("config/"))
            .unwrap_or(text)
            .to_owned()
    };
    for file in &mut moved.paths.context {
        file.path = path(&at_root(file.path.as_str()));
    }
    moved.paths.skills = vec![path("skills")];
    moved
        .findings
        .iter_mut()
        .for_each(|finding| finding.source = at_root(finding.source.file().unwrap()).into());
    moved
        .origins
        .values_mut()
        .for_each(|origin| origin.source = at_root(&origin.source));
    for part in &mut moved.declared_parts {
        part.summary = part.summary.replace(&part.source, &at_root(&part.source));
        part.files = part
            .files
            .iter()
            .map(|file| path(&at_root(file.as_str())))
            .collect();
        part.source = at_root(&part.source);
    }
    assert_eq!(flat, moved);
}

#[tokio::test]
async fn what_many_workspaces_share_lies_below_the_settings_of_each() {
    let platform = files(&fixture("openpaw-platform")).await;
    let options = OpenOptions {
        platform: Some(platform),
        ..options()
    };
    let own = "model: {max_turns: 80}\nqueue: {mode: steer}\nbuiltins: {deny: [spawn]}\nlanes: {cron_concurrency: 1}\n";
    let mut files = fixture("openpaw");
    files.retain(|path, _| !path.contains("crons") && !path.contains("tools"));
    files.insert("config/agent.yaml".to_owned(), own.into());
    let definition = open(&files, &options).await.unwrap();
    let config = &definition.config;
    let model = ModelSettings {
        name: "openai:kimi-k2.5".to_owned(),
        base_url: Some("https://api.moonshot.example/v1".to_owned()),
        api_key: Some("sk-moon-fixture".to_owned()),
        temperature: Some(0.7),
        ..ModelSettings::default()
    };
    assert_eq!(config.model.as_ref(), Some(&model));
    assert!(config.secrets.contains(&"sk-moon-fixture".to_owned()));
    let policy = Policy {
        max_steps: 80,
        run_timeout_seconds: 600,
        tool_timeout_seconds: 60,
        ..Policy::default()
    };
    assert_eq!(config.policy, policy);
    assert_eq!(
        config.disable.0,
        [FeatureSwitch::Subagents, FeatureSwitch::Shell].into(),
        "both lists deny"
    );
    assert_eq!(
        config.queue,
        QueueSettings {
            mode: QueueMode::Steer,
            ..QueueSettings::default()
        }
    );
    let found: Vec<String> = lines(&definition.findings);
    let expected = [
        "config/agent.yaml:4:1: not active yet: lanes: many runs at once come in a later version",
        "platform/config.yaml:1:1: not active yet: workspaces_path: the folder is not searched for workspaces",
    ];
    assert_eq!(found, expected);
    let place = |key: &str| {
        let origin = &definition.origins[key];
        (origin.source.clone(), origin.place.unwrap().line)
    };
    assert_eq!(
        place("policy.max_steps"),
        ("config/agent.yaml".to_owned(), 1)
    );
    assert_eq!(
        place("policy.run_timeout_seconds"),
        ("platform/config.yaml".to_owned(), 7)
    );
}

#[tokio::test]
async fn the_agents_id_is_its_name_or_its_folders_name_or_main() {
    for (settings, folder, expected) in [
        (
            "name: Research Assistant",
            Some("krieger"),
            "research-assistant",
        ),
        ("name: '!!!'", Some("krieger"), "krieger"),
        ("", Some("krieger"), "krieger"),
        ("", None, "main"),
    ] {
        let files = tree(&[("agent/AGENT.md", "# A"), ("config/agent.yaml", settings)]);
        let options = OpenOptions {
            folder: folder.map(str::to_owned),
            ..OpenOptions::default()
        };
        let definition = open(&files, &options).await.unwrap();
        assert_eq!(
            definition.config.agent_id().as_str(),
            expected,
            "{settings} {folder:?}"
        );
    }
}

#[tokio::test]
async fn the_four_files_and_the_folders_name_are_checked() {
    let files = tree(&[
        ("agent/AGENT.md", "# A"),
        ("agent/SOUL.md", " \n"),
        ("agent/HEARTBEAT.md", ""),
    ]);
    for (folder, said) in [
        ("", "a workspace needs a name"),
        ("a", "at least 2 are needed"),
        (&"a".repeat(65), "at most 64 are allowed"),
        ("My Agent", "must begin with a lower-case letter"),
    ] {
        let options = OpenOptions {
            folder: Some(folder.to_owned()),
            ..OpenOptions::default()
        };
        let failing = failing(&open(&files, &options).await.unwrap());
        assert_eq!(
            failing[..2],
            [
                "agent/USER.md:1:1: is missing: it says whom it serves".to_owned(),
                "agent/SOUL.md:1:1: is empty: it says its values and manner".to_owned(),
            ]
        );
        assert!(
            failing.len() == 3 && failing[2].contains(said),
            "{failing:?}"
        );
    }
    let named = OpenOptions {
        layout: Some(Layout::Openpaw),
        ..OpenOptions::default()
    };
    let errors = open(&tree(&[("agent/SOUL.md", "x")]), &named)
        .await
        .unwrap_err();
    assert_eq!(
        lines(&errors),
        ["agent/AGENT.md:1:1: is missing: it says what the agent can do and how it behaves"]
    );
}

#[tokio::test]
async fn a_folder_is_recognised_by_what_only_its_kind_has() {
    for (files, expected) in [
        (&[("agent/AGENT.md", "")][..], Some(Layout::Openpaw)),
        (
            &[("config/agent.yaml", ""), ("AGENTS.md", "")],
            Some(Layout::Openpaw),
        ),
        (
            &[("AGENT.md", ""), ("agent.yaml", "")],
            Some(Layout::Openpaw),
        ),
        (&[("AGENT.md", "")], Some(Layout::Openpaw)),
        (
            &[("AGENT.md", ""), ("AGENTS.md", "")],
            Some(Layout::Project),
        ),
        (
            &[("agent.yaml", ""), ("agent/AGENT.md", "")],
            Some(Layout::Stead),
        ),
        (
            &[("agent.yaml", ""), (".deepagents/AGENTS.md", "")],
            Some(Layout::Deepagents),
        ),
        (
            &[("agent.yaml", ""), (".mcp", "")],
            Some(Layout::AgentscopePy),
        ),
        (
            &[("skills/.seed/a/SKILL.md", "")],
            Some(Layout::AgentscopePy),
        ),
        (&[("AGENTS.md", "")], Some(Layout::Project)),
        (&[("CLAUDE.md", "")], Some(Layout::Project)),
        (&[(".stead/agent.yaml", "")], Some(Layout::Project)),
        (
            &[(".stead/agent.yaml", ""), ("agent.yaml", "")],
            Some(Layout::Stead),
        ),
        (&[("README.md", "")], None),
    ] {
        assert_eq!(
            stead_workspace::try_detect_layout(&*super::files(&tree(files)).await).await,
            expected,
            "{files:?}"
        );
    }
}
