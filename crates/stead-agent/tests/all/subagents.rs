//! The place for tests of subagents: own sessions, parallel and background tasks, inherited
//! restrictions, isolated files, result schemas, budgets and waking the parent.

use crate::support::{agent, block_on, journal, listening, results, session, text};
use futures_util::stream::BoxStream;
use futures_util::{StreamExt, stream};
use serde_json::{Value, json};
use std::borrow::Cow;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stead_agent::{RunOptions, TaskRecord, TaskStatus};
use stead_core::{
    Block, CallEstimate, Entry, Message, ResultStatus, RunOutcome, StopReason, ToolCall, Usage,
};
use stead_model::{Delta, Model, ModelError, ModelFacts, Reply, Request};

/// What a model answers.
pub(crate) enum Says {
    Text(String),
    Calls(Vec<(&'static str, Value)>),
    Never,
    Panics,
}

/// A model that answers by what it is asked: the first words of the conversation, and how often it
/// answered in it.
pub(crate) struct Answers(Box<Decides>);

type Decides = dyn Fn(&str, usize, &Request) -> Says + Send + Sync;

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Answers")
    }
}

pub(crate) fn answers(
    f: impl Fn(&str, usize, &Request) -> Says + Send + Sync + 'static,
) -> Arc<dyn Model> {
    Arc::new(Answers(Box::new(f)))
}

impl Model for Answers {
    fn facts(&self) -> &ModelFacts {
        static FACTS: ModelFacts = ModelFacts::unknown(Cow::Borrowed("test:answers"));
        &FACTS
    }

    fn stream<'a>(&'a self, request: &'a Request) -> BoxStream<'a, Result<Delta, ModelError>> {
        let task = request
            .messages
            .iter()
            .find_map(|message| match &**message {
                Message::User { .. } => Some(message.text()),
                Message::Assistant { .. } | Message::Tool { .. } => None,
            });
        let said = request
            .messages
            .iter()
            .filter(|message| matches!(&***message, Message::Assistant { .. }))
            .count();
        let content = match (self.0)(&task.unwrap_or_default(), said, request) {
            Says::Text(text) => vec![Block::text(text)],
            Says::Calls(calls) => calls
                .into_iter()
                .enumerate()
                .map(|(i, (name, args))| {
                    let id = format!("c{said}_{i}");
                    Block::ToolCall(ToolCall {
                        id,
                        name: name.to_owned(),
                        args,
                        invalid: None,
                        signature: None,
                    })
                })
                .collect(),
            Says::Never => return stream::pending().boxed(),
            Says::Panics => panic!("a model that panics"),
        };
        let stop = match content
            .iter()
            .any(|block| matches!(block, Block::ToolCall(_)))
        {
            true => StopReason::ToolUse,
            false => StopReason::EndTurn,
        };
        let usage = Usage {
            input_tokens: 100,
            output_tokens: 10,
            ..Usage::default()
        };
        let reply = Reply {
            content,
            usage,
            stop,
            model: self.name().to_owned(),
        };
        stream::iter([Ok(Delta::Done(Box::new(reply)))]).boxed()
    }
}

fn task(agent: &str, prompt: &str) -> (&'static str, Value) {
    (
        "task",
        json!({"agent": agent, "description": prompt, "prompt": prompt}),
    )
}

/// The records of a session's tasks, as the file has them.
pub(crate) fn records(dir: &Path, of: &str) -> Vec<TaskRecord> {
    let path = dir.join(format!("agents/main/tasks/{of}.json"));
    let all: std::collections::BTreeMap<String, TaskRecord> =
        serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let mut all: Vec<TaskRecord> = all.into_values().collect();
    all.sort_by(|a, b| a.description.cmp(&b.description));
    all
}

fn standings(records: &[TaskRecord]) -> Vec<(&str, &'static str)> {
    records
        .iter()
        .map(|record| (record.description.as_str(), record.status_text()))
        .collect()
}

fn workspace() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("AGENTS.md"), "You lead.").unwrap();
    dir
}

#[test]
fn a_task_is_worked_on_in_a_session_of_its_own_and_its_result_comes_back() {
    let dir = workspace();
    let model = answers(|task_, said, _| match (task_, said) {
        ("lead", 0) => Says::Calls(vec![task("general-purpose", "count the files")]),
        ("lead", _) => Says::Text("there are two".into()),
        ("count the files", 0) => Says::Calls(vec![("ls", json!({}))]),
        (_, _) => Says::Text("two files".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let (options, heard) = listening();
        let report = agent
            .session(session("s"))
            .run(text("lead"), options)
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "there are two")
        );
        let (lines, state) = journal(&agent, &session("s")).await;
        let (_, status, said) = results(&lines).remove(0);
        assert!(
            status == ResultStatus::Ok
                && said.contains("status: completed")
                && said.ends_with("two files"),
            "{said}"
        );
        let record = &records(dir.path(), "s")[0];
        assert_eq!(
            (record.status, record.result.as_deref()),
            (TaskStatus::Completed, Some("two files"))
        );
        assert_eq!(state.told.iter().collect::<Vec<_>>(), [&record.task_id]);
        let (_, child) = journal(&agent, &record.sub_session_id).await;
        let spawned = child.spawned.unwrap();
        assert_eq!(
            (spawned.by, spawned.depth, spawned.agent.as_str()),
            (session("s"), 1, "general-purpose")
        );
        let nested = heard
            .lock()
            .unwrap()
            .iter()
            .filter(|event| event.source == ["general-purpose"])
            .count();
        assert!(nested >= 5, "{nested} events of the child were heard");
    });
}

#[test]
fn ten_children_and_what_becomes_of_each() {
    let dir = workspace();
    std::fs::write(
        dir.path().join("agent.yaml"),
        "approvals: {delete_file: true}\npolicy: {max_concurrent_subagents: 16}\n",
    )
    .unwrap();
    std::fs::write(dir.path().join("x.txt"), "x").unwrap();
    std::fs::create_dir(dir.path().join("subagents")).unwrap();
    let short = "---\ndescription: Has little time.\npolicy: {max_steps: 1}\nworkspace: {mode: shared}\n---\nBe quick.";
    std::fs::write(dir.path().join("subagents/short.md"), short).unwrap();
    let model = answers(|task_, said, _| match (task_, said) {
        ("lead", 0) => {
            let plain =
                (0..6).map(|i| task("general-purpose", ["t0", "t1", "t2", "t3", "t4", "t5"][i]));
            let odd = [
                task("general-purpose", "w panics"),
                (
                    "task",
                    json!({"agent": "general-purpose", "description": "x hangs", "prompt": "x hangs", "background": true}),
                ),
                task("short", "y is too slow"),
                task("general-purpose", "z asks"),
            ];
            Says::Calls(plain.chain(odd).collect())
        }
        ("lead", _) => Says::Never,
        ("w panics", _) => Says::Panics,
        ("x hangs", _) => Says::Never,
        ("y is too slow", _) => Says::Calls(vec![("ls", json!({}))]),
        ("z asks", 0) => Says::Calls(vec![("delete_file", json!({"file_path": "x.txt"}))]),
        (name, _) => Says::Text(format!("{name} done")),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let cancel = tokio_util::sync::CancellationToken::new();
        let options = RunOptions {
            cancel: cancel.clone(),
            ..RunOptions::default()
        };
        let id = session("s");
        let mut live = agent.session(id.clone());
        let mut run = tokio::task::JoinSet::new();
        run.spawn(async move {
            live.run(text("lead"), options)
                .await
                .map(|report| report.outcome)
        });
        let settled = |records: &[TaskRecord]| {
            let count = |standing: fn(&TaskRecord) -> bool| {
                records.iter().filter(|record| standing(record)).count()
            };
            count(|record| record.status.is_final()) == 8
                && count(|record| record.awaiting_confirm) == 1
        };
        let path = dir.path().join("agents/main/tasks/s.json");
        while !path.exists() || !settled(&records(dir.path(), "s")) {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        // The parent is at its second question by now, or soon.
        let begun = Instant::now();
        cancel.cancel();
        assert_eq!(
            run.join_next().await.unwrap().unwrap().unwrap(),
            RunOutcome::Cancelled
        );
        assert!(
            begun.elapsed() < Duration::from_secs(2),
            "took {:?}",
            begun.elapsed()
        );
        let all = records(dir.path(), "s");
        let mut expected: Vec<(&str, &str)> = ["t0", "t1", "t2", "t3", "t4", "t5"]
            .map(|name| (name, "completed"))
            .to_vec();
        expected.extend([
            ("w panics", "failed"),
            ("x hangs", "cancelled"),
            ("y is too slow", "failed"),
            ("z asks", "parked"),
        ]);
        assert_eq!(standings(&all), expected);
        let of = |name: &str| {
            all.iter()
                .find(|record| record.description == name)
                .unwrap()
        };
        assert!(
            of("y is too slow")
                .error_message
                .as_ref()
                .unwrap()
                .starts_with("step_limit")
        );
        // Another process looks: nothing changes, nothing runs, and the file is still there.
        let again =
            crate::support::agent(dir.path(), answers(|_, _, _| Says::Text("seen".into()))).await;
        again
            .session(id.clone())
            .run(text("go on"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(standings(&records(dir.path(), "s")), expected);
        assert!(dir.path().join("x.txt").exists());
        let (lines, _) = journal(&again, &id).await;
        // Each ending was told once: by the call's result, or by the notice of the second run.
        let whole = format!("{lines:?}");
        for name in ["t0 done", "t5 done", "it failed unexpectedly", "step_limit"] {
            assert_eq!(whole.matches(name).count(), 1, "{name} in {whole}");
        }
    });
}

#[test]
fn what_takes_too_long_goes_on_in_the_background_and_is_told_once() {
    let dir = workspace();
    let gate = Arc::new(tokio::sync::Notify::new());
    let asked = Arc::new(AtomicUsize::new(0));
    let open = gate.clone();
    let count = asked.clone();
    let model = answers(move |task_, said, request| match (task_, said) {
        ("lead", 0) => Says::Calls(vec![(
            "task",
            json!({"agent": "general-purpose", "description": "slow", "prompt": "slow", "timeout": 1, "label": "snail"}),
        )]),
        ("lead", 1) => {
            open.notify_one();
            Says::Text("not yet".into())
        }
        ("lead", _) => {
            count.fetch_add(1, Ordering::Relaxed);
            let last = request.messages.last().unwrap().text();
            assert!(
                last.contains("state=\"completed\"") && last.contains("slow but done"),
                "{last}"
            );
            Says::Text("now it is".into())
        }
        ("slow", 0) => Says::Calls(vec![("wait_here", json!({}))]),
        (_, _) => Says::Text("slow but done".into()),
    });
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    struct Nothing {}
    let wait = stead_tools::function_tool(
        "wait_here",
        "Waits.",
        stead_core::Risk::READS,
        move |_, _: Nothing| {
            let gate = gate.clone();
            async move {
                gate.notified().await;
                Ok(stead_tools::Output::text("waited"))
            }
        },
    );
    block_on(async {
        let agent =
            crate::support::agent_on(dir.path(), model, Arc::new(stead_store::OsDisk), vec![wait])
                .await;
        let report = agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.text, "now it is");
        assert_eq!(asked.load(Ordering::Relaxed), 1);
        let (lines, state) = journal(&agent, &session("s")).await;
        assert_eq!(state.told.len(), 1);
        let (_, _, said) = results(&lines).remove(0);
        assert!(
            said.contains("continues in the background") && said.contains("label: snail"),
            "{said}"
        );
    });
}

#[test]
fn children_are_bound_by_what_binds_their_parent() {
    let dir = workspace();
    std::fs::write(
        dir.path().join("agent.yaml"),
        "permission_mode: explore\npolicy: {max_subagent_depth: 2}\n",
    )
    .unwrap();
    let heard = Arc::new(Mutex::new(Vec::new()));
    let sink = heard.clone();
    let model = answers(move |task_, said, request| {
        if said > 0 {
            sink.lock()
                .unwrap()
                .push(request.messages.last().unwrap().text());
            return Says::Text("done".into());
        }
        match task_ {
            "lead" => Says::Calls(vec![task("general-purpose", "one")]),
            "one" => Says::Calls(vec![
                ("write_file", json!({"file_path": "a", "content": "a"})),
                task("general-purpose", "two"),
            ]),
            _ => Says::Calls(vec![task("general-purpose", "three")]),
        }
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        let all = heard.lock().unwrap().join("\n");
        assert!(
            all.contains("mode explore: only reads are allowed"),
            "{all}"
        );
        assert!(all.contains("2 hands at most"), "{all}");
        assert!(!dir.path().join("a").exists());
    });
}

#[test]
fn who_works_apart_sees_everything_and_changes_nothing_of_it() {
    let dir = workspace();
    std::fs::write(dir.path().join("notes.txt"), "old").unwrap();
    std::fs::create_dir(dir.path().join("subagents")).unwrap();
    std::fs::write(
        dir.path().join("subagents/apart.md"),
        "---\ndescription: Works apart.\n---\nWork.",
    )
    .unwrap();
    let model = answers(|task_, said, request| match (task_, said) {
        ("lead", 0) => Says::Calls(vec![task("apart", "work")]),
        ("work", 0) => Says::Calls(vec![(
            "overwrite_file",
            json!({"file_path": "notes.txt", "content": "new"}),
        )]),
        ("work", 1) => Says::Calls(vec![("read_file", json!({"file_path": "notes.txt"}))]),
        (_, _) => Says::Text(request.messages.last().unwrap().text()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let report = agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        assert!(report.text.contains("new"), "{}", report.text);
        assert_eq!(
            std::fs::read_to_string(dir.path().join("notes.txt")).unwrap(),
            "old"
        );
        let child = records(dir.path(), "s")[0].sub_session_id.clone();
        let own = dir
            .path()
            .join(format!("agents/main/subagents/{child}/files/notes.txt"));
        assert_eq!(std::fs::read_to_string(own).unwrap(), "new");
        // A person who writes to the subagent attaches the files that it sees.
        let mut child = agent.session(child);
        let attached = vec![
            Block::text("@notes.txt"),
            Block::text("Attached file notes.txt:\n```\nnew\n```"),
        ];
        assert_eq!(child.input("@notes.txt").await.blocks, attached);
        child.load().await.unwrap();
        assert_eq!(child.input("@notes.txt").await.blocks, attached);
    });
}

#[test]
fn a_result_must_fit_its_schema_and_is_asked_for_again() {
    let dir = workspace();
    std::fs::create_dir(dir.path().join("subagents")).unwrap();
    let counter = "---\ndescription: Counts.\nresult_schema: {type: object, required: [count], properties: {count: {type: integer}}}\n---\nCount.";
    std::fs::write(dir.path().join("subagents/counter.md"), counter).unwrap();
    let model = answers(
        |task_, said, _| match (task_.lines().next().unwrap_or_default(), said) {
            ("lead", 0) => Says::Calls(vec![task("counter", "count"), task("counter", "never")]),
            ("count", 0) => Says::Text("three".into()),
            ("count", 1) => Says::Text("{\"count\": \"three\"}".into()),
            ("count", _) => Says::Text("```json\n{\"count\": 3}\n```".into()),
            ("never", _) => Says::Text("no".into()),
            (_, _) => Says::Text("done".into()),
        },
    );
    block_on(async {
        let agent = agent(dir.path(), model).await;
        agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        let all = records(dir.path(), "s");
        assert_eq!(
            standings(&all),
            [("count", "completed"), ("never", "failed")]
        );
        assert_eq!(all[0].result.as_deref(), Some("{\"count\":3}"));
        assert!(
            all[1]
                .error_message
                .as_ref()
                .unwrap()
                .contains("it is no JSON")
        );
    });
}

#[test]
fn one_that_was_done_can_be_gone_on_with() {
    let dir = workspace();
    let model = answers(|task_, said, request| match (task_, said) {
        ("lead", 0) => Says::Calls(vec![(
            "task",
            json!({"agent": "general-purpose", "description": "d", "prompt": "remember 7", "label": "memory"}),
        )]),
        ("lead", 1) => Says::Calls(vec![(
            "agent_send",
            json!({"to": "memory", "message": "what was it?"}),
        )]),
        ("lead", 2) => Says::Calls(vec![
            ("agent_list", json!({})),
            ("task_list", json!({})),
            ("agent_send", json!({"to": "nobody", "message": "x"})),
        ]),
        ("remember 7", 0) => Says::Text("noted".into()),
        ("remember 7", _) => Says::Text(format!("{} messages, it was 7", request.messages.len())),
        (_, _) => Says::Text("done".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let said: Vec<String> = results(&lines)
            .into_iter()
            .map(|(_, _, said)| said)
            .collect();
        assert!(said[1].ends_with("3 messages, it was 7"), "{}", said[1]);
        assert_eq!(said[2].lines().count(), 1, "{}", said[2]);
        assert_eq!(said[3].lines().count(), 2, "{}", said[3]);
        assert!(
            said[4].starts_with("there is no task \"nobody\"; there are: task_"),
            "{}",
            said[4]
        );
    });
}

/// What a process holds.
#[derive(Debug, Clone, Copy)]
struct Held {
    resident_kb: u64,
    files: usize,
    tasks: usize,
}

impl Held {
    fn now() -> Self {
        let pages = std::fs::read_to_string("/proc/self/statm").unwrap();
        let pages: u64 = pages.split_whitespace().nth(1).unwrap().parse().unwrap();
        let tasks = tokio::runtime::Handle::current()
            .metrics()
            .num_alive_tasks();
        Self {
            resident_kb: pages * 4,
            files: std::fs::read_dir("/proc/self/fd").unwrap().count(),
            tasks,
        }
    }
}

// In a process of its own, whose memory nobody else's work is in
#[test]
fn a_thousand_children_in_twenty_waves_leave_nothing_behind() {
    const NAME: &str = "subagents::a_thousand_children_in_twenty_waves_leave_nothing_behind";
    /// The conversation of the parent itself grows by 750 results in between.
    const MAX_GROWTH_KB: u64 = 12 * 1024;
    if stead_testkit::child_role().is_none() {
        let none: [(&str, &str); 0] = [];
        let ended = stead_testkit::Child::spawn(NAME, none).wait(4 * crate::support::DEADLINE);
        assert_eq!(ended.death, stead_testkit::Death::Exit(0), "{ended}");
        return;
    }
    let dir = workspace();
    let settings =
        "disable: [compaction]\npolicy: {max_concurrent_subagents: 50, parallel_tool_calls: 50}\n";
    std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
    let held: Arc<Mutex<Vec<Held>>> = Arc::default();
    let waves = held.clone();
    let model = answers(move |task_, said, _| match (task_, said) {
        ("lead", said) => {
            waves.lock().unwrap().push(Held::now());
            match said {
                20 => Says::Text("done".into()),
                _ => Says::Calls((0..50).map(|_| task("general-purpose", "short")).collect()),
            }
        }
        (_, _) => Says::Text("yes".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let begun = Instant::now();
        let before = Held::now();
        let report = agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed, "{:?}", report.reason);
        eprintln!("a child took {:.2} ms", begun.elapsed().as_secs_f64());
        let (lines, state) = journal(&agent, &session("s")).await;
        assert_eq!(state.told.len(), 1000);
        assert_eq!(
            results(&lines)
                .iter()
                .filter(|(_, status, _)| *status == ResultStatus::Ok)
                .count(),
            1000
        );
        assert!(records(dir.path(), "s").len() <= 101, "records are bounded");
        let held = held.lock().unwrap().clone();
        let warm = held[5];
        let last = held[20];
        let growth_kb = last.resident_kb.saturating_sub(warm.resident_kb);
        eprintln!(
            "{} KB after wave 5, {growth_kb} KB more after wave 20",
            warm.resident_kb
        );
        assert!(growth_kb <= MAX_GROWTH_KB, "{held:#?}");
        // Nobody is left at work, and no journal open; the index of sessions may still be written.
        agent.sessions().flush().await;
        let end = Instant::now() + crate::support::DEADLINE;
        while Held::now().tasks > before.tasks || Held::now().files > before.files + 2 {
            assert!(
                Instant::now() < end,
                "{before:?} before, {:?} at last",
                Held::now()
            );
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    });
}

#[test]
fn children_spend_from_their_parents_budget_and_together_never_more() {
    const LIMIT: u64 = 60_000;
    let dir = workspace();
    let settings =
        format!("budget: {{run_tokens: {LIMIT}}}\npolicy: {{max_concurrent_subagents: 8}}\n");
    std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
    // Each of them would go on for good.
    let model = answers(|task_, said, _| match (task_, said) {
        ("lead", 0) => Says::Calls(
            (0..8)
                .map(|_| task("general-purpose", "for good"))
                .collect(),
        ),
        ("lead", _) => Says::Text("done".into()),
        (_, said) => Says::Calls(vec![("ls", json!({"path": format!("none{said}")}))]),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let (options, heard) = listening();
        let report = agent
            .session(session("s"))
            .run(text("lead"), options)
            .await
            .unwrap();
        // The last question of the parent may not be paid for either.
        assert!(
            matches!(report.outcome, RunOutcome::Completed | RunOutcome::Budget),
            "{report:?}"
        );
        let all = records(dir.path(), "s");
        assert!(
            all.iter().all(|record| record.status_text() == "failed"),
            "{:?}",
            standings(&all)
        );
        assert!(all.iter().all(|record| {
            record
                .error_message
                .as_ref()
                .unwrap()
                .starts_with("budget:")
        }));
        let used: u64 = heard
            .lock()
            .unwrap()
            .iter()
            .filter_map(|event| match &event.kind {
                stead_core::EventKind::ModelEnded { usage, .. } => Some(usage.total_tokens()),
                _ => None,
            })
            .sum();
        assert!(used <= LIMIT && used > 0, "{used} tokens");
    });
}

// What children spent is not forgotten with the process that paid for it.
#[test]
fn what_children_spent_counts_in_the_next_process() {
    let dir = workspace();
    std::fs::write(
        dir.path().join("agent.yaml"),
        "budget: {session_tokens: 1000000}\n",
    )
    .unwrap();
    let model = answers(|task_, said, _| match (task_, said) {
        ("lead", 0) => Says::Calls(vec![task("general-purpose", "work")]),
        ("lead", _) => Says::Text("done".into()),
        (_, said) if said < 5 => Says::Calls(vec![("ls", json!({"path": format!("none{said}")}))]),
        (_, _) => Says::Text("worked".into()),
    });
    block_on(async {
        let first = agent(dir.path(), model).await;
        first
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        let spent = records(dir.path(), "s")[0].spent.tokens;
        let own = journal(&first, &session("s")).await.1.usage.total_tokens();
        assert_eq!((own, spent), (220, 660));
        let again = agent(dir.path(), answers(|_, _, _| Says::Never)).await;
        let mut later = again.session(session("s"));
        later.load().await.unwrap();
        let budget = later.budget().await.unwrap();
        let asks = |tokens| CallEstimate {
            input_tokens: tokens,
            answer_tokens: 0,
            thinking_tokens: 0,
            price: None,
        };
        let left = 1_000_000 - own - spent;
        assert!(budget.reserve(asks(left + 1)).await.is_err());
        budget
            .reserve(asks(left))
            .await
            .unwrap()
            .release()
            .await
            .unwrap();
    });
}

#[test]
fn a_task_that_ends_while_its_parent_sleeps_can_wake_it_once() {
    let dir = workspace();
    let held = Arc::new(tokio::sync::Semaphore::new(0));
    let gate = held.clone();
    let wait = crate::support::TestTool::make("hold", stead_core::Risk::READS, move |_, _| {
        let gate = gate.clone();
        async move {
            gate.acquire().await.unwrap().forget();
            Ok(stead_tools::Output::text("held"))
        }
    });
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = asked.clone();
    let model = answers(move |task_, said, request| match (task_, said) {
        ("lead", 0) => {
            let (name, mut order) = task("general-purpose", "count the files");
            order["background"] = json!(true);
            Says::Calls(vec![(name, order)])
        }
        ("lead", _) => {
            log.lock()
                .unwrap()
                .push(request.messages.last().unwrap().text());
            Says::Text(["I go on", "now I know"][said - 1].into())
        }
        ("count the files", 0) => Says::Calls(vec![("hold", json!({}))]),
        (_, _) => Says::Text("two files".into()),
    });
    block_on(async {
        let agent =
            crate::support::agent_on(dir.path(), model, Arc::new(stead_store::OsDisk), vec![wait])
                .await;
        let mut live = agent.session(session("s"));
        let leave = || RunOptions {
            background_tasks: stead_agent::BackgroundTaskPolicy::Detach,
            ..RunOptions::default()
        };
        let report = live.run(text("lead"), leave()).await.unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "I go on")
        );
        assert_eq!(
            (live.subagents().running_count(), live.has_finished_tasks()),
            (1, false)
        );
        let early = live.wake(leave()).await;
        assert!(
            matches!(early, Err(stead_agent::AgentError::NoFinishedTasks(_))),
            "{early:?}"
        );
        let mut ends = live.subagents().watch_finished();
        held.add_permits(1);
        ends.changed().await.unwrap();
        assert!(live.has_finished_tasks());
        let (options, heard) = listening();
        let report = live
            .wake(RunOptions {
                background_tasks: stead_agent::BackgroundTaskPolicy::Detach,
                ..options
            })
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str(), report.steps),
            (RunOutcome::Completed, "now I know", 1)
        );
        crate::support::assert_well_formed(&heard.lock().unwrap());
        assert!(!live.has_finished_tasks());
        let again = live.wake(leave()).await;
        assert!(
            matches!(again, Err(stead_agent::AgentError::NoFinishedTasks(_))),
            "{again:?}"
        );
        let (lines, state) = journal(&agent, &session("s")).await;
        let wakes = lines
            .iter()
            .filter(|line| matches!(&line.entry, stead_core::Entry::User(input) if input.cause == stead_core::RunCause::Wake));
        assert_eq!(
            (
                wakes.count(),
                state.runs,
                state.title.as_str(),
                live.rewind_points().len()
            ),
            (1, 2, "lead", 1)
        );
    });
    let asked = asked.lock().unwrap();
    assert_eq!(asked.len(), 2);
    assert!(
        asked[1].contains("two files") && asked[1].contains("<system_reminder>"),
        "{}",
        asked[1]
    );
}

/// An agent may write the definitions of its subagents.
#[test]
fn a_subagent_has_no_more_steps_than_the_agent_that_delegates() {
    let dir = workspace();
    std::fs::write(dir.path().join("agent.yaml"), "policy: {max_steps: 3}\n").unwrap();
    std::fs::create_dir_all(dir.path().join("subagents")).unwrap();
    let greedy = "---\ndescription: Works on.\npolicy: {max_steps: 100000}\n---\nGo on.";
    std::fs::write(dir.path().join("subagents/greedy.md"), greedy).unwrap();
    let model = answers(|name, said, _| match (name, said) {
        ("lead", 0) => Says::Calls(vec![task("greedy", "work")]),
        ("lead", _) => Says::Text("done".into()),
        (_, _) => Says::Calls(vec![("ls", json!({}))]),
    });
    block_on(async {
        let agent = agent(dir.path(), model).await;
        let mut lead = agent.session(session("s"));
        lead.run(text("lead"), RunOptions::default()).await.unwrap();
        let listed = agent.sessions().list_all().await.unwrap();
        let child = listed.iter().find(|summary| summary.parent.is_some());
        let lines = agent.sessions().read(&child.unwrap().id).await.unwrap();
        let steps = lines
            .iter()
            .filter(|line| matches!(line.entry, Entry::Model(_)));
        assert_eq!(steps.count(), 3);
    });
}
