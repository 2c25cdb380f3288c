//! The place for tests of loading projects of Deep Agents' `deploy`.

use super::{Tree, fixture, open, path, tree};
use stead_model::ModelSettings;
use stead_workspace::{
    AgentMode, AgentSpec, ContextFile, ContextRendering, Definition, Finding, Layout, ModelUse,
    OpenOptions, Severity, SubagentIsolation,
};

fn model(name: &str) -> Option<ModelSettings> {
    Some(ModelSettings {
        name: name.to_owned(),
        ..ModelSettings::default()
    })
}

/// Findings as severity, file and the key, or the first words, of the message.
fn found(findings: &[Finding]) -> Vec<(Severity, &str, &str)> {
    findings
        .iter()
        .map(|finding| {
            let words = finding.message.split(": ").next().unwrap_or_default();
            let file = finding.source.file().unwrap_or_default();
            (finding.severity, file, words.get(..24).unwrap_or(words))
        })
        .collect()
}

async fn opened(files: &Tree) -> Definition {
    open(files, &OpenOptions::default()).await.unwrap()
}

#[tokio::test]
async fn a_project_arrives_with_its_model_memory_skills_and_subagents() {
    let definition = opened(&fixture("deepagents-deploy")).await;
    assert_eq!(definition.layout, Layout::DeepagentsDeploy);
    let config = &definition.config;
    assert_eq!(
        (
            config.name.as_ref().unwrap().as_str(),
            config.description.as_deref(),
            config.model.clone(),
        ),
        (
            "launch-planner",
            Some("Plans the launch of a product."),
            model("anthropic:claude-sonnet-4-5"),
        )
    );
    let user = ContextFile {
        rendering: ContextRendering::WithoutComments,
        ..ContextFile::new(path("user/AGENTS.md"), "agent_memory")
    };
    assert_eq!(
        definition.paths.context,
        [ContextFile::new(path("AGENTS.md"), "agents_context"), user]
    );
    assert_eq!(
        definition.paths.skills,
        [path("subagents/market-researcher/skills"), path("skills")]
    );
    let researcher = AgentSpec {
        name: "market-researcher".to_owned(),
        source: "subagents/market-researcher/AGENTS.md".to_owned(),
        mode: AgentMode::Subagent,
        description: Some("Researches a market.".to_owned()),
        model: model("gemini:gemini-2.5-pro"),
        skills: Some(vec!["analyze-market".to_owned()]),
        isolation: SubagentIsolation::Shared,
        prompt: "# Market researcher\n\nYou find out who would buy a product, and why.".to_owned(),
        ..AgentSpec::default()
    };
    assert_eq!(
        definition.agents.into_values().collect::<Vec<_>>(),
        [researcher]
    );
    let origin = &definition.origins["model"];
    assert_eq!(
        (origin.source.as_str(), origin.place.unwrap().line),
        ("agent.json", 5)
    );
    // Everything that has no effect is told.
    assert_eq!(
        found(&definition.findings),
        [
            (Severity::Inactive, "agent.json", "backend"),
            (Severity::Inactive, "agent.json", "permissions"),
            (Severity::Inactive, "tools.json", "tool servers are connect"),
            (
                Severity::Warning,
                "subagents/market-researcher/skills",
                "the main agent sees thes"
            ),
        ]
    );
}

#[tokio::test]
async fn every_key_without_effect_is_a_finding() {
    let table = [
        ("\"agent_id\": \"x\"", Severity::Inactive, "agent_id"),
        ("\"backend\": {}", Severity::Inactive, "backend"),
        ("\"permissions\": {}", Severity::Inactive, "permissions"),
        ("\"extras\": {}", Severity::Inactive, "extras"),
        ("\"modell\": \"x\"", Severity::NonFatal, "modell"),
        (
            "\"runtime\": {\"backend_type\": \"x\"}",
            Severity::NonFatal,
            "runtime.backend_type",
        ),
        (
            "\"runtime\": {\"model\": {\"effort\": 1}}",
            Severity::NonFatal,
            "runtime.model.effort",
        ),
    ];
    for (line, severity, key) in table {
        let settings = format!("{{\"name\": \"a\", {line}}}");
        let files = [("agent.json", settings.as_str()), ("AGENTS.md", "x")];
        let definition = opened(&tree(&files)).await;
        assert_eq!(
            found(&definition.findings),
            [(severity, "agent.json", key)],
            "{line}"
        );
    }
}

#[tokio::test]
async fn a_project_with_missing_or_older_parts_runs_without_them_and_says_so() {
    let files = tree(&[
        ("agent.json", "{\"name\": \"My agent!\"}"),
        ("deepagents.toml", "[agent]\nname = \"a\"\n"),
        (
            "mcp.json",
            "{\"mcpServers\": {\"docs\": {\"url\": \"https://x\"}}}",
        ),
        ("tools.json", "{"),
        ("subagents/bare/skills/x/SKILL.md", "x"),
        ("subagents/no-settings/AGENTS.md", "You work."),
        ("subagents/plain/AGENTS.md", "You work."),
        (
            "subagents/plain/agent.json",
            "{\"model_id\": \"nowhere:m\", \"tone\": 1}",
        ),
        ("subagents/plain/tools.json", "{\"tools\": [{}]}"),
        ("subagents/notes.md", "no agent"),
    ]);
    let definition = opened(&files).await;
    assert_eq!(definition.agents.keys().collect::<Vec<_>>(), ["plain"]);
    assert_eq!(definition.agents["plain"].skills, Some(Vec::new()));
    use Severity::{Inactive, NonFatal, Warning};
    assert_eq!(
        found(&definition.findings),
        [
            (Warning, "agent.json", "name"),
            (NonFatal, "AGENTS.md", "is missing"),
            (NonFatal, "deepagents.toml", "is the older form of age"),
            (NonFatal, "tools.json", "not JSON"),
            (Inactive, "mcp.json", "tool servers are connect"),
            (NonFatal, "subagents/bare/AGENTS.md", "is missing or empty"),
            (
                NonFatal,
                "subagents/no-settings/agent.json",
                "is missing; this subagen"
            ),
            (NonFatal, "subagents/plain/agent.json", "tone"),
            (Warning, "subagents/plain/agent.json", "description"),
            (NonFatal, "subagents/plain/agent.json", "model"),
            (
                Inactive,
                "subagents/plain/tools.json",
                "tool servers are connect"
            ),
        ]
    );
}

#[tokio::test]
async fn a_model_that_cannot_be_used_is_an_error_only_where_it_would_be_used() {
    let settings = |line: &str| {
        let text = format!("{{\"name\": \"a\", {line}}}");
        tree(&[("agent.json", text.as_str()), ("AGENTS.md", "x")])
    };
    for line in [
        "\"model\": \"nowhere:m\"",
        "\"model\": \"claude-sonnet-4-5\"",
        "\"runtime\": {\"model\": {\"model_id\": \"nowhere:m\"}}",
    ] {
        let files = settings(line);
        let refused = open(&files, &OpenOptions::default()).await.unwrap_err();
        assert_eq!(refused[0].source.file(), Some("agent.json"), "{line}");
        let other = OpenOptions {
            model: Some("openai:m".to_owned()),
            ..OpenOptions::default()
        };
        let unused = OpenOptions {
            model_use: ModelUse::NotNeeded,
            ..OpenOptions::default()
        };
        for options in [other, unused] {
            assert!(open(&files, &options).await.is_ok(), "{line}");
        }
    }
    for wrong in [
        "\"model\": \"openai:m\", \"runtime\": {\"model\": {\"model_id\": \"openai:n\"}}",
        "\"description\": 7",
        "\"runtime\": []",
    ] {
        let refused = open(&settings(wrong), &OpenOptions::default()).await;
        assert_eq!(refused.unwrap_err().len(), 1, "{wrong}");
    }
}
