//! The place for tests of loading Deep Agents folders.

use super::{failing, fixture, open, path};
use stead_workspace::{
    AgentConfig, ContextFile, ContextRendering, FindingSource, Layout, Nested, OpenOption,
    OpenOptions, SubagentIsolation, WorkspacePaths,
};

fn memory(file: &str) -> ContextFile {
    ContextFile {
        rendering: ContextRendering::WithoutComments,
        ..ContextFile::new(path(file), "agent_memory")
    }
}

/// `CLAUDE.md` is shown as in any project, also if it comes later.
fn shown(file: &str) -> ContextFile {
    match file {
        "CLAUDE.md" => ContextFile {
            rendering: ContextRendering::UnlessRepeated,
            nested: Nested::Yes,
            ..ContextFile::new(path(file), "claude_md")
        },
        _ => memory(file),
    }
}

fn parts(context: &[&str], skills: &[&str]) -> WorkspacePaths {
    WorkspacePaths {
        memory_of_parent: Vec::new(),
        context: context.iter().map(|file| shown(file)).collect(),
        memory: None,
        daily_facts: None,
        knowledge: None,
        skills: skills.iter().map(|folder| path(folder)).collect(),
        flavor: stead_skills::SkillFlavor::Standard,
        subagents: None,
        tools: Some(path("tools.json")),
        runtime: path(".stead"),
        usage: None,
        conversations: None,
        tasks: None,
        default_dir: None,
        protected: Layout::Deepagents.protected(),
    }
}

#[tokio::test]
async fn memory_files_and_skills_arrive_and_more_can_be_given() {
    let files = fixture("deepagents");
    let definition = open(&files, &OpenOptions::default()).await.unwrap();
    assert_eq!(
        (definition.layout, &definition.config),
        (Layout::Deepagents, &AgentConfig::default())
    );
    let context = ["AGENTS.md", ".deepagents/AGENTS.md", "CLAUDE.md"];
    let skills = [".deepagents/skills", ".agents/skills", "skills"];
    assert_eq!(definition.paths, parts(&context, &skills));
    assert_eq!(definition.findings, []);

    let mut files = files;
    let settings = "model: openai:m\ncontext_files: [docs/RULES.md, AGENTS.md]\nskills: {dirs: [team/skills]}\n";
    files.insert("agent.yaml".to_owned(), settings.into());
    for file in [
        "docs/RULES.md",
        "notes/me.md",
        "team/skills/x/SKILL.md",
        "more/y/SKILL.md",
    ] {
        files.insert(file.to_owned(), "x".into());
    }
    let memory = vec!["notes/me.md".to_owned()];
    let skills = vec!["more".to_owned()];
    let options = OpenOptions {
        memory,
        skills,
        ..OpenOptions::default()
    };
    let definition = open(&files, &options).await.unwrap();
    assert_eq!(
        definition.layout,
        Layout::Deepagents,
        "its own settings do not make it stead's"
    );
    let context = [
        "AGENTS.md",
        ".deepagents/AGENTS.md",
        "docs/RULES.md",
        "notes/me.md",
        "CLAUDE.md",
    ];
    let skills = [
        ".deepagents/skills",
        ".agents/skills",
        "skills",
        "team/skills",
        "more",
    ];
    assert_eq!(definition.paths, parts(&context, &skills));
    assert_eq!(definition.config.model.unwrap().name, "openai:m");
}

#[tokio::test]
async fn agents_that_work_can_be_handed_to_arrive() {
    let mut files = fixture("deepagents");
    let reviewer =
        "---\nname: reviewer\ndescription: Reviews.\nmodel: openai:m\n---\nYou review.\n";
    files.insert(
        ".deepagents/agents/review/AGENTS.md".to_owned(),
        reviewer.into(),
    );
    files.insert(
        ".deepagents/agents/writer/AGENTS.md".to_owned(),
        "---\ndescription: Writes.\n---\nWrite.".into(),
    );
    files.insert(".deepagents/agents/notes.md".to_owned(), "no agent".into());
    let definition = open(&files, &OpenOptions::default()).await.unwrap();
    assert_eq!(
        definition.agents.keys().collect::<Vec<_>>(),
        ["reviewer", "writer"]
    );
    let reviewer = &definition.agents["reviewer"];
    assert_eq!(
        (
            reviewer.prompt.as_str(),
            reviewer.model.as_ref().unwrap().name.as_str()
        ),
        ("You review.", "openai:m")
    );
    assert!(reviewer.mode.is_subagent() && !reviewer.mode.is_primary());
    assert_eq!(
        (reviewer.isolation.clone(), definition.active),
        (SubagentIsolation::Shared, None)
    );
    for wrong in [
        "---\nname: writer\n---\nWrite.",
        "---\ndescription: Writes.\n---\n",
        "---\nname: reviewer\ndescription: Writes.\n---\nWrite.",
    ] {
        files.insert(
            ".deepagents/agents/writer/AGENTS.md".to_owned(),
            wrong.into(),
        );
        let definition = open(&files, &OpenOptions::default()).await.unwrap();
        assert_eq!(
            definition.agents.keys().collect::<Vec<_>>(),
            ["reviewer"],
            "{wrong}"
        );
        let told = failing(&definition);
        assert!(
            told.len() == 1 && told[0].starts_with(".deepagents/agents/writer/AGENTS.md:"),
            "{wrong}: {told:?}"
        );
    }
}

#[tokio::test]
async fn what_is_given_must_lie_in_the_folder() {
    let options = OpenOptions {
        memory: vec!["../x.md".to_owned()],
        skills: vec!["~/skills".to_owned()],
        agent: Some("other".to_owned()),
        ..OpenOptions::default()
    };
    let found: Vec<FindingSource> = open(&fixture("deepagents"), &options)
        .await
        .unwrap_err()
        .into_iter()
        .map(|finding| finding.source)
        .collect();
    let options = [
        OpenOption::ContextFiles,
        OpenOption::Skills,
        OpenOption::Agent,
    ];
    assert_eq!(found, options.map(FindingSource::Option));
    assert_eq!(
        failing(
            &open(&fixture("deepagents"), &OpenOptions::default())
                .await
                .unwrap()
        ),
        [""; 0]
    );
}
