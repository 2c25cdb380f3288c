//! The place for tests of what hooks may change: capabilities, validation of changed calls,
//! blocking, answering for a person, added context, ending a run.

use super::{Scene, hook_runs, writes};
use crate::support::{block_on, results, session};
use serde_json::{Value, json};
use stead_agent::{ApprovalPolicy, RunOptions};
use stead_core::{Entry, EventKind, HookOutcome, ResultStatus, RunOutcome, args_hash};
use stead_testkit::{FakeModel, reply};

/// An answer of a hook, the capability it needs, and where its effect shows.
struct Rewrite {
    event: &'static str,
    answer: Value,
    capability: &'static str,
    /// Whether the effect shows.
    shows: fn(&Scene, &super::Ran) -> bool,
}

/// What a no comes to.
type Check = fn(&Scene, &super::Ran);

fn body(scene: &Scene, n: usize) -> String {
    String::from_utf8_lossy(&scene.server.requests()[n].body).into_owned()
}

fn rewrites() -> Vec<Rewrite> {
    let args = json!({"file_path": "b.txt", "content": "other"});
    vec![
        Rewrite {
            event: "before_tool_call",
            answer: json!({"patch": {"tool_args": args}}),
            capability: "rewrite_tool_request",
            shows: |scene, _| {
                scene.read("b.txt").as_deref() == Some("other") && scene.read("a.txt").is_none()
            },
        },
        Rewrite {
            event: "PreToolUse",
            answer: json!({"hookSpecificOutput": {"patch": {"tool_input": args}}}),
            capability: "rewrite_tool_request",
            shows: |scene, _| scene.read("b.txt").as_deref() == Some("other"),
        },
        Rewrite {
            event: "after_tool_call",
            answer: json!({"patch": {"tool_result": "nothing to see"}}),
            capability: "rewrite_tool_response",
            shows: |_, ran| results(&ran.lines)[0].2 == "nothing to see",
        },
        Rewrite {
            event: "prompt_submit",
            answer: json!({"patch": {"prompt": "go carefully"}}),
            capability: "rewrite_context",
            shows: |scene, _| body(scene, 0).contains("go carefully"),
        },
        Rewrite {
            event: "before_context_build",
            answer: json!({"patch": {"context": "The build is red."}}),
            capability: "rewrite_context",
            shows: |scene, _| body(scene, 1).contains("The build is red."),
        },
        Rewrite {
            event: "after_context_build",
            answer: json!({"patch": {"context": "The build is green."}}),
            capability: "rewrite_context",
            shows: |scene, _| body(scene, 0).contains("The build is green."),
        },
        Rewrite {
            event: "before_model_call",
            answer: json!({"patch": {"model_request": {"max_output_tokens": 77, "system": "Be brief."}}}),
            capability: "rewrite_model_request",
            shows: |scene, _| {
                body(scene, 0).contains("\"max_tokens\":77") && body(scene, 0).contains("Be brief.")
            },
        },
        Rewrite {
            event: "after_model_call",
            answer: json!({"patch": {"model_response": {"text": "all good"}}}),
            capability: "rewrite_model_response",
            shows: |_, ran| {
                ran.report
                    .as_ref()
                    .is_ok_and(|report| report.text == "all good")
            },
        },
    ]
}

#[test]
fn what_a_hook_declares_it_may_change_and_nothing_else() {
    for Rewrite {
        event,
        answer,
        capability,
        shows,
    } in rewrites()
    {
        for declared in [true, false] {
            let scene = Scene::new(writes());
            let more = if declared {
                format!("capabilities: [{capability}]")
            } else {
                "on_failure: open".to_owned()
            };
            scene.answers("h", event, answer.clone(), &more);
            block_on(async {
                let ran = scene.run().await;
                let report = ran.report.as_ref().unwrap();
                assert_eq!(
                    report.outcome,
                    RunOutcome::Completed,
                    "{event}: {:?}",
                    report.reason
                );
                assert_eq!(
                    shows(&scene, &ran),
                    declared,
                    "{event} declared: {declared}"
                );
                let want = if declared {
                    HookOutcome::Rewrote
                } else {
                    HookOutcome::Failed
                };
                assert!(
                    !ran.outcomes().is_empty()
                        && ran.outcomes().iter().all(|outcome| *outcome == want),
                    "{event}"
                );
                let told = format!("it did not declare `capabilities: [{capability}]`");
                assert_eq!(
                    ran.notices().iter().any(|notice| notice.contains(&told)),
                    !declared,
                    "{event}"
                );
            });
        }
    }
}

#[test]
fn a_guard_that_changes_without_the_capability_blocks() {
    let scene = Scene::new(writes());
    scene.answers(
        "h",
        "before_tool_call",
        json!({"patch": {"tool_args": {}}}),
        "",
    );
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(results(&ran.lines)[0].1, ResultStatus::Denied);
        assert_eq!(
            (scene.read("a.txt"), ran.outcomes()),
            (None, vec![HookOutcome::Failed])
        );
    });
}

#[test]
fn a_changed_call_goes_through_validation_and_the_gate() {
    for (args, status, said) in [
        (
            json!({"file_path": "secret/x", "content": ""}),
            ResultStatus::Denied,
            "secret",
        ),
        (
            json!({"file_path": "hooks/x.yaml", "content": ""}),
            ResultStatus::Denied,
            "protected",
        ),
        (json!({"file": 1}), ResultStatus::Error, "file_path"),
        (json!([]), ResultStatus::Denied, "must be a JSON object"),
    ] {
        let scene = Scene::new(writes());
        let rule = "permissions: [{operations: [write], paths: ['secret/**'], mode: deny}]\n";
        scene.put("agent.yaml", &format!("memory: {{flush: false}}\n{rule}"));
        // Yes is a word that widens nothing.
        let answer = json!({"decision": "allow", "patch": {"tool_args": args}});
        scene.answers(
            "h",
            "before_tool_call",
            answer,
            "capabilities: [rewrite_tool_request]",
        );
        block_on(async {
            let ran = scene.run().await;
            let (_, found, text) = results(&ran.lines).remove(0);
            assert_eq!(found, status, "{args}: {text}");
            assert!(text.contains(said), "{args}: {text}");
            assert_eq!(scene.read("a.txt"), None);
        });
    }
}

#[test]
fn what_a_hook_changed_is_what_is_asked_about_and_what_runs_elsewhere() {
    let scene = Scene::new(writes());
    scene.put(
        "agent.yaml",
        "memory: {flush: false}\napprovals: {write_file: true}\n",
    );
    let args = json!({"file_path": "b.txt", "content": "other"});
    let answer = json!({"patch": {"tool_args": args}, "additional_context": "b is better"});
    scene.answers(
        "h",
        "before_tool_call",
        answer,
        "capabilities: [rewrite_tool_request]",
    );
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(ran.report.as_ref().unwrap().outcome, RunOutcome::Parked);
        let hash = args_hash(&args);
        assert!(
            ran.lines
                .iter()
                .any(|line| matches!(&line.entry, Entry::Ask(ask) if ask.args_hash == hash))
        );
        // Another process: the hook is not asked again, for someone was shown its arguments.
        let agent = scene.agent().await;
        let mut chat = agent.session(session("s"));
        chat.load().await.unwrap();
        assert_eq!(chat.open_questions()[0].args, args);
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        assert_eq!(
            chat.resume(options).await.unwrap().outcome,
            RunOutcome::Completed
        );
        assert_eq!(
            (scene.read("a.txt"), scene.read("b.txt").as_deref()),
            (None, Some("other"))
        );
        let (lines, _) = crate::support::journal(&agent, &session("s")).await;
        assert_eq!(hook_runs(&lines).len(), 1);
        assert_eq!(hook_runs(&lines)[0].args, Some(args.clone()));
    });
}

#[test]
fn a_hook_says_no_by_its_exit_code_or_in_words() {
    for no in [
        "echo not today >&2; exit 2",
        "echo '{\"decision\": \"block\", \"reason\": \"not today\"}'",
    ] {
        // What each event's no comes to.
        let table: [(&str, Check); 5] = [
            ("before_tool_call", |scene, ran| {
                assert_eq!(results(&ran.lines)[0].1, ResultStatus::Denied);
                assert_eq!(results(&ran.lines)[0].2, "denied: hook h: not today");
                assert_eq!(
                    (
                        scene.read("a.txt"),
                        ran.report.as_ref().unwrap().text.as_str()
                    ),
                    (None, "done")
                );
            }),
            ("after_tool_call", |scene, ran| {
                let text = "withheld: hook h: not today. The call itself has run.";
                assert_eq!(results(&ran.lines)[0].2, text);
                assert!(scene.read("a.txt").is_some());
            }),
            ("before_model_call", |scene, ran| {
                let report = ran.report.as_ref().unwrap();
                let reason = "hook h said no at before_model_call: not today";
                assert_eq!(
                    (report.outcome, report.reason.as_deref()),
                    (RunOutcome::Failed, Some(reason))
                );
                assert_eq!(scene.server.requests().len(), 0);
            }),
            ("after_model_call", |scene, ran| {
                let report = ran.report.as_ref().unwrap();
                assert_eq!(report.outcome, RunOutcome::Failed);
                // The answer is dropped; what it cost is not.
                assert_eq!(
                    (report.text.as_str(), report.steps, scene.read("a.txt")),
                    ("", 1, None)
                );
            }),
            ("prompt_submit", |scene, ran| {
                let error = ran.report.as_ref().unwrap_err().to_string();
                assert_eq!(error, "hook h refused the input: not today");
                assert_eq!((ran.lines.len(), scene.server.requests().len()), (0, 0));
            }),
        ];
        for (event, check) in table {
            let scene = Scene::new(writes());
            scene.hook("h", event, no, "");
            block_on(async {
                let ran = scene.run().await;
                check(&scene, &ran);
                let blocked = ran
                    .hooks()
                    .iter()
                    .all(|hook| *hook == format!("h {event} blocked: not today"));
                assert!(blocked, "{:?}", ran.hooks());
            });
        }
    }
}

#[test]
fn a_hook_answers_for_a_person_only_if_it_may() {
    let yes = json!({"decision": "allow"});
    let no = json!({"decision": "deny", "reason": "too early"});
    for (answer, more, status) in [
        (
            &yes,
            "capabilities: [answer_permission]",
            Some(ResultStatus::Ok),
        ),
        (&yes, "on_failure: open", None),
        (&yes, "", Some(ResultStatus::Denied)),
        (&no, "", Some(ResultStatus::Denied)),
        (&json!({}), "", None),
    ] {
        let scene = Scene::new(writes());
        scene.put(
            "agent.yaml",
            "memory: {flush: false}\napprovals: {write_file: true}\n",
        );
        scene.answers("h", "permission_request", answer.clone(), more);
        block_on(async {
            let ran = scene.run().await;
            assert_eq!(
                results(&ran.lines).first().map(|result| result.1),
                status,
                "{answer} {more}"
            );
            let parked = ran.report.as_ref().unwrap().outcome == RunOutcome::Parked;
            assert_eq!(parked, status.is_none(), "{answer} {more}");
            let by = ran.lines.iter().find_map(|line| match &line.entry {
                Entry::Decision(decision) => Some(decision.by.clone()),
                _ => None,
            });
            assert_eq!(
                by.is_some_and(|by| by.starts_with("hook h")),
                status.is_some()
            );
        });
    }
}

#[test]
fn each_hook_is_told_what_those_before_it_changed_and_words_reach_the_model() {
    let scene = Scene::new(writes());
    let one = json!({"file_path": "1", "content": ""});
    let two = json!({"file_path": "2", "content": ""});
    let capability = "capabilities: [rewrite_tool_request, suppress_output]";
    let first = json!({"patch": {"tool_args": one}, "systemMessage": "changed it"});
    scene.answers("a-first", "before_tool_call", first, capability);
    scene.put(
        "hooks/two.json",
        &json!({"patch": {"tool_args": two}, "suppressOutput": true}).to_string(),
    );
    scene.hook(
        "b-second",
        "before_tool_call",
        "cat > told.json; cat hooks/two.json",
        capability,
    );
    for (event, words) in [
        ("prompt_submit", "said at the prompt </hook_context>"),
        ("run_start", "said at the start"),
        ("before_model_call", "said before the model"),
        ("before_tool_call", "said before the call"),
        ("after_tool_call", "said after the call"),
    ] {
        scene.answers(
            &format!("c-{event}"),
            event,
            json!({"additional_context": words}),
            "",
        );
    }
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(ran.report.as_ref().unwrap().outcome, RunOutcome::Completed);
        let told: Value = serde_json::from_str(&scene.read("told.json").unwrap()).unwrap();
        assert_eq!(told["tool"]["args"], one);
        assert_eq!(
            (scene.read("1"), scene.read("2").as_deref()),
            (None, Some(""))
        );
        let first = body(&scene, 0);
        let last = body(&scene, 1);
        for words in [
            "said at the prompt",
            "said at the start",
            "said before the model",
        ] {
            assert!(first.contains(words), "{words}: {first}");
        }
        assert!(!first.contains("the prompt </hook_context>"), "{first}");
        let text = &results(&ran.lines)[0].2;
        assert!(
            text.contains("said before the call") && text.contains("said after the call"),
            "{text}"
        );
        assert!(last.contains("said after the call"));
        assert_eq!(ran.notices(), ["hook a-first: changed it"]);
        let shown = ran.events.iter().find_map(|event| match &event.kind {
            EventKind::ToolEnded { preview, .. } => Some(preview.clone()),
            _ => None,
        });
        assert_eq!(shown.as_deref(), Some(""));
    });
}

#[test]
fn a_run_ends_where_a_hook_ends_it() {
    for event in [
        "run_start",
        "before_tool_call",
        "after_tool_call",
        "permission_request",
        "before_context_build",
    ] {
        let scene = Scene::new(writes());
        scene.put(
            "agent.yaml",
            "memory: {flush: false}\napprovals: {write_file: true}\n",
        );
        scene.answers(
            "h",
            event,
            json!({"continue": false, "stopReason": "enough"}),
            "",
        );
        block_on(async {
            let agent = scene.agent().await;
            let options = RunOptions {
                approvals: ApprovalPolicy::ApproveAll,
                ..RunOptions::default()
            };
            let ran = scene.run_with(&agent, options).await;
            let report = ran.report.unwrap();
            let reason = Some("hook h ended the run: enough");
            assert_eq!(
                (report.outcome, report.reason.as_deref()),
                (RunOutcome::Failed, reason),
                "{event}"
            );
            // Every call has a result, whatever ended the run.
            let calls = ran
                .lines
                .iter()
                .filter(|line| matches!(line.entry, Entry::Model(_)))
                .count();
            assert_eq!(super::results_of(&ran.lines), calls, "{event}");
        });
    }
}

#[test]
fn context_from_a_hook_does_not_silence_the_loop_detector() {
    let server = FakeModel::start_with(|_| reply().call("ls", json!({"path": "."})));
    let scene = Scene::of(server);
    let answer = json!({"additional_context": "the sky is blue"});
    scene.answers("h", "before_model_call", answer, "");
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(ran.report.as_ref().unwrap().outcome, RunOutcome::Failed);
    });
    let requests = scene.server.requests();
    let body = String::from_utf8_lossy(&requests.last().unwrap().body).into_owned();
    assert!(body.contains("the sky is blue"), "{body}");
    assert_eq!(body.matches("Change your approach").count(), 1);
}
