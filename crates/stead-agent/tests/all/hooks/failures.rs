//! The place for tests of hooks without a valid answer: fail-closed guards, fail-open observers,
//! answers an event does not allow, secrets.

use super::{Scene, writes};
use crate::support::{block_on, results};
use std::time::Instant;
use stead_core::{HookOutcome, ResultStatus, RunOutcome};

#[test]
fn no_answer_is_a_no_of_a_guard_and_nothing_of_others() {
    for (script, outcome, said) in [
        ("exit 1", HookOutcome::Failed, "exit status: 1"),
        ("echo oh dear >&2; exit 3", HookOutcome::Failed, "oh dear"),
        ("kill -9 $$", HookOutcome::Failed, "signal 9"),
        ("kill -SEGV $$", HookOutcome::Failed, "signal 11"),
        ("/no/such/program", HookOutcome::Failed, "exit status: 127"),
        (
            "echo fine",
            HookOutcome::Failed,
            "not the JSON that hooks answer with",
        ),
        ("printf '\\377\\376'", HookOutcome::Failed, "not UTF-8"),
        (
            "echo '{\"decison\": \"block\"}'",
            HookOutcome::Failed,
            "unknown field `decison`",
        ),
        ("yes", HookOutcome::Failed, "more than 1048576 bytes"),
        ("yes >&2", HookOutcome::Failed, "more than 1048576 bytes"),
        ("sleep 300", HookOutcome::TimedOut, "no answer within 1 s"),
        (
            "trap '' TERM; sleep 300 & wait",
            HookOutcome::TimedOut,
            "no answer within 1 s",
        ),
        (
            "exec 1>&-; sleep 300",
            HookOutcome::TimedOut,
            "no answer within 1 s",
        ),
    ] {
        for (failing, runs) in [
            ("", false),
            ("on_failure: closed", false),
            ("on_failure: open", true),
        ] {
            let scene = Scene::new(writes());
            scene.hook(
                "guard",
                "before_tool_call",
                script,
                &format!("timeout_seconds: 1\n{failing}"),
            );
            let begun = Instant::now();
            block_on(async {
                let ran = scene.run().await;
                assert_eq!(
                    ran.report.as_ref().unwrap().outcome,
                    RunOutcome::Completed,
                    "{script}"
                );
                assert_eq!(ran.outcomes(), [outcome], "{script}");
                assert!(ran.hooks()[0].contains(said), "{script}: {:?}", ran.hooks());
                assert_eq!(scene.read("a.txt").is_some(), runs, "{script} {failing}");
                let status = if runs {
                    ResultStatus::Ok
                } else {
                    ResultStatus::Denied
                };
                assert_eq!(results(&ran.lines)[0].1, status, "{script} {failing}");
                let notices = ran.notices();
                assert!(
                    notices.len() == 1 && notices[0].contains(said),
                    "{script}: {notices:?}"
                );
                let means = if runs {
                    "the run continues without it"
                } else {
                    "it counts as a no"
                };
                assert!(notices[0].contains(means), "{notices:?}");
            });
            assert!(
                begun.elapsed().as_secs() < 10,
                "{script} took {:?}",
                begun.elapsed()
            );
        }
    }
}

#[test]
fn a_failure_is_closed_before_things_and_open_after_them() {
    for (event, goes_on) in [
        ("before_tool_call", false),
        ("before_model_call", false),
        ("before_context_build", false),
        ("prompt_submit", false),
        ("after_tool_call", true),
        ("after_model_call", true),
        ("after_context_build", true),
        ("run_start", true),
        ("run_end", true),
        ("session_start", true),
    ] {
        let scene = Scene::new(writes());
        scene.hook("h", event, "exit 1", "");
        block_on(async {
            let ran = scene.run().await;
            let wrote = scene.read("a.txt").is_some();
            assert_eq!(wrote, goes_on, "{event}");
            assert_eq!(ran.report.is_err(), event == "prompt_submit", "{event}");
        });
    }
}

#[test]
fn what_cannot_be_said_at_an_event_is_a_failure() {
    for (event, answer, said) in [
        (
            "run_end",
            "{\"decision\": \"block\", \"reason\": \"r\"}",
            "run_end cannot be blocked: r",
        ),
        (
            "run_end",
            "{\"additional_context\": \"x\"}",
            "reaches nobody at run_end",
        ),
        (
            "after_model_call",
            "{\"additional_context\": \"x\"}",
            "reaches nobody at after_model_call",
        ),
        (
            "after_tool_call",
            "{\"patch\": {\"tool_args\": {}}}",
            "`patch.tool_args` is for before_tool_call",
        ),
        (
            "run_start",
            "{\"suppressOutput\": true}",
            "capabilities: [suppress_output]",
        ),
    ] {
        let scene = Scene::new(writes());
        scene.hook("h", event, &format!("echo '{answer}'"), "");
        block_on(async {
            let ran = scene.run().await;
            assert_eq!(
                ran.report.as_ref().unwrap().outcome,
                RunOutcome::Completed,
                "{event} {answer}"
            );
            assert!(
                ran.hooks()[0].starts_with(&format!("h {event} failed: ")),
                "{:?}",
                ran.hooks()
            );
            assert!(ran.hooks()[0].contains(said), "{:?}", ran.hooks());
        });
    }
}

#[test]
fn arguments_that_hold_a_secret_are_refused() {
    let scene = Scene::new(writes());
    scene.put(".env", "API_KEY=sk-very-secret\n");
    let answer =
        "{\"patch\": {\"tool_args\": {\"file_path\": \"a.txt\", \"content\": \"sk-very-secret\"}}}";
    scene.hook(
        "h",
        "before_tool_call",
        &format!("echo '{answer}'"),
        "capabilities: [rewrite_tool_request]",
    );
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(results(&ran.lines)[0].1, ResultStatus::Denied);
        assert_eq!(scene.read("a.txt"), None);
        assert_eq!(
            ran.hooks(),
            ["h before_tool_call failed: the arguments it gave hold a secret of this machine"]
        );
    });
}
