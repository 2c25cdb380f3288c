//! The place for tests of OpenHarness chat workspaces, which have no tools, skills or other agents.

use super::*;
use stead_workspace::ToolLists;

#[tokio::test]
async fn it_has_no_tools_skills_or_other_agents_whatever_its_agents_declare() {
    let agent = "---\nmodel: platform/claude\ntools:\n  native: [Read, Bash]\n  actions: [a]\n  skills: [s]\n  external: [x]\n\
        disallowed:\n  tools: {native: [Write]}\nswitch: [other]\nsubagents: [other]\npolicy: {max_steps: 3}\n---\nTalk.\n";
    let files = [
        (".openharness/settings.yaml", "kind: chat\n"),
        (".openharness/agents/talk.md", agent),
        (
            ".openharness/agents/other.md",
            "---\nmode: all\nmodel: platform/claude\n---\nTalk too.\n",
        ),
        (".openharness/skills/s/SKILL.md", "A skill."),
    ];
    let options = OpenOptions {
        agent: Some("talk".to_owned()),
        skills: vec![".openharness".to_owned()],
        ..on_platform()
    };
    let definition = open(place(&files).await, &options)
        .await
        .map_err(|all| lines(&all))
        .unwrap();
    assert_eq!(
        definition.tools,
        [ToolLists {
            allow: Some(Vec::new()),
            deny: Vec::new()
        }]
    );
    assert_eq!(definition.paths.skills, []);
    for spec in definition.agents.values() {
        let none = Some(Vec::new());
        assert_eq!(
            (
                &spec.tools,
                &spec.skills,
                &spec.actions,
                &spec.servers,
                &spec.subagents,
                spec.switch_targets.len()
            ),
            (&none, &none, &none, &none, &none, 0),
            "{}",
            spec.name
        );
    }
    // Its words, its model and its bounds stay.
    assert_eq!(
        (
            definition.config.policy.max_steps,
            definition.texts[0].text.as_str()
        ),
        (3, "Talk.")
    );
    let ignored = |line: u64, column: u64, key: &str| {
        format!(
            ".openharness/agents/talk.md:{line}:{column}: warning: {key}: ignored, for the workspace is of kind chat"
        )
    };
    let expected = [
        "option skills: warning: ignored, for the workspace is of kind chat".to_owned(),
        ignored(4, 3, "tools.native"),
        ignored(5, 3, "tools.actions"),
        ignored(6, 3, "tools.skills"),
        ignored(7, 3, "tools.external"),
        ignored(9, 11, "disallowed.tools.native"),
        ignored(10, 1, "switch"),
        ignored(11, 1, "subagents"),
    ];
    assert_eq!(own(&definition.findings), expected);
}
