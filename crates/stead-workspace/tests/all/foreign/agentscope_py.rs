//! The place for tests of loading AgentScope Python workspaces.

use super::{fixture, lines, open, path, tree};
use stead_vfs::VPath;
use stead_workspace::{
    AgentConfig, ContextFile, Layout, OpenOption, OpenOptions, Severity, WorkspacePaths,
};

fn of(agent: &str) -> OpenOptions {
    OpenOptions {
        agent: Some(agent.to_owned()),
        ..OpenOptions::default()
    }
}

#[tokio::test]
async fn servers_skills_and_sessions_arrive() {
    let definition = open(&fixture("agentscope-py"), &of("analyst"))
        .await
        .unwrap();
    assert_eq!(definition.layout, Layout::AgentscopePy);
    let expected = AgentConfig {
        name: Some(stead_core::AgentId::new("analyst").unwrap()),
        secrets: vec!["Bearer fixture".to_owned(), "tok-fixture".to_owned()],
        ..AgentConfig::default()
    };
    let mut config = definition.config.clone();
    config.secrets.sort();
    assert_eq!(config, expected);
    let parts = WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: vec![ContextFile::new(path("AGENTS.md"), "agents_context")],
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: vec![path(".agents/skills"), path("skills/analyst")],
        flavor: stead_skills::SkillFlavor::Standard,
        subagents: None,
        tools: Some(path("tools.json")),
        runtime: path(".stead"),
        usage: None,
        conversations: None,
        tasks: None,
        default_dir: None,
        protected: Layout::AgentscopePy.protected(),
    };
    assert_eq!(definition.paths, parts);
    let later = "not active yet";
    let connected = "tool servers are connected in a later version";
    let expected = [
        format!(".mcp:26:9: {later}: maps: {connected}"),
        format!(".mcp:6:9: {later}: files: {connected}"),
    ];
    let mut found = lines(&definition.findings);
    found.sort();
    assert_eq!(found, expected);
}

#[tokio::test]
async fn an_agent_has_its_own_skills_or_else_those_of_the_seed() {
    let skill = |folder: &str| {
        (
            format!("skills/{folder}/SKILL.md"),
            "---\nname: a\ndescription: d\n---\n".to_owned(),
        )
    };
    for (folders, agent, expected) in [
        (&[".seed/a", "ann/b"][..], "ann", &["skills/ann"][..]),
        (&[".seed/a", "ann/b"], "bob", &["skills/.seed"]),
        (&[".seed/a", "default/b"], "", &["skills/default"]),
        (&["a", "b"], "ann", &["skills"]),
        (&["a", ".seed/b"], "ann", &["skills", "skills/.seed"]),
        (&["ann"], "ann", &["skills"]),
        (&[], "ann", &["skills"]),
    ] {
        let mut files: Vec<(String, String)> = folders.iter().map(|folder| skill(folder)).collect();
        files.push((".mcp".to_owned(), "[]".to_owned()));
        let files: Vec<(&str, &str)> = files
            .iter()
            .map(|(path, text)| (path.as_str(), text.as_str()))
            .collect();
        let options = if agent.is_empty() {
            OpenOptions::default()
        } else {
            of(agent)
        };
        let skills = open(&tree(&files), &options).await.unwrap().paths.skills;
        let names: Vec<&str> = skills[1..].iter().map(VPath::as_str).collect();
        assert_eq!(names, expected, "{folders:?} {agent}");
    }
}

#[tokio::test]
async fn the_first_version_is_a_bare_list() {
    let list = r#"[{"name": "a", "is_stateful": true, "mcp_config": {"type": "stdio_mcp", "command": "x", "args": [], "env": null}},
 {"name": "b", "is_stateful": false, "mcp_config": {"type": "http_mcp", "url": "http://x/sse"}, "disable_tools": ["t"]}]"#;
    let definition = open(&tree(&[(".mcp", list)]), &OpenOptions::default())
        .await
        .unwrap();
    let found = lines(&definition.findings);
    assert_eq!(
        found,
        [
            ".mcp:1:2: not active yet: a: tool servers are connected in a later version",
            ".mcp:2:2: not active yet: b: tool servers are connected in a later version",
        ]
    );
    for empty in ["", "{}", "[]", r#"{"version": 2, "mcps": {}}"#] {
        let definition = open(&tree(&[(".mcp", empty)]), &OpenOptions::default())
            .await
            .unwrap();
        assert_eq!(definition.findings, [], "{empty}");
    }
}

#[tokio::test]
async fn mistakes_about_servers_have_a_place_and_stop_no_run() {
    let http = r#"{"name": "a", "mcp_config": {"type": "http_mcp", "url": "http://x"}"#;
    let table = [
        (format!("[\n{http}, \"enable_tools\": [\"t\"], \"disable_tools\": [\"t\"]}}]"), 2, "t is enabled and disabled"),
        (format!("[\n{http}}},\n{http}}}]"), 3, "two servers named \"a\""),
        (format!("[\n{http}, \"timeot\": 1}}]"), 2, "unknown field `timeot`"),
        (format!("[\n{http}, \"execution_timeout\": 0}}]"), 2, "more than 0 seconds"),
        ("[\n{\"name\": \"a b\", \"mcp_config\": {\"type\": \"http_mcp\", \"url\": \"u\"}}]".into(), 2, "letters, digits"),
        ("[\n{\"name\": \"a\", \"mcp_config\": {\"type\": \"http_mcp\"}}]".into(), 2, "http_mcp needs `url`"),
        ("[\n{\"name\": \"a\", \"mcp_config\": {\"type\": \"stdio_mcp\", \"command\": \"x\", \"url\": \"u\"}}]".into(), 2, "no meaning with stdio_mcp"),
        ("[\n{\"name\": \"a\", \"mcp_config\": {\"type\": \"stdio\"}}]".into(), 2, "did you mean `stdio_mcp`?"),
        ("[\n{\"name\": \"a\", \"is_stateful\": false, \"mcp_config\": {\"type\": \"stdio_mcp\", \"command\": \"x\"}}]".into(), 2, "keeps its state"),
        ("[\n{\"name\": \"a\"}]".into(), 2, "missing field `mcp_config`"),
        ("[\n5]".into(), 2, "pairs are needed"),
        ("{\n\"version\": 3,\n\"mcps\": {}}".into(), 2, "version: 2 is needed"),
        ("{\"version\": 2,\n\"mcp\": {}}".into(), 2, "did you mean `mcps`?"),
        ("{\"version\": 2,\n\"mcps\": {\"a\": {\n\"s\": {}}}}".into(), 3, "a list of servers is needed"),
        ("{\"version\": 2,\n\"mcps\": {\"a\":\n[]}}".into(), 2, "a map is needed"),
        ("5".into(), 1, "a list of servers, or a map"),
        ("[\n".into(), 2, "not JSON"),
    ];
    for (text, line, says) in table {
        let found = open(&tree(&[(".mcp", &text)]), &OpenOptions::default())
            .await
            .unwrap()
            .findings;
        assert!(
            found.iter().any(|f| f.severity == Severity::NonFatal
                && f.place.line == line
                && f.message.contains(says)),
            "{text}\n{found:#?}"
        );
    }
    let found = open(&tree(&[(".mcp", "[]")]), &of("../x"))
        .await
        .unwrap_err();
    assert_eq!(found[0].source, OpenOption::Agent.into());
}
