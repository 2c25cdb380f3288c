//! The place for tests of choosing the main agent of an OpenHarness workspace.

use super::*;

/// Names and modes.
type Agents<'a> = &'a [(&'a str, &'a str)];

fn agent(mode: &str) -> String {
    format!("---\nmode: {mode}\nmodel: platform/claude\n---\nHi.\n")
}

/// The main agent of a folder with these agents and settings; `--agent` is `asked`.
async fn chosen(
    agents: Agents<'_>,
    settings: &str,
    asked: Option<&str>,
    platform: Agents<'_>,
) -> Result<String, Vec<String>> {
    let mut files: Vec<(String, String)> = agents
        .iter()
        .map(|(name, mode)| (format!(".openharness/agents/{name}.md"), agent(mode)))
        .collect();
    files.push((".openharness/settings.yaml".to_owned(), settings.to_owned()));
    let files: Vec<(&str, &str)> = files
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    let models = ("models/m.yaml", "claude: {provider: anthropic, name: x}");
    let shared: Vec<(String, String)> = platform
        .iter()
        .map(|(name, mode)| (format!("agents/{name}.md"), agent(mode)))
        .collect();
    let mut shared: Vec<(&str, &str)> = shared
        .iter()
        .map(|(path, text)| (path.as_str(), text.as_str()))
        .collect();
    shared.push(models);
    let platform = Some(place(&shared).await);
    let options = OpenOptions {
        agent: asked.map(str::to_owned),
        platform,
        ..OpenOptions::default()
    };
    let definition = open(place(&files).await, &options)
        .await
        .map_err(|all| lines(&all))?;
    Ok(definition.active.unwrap())
}

#[tokio::test]
async fn the_flag_goes_before_the_default_and_the_default_before_the_rest() {
    let several = [
        ("build", "primary"),
        ("plan", "all"),
        ("assistant", "primary"),
        ("audit", "subagent"),
    ];
    let plain = [("plan", "all"), ("build", "primary"), ("audit", "subagent")];
    #[rustfmt::skip]
    let cases: [(Agents<'_>, &str, Option<&str>, Agents<'_>, &str); 7] = [
        (&several, "default_agent: plan", Some("build"), &[], "build"),
        (&several, "default_agent: plan", None, &[], "plan"),
        (&several, "", None, &[], "assistant"),
        (&plain, "", None, &[], "build"),
        (&[("plan", "primary"), ("assistant", "subagent")], "", None, &[], "plan"),
        // Agents of the platform are agents like others.
        (&plain, "", None, &[("assistant", "primary")], "assistant"),
        (&plain, "default_agent: helper", None, &[("helper", "all")], "helper"),
    ];
    for (agents, settings, asked, platform, expected) in cases {
        assert_eq!(
            chosen(agents, settings, asked, platform).await.as_deref(),
            Ok(expected),
            "{settings} {asked:?}"
        );
    }
}

#[tokio::test]
async fn an_agent_that_cannot_be_the_main_one_is_refused() {
    let agents = [("build", "primary"), ("audit", "subagent")];
    #[rustfmt::skip]
    let cases: [(Agents<'_>, &str, Option<&str>, &str); 6] = [
        (&agents, "", Some("biuld"), "option agent: there is no agent `biuld`; did you mean `build`?"),
        (&agents, "", Some("audit"), "option agent: `audit` is a subagent, so it cannot be the main agent; there are: build"),
        (&agents, "kind: project\ndefault_agent: zzz", None, ".openharness/settings.yaml:2:1: default_agent: there is no agent `zzz`; there are: build"),
        (&agents, "default_agent: audit", None, ".openharness/settings.yaml:1:1: default_agent: `audit` is a subagent, so it cannot be the main agent; there are: build"),
        (&[("audit", "subagent"), ("read", "subagent")], "", None, ".openharness/agents:1:1: no agent can be the main one, all are subagents: audit, read"),
        (&[], "", None, ".openharness/agents:1:1: there is no agent; write one, as NAME.md"),
    ];
    for (agents, settings, asked, expected) in cases {
        assert_eq!(
            chosen(agents, settings, asked, &[]).await.unwrap_err(),
            [expected]
        );
    }
}
