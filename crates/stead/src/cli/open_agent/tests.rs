//! The place for tests that the command line and the library build the same agent.

use super::*;
use std::collections::BTreeMap;
use std::path::PathBuf;
use stead::core::Block;
use stead::workspace::Layout;
use stead::{RunOptions, Session};

/// The properties by which two agents are compared.
#[derive(Debug, PartialEq)]
struct Built {
    layout: Layout,
    model: String,
    prompt: Vec<String>,
    tools: Vec<String>,
    rules: String,
    gate: String,
    hook_environment: Option<String>,
}

const SCRIPT: &str = "- text: Done.\n";

/// The files of a workspace with a hook that records its environment.
const STEAD_FILES: [(&str, &str); 7] = [
    ("AGENTS.md", "You keep notes."),
    (
        "agent.yaml",
        "model: scripted:script.yaml\npermissions: [{operations: [read], paths: [secret], mode: deny}]\napprovals: {write_file: true}\n",
    ),
    ("script.yaml", SCRIPT),
    ("tools.json", "{\"deny\": [\"delete_file\"]}"),
    (
        "hooks/env.yaml",
        "name: env\nevents: [run_start]\nhandler: {type: command, command: env | sort > environment.txt}\n",
    ),
    (
        "skills/sort/SKILL.md",
        "---\nname: sort\ndescription: Sorts.\n---\nSort.\n",
    ),
    ("work/AGENTS.md", "You work here."),
];

fn write_files(dir: &Path, files: &[(&str, &str)]) {
    for (path, content) in files {
        let path = dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
}

fn variables(home: &Path) -> BTreeMap<String, String> {
    [
        ("PATH", "/usr/local/bin:/usr/bin:/bin"),
        ("HOME", home.to_str().unwrap()),
        ("USER", "ann"),
        ("LANG", "C.UTF-8"),
        ("TZ", "UTC"),
        ("TMPDIR", "/tmp"),
        ("ANTHROPIC_API_KEY", "sk-of-the-process"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .into()
}

async fn describe(dir: &Path, agent: Arc<Agent>) -> Built {
    let turn = agent.sessionless().turn().await.unwrap();
    let environment = dir.join("environment.txt");
    let _ = std::fs::remove_file(&environment);
    if agent.model().name().starts_with("scripted:") {
        let mut session: Session = agent.session(SessionId::fresh());
        let input = vec![Block::text("Go.")];
        session.run(input, RunOptions::default()).await.unwrap();
    }
    // These differ in each run.
    let hook_environment = std::fs::read_to_string(&environment).ok().map(|text| {
        let lines = text.lines().filter(|line| {
            !line.starts_with("STEAD_SESSION=") && !line.starts_with("STEAD_EXEC_ID=")
        });
        lines.collect::<Vec<_>>().join("\n")
    });
    let mut tools: Vec<String> = turn
        .tools
        .specs()
        .iter()
        .map(|spec| spec.name.clone())
        .collect();
    tools.sort();
    Built {
        layout: agent.workspace().definition.layout,
        model: agent.model().name().to_owned(),
        prompt: turn
            .prompt
            .parts()
            .iter()
            .map(|part| part.text.to_string())
            .collect(),
        tools,
        rules: format!("{:?}", agent.workspace().rules),
        gate: format!("{:?}", agent.gate()),
        hook_environment,
    }
}

/// Builds the agent in `dir` through the command line's path and through the library's.
async fn both(dir: &Path, home: &Path, folder: PathBuf) -> (Built, Built) {
    let env = ProcessEnv::for_test(variables(home), folder);
    let flags = GlobalArgs {
        workspace: Some(dir.to_owned()),
        trust: true,
        ..GlobalArgs::default()
    };
    let typed = open_agent(&flags, &env, ModelUse::Required).await.unwrap();
    let given = variables(home);
    let built = Agent::builder()
        .workspace(dir)
        .working_folder(working_folder(dir, &env))
        .variables(move |name| given.get(name).cloned())
        .build()
        .await
        .unwrap();
    (describe(dir, typed).await, describe(dir, built).await)
}

#[tokio::test]
async fn the_command_line_and_the_builder_make_the_same_agent() {
    let home = tempfile::tempdir().unwrap();
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path(), &STEAD_FILES);
    let (typed, built) = both(dir.path(), home.path(), dir.path().join("work")).await;
    assert_eq!(typed, built);
    let environment = built.hook_environment.unwrap();
    for name in ["PATH", "HOME", "USER", "LANG", "TZ", "TMPDIR"] {
        assert!(environment.contains(&format!("{name}=")), "{environment}");
    }
    assert!(!environment.contains("sk-of-the-process"), "{environment}");
    assert!(built.prompt.concat().contains("You work here."));
    assert!(!built.tools.contains(&"delete_file".to_owned()));
}

#[tokio::test]
async fn the_builder_knows_an_agentscope_workspace_by_its_path() {
    let home = tempfile::tempdir().unwrap();
    let project = tempfile::tempdir().unwrap();
    let dir = project.path().join(".agentscope/workspace");
    write_files(&dir, &STEAD_FILES[..4]);
    let (typed, built) = both(&dir, home.path(), project.path().to_owned()).await;
    assert_eq!(typed, built);
    assert_eq!(built.layout, Layout::Agentscope);
}

#[tokio::test]
async fn files_of_a_model_are_relative_to_where_they_were_named() {
    let dir = tempfile::tempdir().unwrap();
    write_files(dir.path(), &STEAD_FILES);
    let in_settings = Agent::builder().workspace(dir.path()).build().await;
    let expected = format!("scripted:{}", dir.path().join("script.yaml").display());
    assert_eq!(in_settings.unwrap().model().name(), expected);
    // There is no such file in the current folder.
    let by_name = Agent::builder()
        .workspace(dir.path())
        .model("scripted:script.yaml");
    assert!(matches!(by_name.build().await, Err(BuildError::Model(_))));
}
