//! The place for tests of hooks around a tool call without a session.

use super::{Scene, told};
use crate::support::{block_on, blocks};
use serde_json::{Value, json};
use stead_agent::{ApprovalPolicy, SessionlessResult};
use stead_core::{NoticeLevel, ResultStatus};
use stead_testkit::reply;
use tokio_util::sync::CancellationToken;

const BEFORE: &str = "before_tool_call";
const REWRITES: &str = "capabilities: [rewrite_tool_request, rewrite_tool_response]";

fn write(path: &str) -> Value {
    json!({"file_path": path, "content": "hello"})
}

async fn call(scene: &Scene, args: Value, approvals: ApprovalPolicy) -> SessionlessResult {
    scene
        .agent()
        .await
        .sessionless()
        .call_tool("write_file", args, &approvals, CancellationToken::new())
        .await
}

#[test]
fn what_hooks_say_of_a_call_holds_outside_sessions_too() {
    use ResultStatus::{Denied, Error, Ok};
    type Lay = fn(&Scene);
    // What the hook is, how the call ends, what is said, and which file is written.
    let table: [(&str, Lay, ResultStatus, &str, Option<&str>); 10] = [
        (
            "passes",
            |s| s.hook("h", BEFORE, "exit 0", ""),
            Ok,
            "Created a.txt",
            Some("a.txt"),
        ),
        (
            "blocks",
            |s| s.hook("h", BEFORE, "echo not now >&2; exit 2", ""),
            Denied,
            "denied: hook h: not now",
            None,
        ),
        (
            "fails",
            |s| s.hook("h", BEFORE, "exit 7", ""),
            Denied,
            "denied: hook h: the hook failed",
            None,
        ),
        (
            "fails open",
            |s| s.hook("h", BEFORE, "exit 7", "on_failure: open"),
            Ok,
            "Created a.txt",
            Some("a.txt"),
        ),
        (
            "is late",
            |s| s.hook("h", BEFORE, "sleep 60", "timeout_seconds: 1"),
            Denied,
            "no answer within",
            None,
        ),
        (
            "rewrites",
            |s| {
                s.answers(
                    "h",
                    BEFORE,
                    json!({"patch": {"tool_args": write("b.txt")}}),
                    REWRITES,
                )
            },
            Ok,
            "Created b.txt",
            Some("b.txt"),
        ),
        (
            "rewrites without the capability",
            |s| {
                s.answers(
                    "h",
                    BEFORE,
                    json!({"patch": {"tool_args": write("b.txt")}}),
                    "",
                )
            },
            Denied,
            "denied: hook h",
            None,
        ),
        (
            "rewrites to what is denied",
            |s| {
                s.answers(
                    "h",
                    BEFORE,
                    json!({"patch": {"tool_args": write("agents/x")}}),
                    REWRITES,
                )
            },
            Denied,
            "denied: protected",
            None,
        ),
        (
            "changes the result",
            |s| {
                s.answers(
                    "h",
                    "after_tool_call",
                    json!({"patch": {"tool_result": "all is well"}}),
                    REWRITES,
                )
            },
            Ok,
            "all is well",
            Some("a.txt"),
        ),
        (
            "withholds the result",
            |s| s.hook("h", "after_tool_call", "echo secret >&2; exit 2", ""),
            Error,
            "withheld: hook h: secret. The call itself has run.",
            Some("a.txt"),
        ),
    ];
    for (what, lay, status, said, file) in table {
        let scene = Scene::new(Vec::new());
        lay(&scene);
        block_on(async {
            let called = call(&scene, write("a.txt"), ApprovalPolicy::DenyAll).await;
            let text = blocks(&called.content);
            assert!(
                called.status == status && text.contains(said),
                "{what}: {called:?}"
            );
            let written: Vec<&str> = ["a.txt", "b.txt"]
                .into_iter()
                .filter(|name| scene.read(name).is_some())
                .collect();
            assert_eq!(written, file.into_iter().collect::<Vec<_>>(), "{what}");
            let warned = called
                .notices
                .iter()
                .any(|(level, _)| *level == NoticeLevel::Warning);
            assert_eq!(
                warned,
                matches!(
                    what,
                    "fails" | "fails open" | "is late" | "rewrites without the capability"
                ),
                "{what}: {called:?}"
            );
        });
    }
}

#[test]
fn a_hook_answers_outside_sessions_in_the_place_of_a_person() {
    let yes = json!({"decision": "allow"});
    let no = json!({"decision": "block", "reason": "ask me later"});
    let may = "capabilities: [answer_permission]";
    let rows = [
        (yes.clone(), may, ResultStatus::Ok, "Created a.txt"),
        (yes, "", ResultStatus::Denied, "nobody approved it"),
        (
            no,
            "",
            ResultStatus::Denied,
            "denied: hook h said no to this call: ask me later",
        ),
    ];
    for (answer, capability, status, said) in rows {
        let scene = Scene::new(Vec::new());
        scene.put(
            "agent.yaml",
            "memory: {flush: false}\napprovals: {write_file: true}\n",
        );
        scene.answers(
            "h",
            "permission_request",
            answer.clone(),
            &format!("{capability}\non_failure: open"),
        );
        block_on(async {
            let called = call(&scene, write("a.txt"), ApprovalPolicy::Park).await;
            assert!(
                called.status == status && blocks(&called.content).contains(said),
                "{answer}: {called:?}"
            );
            assert_eq!(scene.read("a.txt").is_some(), status == ResultStatus::Ok);
        });
    }
}

#[test]
fn hooks_are_told_of_a_call_outside_sessions_once_at_each_place() {
    let scene = Scene::new(vec![reply().text("{}")]);
    scene.put(
        "agent.yaml",
        "memory: {flush: false}\napprovals: {write_file: true}\n",
    );
    scene.hook(
        "log",
        "before_tool_call, permission_request, after_tool_call, run_start",
        "cat >> told.jsonl",
        "",
    );
    // One that asks a model has one here as well.
    scene.put(
        "hooks/p.yaml",
        "name: p\nevents: [before_tool_call]\nhandler: {type: prompt, prompt: Judge it.}\n",
    );
    block_on(async {
        let called = call(&scene, write("a.txt"), ApprovalPolicy::ApproveAll).await;
        assert_eq!(called.status, ResultStatus::Ok, "{called:?}");
        let told = told(&scene.path("told.jsonl"));
        let events: Vec<&Value> = told.iter().map(|told| &told["event"]).collect();
        assert_eq!(
            events,
            ["before_tool_call", "permission_request", "after_tool_call"]
        );
        assert!(
            told.iter().all(|told| told["tool"]["name"] == "write_file"
                && told["tool"]["args"] == write("a.txt"))
        );
        assert_eq!(told[2]["tool"]["status"], "ok");
        assert_eq!(scene.server.rejections(), vec![]);
    });
}
