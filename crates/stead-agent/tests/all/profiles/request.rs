//! The place for tests of what a profile changes in a request, on every model wire.

use super::{Named, agent, put, workspace};
use crate::subagents::Says;
use crate::support::{TestTool, agent_asking, block_on, model, model_name, session, text};
use serde_json::{Value, json};
use stead_agent::{Agent, AgentError, RunOptions};
use stead_core::Risk;
use stead_model::{Caching, Params, ScriptedModel};
use stead_testkit::{FakeModel, FakeWire, RecordedRequest, reply};
use stead_tools::Output;
use stead_workspace::{Profile, WorkspaceError};

const WIRES: [FakeWire; 4] = [
    FakeWire::Chat,
    FakeWire::Messages,
    FakeWire::Responses,
    FakeWire::Gemini,
];

fn provider(wire: FakeWire) -> &'static str {
    model_name(wire).split(':').next().unwrap()
}

/// What the server is asked in a workspace with these settings in its profile.
fn sent(wire: FakeWire, settings: &str, params: Params) -> RecordedRequest {
    let profile = format!("for: {}\n{settings}", provider(wire));
    let dir = workspace(&[("profiles/p.yaml", &profile)]);
    let server = FakeModel::start(vec![reply().text("ok")]);
    block_on(async {
        let agent = agent_asking(dir.path(), model(&server, wire), params).await;
        agent
            .session(session("s"))
            .run(text("hi"), RunOptions::default())
            .await
            .unwrap();
    });
    server.last_request()
}

/// The description of a tool, wherever the wire has it.
fn description(json: &Value, tool: &str) -> Option<String> {
    match json {
        Value::Object(fields) if fields.get("name").and_then(Value::as_str) == Some(tool) => fields
            .get("description")
            .and_then(Value::as_str)
            .map(str::to_owned),
        Value::Object(fields) => fields.values().find_map(|value| description(value, tool)),
        Value::Array(items) => items.iter().find_map(|value| description(value, tool)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => None,
    }
}

#[test]
fn suffix_descriptions_exclusions_and_names_are_on_every_wire() {
    let settings = "prompt_suffix: |\n  Be brief.\ndescriptions: {Read: Looks into a file., ls: Lists.}\n\
                    exclude: [Write, delete_file]\nsurface: title\n";
    for wire in WIRES {
        let plain = sent(wire, "", Params::default());
        let sent = sent(wire, settings, Params::default());
        let before = plain.seen.unwrap();
        let after = sent.seen.unwrap();
        assert!(
            after.system.trim_end().ends_with("\n\nBe brief.")
                && !before.system.contains("Be brief."),
            "{wire:?}"
        );
        let has = |tools: &[String], name: &str| tools.iter().any(|tool| tool == name);
        for tool in ["read_file", "write_file", "delete_file"] {
            assert_eq!(
                (has(&before.tools, tool), has(&after.tools, tool)),
                (true, false),
                "{wire:?} {tool}"
            );
        }
        assert!(
            has(&after.tools, "Read") && has(&after.tools, "Edit") && !has(&after.tools, "Write"),
            "{wire:?}"
        );
        assert_eq!(
            description(&sent.json["tools"], "Read").as_deref(),
            Some("Looks into a file."),
            "{wire:?}"
        );
        assert_eq!(
            description(&sent.json["tools"], "LS").as_deref(),
            Some("Lists."),
            "{wire:?}"
        );
        let own = |json: &Value, tool| description(&json["tools"], tool).unwrap();
        assert_ne!(
            own(&plain.json, "read_file"),
            "Looks into a file.",
            "{wire:?}"
        );
        // Sections name tools as the model knows them.
        assert!(
            after.system.contains("`Edit` replaces exact text")
                && !after.system.contains("`edit_file`"),
            "{wire:?}"
        );
    }
}

#[test]
fn temperature_and_thinking_are_defaults_on_every_wire() {
    let table = [
        (
            FakeWire::Chat,
            "/temperature",
            "/reasoning_effort",
            json!("medium"),
            json!("high"),
        ),
        (
            FakeWire::Messages,
            "/temperature",
            "/thinking/budget_tokens",
            json!(4096),
            json!(20000),
        ),
        (
            FakeWire::Responses,
            "/temperature",
            "/reasoning/effort",
            json!("medium"),
            json!("high"),
        ),
        (
            FakeWire::Gemini,
            "/generationConfig/temperature",
            "/generationConfig/thinkingConfig/thinkingBudget",
            json!(4096),
            json!(20000),
        ),
    ];
    for (wire, temperature, thinking, usual, own) in table {
        let value = |settings: &str, params: Params, at: &str| {
            sent(wire, settings, params).json.pointer(at).cloned()
        };
        let none = Params::default();
        let set = Params {
            temperature: Some(0.9),
            ..Params::default()
        };
        assert_eq!(value("", none.clone(), temperature), None, "{wire:?}");
        assert_eq!(
            value("temperature: 0.25", none.clone(), temperature),
            Some(json!(0.25)),
            "{wire:?}"
        );
        assert_eq!(
            value("temperature: 0.25", set, temperature),
            Some(json!(0.9)),
            "{wire:?}"
        );
        assert_eq!(
            value("thinking_tokens: 4096", none, thinking),
            Some(usual),
            "{wire:?}"
        );
        let set = Params {
            thinking_tokens: Some(20_000),
            ..Params::default()
        };
        assert_eq!(
            value("thinking_tokens: 4096", set, thinking),
            Some(own),
            "{wire:?}"
        );
    }
}

#[test]
fn caching_is_told_to_the_provider_that_can_be_told() {
    let mark = |settings: &str| {
        let sent = sent(FakeWire::Messages, settings, Params::default()).json;
        let marks = ["/system/0", "/messages/0/content/0"].map(|at| {
            sent.pointer(at)
                .and_then(|part| part.get("cache_control"))
                .cloned()
        });
        let last = sent["tools"]
            .as_array()
            .and_then(|tools| tools.last())
            .cloned()
            .unwrap();
        (marks, last.get("cache_control").cloned())
    };
    let both = |mark: Option<Value>| ([mark.clone(), mark.clone()], mark);
    assert_eq!(mark(""), both(Some(json!({"type": "ephemeral"}))));
    assert_eq!(
        mark("caching: 5m"),
        both(Some(json!({"type": "ephemeral"})))
    );
    assert_eq!(
        mark("caching: 1h"),
        both(Some(json!({"type": "ephemeral", "ttl": "1h"})))
    );
    assert_eq!(mark("caching: off"), both(None));
}

#[test]
fn a_changed_profile_holds_from_the_next_run_on_and_a_broken_one_stops_it_with_its_place() {
    let dir = workspace(&[]);
    let model = Named::new("openai:gpt-5", |_, _, _| Says::Text("ok".into()));
    block_on(async {
        let agent = agent(dir.path(), model.clone(), Vec::new()).await;
        let mut session = agent.session(session("s"));
        let mut run = async || session.run(text("hi"), RunOptions::default()).await;
        run().await.unwrap();
        put(
            dir.path(),
            "profiles/p.yaml",
            "for: openai\nexclude: [ls]\ntemperature: 0.5\n",
        );
        run().await.unwrap();
        put(
            dir.path(),
            "profiles/p.yaml",
            "for: openai:gpt-4*\nexclude: [ls]\ntemperature: 0.5\n",
        );
        run().await.unwrap();
        let seen: Vec<_> = model
            .asked()
            .iter()
            .map(|asked| (asked.has("ls"), asked.params.temperature))
            .collect();
        assert_eq!(seen, [(true, None), (false, Some(0.5)), (true, None)]);
        let table = [
            (
                "for: gemini\nexclud: [ls]\n",
                "profiles/p.yaml:2:1: exclud: unknown field",
            ),
            (
                "for: gemini\nexclude:\n- lss\n",
                "profiles/p.yaml:3:3: exclude: there is no tool lss",
            ),
        ];
        for (broken, said) in table {
            put(dir.path(), "profiles/p.yaml", broken);
            let error = run().await.unwrap_err();
            assert!(
                matches!(&error, AgentError::Workspace(WorkspaceError::Invalid(_))),
                "{error:?}"
            );
            assert!(error.to_string().starts_with(said), "{error}");
        }
        assert_eq!(model.asked().len(), 3);
    });
}

#[test]
fn a_program_gives_profiles_over_those_of_files() {
    let file =
        "for: scripted\ntemperature: 0.5\nthinking_tokens: 100\nprompt_suffix: of the file\n";
    let dir = workspace(&[("profiles/p.yaml", file)]);
    let given = Profile {
        temperature: Some(0.1),
        exclude: ["own_tool".to_owned()].into(),
        prompt_suffix: Some("of the program".to_owned()),
        ..Profile::default()
    };
    let own = TestTool::make("own_tool", Risk::READS, |_, _| async {
        Ok(Output::text("done"))
    });
    block_on(async {
        let agent = Agent::builder()
            .layout(stead_workspace::Layout::Stead)
            .workspace(dir.path())
            .model_of(ScriptedModel::parse("s", "- text: ok").unwrap())
            .tool(own)
            .profile("scripted".parse().unwrap(), given)
            .build()
            .await
            .unwrap();
        let turn = agent.sessionless().turn().await.unwrap();
        let suffix = turn.prompt.sections.last().unwrap();
        assert_eq!(
            (suffix.title.as_str(), suffix.text.as_str()),
            ("profile", "of the program")
        );
        let profile = &turn.profile.profile;
        assert_eq!(
            (
                profile.temperature,
                profile.thinking_tokens,
                profile.caching
            ),
            (Some(0.1), Some(100), None::<Caching>)
        );
        let verdict = agent
            .sessionless()
            .explain("own_tool", json!({}))
            .await
            .unwrap();
        assert_eq!(
            verdict.reason,
            "the profile scripted (given by the program) excludes own_tool"
        );
    });
}
