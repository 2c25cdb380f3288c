//! The place for tests of profiles in the real binary: errors, explain, exclusions, schema and
//! replay.

use crate::support::Folder;
use serde_json::{Value, json};
use stead_testkit::{FakeModel, reply};

fn folder(files: &[(&str, &str)]) -> Folder {
    let folder = Folder::new();
    for dir in ["profiles", ".stead/profiles"] {
        std::fs::create_dir_all(folder.path().join(dir)).unwrap();
    }
    folder.put("AGENTS.md", "You help.");
    files.iter().for_each(|(name, text)| folder.put(name, text));
    folder
}

#[test]
fn what_is_wrong_with_a_profile_is_told_with_its_place_and_stops_every_run() {
    let other = ("profiles/b.yaml", "for: openai-chat\n");
    let table = [
        (
            "for: openai\nexclud: [ls]\n",
            2,
            1,
            "unknown field `exclud`",
        ),
        (
            "for: openai\nexclude:\n- ls\n- lss\n",
            4,
            3,
            "exclude: there is no tool lss",
        ),
        (
            "for: gemini\ndescriptions:\n  lss: a\n",
            3,
            3,
            "descriptions: there is no tool lss",
        ),
        ("for: openai\nsurface: Title\n", 2, 1, "surface"),
        ("for: opnai\n", 1, 1, "did you mean `openai`?"),
        ("for: gemini\ncaching: 1h\n", 2, 1, "gemini cannot be told"),
        ("for: openai\n  x: [\n", 2, 4, ""),
    ];
    for (text, line, column, said) in table {
        let folder = folder(&[("profiles/a.yaml", text)]);
        let rows = folder.run(&["check", "--json"]).exits(2).json();
        let errors: Vec<&Value> = rows
            .as_array()
            .unwrap()
            .iter()
            .filter(|row| row["grade"] == "error")
            .collect();
        assert_eq!(errors.len(), 1, "{text}: {errors:?}");
        let place = (
            &errors[0]["about"],
            &errors[0]["line"],
            &errors[0]["column"],
        );
        assert_eq!(
            place,
            (&json!("profiles/a.yaml"), &json!(line), &json!(column)),
            "{text}: {errors:?}"
        );
        assert!(
            errors[0]["message"].as_str().unwrap().contains(said),
            "{text}: {errors:?}"
        );
        let model = folder.script("- text: ok");
        let run = folder.run(&["run", "-m", &model, "hi"]).exits(2);
        assert!(
            run.err
                .contains(&format!("profiles/a.yaml:{line}:{column}: ")),
            "{text}: {run:?}"
        );
        assert!(!folder.has("agents"), "{text}");
    }
    let twice = folder(&[("profiles/a.yaml", "for: openai\n"), other]);
    let rows = twice.run(&["check"]).exits(2).out;
    assert!(
        rows.contains("profiles/b.yaml:1:1: for: openai has a profile in profiles/a.yaml already"),
        "{rows}"
    );
}

#[test]
fn explain_tells_which_profiles_apply_and_what_each_gave() {
    let folder = folder(&[
        (
            "agent.yaml",
            "model: {name: 'openai:gpt-5-mini', temperature: 0.7}\n",
        ),
        (
            "profiles/all.yaml",
            "for: [openai, gemini]\ntemperature: 0.2\nexclude: [Bash]\n",
        ),
        (
            "profiles/gpt.yaml",
            "for: openai:gpt-5*\nthinking_tokens: 2048\nprompt_suffix: Be brief.\n",
        ),
    ]);
    let all = "openai (profiles/all.yaml)";
    let gpt = "openai:gpt-5* (profiles/gpt.yaml)";
    let row = |key: &str, value: Value, source: &str| json!({"key": key, "value": value, "origin": {"source": source}});
    let rows = folder
        .run(&["explain", "profile", "--json"])
        .exits(0)
        .lines();
    assert_eq!(
        rows,
        [
            row("profile.prompt_suffix", json!("Be brief."), gpt),
            row("profile.exclude.execute", json!(true), all),
            row(
                "profile.temperature",
                json!(0.2),
                &format!("{all}; overridden by model.temperature")
            ),
            row("profile.thinking_tokens", json!(2048), gpt),
        ]
    );
    let rows = folder
        .run(&["explain", "profiles", "--json"])
        .exits(0)
        .lines();
    assert_eq!(
        rows,
        [row("profiles", json!([all, gpt]), "openai:gpt-5-mini")]
    );
    let rows = folder.run(&["explain"]).exits(0).out;
    assert!(
        rows.contains("model.temperature = 0.7") && rows.contains(&format!("= true  ({all})")),
        "{rows}"
    );
    // A flag names another model, with other profiles.
    let other = folder
        .run(&["explain", "profiles", "--json", "-m", "gemini:flash"])
        .exits(0)
        .lines();
    assert_eq!(
        other,
        [row(
            "profiles",
            json!(["gemini (profiles/all.yaml)"]),
            "gemini:flash"
        )]
    );
    let none = folder.run(&["explain", "profile.surface"]).exits(2);
    assert!(
        none.err
            .contains("no profile of the model sets profile.surface"),
        "{none:?}"
    );
    let model = folder
        .run(&["models", "openai:gpt-5-mini", "--json"])
        .exits(0)
        .json();
    assert_eq!(model["profiles"], json!([all, gpt]));
}

#[test]
fn a_tool_that_is_excluded_is_refused_from_the_command_line_and_in_a_run() {
    let folder = folder(&[
        ("agent.yaml", "permission_mode: bypass\n"),
        (
            "profiles/p.yaml",
            "for: openai\nexclude: [write_file]\nprompt_suffix: Be brief.\n",
        ),
    ]);
    let args = r#"{"file_path": "a.txt", "content": "a"}"#;
    let rule = "the profile openai (profiles/p.yaml) excludes write_file";
    for name in ["write_file", "Write"] {
        let explained = folder
            .run(&["tool", name, args, "--explain", "-m", "openai:x"])
            .exits(0)
            .out;
        assert_eq!(explained, format!("deny: {rule}\n"));
        let called = folder
            .run(&["tool", name, args, "--approve", "all", "-m", "openai:x"])
            .exits(1);
        assert_eq!(called.err, format!("denied: {rule}\n"));
    }
    let server = FakeModel::start(vec![
        reply().call("write_file", json!({"file_path": "a.txt", "content": "a"})),
        reply().text("no"),
    ]);
    folder
        .run_with(
            &server,
            &["run", "-m", "openai:x", "--approve", "all", "go"],
        )
        .exits(0);
    assert!(String::from_utf8_lossy(&server.last_request().body).contains(rule));
    assert!(!folder.has("a.txt"));
    let prompt = folder.run(&["prompt", "-m", "openai:x"]).exits(0).out;
    assert!(
        prompt.contains("Be brief.\n") && prompt.contains("profiles/p.yaml"),
        "{prompt}"
    );
    // Another model has other profiles.
    folder
        .run(&["tool", "write_file", args, "-m", "gemini:x"])
        .exits(0);
    assert!(folder.has("a.txt"));
}

#[test]
fn a_workspace_of_another_layout_has_its_profiles_with_what_else_is_ours() {
    let folder = folder(&[
        (
            ".stead/profiles/p.yaml",
            "for: openai\nsurface: snake\nprompt_suffix: Be brief.\n",
        ),
        ("profiles/own.yaml", "this: is something else\n"),
    ]);
    std::fs::create_dir_all(folder.path().join(".openharness/agents")).unwrap();
    folder.put(
        ".openharness/agents/main.md",
        "---\nmode: primary\ntools: {native: [Read]}\n---\nYou read.\n",
    );
    let tools = |model: &str| {
        folder
            .run(&["prompt", "--summary", "-m", model])
            .exits(0)
            .out
    };
    assert!(
        tools("openai:x").contains("1 tool: read_file")
            && tools("gemini:x").contains("1 tool: Read")
    );
}

#[test]
fn the_schema_knows_what_the_parser_knows() {
    let schema = Folder::new().run(&["schema", "profile"]).exits(0).json();
    assert_eq!(schema["required"], json!(["for"]));
    for (key, property) in schema["properties"].as_object().unwrap() {
        assert!(
            property.get("description").is_some(),
            "{key} is not explained"
        );
    }
}

#[test]
fn a_replay_reads_calls_as_the_model_that_was_recorded_meant_them() {
    let files = [
        (
            "profiles/p.yaml",
            "for: openai\nsurface: title\nexclude: [Glob]\n",
        ),
        ("a.txt", "one\ntwo\nthree\n"),
    ];
    let recorded = folder(&files);
    let server = FakeModel::start(vec![
        reply()
            .call("Read", json!({"file_path": "a.txt", "offset": 3}))
            .call("Glob", json!({"pattern": "*"})),
        reply().text("done"),
    ]);
    let tape = recorded.path().join("tape.jsonl").display().to_string();
    let results = |folder: &Folder| -> Vec<Value> {
        let journal = folder.read("agents/main/sessions/s.log.jsonl");
        let lines = journal
            .lines()
            .map(|line| serde_json::from_str::<Value>(line).unwrap());
        lines
            .filter(|line| line["kind"] == "result")
            .map(|line| json!([line["data"]["status"], line["data"]["content"]]))
            .collect()
    };
    recorded
        .run_with(
            &server,
            &[
                "run",
                "-m",
                &format!("record:{tape}=openai:x"),
                "-s",
                "s",
                "go",
            ],
        )
        .exits(0);
    let replayed = folder(&files);
    replayed
        .run(&["run", "-m", &format!("replay:{tape}"), "-s", "s", "go"])
        .exits(0);
    let first = results(&recorded);
    let again = results(&replayed);
    assert_eq!(first, again);
    let text = first[1].to_string();
    assert!(
        first.len() == 2 && text.contains("three") && !text.contains("two"),
        "{first:?}"
    );
}
