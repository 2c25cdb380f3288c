//! The place for tests of the profile of the model that answers: after an agent switch and on a
//! fallback model.

use super::{Asked, Named, agent, outcomes, workspace};
use crate::subagents::Says;
use crate::support::{agent_asking, block_on, journal, session, text};
use serde_json::json;
use stead_agent::RunOptions;
use stead_core::ResultStatus;
use stead_model::{ModelSettings, Params, connect};
use stead_testkit::{FakeModel, FakeWire, fail, reply};

#[test]
fn after_a_switch_the_next_step_has_the_other_models_profile() {
    let builder =
        "---\nmode: primary\ndescription: Builds.\nmodel: gemini:flash\n---\nYou build.\n";
    let dir = workspace(&[
        ("agent.yaml", "model: openai:gpt-5\n"),
        ("subagents/builder.md", builder),
        (
            "profiles/a.yaml",
            "for: openai\nexclude: [ls]\nprompt_suffix: for openai\ntemperature: 0.1\n",
        ),
        (
            "profiles/b.yaml",
            "for: gemini\nexclude: [glob_files]\nsurface: title\nprompt_suffix: for gemini\ntemperature: 0.9\n\
             descriptions: {read_file: Reads.}\n",
        ),
    ]);
    let decide = |_: &str, turns: usize, _: &stead_model::Request| match turns {
        0 => Says::Calls(vec![
            ("ls", json!({})),
            ("switch_agent", json!({"to": "builder"})),
        ]),
        1 => Says::Calls(vec![
            ("LS", json!({"path": "."})),
            ("Glob", json!({"pattern": "*"})),
        ]),
        _ => Says::Text("done".into()),
    };
    let main = Named::new("openai:gpt-5", decide);
    let other = Named::new("gemini:flash", decide);
    block_on(async {
        let agent = agent(dir.path(), main.clone(), vec![other.clone()]).await;
        agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let told: Vec<(ResultStatus, bool)> = outcomes(&lines)
            .into_iter()
            .map(|(status, text)| (status, text.contains("the profile")))
            .collect();
        let ok = (ResultStatus::Ok, false);
        let denied = (ResultStatus::Denied, true);
        assert_eq!(told, [denied, ok, ok, denied]);
        let of = |asked: &Asked| {
            let suffix = asked
                .system
                .rsplit("\n\n")
                .next()
                .unwrap_or_default()
                .to_owned();
            (
                suffix,
                asked.has("Read"),
                asked.has("Glob") || asked.has("glob_files"),
                asked.params.temperature,
            )
        };
        assert_eq!(
            main.asked().iter().map(of).collect::<Vec<_>>(),
            [("for openai".to_owned(), false, true, Some(0.1))]
        );
        let theirs = ("for gemini".to_owned(), true, false, Some(0.9));
        assert_eq!(
            other.asked().iter().map(of).collect::<Vec<_>>(),
            [theirs.clone(), theirs]
        );
        assert!(
            other.asked()[0]
                .tools
                .contains(&("Read".to_owned(), "Reads.".to_owned()))
        );
    });
}

#[test]
fn who_answers_instead_is_asked_with_its_own_profile_and_bound_by_it() {
    let dir = workspace(&[
        (
            "profiles/a.yaml",
            "for: openai\nexclude: [ls]\nprompt_suffix: for openai\ntemperature: 0.1\n",
        ),
        (
            "profiles/b.yaml",
            "for: anthropic\nexclude: [glob_files]\nsurface: title\nprompt_suffix: for anthropic\ntemperature: 0.9\n\
             caching: 1h\n",
        ),
        ("a.txt", "one\ntwo\nthree\n"),
    ]);
    let server = FakeModel::start_with(|request| match (request.wire, request.result_count()) {
        (FakeWire::Chat, 0) => fail(500),
        (FakeWire::Messages, 0) => reply()
            .call("LS", json!({"path": "."}))
            .call("Glob", json!({"pattern": "*"}))
            // Counted from one in this surface.
            .call(
                "Read",
                json!({"file_path": "a.txt", "offset": 2, "limit": 1}),
            ),
        (FakeWire::Chat, 3) => reply()
            .call("ls", json!({}))
            .call("glob_files", json!({"pattern": "*"})),
        (_, _) => reply().text("done"),
    });
    let settings = ModelSettings {
        name: "openai:x".to_owned(),
        base_url: Some(server.openai_url()),
        max_retries: Some(0),
        fallbacks: vec!["anthropic:y".to_owned()],
        ..ModelSettings::default()
    };
    let url = server.base_url();
    let model = connect(&settings, &|name| {
        (name == "ANTHROPIC_BASE_URL").then(|| url.clone())
    })
    .unwrap();
    block_on(async {
        let agent = agent_asking(dir.path(), model, Params::default()).await;
        agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let told = outcomes(&lines);
        let by = |key: &str, file: &str, tool: &str| {
            (
                ResultStatus::Denied,
                format!("denied: the profile {key} (profiles/{file}.yaml) excludes {tool}"),
            )
        };
        assert_eq!(told.len(), 5, "{told:?}");
        assert_eq!(
            (told[0].0, &told[1]),
            (ResultStatus::Ok, &by("anthropic", "b", "glob_files"))
        );
        assert!(
            told[2].1.contains("two") && !told[2].1.contains("one") && !told[2].1.contains("three"),
            "{told:?}"
        );
        assert_eq!(
            (&told[3], told[4].0),
            (&by("openai", "a", "ls"), ResultStatus::Ok)
        );
    });
    for request in server.requests() {
        let seen = request.seen.as_ref().unwrap();
        let has = |name: &str| seen.tools.iter().any(|tool| tool == name);
        let found = (
            seen.system
                .trim_end()
                .rsplit("\n\n")
                .next()
                .unwrap_or_default(),
            request.json["temperature"].as_f64(),
            has("Read"),
            has("ls") || has("LS"),
        );
        match request.wire {
            FakeWire::Chat => assert_eq!(found, ("for openai", Some(0.1), false, false)),
            FakeWire::Messages => {
                assert_eq!((found.1, found.2, found.3), (Some(0.9), true, true));
                assert!(seen.system.ends_with("for anthropic"));
                assert_eq!(request.json["system"][0]["cache_control"]["ttl"], "1h");
            }
            FakeWire::Responses | FakeWire::Gemini => panic!("{:?}", request.wire),
        }
    }
    assert_eq!(server.rejections(), Vec::new());
}
