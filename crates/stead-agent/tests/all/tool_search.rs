//! The place for tests of tools that a model is not shown: they are found with `tool_search`, called
//! with `use_tool`, as an action of their group, or by their own names, and rules, hooks, answers and
//! journals know them by their own names whichever way they were called.

use crate::support::{TestTool, agent, agent_on, block_on, journal, model, results, session, text};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use stead_agent::{AfterAnswer, Agent, ApprovalAnswer, ApprovalReply, RunOptions, RunReport};
use stead_core::{Block, Entry, Exposure, JournalLine, ResultStatus, Risk, RunOutcome};
use stead_store::{LockWait, OsDisk};
use stead_testkit::{FakeAnswer, FakeModel, FakeWire, RecordedRequest, reply};
use stead_tools::{Output, Tool, ToolError};

/// Runs one input in `dir`; the model gives these answers and then ends.
fn run_in(
    dir: &Path,
    answers: Vec<FakeAnswer>,
) -> (RunReport, Vec<JournalLine>, Vec<RecordedRequest>) {
    let server = FakeModel::start(answers);
    block_on(async {
        let agent = agent(dir, model(&server, FakeWire::Chat)).await;
        let (report, lines) = run(&agent).await;
        assert_eq!(server.rejections(), Vec::new());
        (report, lines, server.requests())
    })
}

async fn run(agent: &Arc<Agent>) -> (RunReport, Vec<JournalLine>) {
    let mut chat = agent.session(session("s"));
    let report = chat.run(text("go"), RunOptions::default()).await.unwrap();
    let (lines, _) = journal(agent, &session("s")).await;
    (report, lines)
}

/// The calls on record: name and arguments.
fn calls(lines: &[JournalLine]) -> Vec<(String, Value)> {
    let of_line = |line: &JournalLine| match &line.entry {
        Entry::Model(reply) => {
            let call = |block: &Block| match block {
                Block::ToolCall(call) => Some((call.name.clone(), call.args.clone())),
                _ => None,
            };
            reply.content.iter().filter_map(call).collect()
        }
        _ => Vec::new(),
    };
    lines.iter().flat_map(of_line).collect()
}

/// The calls that a request shows: name and arguments.
fn shown_calls(request: &RecordedRequest) -> Vec<(String, Value)> {
    let messages = request.json["messages"].as_array().unwrap();
    let calls = messages
        .iter()
        .filter_map(|message| message["tool_calls"].as_array())
        .flatten();
    calls
        .map(|call| {
            let arguments = call["function"]["arguments"].as_str().unwrap();
            (
                call["function"]["name"].as_str().unwrap().to_owned(),
                serde_json::from_str(arguments).unwrap(),
            )
        })
        .collect()
}

/// The names of the tools that a request shows.
fn shown_tools(request: &RecordedRequest) -> Vec<String> {
    let tools = request.json["tools"].as_array().unwrap();
    let name = |tool: &Value| tool["function"]["name"].as_str().unwrap().to_owned();
    tools.iter().map(name).collect()
}

fn use_tool(name: &str, arguments: Value) -> FakeAnswer {
    reply().call("use_tool", json!({"name": name, "arguments": arguments}))
}

#[test]
fn a_search_gives_schemas_with_an_exact_name_first_and_the_tools_stay_the_same() {
    let dir = tempfile::tempdir().unwrap();
    let search = |query: &str| reply().call("tool_search", json!({"query": query}));
    let (_, lines, requests) = run_in(
        dir.path(),
        vec![
            search("file_info"),
            search("create_task"),
            search("wait for a subagent"),
            search("zzz"),
            reply().text("done"),
        ],
    );
    let found: Vec<String> = results(&lines)
        .into_iter()
        .map(|(_, _, text)| text)
        .collect();
    let first = |text: &str| text.lines().nth(1).unwrap_or_default().to_owned();
    assert_eq!(found[0].lines().count(), 2, "{}", found[0]);
    assert!(first(&found[0]).contains(r#""name":"file_info""#) && found[0].contains("file_path"));
    assert!(
        first(&found[1]).contains(r#""name":"create_task""#),
        "{}",
        found[1]
    );
    assert!(
        first(&found[2]).contains(r#""name":"subagents""#),
        "{}",
        found[2]
    );
    assert!(found[2].lines().count() <= 5, "{}", found[2]);
    assert!(
        found[3].starts_with("No tool matches. There are: "),
        "{}",
        found[3]
    );
    let tools: Vec<&Value> = requests
        .iter()
        .map(|request| &request.json["tools"])
        .collect();
    assert!(tools.iter().all(|shown| *shown == tools[0]));
}

#[test]
fn every_way_to_call_a_tool_is_on_record_as_a_call_of_the_tool() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("a.md"), "one\n").unwrap();
    let info = json!({"file_path": "a.md"});
    let (report, lines, requests) = run_in(
        dir.path(),
        vec![
            use_tool("file_info", info.clone()),
            reply().call("file_info", info.clone()),
            reply().call(
                "use_tool",
                json!({"name": "stat", "arguments": info.to_string()}),
            ),
            reply().call(
                "use_tool",
                json!({"name": "file_info", "file_path": "a.md"}),
            ),
            use_tool("saved_tasks", json!({"action": "list"})),
            use_tool("list_tasks", json!({})),
            reply().call("list_tasks", json!({})),
            reply().call("plan_mode", json!({"action": "enter"})),
            reply().text("done"),
        ],
    );
    assert_eq!(report.outcome, RunOutcome::Completed);
    let recorded = calls(&lines);
    let names: Vec<&str> = recorded.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "file_info",
            "file_info",
            "stat",
            "file_info",
            "list_tasks",
            "list_tasks",
            "list_tasks",
            "plan_enter"
        ]
    );
    assert!(recorded[..4].iter().all(|(_, args)| *args == info));
    assert!(
        results(&lines)
            .iter()
            .all(|(_, status, _)| *status == ResultStatus::Ok),
        "{lines:?}"
    );
    // The model sees the calls in the form in which it can make them.
    let through = |name: &str, arguments: Value| {
        (
            "use_tool".to_owned(),
            json!({"name": name, "arguments": arguments}),
        )
    };
    let mut shown = vec![through("file_info", info); 4];
    shown.extend(vec![through("saved_tasks", json!({"action": "list"})); 3]);
    shown.push(("plan_mode".to_owned(), json!({"action": "enter"})));
    assert_eq!(shown_calls(requests.last().unwrap()), shown);
}

#[test]
fn what_is_wrong_with_arguments_is_told_with_the_schema() {
    let dir = tempfile::tempdir().unwrap();
    let (_, lines, _) = run_in(
        dir.path(),
        vec![
            use_tool("file_info", json!({})),
            use_tool("saved_tasks", json!({"action": "create"})),
            use_tool("saved_tasks", json!({"action": "juggle"})),
            reply().call("use_tool", json!({"arguments": {}})),
            use_tool("use_tool", json!({"name": "file_info"})),
            use_tool("flie_info", json!({})),
            reply().text("done"),
        ],
    );
    let wanted = [
        r#""file_path""#,
        r#""description""#,
        r#""enum":["create","list","get","update","delete"]"#,
        "the required parameter `name` is missing",
        "`name` must be the name of another tool",
        "did you mean `file_info`?",
    ];
    let found = results(&lines);
    assert_eq!(found.len(), wanted.len());
    for ((_, status, text), wanted) in found.iter().zip(wanted) {
        assert_eq!(*status, ResultStatus::Error, "{text}");
        assert!(text.contains(wanted), "{wanted}: {text}");
    }
}

#[test]
fn rules_and_lists_about_a_tool_hold_whichever_way_it_is_called() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("tools.json"),
        r#"{"deny": ["delete_task", "TaskGet"]}"#,
    )
    .unwrap();
    let (_, lines, _) = run_in(
        dir.path(),
        vec![
            use_tool("delete_task", json!({"task_id": "t"})),
            use_tool("saved_tasks", json!({"action": "delete", "task_id": "t"})),
            use_tool("get_task", json!({"task_id": "t"})),
            reply().call("delete_task", json!({"task_id": "t"})),
            use_tool("list_tasks", json!({})),
            reply().text("done"),
        ],
    );
    let statuses: Vec<ResultStatus> = results(&lines)
        .into_iter()
        .map(|(_, status, _)| status)
        .collect();
    let (denied, error, ok) = (ResultStatus::Denied, ResultStatus::Error, ResultStatus::Ok);
    // The group has no such action any more.
    assert_eq!(statuses, [denied, error, denied, denied, ok]);
}

#[test]
fn a_question_is_about_the_tool_itself_and_outlives_the_process() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("agent.yaml"),
        "approvals: {overwrite_file: {decisions: [approve, edit]}}\n",
    )
    .unwrap();
    let args = json!({"file_path": "a.md", "content": "one"});
    let server = FakeModel::start(vec![use_tool("overwrite_file", args), reply().text("done")]);
    block_on(async {
        let first = agent(dir.path(), model(&server, FakeWire::Chat)).await;
        let (report, _) = run(&first).await;
        assert_eq!(report.outcome, RunOutcome::Parked);
        drop(first);
        let agent = agent(dir.path(), model(&server, FakeWire::Chat)).await;
        let asked = agent.open_questions(agent.owner()).list().await.unwrap();
        assert_eq!(asked.len(), 1);
        assert_eq!(asked[0].tool, "overwrite_file");
        let replies = [ApprovalReply {
            id: asked[0].id.clone(),
            args_hash: asked[0].args_hash.clone(),
            answer: ApprovalAnswer::Edit(json!({"file_path": "b.md", "content": "two"})),
        }];
        let mut chat = agent.session(session("s"));
        chat.answer(&replies, "ann", AfterAnswer::Leave, LockWait::No)
            .await
            .unwrap();
        let report = chat.resume(RunOptions::default()).await.unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
    });
    assert!(!dir.path().join("a.md").exists());
    assert_eq!(
        std::fs::read_to_string(dir.path().join("b.md")).unwrap(),
        "two"
    );
}

#[test]
fn a_nested_call_is_unwrapped_too() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("tools.json"), r#"{"deny": ["file_info"]}"#).unwrap();
    let caller = TestTool::make("caller", Risk::READS, |cx, _| async move {
        let mut told = Vec::new();
        for (name, args) in [
            (
                "use_tool",
                json!({"name": "file_info", "arguments": {"file_path": "a.md"}}),
            ),
            (
                "use_tool",
                json!({"name": "saved_tasks", "arguments": {"action": "list"}}),
            ),
        ] {
            let called = cx.calls.call(name, args).await;
            let called = called.map_err(|error| ToolError::RespondToModel(error.to_string()))?;
            told.push(format!("{:?}", called.status));
        }
        Ok(Output::text(told.join(" ")))
    });
    let server = FakeModel::start(vec![
        reply().call("caller", json!({})),
        reply().text("done"),
    ]);
    let lines = block_on(async {
        let agent = agent_on(
            dir.path(),
            model(&server, FakeWire::Chat),
            Arc::new(OsDisk),
            vec![caller],
        )
        .await;
        run(&agent).await.1
    });
    let found = results(&lines);
    assert_eq!(found.last().unwrap().2, "Denied Ok", "{found:?}");
}

#[test]
fn a_tool_that_an_allow_list_names_is_shown_by_its_own_name() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("tools.json"),
        r#"{"allow": ["read_file", "create_task", "plan_enter", "plan_write", "plan_exit", "task", "task_output"]}"#,
    )
    .unwrap();
    let (_, _, requests) = run_in(dir.path(), vec![reply().text("done")]);
    assert_eq!(
        shown_tools(&requests[0]),
        [
            "create_task",
            "delegation_output",
            "plan_enter",
            "plan_exit",
            "plan_write",
            "read_file",
            "task"
        ]
    );
}

#[test]
fn a_profile_chooses_how_many_tools_are_shown() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::create_dir(dir.path().join("profiles")).unwrap();
    let shown = |setting: &str| {
        let text = format!("for: openai\nshown_tools: {setting}\n");
        std::fs::write(dir.path().join("profiles/p.yaml"), text).unwrap();
        let (_, _, requests) = run_in(dir.path(), vec![reply().text("done")]);
        shown_tools(&requests[0])
    };
    assert_eq!(
        shown("few"),
        [
            "edit_file",
            "grep_files",
            "ls",
            "read_file",
            "tool_search",
            "use_tool",
            "write_file"
        ]
    );
    let all = shown("all");
    assert!(
        all.len() > 30 && all.contains(&"delegation_wait".to_owned()),
        "{all:?}"
    );
    assert!(!all.contains(&"tool_search".to_owned()) && !all.contains(&"saved_tasks".to_owned()));
}

#[test]
fn a_changed_list_of_tools_is_told_at_the_end_and_leaves_the_beginning_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    let server = FakeModel::start(vec![
        reply().text("one"),
        reply().text("two"),
        reply().text("three"),
        reply().text("four"),
    ]);
    let extra = |name: &str| -> Arc<dyn Tool> { TestTool::with_exposure(name, Exposure::OnDemand) };
    block_on(async {
        for extras in [vec!["alpha"], vec!["alpha"], vec!["alpha", "beta"], vec![]] {
            let tools = extras.into_iter().map(extra).collect();
            let model = model(&server, FakeWire::Chat);
            let agent = agent_on(dir.path(), model, Arc::new(OsDisk), tools).await;
            run(&agent).await;
        }
    });
    let requests = server.requests();
    let told = |request: &RecordedRequest| -> Vec<String> {
        let messages = request.json["messages"].as_array().unwrap();
        let texts = messages
            .iter()
            .map(|message| message["content"].to_string());
        texts
            .filter(|text| text.contains("found with tool_search"))
            .collect()
    };
    let counts: Vec<usize> = requests.iter().map(|request| told(request).len()).collect();
    assert_eq!(counts, [1, 1, 2, 3]);
    assert!(told(&requests[0])[0].contains("alpha"));
    assert!(told(&requests[2])[1].contains("alpha") && told(&requests[2])[1].contains("beta"));
    assert!(!told(&requests[3])[2].contains("alpha"));
    for pair in requests.windows(2) {
        assert_eq!(pair[0].json["tools"], pair[1].json["tools"]);
        let before = pair[0].json["messages"].as_array().unwrap();
        let after = pair[1].json["messages"].as_array().unwrap();
        assert_eq!(before[..], after[..before.len()]);
    }
}
