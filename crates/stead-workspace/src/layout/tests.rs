//! What agents of each layout cannot read or write.

use crate::Layout;
use AccessKind::{Read, Write};
use VerdictKind::{Allow, Deny};
use stead_core::{AccessKind, VerdictKind};
use stead_vfs::{Protected, Rule, Rules, VPath};

fn rule(operations: &[AccessKind], paths: &[&str], mode: VerdictKind) -> Rule {
    Rule {
        operations: operations.to_vec(),
        paths: paths.iter().map(|&path| path.to_owned()).collect(),
        mode,
    }
}

fn path(text: &str) -> VPath {
    VPath::parse(text).unwrap()
}

#[test]
fn no_rule_opens_the_settings_of_an_openpaw_workspace() {
    let all = [rule(&[Read, Write], &["**"], Allow)];
    let rules = Rules::new(&all, Layout::Openpaw.protected()).unwrap();
    assert_eq!(
        ["config/x", "data", "workspace/data"].map(|p| rules.decide(Write, &path(p)).kind),
        [Deny, Deny, Allow]
    );
}

#[test]
fn no_rule_opens_the_settings_of_a_stead_workspace() {
    let all = [rule(&[Read, Write], &["**"], Allow)];
    let rules = Rules::new(&all, Layout::Stead.protected()).unwrap();
    for name in [
        "agent.yaml",
        "tools.json",
        "hooks",
        "hooks/x",
        "crons/a.yaml",
        "agents/main/x",
        "Agent.YAML",
        "AGENTS/x",
    ] {
        assert_eq!(rules.decide(Read, &path(name)).kind, Allow, "{name}");
        let verdict = rules.decide(Write, &path(name));
        assert!(
            verdict.kind == Deny && verdict.reason.starts_with("protected: "),
            "{name}: {verdict:?}"
        );
    }
    for name in [
        "AGENTS.md",
        "x/agent.yaml",
        "sub/agents/a",
        "id_rsa.pub",
        ".aws/config",
        "env",
        "a.env",
        "config/x",
        "data",
    ] {
        assert_eq!(rules.decide(Write, &path(name)).kind, Allow, "{name}");
    }
}

#[test]
fn what_is_protected_may_lie_deeper_than_the_root() {
    #[rustfmt::skip]
    let table = [
        (Layout::Openpaw.protected(), Write, "memory/logs", Deny),
        (Layout::Openpaw.protected(), Write, "Memory/Logs/cron/a.jsonl", Deny),
        (Layout::Openpaw.protected(), Write, "memory/conversations/conv_1.md", Deny),
        (Layout::Openpaw.protected(), Read, "memory/conversations/conv_1.md", Allow),
        (Layout::Openpaw.protected(), Write, "memory/notes.md", Allow),
        (Layout::Openpaw.protected(), Write, "memory/logs.md", Allow),
        (Layout::Openpaw.protected(), Write, "agent/HEARTBEAT.md", Allow),
        (Layout::Openpaw.protected(), Read, "data/agents/main/sessions/a.log.jsonl", Allow),
        (Layout::Openpaw.protected(), Read, "data/agents/main/undo/x", Deny),
        (Layout::Openpaw.protected(), Read, "config/.env", Deny),
        (Layout::Stead.protected(), Read, "agents/main/undo/x", Deny),
        (Layout::Stead.protected(), Write, ".git/config", Deny),
        (Layout::Stead.protected(), Write, "project/sub/.GIT/hooks/x", Deny),
        (Layout::Stead.protected(), Read, ".git/config", Allow),
        (Layout::Stead.protected(), Write, ".github/x", Allow),
        (Layout::Stead.protected(), Write, ".gitignore", Allow),
        (Layout::Stead.protected(), Read, "data/agents/main/undo/x", Allow),
        (Layout::Stead.protected(), Write, "agent/AGENT.md", Deny),
        (Layout::Stead.protected(), Write, "agent/notes.md", Allow),
        (Layout::Stead.protected(), Write, ".deepagents/AGENTS.md", Deny),
        (Layout::Deepagents.protected(), Write, ".deepagents/AGENTS.md", Allow),
        (Layout::Deepagents.protected(), Read, ".stead/agents/main/sessions/a.log.jsonl", Deny),
        (Layout::Deepagents.protected(), Write, "agent.yaml", Deny),
        (Layout::Deepagents.protected(), Write, "agents/tool.py", Allow),
        (Layout::AgentscopePy.protected(), Read, ".mcp", Deny),
        (Layout::AgentscopePy.protected(), Read, "sessions/s/context.jsonl", Allow),
        (Layout::AgentscopePy.protected(), Write, "sessions/s/context.jsonl", Deny),
        (Layout::AgentscopePy.protected(), Write, "data/x.png", Allow),
        (Layout::AgentscopePy.protected(), Write, "skills/default/a/SKILL.md", Allow),
        (Layout::DeepagentsDeploy.protected(), Write, "AGENTS.md", Deny),
        (Layout::DeepagentsDeploy.protected(), Write, "user/AGENTS.md", Allow),
        (Layout::DeepagentsDeploy.protected(), Write, "subagents/a/agent.json", Deny),
        (Layout::DeepagentsDeploy.protected(), Read, "subagents/a/agent.json", Allow),
        (Layout::DeepagentsDeploy.protected(), Read, "mcp.json", Deny),
        (Layout::Stead.protected(), Write, "agent.json", Deny),
        (Layout::Stead.protected(), Write, "x/agent.json", Allow),
        (Layout::Project.protected(), Write, "agents/main/x", Allow),
        (Layout::Project.protected(), Write, "hooks/x", Allow),
        (Layout::Project.protected(), Write, "profiles/x.yaml", Allow),
        (Layout::Project.protected(), Write, "crons/x.yaml", Allow),
        (Layout::Project.protected(), Write, "tools.json", Allow),
        (Layout::Project.protected(), Write, "memory/quarantine/x", Allow),
        (Layout::Project.protected(), Write, "@@x/y", Allow),
        (Layout::Project.protected(), Write, "agent.yaml", Deny),
        (Layout::Project.protected(), Write, ".mcp.json", Deny),
        (Layout::Project.protected(), Write, ".git/config", Deny),
        (Layout::Project.protected(), Read, ".env", Deny),
        (Layout::Project.protected(), Write, ".stead/agent.yaml", Deny),
        (Layout::Project.protected(), Write, ".stead/tools.json", Deny),
        (Layout::Project.protected(), Write, ".stead/hooks/x", Deny),
        (Layout::Project.protected(), Write, ".stead/skills/a/SKILL.md", Deny),
        (Layout::Project.protected(), Write, ".stead/.gitignore", Deny),
        (Layout::Project.protected(), Write, ".stead/agents/main/sessions/a.log.jsonl", Deny),
        (Layout::Project.protected(), Read, ".stead/agents/main/sessions/a.log.jsonl", Allow),
        (Layout::Project.protected(), Read, ".stead/agents/main/undo/x", Deny),
        (Layout::Project.protected(), Read, ".stead/@@bob/x", Deny),
        (Layout::Project.protected(), Write, ".stead/MEMORY.md", Allow),
        (Layout::Project.protected(), Write, ".stead/memory/x.md", Allow),
        (Layout::Project.protected(), Read, ".stead/memory/quarantine/x", Deny),
        (Layout::Project.protected(), Write, ".stead/plans/PLAN.md", Allow),
    ];
    for (protected, kind, text, expected) in table {
        let rules = Rules::new(&[], protected).unwrap();
        assert_eq!(
            rules.decide(kind, &path(text)).kind,
            expected,
            "{kind:?} {text}"
        );
    }
}

#[test]
fn of_an_openharness_folder_only_what_it_remembers_can_be_changed() {
    let all = [rule(&[Read, Write], &["**"], Allow)];
    let rules = Rules::new(&all, Layout::Openharness.protected()).unwrap();
    for (kind, text, expected) in [
        (Write, ".openharness", Deny),
        (Write, ".openharness/agents/build.md", Deny),
        (Write, ".OpenHarness/settings.yaml", Deny),
        (
            Write,
            ".openharness/data/agents/main/sessions/s.log.jsonl",
            Deny,
        ),
        (Write, ".openharness/memory", Allow),
        (Write, ".openharness/memory/MEMORY.md", Allow),
        (Write, ".openharness/memory/.env", Deny),
        (Write, ".openharness/memory2", Deny),
        (Write, ".openharness/Memory/x", Deny),
        (Write, "sub/.openharness/agents/x.md", Allow),
        (Write, "agents/x", Allow),
        (Read, ".openharness/agents/build.md", Allow),
        (
            Read,
            ".openharness/data/agents/main/sessions/s.log.jsonl",
            Allow,
        ),
        (Read, ".openharness/data/agents/main/undo/x", Deny),
        (Read, ".openharness/DATA/agents/main/UNDO", Deny),
        (Read, "agents/main/undo/x", Allow),
    ] {
        assert_eq!(
            rules.decide(kind, &path(text)).kind,
            expected,
            "{kind:?} {text}"
        );
    }
}

#[test]
fn what_was_offloaded_can_be_read_and_not_changed_in_every_layout() {
    let layouts = [
        (Layout::Stead.protected(), "agents"),
        (Layout::Openpaw.protected(), "data/agents"),
        (Layout::Openharness.protected(), ".openharness/data/agents"),
        (Layout::Deepagents.protected(), ".stead/agents"),
        (Layout::AgentscopePy.protected(), ".stead/agents"),
        (Layout::DeepagentsDeploy.protected(), ".stead/agents"),
        (Layout::Project.protected(), ".stead/agents"),
    ];
    for (protected, agents) in layouts {
        let rules = Rules::new(&[], protected).unwrap();
        for path in [
            "main/offload",
            "main/offload/s/call_1.txt",
            "main/offload/s/media/00.png",
        ] {
            let path = VPath::parse(&format!("{agents}/{path}")).unwrap();
            assert_eq!(rules.decide(Read, &path).kind, Allow, "{path}");
            assert_eq!(rules.decide(Write, &path).kind, Deny, "{path}");
        }
    }
    for (protected, path) in [
        (Layout::Deepagents.protected(), ".stead/agents/main"),
        (
            Layout::Deepagents.protected(),
            ".stead/agents/main/sessions/offload",
        ),
        (Layout::Deepagents.protected(), ".stead/agents/offload"),
        (
            Layout::AgentscopePy.protected(),
            ".stead/agents/main/undo/offload",
        ),
        (Protected::TEMPLATE, "agents/main/offload/s/call_1.txt"),
        (Layout::Stead.protected(), "agents/main/undo/offload"),
    ] {
        let rules = Rules::new(&[], protected).unwrap();
        assert_eq!(
            rules.decide(Read, &VPath::parse(path).unwrap()).kind,
            Deny,
            "{path}"
        );
    }
}

#[test]
fn no_agent_can_make_its_folder_a_workspace_of_another_layout() {
    for layout in Layout::ALL {
        let rules = Rules::new(&[], layout.protected()).unwrap();
        for other in Layout::ALL.into_iter().filter(|other| *other != layout) {
            let marks = other.def().marks.iter();
            for mark in marks.filter(|mark| mark.rank != crate::MarkRank::Persona) {
                let writable = rules.decide(Write, &path(mark.path)).kind == Allow;
                assert!(!writable, "{layout} can write {}", mark.path);
            }
        }
    }
}

/// Only a layout's own module and the table know the layout. This keeps adding one cheap.
#[test]
fn only_the_table_names_layouts() {
    fn walk(dir: &std::path::Path, found: &mut Vec<String>) {
        for entry in std::fs::read_dir(dir).unwrap().flatten() {
            let path = entry.path();
            let name = path.to_string_lossy().into_owned();
            if path.is_dir() {
                let skipped = [
                    "/tests",
                    "/target",
                    "stead-workspace/src/layout",
                    "stead-testkit",
                ];
                if !skipped.iter().any(|end| name.ends_with(end)) {
                    walk(&path, found);
                }
            } else if name.ends_with(".rs") && !name.ends_with("tests.rs") {
                let text = std::fs::read_to_string(&path).unwrap();
                let code = text.split("\n#[cfg(test)]").next().unwrap_or_default();
                let names = |line: &&str| {
                    Layout::ALL
                        .iter()
                        .any(|layout| line.contains(&format!("Layout::{layout:?}")))
                };
                found.extend(
                    code.lines()
                        .find(names)
                        .map(|line| format!("{name}: {line}")),
                );
            }
        }
    }
    let mut found = Vec::new();
    let crates = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    walk(&crates, &mut found);
    assert_eq!(found, Vec::<String>::new());
}
