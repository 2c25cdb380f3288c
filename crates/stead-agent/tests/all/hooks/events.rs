//! The place for tests of when hooks fire and what they receive: each event once and in order,
//! matchers, compaction and parked runs.

use super::{Scene, hook_runs, told, writes};
use crate::subagents::{Says, answers};
use crate::support::{agent_with_host, block_on, journal, session, text};
use serde_json::{Value, json};
use stead_agent::{ApprovalPolicy, RunOptions};
use stead_core::{HookOutcome, RunOutcome};
use stead_testkit::{FakeModel, reply};
use tokio_util::sync::CancellationToken;

const ALL: &str = "session_start, session_end, prompt_submit, run_start, run_end, before_context_build, \
    after_context_build, before_model_call, after_model_call, before_tool_call, after_tool_call, permission_request, \
    before_compaction, after_compaction, notification";

fn events(told: &[Value]) -> Vec<&str> {
    told.iter()
        .map(|told| told["event"].as_str().unwrap())
        .collect()
}

#[test]
fn every_event_is_told_once_and_in_order() {
    let scene = Scene::new(writes());
    scene.put(
        "agent.yaml",
        "memory: {flush: false}\napprovals: {write_file: true}\n",
    );
    scene.hook("log", ALL, "cat >> told.jsonl", "");
    block_on(async {
        let agent = scene.agent().await;
        let mut chat = agent.session(session("s"));
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let report = chat.run(text("go"), options).await.unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done"),
            "{:?}",
            report.reason
        );
        chat.finish("exit").await.unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let told = told(&scene.path("told.jsonl"));
        let step = [
            "before_context_build",
            "after_context_build",
            "before_model_call",
            "after_model_call",
        ];
        let want: Vec<&str> = ["session_start", "prompt_submit", "run_start"]
            .into_iter()
            .chain(step)
            .chain(["before_tool_call", "permission_request", "after_tool_call"])
            .chain(step)
            .chain(["run_end", "session_end"])
            .collect();
        assert_eq!(events(&told), want);
        let recorded = hook_runs(&lines);
        assert_eq!(
            recorded
                .iter()
                .map(|run| run.event.as_str())
                .collect::<Vec<_>>(),
            want
        );
        assert!(
            recorded
                .iter()
                .all(|run| run.outcome == HookOutcome::Passed && run.hook == "log")
        );
        // What each is told.
        let run = report.run.as_str();
        let about = |event: &str| {
            told.iter()
                .find(|told| told["event"] == event)
                .unwrap()
                .clone()
        };
        let root = scene.dir.path().canonicalize().unwrap();
        let args = json!({"file_path": "a.txt", "content": "hello"});
        let id = about("before_tool_call")["tool"]["call_id"].clone();
        let name = agent.workspace().config().agent_id();
        // Under the names of other harnesses, too.
        let common = json!({"session": "s", "run": run, "agent": name, "user": agent.owner().user.as_str(), "cwd": root,
            "session_id": "s", "run_id": run, "agent_name": name, "effective_agent_name": name});
        let with = |event: &str, more: Value| {
            let mut all = common.clone();
            (all["event"], all["hook_event_name"]) = (event.into(), event.into());
            all.as_object_mut()
                .unwrap()
                .extend(more.as_object().unwrap().clone());
            all
        };
        let tool = json!({"name": "write_file", "called_as": "write_file", "call_id": id, "args": args, "input": args,
            "raw_args": args, "paths": ["a.txt"]});
        assert_eq!(
            about("prompt_submit"),
            with("prompt_submit", json!({"prompt": "go"}))
        );
        assert_eq!(
            about("session_start"),
            with("session_start", json!({"trigger": "new"}))
        );
        assert_eq!(
            about("run_start"),
            with("run_start", json!({"trigger": "input"}))
        );
        let elsewhere = json!({"tool": tool, "hook_event_name": "before_tool_dispatch", "tool_name": "write_file",
            "tool_call_id": id, "tool_input": args});
        assert_eq!(
            about("before_tool_call"),
            with("before_tool_call", elsewhere)
        );
        let rule = "approvals: write_file: true";
        let want = json!({"tool": tool, "rule": rule, "tool_name": "write_file", "tool_call_id": id, "tool_input": args});
        let want = with("permission_request", want);
        assert_eq!(about("permission_request"), want);
        let end = json!({"outcome": "completed", "reason": null, "text": "done"});
        assert_eq!(about("run_end"), with("run_end", end));
        let after = &about("after_tool_call")["tool"];
        assert_eq!(
            (&after["status"], &after["cut"]),
            (&json!("ok"), &json!(false))
        );
        assert!(
            after["result"].as_str().unwrap().contains("a.txt"),
            "{after}"
        );
        let asked = &about("before_model_call")["model"];
        assert_eq!(
            (&asked["name"], &asked["step"], &asked["messages"]),
            (&json!("anthropic:x"), &json!(1), &json!(1))
        );
        assert_eq!(asked["last"], "go");
        let answered = &about("after_model_call")["model"];
        assert_eq!(
            answered["calls"],
            json!([{"name": "write_file", "call_id": id, "args": args}])
        );
    });
}

#[test]
fn a_compaction_and_a_parked_run_are_told() {
    let scene = Scene::of(FakeModel::start_with(|request| {
        match request.result_count() {
            _ if String::from_utf8_lossy(&request.body).contains("exactly these sections") => {
                reply().text("## Intent\nSay much.\n## State\nMuch was said.\n## Next steps\nNone.")
            }
            0 => reply().text("words upon words ".repeat(400)),
            _ => reply().text("done"),
        }
    }));
    scene.hook(
        "log",
        "before_compaction, after_compaction",
        "cat >> told.jsonl",
        "matcher: ^manual$",
    );
    block_on(async {
        let agent = scene.agent().await;
        let mut chat = agent.session(session("s"));
        for _ in 0..3 {
            chat.run(text("go"), RunOptions::default()).await.unwrap();
        }
        let made = chat
            .compact(None, RunOptions::default())
            .await
            .unwrap()
            .unwrap();
        let told = told(&scene.path("told.jsonl"));
        assert_eq!(events(&told), ["before_compaction", "after_compaction"]);
        assert_eq!(
            (&told[0]["compaction"]["cause"], &told[0]["run"]),
            (&json!("manual"), &Value::Null)
        );
        assert_eq!(told[1]["compaction"]["after_tokens"], made.after_tokens);
        // A no keeps all of it.
        scene.hook("log", "before_compaction", "exit 2", "");
        let agent = scene.agent().await;
        let mut chat = agent.session(session("s"));
        for _ in 0..3 {
            chat.run(text("go"), RunOptions::default()).await.unwrap();
        }
        assert_eq!(
            chat.compact(None, RunOptions::default()).await.unwrap(),
            None
        );
    });
    let scene = Scene::new(writes());
    scene.put(
        "agent.yaml",
        "memory: {flush: false}\napprovals: {write_file: true}\n",
    );
    scene.hook("log", "notification, run_end", "cat >> told.jsonl", "");
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(ran.report.unwrap().outcome, RunOutcome::Parked);
        let told = told(&scene.path("told.jsonl"));
        assert_eq!(events(&told), ["notification"]);
        assert_eq!(
            told[0]["notification"],
            json!({"kind": "permission", "text": "a call waits for a decision"})
        );
    });
}

#[test]
fn a_hook_is_asked_only_about_what_its_matcher_finds() {
    for (events, matcher, asked) in [
        ("before_tool_call", "^write_file$", 1),
        ("before_tool_call", "^Write$", 1),
        ("before_tool_call", "^read", 0),
        ("before_model_call", "^anthropic:", 2),
        ("before_model_call", "gpt", 0),
        ("prompt_submit", "^go$", 1),
        ("prompt_submit", "stop", 0),
        ("run_end", "completed", 1),
        ("run_failed", ".", 0),
        ("Stop", "message", 1),
        ("session_start", "new", 1),
        ("session_start", "resume", 0),
    ] {
        let scene = Scene::new(writes());
        scene.hook(
            "log",
            events,
            "cat >> told.jsonl",
            &format!("matcher: '{matcher}'"),
        );
        block_on(async {
            let ran = scene.run().await;
            assert_eq!(ran.report.unwrap().outcome, RunOutcome::Completed);
            assert_eq!(
                told(&scene.path("told.jsonl")).len(),
                asked,
                "{events} {matcher}"
            );
            assert_eq!(hook_runs(&ran.lines).len(), asked, "{events} {matcher}");
        });
    }
}

#[test]
fn a_guard_is_told_one_spelling_of_parameters_and_paths() {
    let guard = "python3 -c 'import json, sys\nt = json.load(sys.stdin)[\"tool\"]\nt.pop(\"call_id\")\nopen(\"told.jsonl\", \"a\").write(json.dumps(t) + chr(10))'";
    let calls = [
        ("delete_file", json!({"path": "./production/db"})),
        ("delete_file", json!({"filename": "/production//db"})),
        ("delete_file", json!({"file_path": "link/db"})),
        (
            "execute",
            json!({"cmd": "rm ../production/db", "workdir": "./notes/"}),
        ),
        ("execute", json!({"command": "cd production; rm db"})),
    ];
    let scene = Scene::new(Vec::new());
    scene.put("production/db", "x");
    scene.put("notes/x", "x");
    std::os::unix::fs::symlink("production", scene.path("link")).unwrap();
    scene.hook("guard", "before_tool_call", guard, "");
    block_on(async {
        let agent = agent_with_host(scene.dir.path(), answers(|_, _, _| Says::Never)).await;
        for (name, args) in &calls {
            let nobody = ApprovalPolicy::DenyAll;
            let cancel = CancellationToken::new();
            agent
                .sessionless()
                .call_tool(name, args.clone(), &nobody, cancel)
                .await;
            scene.put("production/db", "x");
        }
    });
    let heard = told(&scene.path("told.jsonl"));
    let tool = |name: &str, args: Value, raw: usize, paths: Value| json!({"name": name, "called_as": name, "args": args, "input": args, "raw_args": calls[raw].1, "paths": paths});
    let plain = json!({"file_path": "production/db"});
    let removed = json!({"command": "rm ../production/db", "cwd": "notes"});
    assert_eq!(
        heard,
        [
            tool("delete_file", plain.clone(), 0, json!(["production/db"])),
            tool("delete_file", plain, 1, json!(["production/db"])),
            tool(
                "delete_file",
                json!({"file_path": "link/db"}),
                2,
                json!(["production/db"])
            ),
            tool("execute", removed, 3, json!(["notes", "production/db"])),
            tool(
                "execute",
                json!({"command": "cd production; rm db"}),
                4,
                json!([
                    ".",
                    "db",
                    "production",
                    "production/db",
                    "production/production"
                ])
            ),
        ]
    );
}
