//! The place for tests of single promises that the systems make whose workspaces Stead opens.

use crate::support::{Folder, done};
use std::path::Path;

fn put(folder: &Folder, path: &str, content: &str) {
    let file = folder.path().join(path);
    std::fs::create_dir_all(file.parent().unwrap_or(Path::new(""))).unwrap();
    std::fs::write(file, content).unwrap();
}

#[test]
fn the_session_section_names_the_agent_that_acts() {
    let folder = Folder::new();
    put(&folder, ".openharness/agents/build.md", "You build.\n");
    put(&folder, ".openharness/agents/plan.md", "You plan.\n");
    for agent in ["build", "plan"] {
        let shown = folder.run(&["prompt", "-a", agent]).exits(0).out;
        assert!(shown.contains(&format!("\n- Agent: {agent}\n")), "{shown}");
    }
}

#[test]
fn explain_names_the_key_of_openpaw_that_set_a_value() {
    let folder = Folder::without_mark();
    put(&folder, "agent/AGENT.md", "A.");
    put(
        &folder,
        "config/agent.yaml",
        "name: a\nauto_compact:\n  trigger: 0.5\n",
    );
    let told = folder.run(&["explain", "compaction.trigger"]).exits(0).out;
    assert!(
        told.contains("0.5") && told.contains("config/agent.yaml:3"),
        "{told}"
    );
}

#[test]
fn a_variable_of_blanks_names_no_workspace() {
    let folder = Folder::new();
    folder.put("AGENTS.md", "You are here.");
    for variable in ["STEAD_WORKSPACE", "AGENTSCOPE_WORKSPACE"] {
        let mut command = folder.command(&["prompt"]);
        let shown = done(command.env(variable, "  ")).exits(0).out;
        assert!(shown.contains("You are here."), "{shown}");
    }
}

/// A main agent that delegates once, and a subagent that lists the folder and then says nothing.
const SILENT_CHILD: &str = r#"
- when: {last_contains: CHILD}
  calls: [{tool: ls, args: {path: .}}]
  else: {calls: [{tool: task, args: {agent: general-purpose, prompt: CHILD}}]}
- when: {tool_result_contains: "ended without a word"}
  text: Done.
  else: {text: " "}
"#;

#[test]
fn a_subagent_that_says_nothing_reports_the_last_result_of_its_tools() {
    let folder = Folder::new();
    folder.put("AGENTS.md", "A.");
    folder.put("marker.txt", "x");
    let model = folder.script(SILENT_CHILD);
    let done = folder
        .run(&["run", "-m", &model, "-s", "one", "go"])
        .exits(0);
    assert_eq!(done.out, "Done.\n");
    let shown = folder
        .run(&["sessions", "show", "one", "--full"])
        .exits(0)
        .out;
    assert!(shown.contains("marker.txt  (1 byte, "), "{shown}");
}

#[test]
fn removing_a_session_removes_those_of_its_subagents() {
    let folder = Folder::new();
    folder.put("AGENTS.md", "A.");
    let model = folder.script(SILENT_CHILD);
    folder
        .run(&["run", "-m", &model, "-s", "one", "go"])
        .exits(0);
    folder
        .run(&["run", "-m", &model, "-s", "two", "go"])
        .exits(0);
    let count = || {
        let listed = folder
            .run(&["sessions", "list", "--all", "--json"])
            .exits(0);
        listed.json().as_array().map_or(0, Vec::len)
    };
    assert_eq!(count(), 4);
    let removed = folder.run(&["sessions", "rm", "one"]).exits(0).out;
    assert_eq!(removed.lines().count(), 2, "{removed}");
    assert_eq!(removed.lines().last(), Some("removed one"));
    assert_eq!(count(), 2);
}

#[test]
fn files_that_projects_keep_for_coding_agents_are_read() {
    let folder = Folder::new();
    put(&folder, "CLAUDE.md", "Use tabs here.");
    put(
        &folder,
        ".claude/agents/reviewer.md",
        "---\nname: reviewer\ndescription: Reviews changes. Examples: <example>user: \"Look\"</example>\ntools: Read, Grep\nmodel: sonnet\ncolor: red\n---\nYou review.\n",
    );
    put(
        &folder,
        ".claude/skills/weigh/SKILL.md",
        "---\nname: weigh\ndescription: Weighs parcels.\n---\nUse the scale.\n",
    );
    put(
        &folder,
        ".agents/skills/pack/SKILL.md",
        "---\nname: pack\ndescription: Packs parcels.\n---\nFold.\n",
    );
    put(&folder, ".claude/commands/fix.md", "Fix it.\n");
    put(
        &folder,
        ".mcp.json",
        r#"{"mcpServers": {"maps": {"command": "maps", "env": {"KEY": "${MAPS_KEY}"}}}}"#,
    );
    let model = folder.script("- text: Done.\n");
    let run = folder.run(&["run", "-m", &model, "hi"]).exits(0);
    assert_eq!(
        run.err,
        "2 settings of this workspace have no effect in this version; `stead check` lists them\n"
    );
    let prompt = folder.run(&["prompt", "-m", &model]).exits(0).out;
    for text in [
        "<claude_md>\nUse tabs here.",
        "Reviews changes.",
        "Weighs parcels.",
        "Packs parcels.",
    ] {
        assert!(prompt.contains(text), "{text}\n{prompt}");
    }
    // It says what is run, so the agent cannot write it.
    let args = r#"{"file_path": ".mcp.json", "content": "{}"}"#;
    let written = folder.run(&["tool", "overwrite_file", args]);
    assert!(written.err.contains("denied: protected"), "{written:#?}");
}

#[test]
fn what_cannot_be_read_of_these_files_stops_no_run_and_is_told() {
    let folder = Folder::new();
    let outside = Folder::new();
    put(&outside, "agents/x.md", "---\ndescription: X\n---\nX.\n");
    let link = |target: &str, at: &str| {
        let target = outside.path().join(target);
        std::os::unix::fs::symlink(target, folder.path().join(at)).unwrap();
    };
    put(&folder, "AGENTS.md", "Use tabs.");
    put(
        &folder,
        ".claude/skills/mine/SKILL.md",
        "---\nname: mine\ndescription: Mine.\n---\nDo.\n",
    );
    link("agents", ".claude/skills/theirs");
    link("agents", ".claude/agents");
    std::fs::write(folder.path().join("CLAUDE.md"), [0xff, 0x41]).unwrap();
    let model = folder.script("- text: Done.\n");
    let run = folder.run(&["run", "-m", &model, "hi"]).exits(0);
    assert_eq!(run.out, "Done.\n", "{run:#?}");
    let checked = folder.run(&["check"]);
    let told = format!("{}{}", checked.out, checked.err);
    for part in [
        "CLAUDE.md:1:1: is not UTF-8",
        ".claude/skills/theirs",
        ".claude/agents",
    ] {
        assert!(told.contains(part), "{part}\n{told}");
    }
}

#[test]
fn only_the_task_tools_write_the_tasks_of_openpaw() {
    for (settings, tasks) in [
        ("config/agent.yaml", "data/TASKS.yaml"),
        ("agent.yaml", "TASKS.yaml"),
    ] {
        let folder = Folder::without_mark();
        for name in ["AGENT.md", "USER.md", "SOUL.md", "HEARTBEAT.md"] {
            let name = match settings {
                "agent.yaml" => name.to_owned(),
                _ => format!("agent/{name}"),
            };
            put(&folder, &name, "x\n");
        }
        put(&folder, settings, "name: helper\n");
        put(&folder, tasks, "version: 1\ntasks: []\n");
        let args = format!(r#"{{"file_path": "{tasks}", "content": "garbage: ["}}"#);
        let written = folder.run(&["--layout", "openpaw", "tool", "overwrite_file", &args]);
        assert!(written.err.contains("denied: protected"), "{written:#?}");
        assert!(folder.read(tasks).contains("tasks: []"), "{tasks}");
    }
}

#[test]
fn a_list_of_tasks_that_takes_too_long_is_stopped_at_the_limit() {
    let folder = Folder::new();
    put(&folder, "agent.yaml", "policy: {tool_timeout_seconds: 1}\n");
    let mut tasks = "version: 1\ntasks:\n".to_owned();
    while tasks.len() < 1_000_000 {
        let id = tasks.len();
        let metadata = "{a: 1, b: [1, 2, 3], c: x}";
        tasks.push_str(&format!(
            "- id: t{id}\n  type: custom\n  status: pending\n  description: d\n  metadata: {metadata}\n"
        ));
    }
    put(&folder, "tasks/TASKS.yaml", &tasks);
    let begun = std::time::Instant::now();
    let listed = folder.run(&["tool", "list_tasks", "{}"]);
    let told = format!("{}{}", listed.out, listed.err);
    // It may be quick enough on a fast machine; it may not go on long after its time.
    assert!(begun.elapsed().as_secs() < 20, "{:?}", begun.elapsed());
    assert!(
        listed.code == 0 || told.contains("timed out after 1 s"),
        "{told:.300}"
    );
}

#[test]
fn a_model_is_told_neither_the_path_of_a_database_nor_of_other_machines() {
    let folder = Folder::new();
    let settings = "filesystem: {mode: store, url: 'sqlite:agents/kept.db'}\n";
    put(&folder, "agent.yaml", settings);
    let prompt = folder.run(&["prompt"]).exits(0).out;
    assert!(prompt.contains("Workspace: a store"), "{prompt}");
    for secret in ["kept.db", "other machines", "sqlite"] {
        assert!(!prompt.contains(secret), "{secret}\n{prompt}");
    }
}

#[test]
fn rules_of_a_subfolder_need_none_at_the_root() {
    let folder = Folder::new();
    put(&folder, "AGENTS.md", "Use tabs.");
    put(&folder, "sub/CLAUDE.md", "Use spaces here.");
    let mut command = folder.command(&["prompt"]);
    let prompt = done(command.current_dir(folder.path().join("sub")))
        .exits(0)
        .out;
    assert!(prompt.contains("Use spaces here."), "{prompt}");
}

#[test]
fn memory_that_agentscope_kept_for_a_user_is_read() {
    let folder = Folder::new();
    put(&folder, "agent.yaml", "");
    put(&folder, "AGENTS.md", "You remember.");
    put(&folder, "alice/MEMORY.md", "- Alice likes tea.\n");
    put(
        &folder,
        "alice/memory/2026-01-02.md",
        "- Alice met Bob at the harbour.\n",
    );
    let prompt = folder.run(&["prompt", "-u", "alice"]).exits(0).out;
    assert!(prompt.contains("Alice likes tea."), "{prompt}");
    let found = folder
        .run(&["memory", "search", "harbour", "-u", "alice"])
        .exits(0);
    assert!(
        found.out.contains("alice/memory/2026-01-02.md"),
        "{found:#?}"
    );
    let other = folder.run(&["prompt", "-u", "bob"]).exits(0).out;
    assert!(!other.contains("likes tea"), "{other}");
}

#[test]
fn project_rules_that_are_the_same_are_shown_once() {
    for claude in ["@AGENTS.md\n", "Use tabs.\n"] {
        let folder = Folder::new();
        put(&folder, "AGENTS.md", "Use tabs.");
        put(&folder, "CLAUDE.md", claude);
        let prompt = folder.run(&["prompt"]).exits(0).out;
        assert_eq!(prompt.matches("Use tabs.").count(), 1, "{prompt}");
        assert!(!prompt.contains("claude_md"), "{prompt}");
    }
}

#[test]
fn init_puts_the_model_and_the_channel_into_a_new_openpaw_workspace() {
    let folder = Folder::new();
    let args = [
        "init", "my_agent", "--layout", "openpaw", "--path", "agents",
    ];
    let choices = ["--model", "openai:gpt-5-mini", "--channel", "telegram"];
    folder.run(&[&args[..], &choices[..]].concat()).exits(0);
    for dir in ["agent/tools", "data", "memory/logs", "workspace/downloads"] {
        assert!(folder.has(&format!("agents/my_agent/{dir}")), "{dir}");
    }
    let yaml = folder.read("agents/my_agent/config/agent.yaml");
    let model =
        "model:\n  provider: openai\n  model: \"gpt-5-mini\"\n  api_key: ${OPENAI_API_KEY}\n";
    let channel = "channel:\n  type: telegram\n  token: ${TELEGRAM_BOT_TOKEN}\n";
    assert!(yaml.contains(model) && yaml.contains(channel), "{yaml}");
    let env = folder.read("agents/my_agent/config/.env");
    assert!(
        env.contains("OPENAI_API_KEY=") && env.contains("TELEGRAM_BOT_TOKEN="),
        "{env}"
    );
    let model = folder.script("- text: Done.\n");
    let run = folder
        .run(&["run", "-C", "agents/my_agent", "-m", &model, "hi"])
        .exits(0);
    assert_eq!(run.out, "Done.\n");
    for wrong in [["--model", ":x"], ["--channel", "Tele gram"]] {
        let args = ["init", "other_agent", "--layout", "openpaw"];
        folder.run(&[&args[..], &wrong[..]].concat()).exits(2);
        assert!(!folder.has("other_agent"));
    }
    folder
        .run(&["init", "plain", "-m", "openai:gpt-5-mini"])
        .exits(0);
    assert!(
        folder
            .read("plain/agent.yaml")
            .starts_with("model: \"openai:gpt-5-mini\"\n")
    );
    folder
        .run(&["init", "d", "--layout", "deepagents", "-m", "openai:x"])
        .exits(2);
}

#[test]
fn a_subagent_may_have_narrower_permissions() {
    let folder = Folder::new();
    put(&folder, "AGENTS.md", "A.");
    put(
        &folder,
        "subagents/auditor.md",
        "---\ndescription: Audits.\nworkspace: {mode: shared}\npermissions:\n- {operations: [write], paths: [\"reports/**\"], mode: allow}\n- {operations: [write], paths: [\"**\"], mode: deny}\n---\nYou audit.\n",
    );
    let model = folder.script(
        r#"
- when: {last_contains: CHILD}
  calls:
  - {tool: write_file, args: {file_path: reports/a.md, content: fine}}
  - {tool: write_file, args: {file_path: src/a.md, content: wrong}}
  else:
    calls:
    - {tool: task, args: {agent: auditor, prompt: CHILD}}
    - {tool: write_file, args: {file_path: main.md, content: fine}}
- text: Done.
"#,
    );
    folder.run(&["run", "-m", &model, "go"]).exits(0);
    let made = ["reports/a.md", "src/a.md", "main.md"].map(|file| folder.has(file));
    assert_eq!(made, [true, false, true]);
}

#[test]
fn check_says_why_the_overrides_of_a_user_are_not_used() {
    let folder = Folder::new();
    put(&folder, "AGENTS.md", "A.");
    put(&folder, "alice/AGENTS.md", "For Alice.");
    let check = || folder.run(&["check", "-u", "alice"]).exits(0).out;
    assert!(!check().contains("overrides"), "{}", check());
    put(&folder, "alice/photo.txt", "x");
    let told = "warning  alice/: its overrides are not used, because it also contains photo.txt";
    assert!(check().contains(told), "{}", check());
}

#[test]
fn a_file_of_the_prompt_that_changes_during_a_run_is_told_before_the_next_step() {
    let folder = Folder::new();
    put(&folder, "AGENTS.md", "You count.");
    let model = folder.script(
        r#"
- calls: [{tool: overwrite_file, args: {file_path: AGENTS.md, content: You sing.}}]
- expect: {last_contains: "Changed since this run began: AGENTS.md.", system_contains: You count.}
  calls: [{tool: ls, args: {}}]
- expect: {last_contains: AGENTS.md}
  text: Done.
"#,
    );
    let run = folder
        .run(&["run", "-m", &model, "-s", "one", "go"])
        .exits(0);
    assert_eq!(run.out, "Done.\n");
    let shown = folder
        .run(&["sessions", "show", "one", "--full"])
        .exits(0)
        .out;
    assert_eq!(
        shown.matches("Changed since this run began").count(),
        1,
        "{shown}"
    );
}

#[test]
fn skills_that_agentscope_keeps_for_all_workspaces_are_read() {
    let folder = Folder::new();
    put(&folder, "w/AGENTS.md", "A.");
    put(
        &folder,
        ".agentscope/skills/weigh/SKILL.md",
        "---\nname: weigh\ndescription: Weighs parcels.\n---\nUse the scale.\n",
    );
    let prompt = folder.run(&["prompt", "-C", "w"]).exits(0).out;
    assert!(prompt.contains("Weighs parcels."), "{prompt}");
}
