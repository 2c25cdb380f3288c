//! The place for tests of `--output-schema`: answers that conform to a JSON schema, on every wire.

use crate::support::{Folder, done, pointed};
use serde_json::{Value, json};
use stead_testkit::{FakeModel, RecordedRequest, fail, reply};

const SCHEMA: &str = r#"{
  "type": "object",
  "properties": {"city": {"type": "string"}, "size": {"type": "integer"}},
  "required": ["city", "size"],
  "additionalProperties": false
}"#;
const GOOD: &str = r#"{"city": "Rome", "size": 3}"#;

fn folder() -> Folder {
    let folder = Folder::new();
    folder.put("schema.json", SCHEMA);
    folder
}

fn args<'a>(model: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let run = ["run", "-m", model, "--output-schema", "schema.json"];
    [&run[..], more, &["Which city?"]].concat()
}

#[test]
fn a_conforming_answer_is_printed_alone_and_as_a_value() {
    for model in ["openai:x", "anthropic:x", "responses:x", "gemini:x"] {
        let folder = folder();
        let server = FakeModel::start(vec![reply().text(GOOD), reply().text(GOOD)]);
        let text = folder.run_with(&server, &args(model, &[])).exits(0);
        assert_eq!(text.out.trim(), GOOD, "{model}");
        let report = folder.run_with(&server, &args(model, &["--output", "json"]));
        let report = report.exits(0).json();
        assert_eq!(
            report["value"],
            json!({"city": "Rome", "size": 3}),
            "{model}"
        );
        assert_eq!(server.rejections(), Vec::new(), "{model}");
        let sent = server.requests()[0].json.to_string();
        assert!(
            sent.contains("conforms to this JSON schema"),
            "{model}: {sent}"
        );
    }
}

#[test]
fn the_mode_of_the_provider_is_used_where_there_is_one() {
    let schema: Value = serde_json::from_str(SCHEMA).unwrap();
    let named = json!({"name": "answer", "schema": schema, "strict": true});
    let mut format = named.clone();
    format["type"] = json!("json_schema");
    let table = [
        (
            "openai:x",
            "/response_format",
            json!({"type": "json_schema", "json_schema": named}),
        ),
        ("responses:x", "/text/format", format),
        ("anthropic:x", "/output_format", Value::Null),
        ("deepseek:x", "/response_format", Value::Null),
    ];
    for (model, place, want) in table {
        let folder = folder();
        let server = FakeModel::start(vec![reply().text(GOOD)]);
        let mut command = folder.command(&args(model, &[]));
        let command = pointed(&mut command, &server).env("DEEPSEEK_BASE_URL", server.openai_url());
        done(command).exits(0);
        let sent = &server.requests()[0].json;
        assert_eq!(
            sent.pointer(place).unwrap_or(&Value::Null),
            &want,
            "{model}"
        );
    }
}

#[test]
fn an_answer_is_corrected_once_and_then_the_run_fails() {
    let folder = folder();
    let server = FakeModel::start(vec![
        reply().text(r#"{"city": "Rome", "size": "big"}"#),
        reply().text(GOOD),
    ]);
    let text = folder.run_with(&server, &args("openai:x", &[])).exits(0);
    assert_eq!(text.out.trim(), GOOD);
    let told = server.last_request().json.to_string();
    assert!(
        told.contains("does not conform to the schema") && told.contains("/size"),
        "{told}"
    );

    let server = FakeModel::start(vec![reply().text("Rome"), reply().text("Rome!")]);
    let failed = folder.run_with(&server, &args("openai:x", &[])).exits(1);
    let said = "the answer does not conform to the output schema: it is not one JSON value";
    assert!(failed.err.contains(said), "{}", failed.err);
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_bad_schema_is_told_with_its_place_before_any_model_is_asked() {
    let server = FakeModel::start(Vec::new());
    let table = [
        ("{\n  \"type\": }", "schema.json:2:11: this is not JSON"),
        (
            r#"{"properties": {"a": {"type": "strin"}}}"#,
            "schema.json: this is not a JSON schema: /properties/a/type: ",
        ),
    ];
    for (schema, said) in table {
        let folder = Folder::new();
        folder.put("schema.json", schema);
        let refused = folder.run_with(&server, &args("openai:x", &[])).exits(2);
        assert!(refused.err.contains(said), "{}", refused.err);
    }
    let missing = Folder::new()
        .run_with(&server, &args("openai:x", &[]))
        .exits(2);
    assert!(
        missing.err.contains("--output-schema schema.json: "),
        "{}",
        missing.err
    );
    assert_eq!(server.requests().len(), 0);
}

#[test]
fn the_schema_holds_after_the_run_was_resumed() {
    let folder = folder();
    let mut answers = 0;
    let server = FakeModel::start_with(move |_: &RecordedRequest| {
        answers += 1;
        match answers {
            1 => fail(401),
            2 => reply().text("Rome"),
            _ => reply().text(GOOD),
        }
    });
    folder
        .run_with(&server, &args("openai:x", &["-s", "p"]))
        .exits(1);
    let resumed = folder.run_with(&server, &["run", "-s", "p", "--resume", "--output", "json"]);
    let report = resumed.exits(0).json();
    assert_eq!(
        report["value"],
        json!({"city": "Rome", "size": 3}),
        "{report}"
    );
}
