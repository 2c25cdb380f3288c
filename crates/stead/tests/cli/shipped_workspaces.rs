//! The place for tests of workspaces in the shapes that other systems ship as examples and
//! templates. The texts are our own; the files, keys and oddities are those of the examples.

use crate::support::Folder;
use std::path::Path;

/// A workspace in the shape of one that a system ships.
struct Shape {
    name: &'static str,
    /// Where it lies below the folder.
    root: &'static str,
    files: &'static [(&'static str, &'static str)],
    /// What the prompt must contain.
    prompt: &'static [&'static str],
    /// What a run says that it goes without; empty = nothing.
    passed_over: &'static str,
}

const TOOLS_WITH_COMMENTS: &str = r#"{
  "// what": "Which tools this agent has.",
  "// known": ["read_file", "list_files", "session_history"],
  "// allow": [],
  "deny": [],
  "mcpServers": {}
}"#;

const SKILL: &str =
    "---\nname: weigh\ndescription: Weighs parcels.\n---\n\n# Weigh\n\nUse the scale.\n";

const SHAPES: &[Shape] = &[
    Shape {
        name: "AgentScope, an empty template",
        root: ".agentscope/workspace",
        files: &[
            ("AGENTS.md", "You pack parcels."),
            ("memory/.gitkeep", ""),
            ("skills/weigh/SKILL.md", SKILL),
            (
                "subagents/README.md",
                "# Subagents\n\nOne file each:\n\n---\nname: x\n---\n",
            ),
            ("template.json", r#"{"id": "blank", "tags": ["starter"]}"#),
            ("tools.json", TOOLS_WITH_COMMENTS),
        ],
        prompt: &["You pack parcels.", "Weighs parcels."],
        passed_over: "",
    },
    Shape {
        name: "AgentScope, a template with a named subagent",
        root: ".agentscope/workspace",
        files: &[
            ("AGENTS.md", "You answer customers."),
            (
                "subagents/router.md",
                "---\nname: router\ndescription: Picks the team.\ntools: [read_file, session_search]\n---\n\nPick one.\n",
            ),
            ("template.json", "{}"),
            ("tools.json", TOOLS_WITH_COMMENTS),
        ],
        prompt: &["You answer customers.", "router", "Picks the team."],
        passed_over: "1 mistake of this workspace was passed over",
    },
    Shape {
        name: "AgentScope, a subagent without front matter",
        root: ".agentscope/workspace",
        files: &[
            ("AGENTS.md", "You write code."),
            (
                "subagents/general.md",
                "# General\n\nYou do parts of the work.\n",
            ),
            ("skills/weigh/SKILL.md", SKILL),
            ("reviewer-AGENTS.md", "You review."),
        ],
        prompt: &["You write code.", "Weighs parcels."],
        passed_over: "1 mistake of this workspace was passed over",
    },
    Shape {
        name: "AgentScope, with agentscope.json and maxIters",
        root: ".agentscope/workspace",
        files: &[
            ("AGENTS.md", "You analyse data."),
            (
                "subagents/explorer.md",
                "---\ndescription: Finds tables.\nmaxIters: 30\n---\n\nFind it.\n",
            ),
            (
                "agentscope.json",
                r#"{"main": "data", "agents": {"data": {"maxIters": 20}}}"#,
            ),
        ],
        prompt: &["You analyse data.", "Finds tables."],
        passed_over: "",
    },
    Shape {
        name: "AgentScope, tool servers and a variable that is not set",
        root: ".agentscope/workspace",
        files: &[
            ("AGENTS.md", "You look up maps."),
            (
                "tools.json",
                r#"{"mcpServers": {"maps": {"transport": "http", "url": "http://127.0.0.1:9/${MAP_KEY}"}}}"#,
            ),
        ],
        prompt: &["You look up maps."],
        passed_over: "1 setting of this workspace has no effect in this version, and 1 mistake was passed over",
    },
    Shape {
        name: "OpenHarness, agents of two modes with composed prompts",
        root: "",
        files: &[
            ("AGENTS.md", "A shop."),
            (
                ".openharness/agents/build.md",
                "---\nmode: primary\ndescription: Builds.\nsystem_reminder: |\n  You are build now.\ntools:\n  native:\n    - Read\n    - WebFetch\nswitch:\n  - plan\nsubagents:\n  - explore\n---\n# Build\n\nYou build.\n",
            ),
            (
                ".openharness/agents/plan.md",
                "---\nmode: primary\ndescription: Plans.\n---\nYou plan.\n",
            ),
            (
                ".openharness/agents/explore.md",
                "---\nmode: subagent\ndescription: Explores.\ntools:\n  native:\n    - Grep\n---\nYou explore.\n",
            ),
            (".openharness/settings.yaml", "default_agent: build\n"),
            (
                ".openharness/prompts.yaml",
                "base:\n  inline: |-\n    This is a shop of builders.\ncompose:\n  order:\n    - base\n    - agent\n    - project_agents_md\n",
            ),
        ],
        prompt: &[
            "This is a shop of builders.",
            "You build.",
            "A shop.",
            "Explores.",
        ],
        passed_over: "2 settings of this workspace have no effect in this version",
    },
    Shape {
        name: "OpenHarness, models of a platform that is not there",
        root: "",
        files: &[
            (
                ".openharness/agents/learn.md",
                "---\nmode: primary\ndescription: Teaches.\nmodel: learn\nbackground: false\nhidden: false\ncolor: teal\n---\nYou teach.\n",
            ),
            (
                ".openharness/agents/eval.md",
                "---\nmode: subagent\ndescription: Tests.\nmodel: eval\n---\nYou test.\n",
            ),
            (
                ".openharness/settings.yaml",
                "default_agent: learn\nmodels:\n  learn: {ref: platform/openai-default, temperature: 0.3}\n  eval: {ref: platform/openai-default}\n",
            ),
        ],
        prompt: &["You teach."],
        passed_over: "1 setting of this workspace has no effect in this version, and 4 mistakes were passed over",
    },
    Shape {
        name: "OpenPaw, the flat form with a channel and a schedule",
        root: "assistant",
        files: &[
            ("AGENT.md", "You assist."),
            ("SOUL.md", "You are calm."),
            ("USER.md", "Ann."),
            (
                "HEARTBEAT.md",
                "# Heartbeat\n\nThe report is due on Friday.\n",
            ),
            ("README.md", "How to use it."),
            (
                "agent.yaml",
                "name: Assistant\nmodel:\n  provider: anthropic\n  model: claude-sonnet-4-20250514\n  api_key: ${ANTHROPIC_API_KEY}\n  max_turns: 50\nchannel:\n  type: telegram\n  token: ${TELEGRAM_BOT_TOKEN}\n  allowed_users:\n    - 1\nqueue:\n  mode: collect\nsession_ttl_minutes: 180\n",
            ),
            (
                "crons/daily.yaml",
                "name: daily\nschedule: \"0 9 * * *\"\nenabled: false\nprompt: Look.\noutput:\n  channel: telegram\n  chat_id: 1\n",
            ),
        ],
        prompt: &[
            "You assist.",
            "You are calm.",
            "Ann.",
            "The report is due on Friday.",
        ],
        passed_over: "3 settings of this workspace have no effect in this version, and 2 mistakes were passed over",
    },
    Shape {
        name: "OpenPaw, with channels, a heartbeat and custom tools",
        root: "krieger",
        files: &[
            ("AGENT.md", "You research."),
            ("SOUL.md", "You doubt."),
            ("USER.md", "Bob."),
            ("HEARTBEAT.md", ""),
            (".env.example", "TELEGRAM_BOT_TOKEN="),
            (
                "agent.yaml",
                "name: Research Assistant\ntimezone: America/Denver\nmodel:\n  provider: anthropic\n  model: claude-sonnet-4-20250514\n  api_key: ${ANTHROPIC_API_KEY}\nchannels:\n  - type: telegram\n    token: ${TELEGRAM_BOT_TOKEN}\n    context_messages: 25\nqueue:\n  mode: steer\nheartbeat:\n  enabled: true\n  active_hours: \"08:00-22:00\"\n  output:\n    channel: telegram\n    target_id: 1\n",
            ),
            ("tools/research.py", "from x import tool\n"),
            ("tools/requirements.txt", "x\n"),
            ("tools/styles.css", "b {}\n"),
        ],
        prompt: &["You research.", "You doubt.", "Bob."],
        passed_over: "4 settings of this workspace have no effect in this version, and 2 mistakes were passed over",
    },
    Shape {
        name: "Deep Agents deploy, a coordinator with a subagent",
        root: "",
        files: &[
            ("AGENTS.md", "You coordinate."),
            (
                "agent.json",
                r#"{"name": "deploy-market", "description": "Sells.", "runtime": {"model": {"model_id": "openai:gpt-5.4-nano"}}}"#,
            ),
            ("README.md", "How to deploy."),
            ("skills/weigh/SKILL.md", SKILL),
            ("subagents/researcher/AGENTS.md", "You research markets."),
            (
                "subagents/researcher/agent.json",
                r#"{"description": "Knows markets.", "model_id": "openai:gpt-5.4-mini"}"#,
            ),
            (
                "subagents/researcher/skills/analyse/SKILL.md",
                "---\nname: analyse\ndescription: Analyses markets.\n---\nAnalyse.\n",
            ),
        ],
        prompt: &[
            "You coordinate.",
            "Weighs parcels.",
            "researcher",
            "Knows markets.",
        ],
        passed_over: "",
    },
    Shape {
        name: "Deep Agents deploy, memory of the user",
        root: "",
        files: &[
            ("AGENTS.md", "You write posts."),
            (
                "agent.json",
                r#"{"name": "writer", "runtime": {"model": {"model_id": "openai:gpt-4.1"}}}"#,
            ),
            (".env.example", "OPENAI_API_KEY="),
            ("user/AGENTS.md", "Prefers short sentences."),
        ],
        prompt: &["You write posts.", "Prefers short sentences."],
        passed_over: "",
    },
    Shape {
        name: "Deep Agents deploy, tools of a server and a sandbox",
        root: "",
        files: &[
            ("AGENTS.md", "You look things up."),
            (
                "agent.json",
                r#"{"name": "docs", "model": "anthropic:claude-sonnet-4-6", "backend": {"type": "sandbox", "sandbox_config": {"scope": "thread"}}}"#,
            ),
            (
                "tools.json",
                r#"{"tools": [{"name": "search", "mcp_server_url": "http://127.0.0.1:9/mcp/"}], "interrupt_config": {"x::search": true}}"#,
            ),
        ],
        prompt: &["You look things up."],
        passed_over: "2 settings of this workspace have no effect in this version",
    },
    Shape {
        name: "Deep Agents, a program with AGENTS.md and skills",
        root: "",
        files: &[
            ("AGENTS.md", "You answer with SQL."),
            ("agent.py", "print(1)\n"),
            ("pyproject.toml", "[project]\nname = \"x\"\n"),
            ("skills/weigh/SKILL.md", SKILL),
        ],
        prompt: &["You answer with SQL."],
        passed_over: "",
    },
    Shape {
        name: "AgentScope Python, a work directory",
        root: "work",
        files: &[
            (
                ".mcp",
                r#"{"version": 2, "mcps": {"a": {"s": [{"name": "maps", "is_stateful": true, "mcp_config": {"type": "stdio_mcp", "command": "x"}}]}}}"#,
            ),
            ("skills/.seed/weigh/SKILL.md", SKILL),
            ("sessions/.keep", ""),
            ("data/.keep", ""),
        ],
        prompt: &["Weighs parcels."],
        passed_over: "1 setting of this workspace has no effect in this version",
    },
];

fn write(folder: &Folder, shape: &Shape) -> std::path::PathBuf {
    let root = folder.path().join("kind").join(shape.root);
    for (path, content) in shape.files {
        let file = root.join(path);
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new(""))).unwrap();
        std::fs::write(file, content).unwrap();
    }
    root
}

#[test]
fn every_shape_runs_and_says_what_it_goes_without() {
    for shape in SHAPES {
        let folder = Folder::without_mark();
        let root = write(&folder, shape);
        let model = folder.script("- text: Done.\n");
        let root = root.to_str().unwrap();
        let done = folder.run(&["run", "-C", root, "-m", &model, "hi"]);
        assert_eq!(
            (done.code, done.out.as_str()),
            (0, "Done.\n"),
            "{}: {done:#?}",
            shape.name
        );
        let told = done
            .err
            .lines()
            .find(|line| line.contains("of this workspace"));
        let told = told
            .and_then(|line| line.split(';').next())
            .unwrap_or_default();
        assert_eq!(told, shape.passed_over, "{}: {done:#?}", shape.name);
        let prompt = folder.run(&["prompt", "-C", root, "-m", &model]).exits(0);
        for text in shape.prompt {
            assert!(
                prompt.out.contains(text),
                "{}: {text}\n{}",
                shape.name,
                prompt.out
            );
        }
    }
}

#[test]
fn skills_beside_a_program_are_read_in_the_layout_of_deep_agents() {
    let folder = Folder::without_mark();
    std::fs::create_dir_all(folder.path().join("skills/weigh")).unwrap();
    folder.put("AGENTS.md", "You answer with SQL.");
    folder.put("skills/weigh/SKILL.md", SKILL);
    let prompt = |args: &[&str]| folder.run(&[&["prompt"], args].concat()).exits(0).out;
    assert!(
        !prompt(&[]).contains("Weighs parcels."),
        "an ordinary project"
    );
    let shown = prompt(&["--layout", "deepagents"]);
    assert!(
        shown.contains("Weighs parcels.") && shown.contains("You answer with SQL."),
        "{shown}"
    );
}

#[test]
fn a_check_of_a_shape_fails_on_what_a_run_passes_over() {
    for shape in SHAPES {
        let folder = Folder::without_mark();
        let root = write(&folder, shape);
        let done = folder.run(&["check", "-C", root.to_str().unwrap()]);
        let errors = done.out.lines().filter(|line| line.starts_with("error "));
        let mistakes = shape.passed_over.contains("passed over");
        assert_eq!(errors.count() > 0, mistakes, "{}: {done:#?}", shape.name);
        assert_eq!(
            done.code,
            if mistakes { 2 } else { 0 },
            "{}: {done:#?}",
            shape.name
        );
    }
}

#[test]
fn without_a_platform_an_openharness_run_says_that_another_model_will_do() {
    let shape = SHAPES
        .iter()
        .find(|shape| shape.name.contains("platform"))
        .unwrap();
    let folder = Folder::without_mark();
    let root = write(&folder, shape);
    let done = folder
        .run(&["run", "-C", root.to_str().unwrap(), "hi"])
        .exits(2);
    assert_eq!(
        done.err,
        "stead: .openharness/agents/learn.md:4:1: model: the model `learn` is `platform/openai-default`: there is no \
         model `platform/openai-default`, for no platform with models is given; -m provider:model uses another one, \
         and ~/.stead/platform/models/*.yaml ($STEAD_PLATFORM) can define it\n"
    );
}

#[test]
fn a_check_lists_all_findings_at_once() {
    let folder = Folder::without_mark();
    folder.put("AGENTS.md", "Hi.");
    folder.put("agent.yaml", "polcy: {max_steps: 3}\n");
    folder.put("tools.json", "{\"alow\": []}");
    std::fs::create_dir(folder.path().join("subagents")).unwrap();
    folder.put("subagents/x.md", "---\nlevel: 1\n---\nHi.\n");
    folder.put("subagents/y.md", "No front matter.\n");
    let done = folder.run(&["check"]).exits(2);
    let errors: Vec<&str> = done
        .out
        .lines()
        .filter_map(|line| line.strip_prefix("error    "))
        .filter_map(|line| line.split(':').next())
        .collect();
    assert_eq!(
        errors,
        [
            "agent.yaml",
            "subagents/x.md",
            "subagents/y.md",
            "tools.json"
        ],
        "{done:#?}"
    );
}
