//! The place for tests of exit codes, output formats and input sources of `stead run`.

use crate::support::{Folder, done, pointed};
use serde_json::{Value, json};
use stead_testkit::{FakeModel, bench_like, fail, hang, reply};

#[test]
fn the_exit_code_says_how_a_run_ended() {
    let folder = Folder::new();
    let script = folder.script("- text: fine");
    folder.run(&["run", "-m", &script, "go"]).exits(0);

    let server = FakeModel::start(vec![fail(400).message("no such thing")]);
    let failed = folder
        .run_with(&server, &["run", "-m", "openai:x", "-s", "f", "go"])
        .exits(1);
    assert!(
        failed.err.contains("no such thing") && failed.err.contains("stead run -s f --resume"),
        "{failed:?}"
    );

    for (args, said) in [
        (vec!["run", "-m", "nobody:x", "go"], "no provider is named"),
        (vec!["run", "-m", "justaname", "go"], "provider:model"),
        (vec!["run", "-m", &script, "  "], "the input is empty"),
        (
            vec!["run", "-m", &script, "-s", "../x", "go"],
            "an id must not contain",
        ),
        (
            vec!["run", "-m", &script, "-s", "nope", "--resume"],
            "there is no session nope",
        ),
        (vec!["run", "--resume"], "no session has an open run"),
        (vec!["run", "--no-such-flag"], "--no-such-flag"),
        (vec!["sessions", "show", "nope"], "there is no session nope"),
        (vec!["-C", "nowhere", "run", "go"], "is not a folder"),
    ] {
        let wrong = folder.run(&args).exits(2);
        assert!(wrong.err.contains(said), "{args:?}: {wrong:?}");
    }

    let limited = Folder::new();
    limited.put("agent.yaml", "policy: {max_steps: 3}\n");
    let server = FakeModel::start_with(bench_like(10));
    let stopped = limited
        .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "go"])
        .exits(4);
    assert!(stopped.err.contains("policy.max_steps"), "{stopped:?}");
    limited.put("agent.yaml", "policy: {run_timeout_seconds: 1}\n");
    let server = FakeModel::start(vec![hang()]);
    let late = limited
        .run_with(&server, &["run", "-m", "openai:x", "-s", "t", "go"])
        .exits(4);
    assert!(late.err.contains("policy.run_timeout_seconds"), "{late:?}");
}

// Park, exit 3, approve or deny
#[test]
fn a_parked_run_exits_with_three_and_is_answered_from_another_process() {
    for (answer, content) in [("all", "x\ny\n"), ("none", "x\n")] {
        let folder = Folder::new();
        folder.put("agent.yaml", "approvals: {Write: true}\n");
        folder.put("log.txt", "x\n");
        let server = FakeModel::start(vec![
            reply().call(
                "write_file",
                json!({"file_path": "log.txt", "content": "y\n", "mode": "append"}),
            ),
            reply().text("done"),
        ]);
        let parked = folder
            .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "go"])
            .exits(3);
        assert!(
            parked
                .err
                .contains("stead run -s s --resume -m openai:x --approve all"),
            "{parked:?}"
        );
        assert_eq!(folder.read("log.txt"), "x\n");
        folder
            .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "--resume"])
            .exits(3);
        let resumed = folder.run_with(
            &server,
            &[
                "run",
                "-m",
                "openai:x",
                "-s",
                "s",
                "--resume",
                "--approve",
                answer,
            ],
        );
        assert_eq!(resumed.exits(0).out, "done\n");
        assert_eq!(folder.read("log.txt"), content);
        assert_eq!(
            (server.rejections(), server.requests().len()),
            (Vec::new(), 2)
        );
        let over = folder
            .run_with(&server, &["run", "-m", "openai:x", "-s", "s", "--resume"])
            .exits(2);
        assert!(over.err.contains("nothing to resume"), "{over:?}");
    }
}

#[test]
fn output_as_json_and_as_events_can_be_read_by_a_program() {
    let folder = Folder::new();
    let server = FakeModel::start_with(bench_like(2));
    let args = |output| {
        [
            "run", "-m", "openai:x", "-s", output, "--output", output, "go",
        ]
    };
    let report = folder.run_with(&server, &args("json")).exits(0).json();
    assert_eq!(
        (&report["session"], &report["outcome"]),
        (&json!("json"), &json!("completed"))
    );
    assert_eq!(
        (&report["text"], &report["steps"]),
        (&json!("done"), &json!(3))
    );

    let events = folder.run_with(&server, &args("events")).exits(0).lines();
    let seqs: Vec<&Value> = events.iter().map(|event| &event["seq"]).collect();
    assert_eq!(
        seqs,
        (1..=events.len())
            .map(|n| json!(n))
            .collect::<Vec<_>>()
            .iter()
            .collect::<Vec<_>>()
    );
    assert_eq!(
        (&events[0]["type"], &events.last().unwrap()["type"]),
        (&json!("run_started"), &json!("run_ended"))
    );
    let count = |kind: &str| events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!(
        (
            count("model_started"),
            count("model_ended"),
            count("tool_started"),
            count("tool_ended")
        ),
        (3, 3, 2, 2)
    );
    for event in &events {
        serde_json::from_value::<stead::core::Event>(event.clone()).unwrap();
    }
}

#[test]
fn input_comes_from_the_argument_or_from_standard_input() {
    for args in [
        vec!["run", "-m", "openai:x"],
        vec!["run", "-m", "openai:x", "-"],
    ] {
        let folder = Folder::new();
        let server = FakeModel::start(vec![reply().text("heard")]);
        let mut command = folder.command(&args);
        assert_eq!(
            done(pointed(&mut command, &server).write_stdin("from a pipe\n"))
                .exits(0)
                .out,
            "heard\n"
        );
        assert_eq!(
            server
                .last_request()
                .seen
                .unwrap()
                .user_texts()
                .collect::<Vec<_>>(),
            ["from a pipe\n"]
        );
    }
}

#[test]
fn without_a_key_the_way_out_is_named() {
    let lost = Folder::new().run(&["run", "go"]).exits(2);
    for word in [
        "ANTHROPIC_API_KEY",
        "OPENAI_API_KEY",
        "GEMINI_API_KEY",
        "stead demo",
        "agent.yaml",
    ] {
        assert!(lost.err.contains(word), "{word} is missing: {lost:?}");
    }
    let keyless = Folder::new()
        .run(&["run", "-m", "anthropic:x", "go"])
        .exits(2);
    assert!(keyless.err.contains("ANTHROPIC_API_KEY"), "{keyless:?}");
}

#[test]
fn the_demo_needs_neither_key_nor_network() {
    let folder = Folder::new();
    let shown = folder.run(&["demo", "--fast", "--dir", "demo"]).exits(0);
    assert!(
        folder.has("demo/AGENTS.md") && !shown.out.is_empty(),
        "{shown:?}"
    );
    folder.run(&["-C", "demo", "check"]).exits(0);
}

/// The body of the last request.
fn body(server: &FakeModel) -> String {
    String::from_utf8(server.last_request().body.to_vec()).unwrap()
}

#[test]
fn what_is_piped_in_beside_an_input_is_attached_to_it() {
    let folder = Folder::new();
    let server = FakeModel::start(vec![reply().text("ok"); 3]);
    let run = |stdin: &[u8], args: &[&str]| {
        let mut all = vec!["run", "-m", "openai:x"];
        all.extend(args);
        let mut command = folder.command(&all);
        pointed(&mut command, &server).write_stdin(stdin.to_vec());
        done(&mut command)
    };
    run(b"line one\nline two @nope.md\n", &["Summarise"]).exits(0);
    let request = body(&server);
    assert!(
        request.contains(r"Summarise")
            && request.contains(r"Standard input:\n```\nline one\nline two @nope.md\n```"),
        "{request}"
    );
    // An empty pipe adds nothing, and bytes that are no text are refused with their place.
    run(b"", &["Only this"]).exits(0);
    let request = body(&server);
    assert!(!request.contains("Standard input"), "{request}");
    let refused = run(b"ab\xffc", &["Summarise"]).exits(2);
    assert!(refused.err.contains("byte 2 is 0xff"), "{refused:?}");
    assert_eq!(server.requests().len(), 2);
}

#[test]
fn a_path_that_cannot_be_attached_is_told() {
    let folder = Folder::new();
    folder.put("with space.md", "the content\n");
    let server = FakeModel::start(vec![reply().text("ok"); 2]);
    let told = folder
        .run_with(
            &server,
            &[
                "run",
                "-m",
                "openai:x",
                "see @\"with space.md\" and @nope.md",
            ],
        )
        .exits(0);
    assert!(
        told.err
            .contains("@nope.md was not attached: there is no such file"),
        "{told:?}"
    );
    let request = body(&server);
    assert!(request.contains("the content"), "{request}");
}
