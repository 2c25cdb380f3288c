//! The place for tests of subagents in the real binary: kills while tasks run, listing subagent
//! sessions, the benchmark.

use crate::execute::alive;
use crate::support::Folder;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use stead::core::{AgentId, Entry, Redactor, SessionId, SessionState};
use stead::store::{FileSessions, OsDisk, Sessions};

const DEADLINE: Duration = Duration::from_secs(40);
/// Moments at which it is killed, beside the last one.
const MOMENTS: usize = 14;

/// A workspace whose agent hands nine tasks over: three that end, one that asks, three that sleep
/// in a command, and two that wait for a place; one after another, so that these are the last.
fn workspace(sleep: &str) -> Folder {
    let folder = Folder::new();
    folder.put(
        "agent.yaml",
        &format!(
            "model: scripted:lead.yaml\npolicy: {{max_concurrent_subagents: 3, parallel_tool_calls: 1}}\n\
             approvals: {{delete_file: true}}\ncommands: {{allow: ['sleep {sleep}']}}\nmemory: {{flush: false}}\n"
        ),
    );
    folder.put("x.txt", "x");
    std::fs::create_dir(folder.path().join("subagents")).unwrap();
    let agent = |name: &str, script: &str| {
        let definition = format!(
            "---\ndescription: Works.\nmodel: scripted:{name}.yaml\nworkspace: {{mode: shared}}\n---\nWork.\n"
        );
        folder.put(&format!("subagents/{name}.md"), &definition);
        folder.put(&format!("{name}.yaml"), script);
    };
    agent("quick", "- text: quick done\n");
    agent(
        "writer",
        "- calls: [{tool: write_file, args: {file_path: log.txt, content: \"once\\n\", mode: append}}]\n- text: written\n",
    );
    agent(
        "asker",
        "- calls: [{tool: delete_file, args: {file_path: x.txt}}]\n- text: asked and done\n",
    );
    agent(
        "sleeper",
        &format!(
            "- calls: [{{tool: execute, args: {{command: 'sleep {sleep}'}}}}]\n- text: slept\n"
        ),
    );
    let orders = [
        "quick 1",
        "writer 1",
        "asker 1",
        "quick 2",
        "sleeper 1",
        "sleeper 2",
        "sleeper 3",
        "quick 3",
        "quick 4",
    ];
    let call = |order: &&str| {
        let agent = order.split(' ').next().unwrap();
        json!({"tool": "task", "args": {"agent": agent, "description": order, "prompt": order, "background": true}})
    };
    let heard = "- text: heard\n".repeat(40);
    folder.put(
        "lead.yaml",
        &format!(
            "- calls: {}\n{heard}",
            json!(orders.iter().map(call).collect::<Vec<_>>())
        ),
    );
    folder.put("after.yaml", &heard);
    folder
}

fn records(folder: &Folder) -> BTreeMap<String, Value> {
    match std::fs::read(folder.path().join("agents/main/tasks/s.json")) {
        Ok(text) => {
            let all: BTreeMap<String, Value> = serde_json::from_slice(&text).unwrap();
            all.into_values()
                .map(|record| (record["description"].as_str().unwrap().to_owned(), record))
                .collect()
        }
        Err(_) => BTreeMap::new(),
    }
}

/// Whether all have come as far as they can.
fn is_settled(folder: &Folder, sleep: &str) -> bool {
    let sleeping = || {
        alive(&format!("sleep {sleep}"))
            .iter()
            .filter(|line| line.starts_with("sleep"))
            .count()
    };
    let all = records(folder);
    let done = |name: &str| all[name]["status"] == "COMPLETED";
    all.len() == 9
        && done("quick 1")
        && done("quick 2")
        && done("writer 1")
        && all["asker 1"]["awaitingConfirm"] == true
        && sleeping() == 3
}

/// Runs it, and kills it when it has told so many events, or when nothing more comes. How many it
/// has told.
fn run_and_kill(folder: &Folder, sleep: &str, at: usize) -> usize {
    let mut child = folder
        .process(&["run", "-s", "s", "--output", "events", "go"])
        .spawn()
        .unwrap();
    let told = Arc::new(AtomicUsize::new(0));
    let out = child.stdout.take().unwrap();
    let count = told.clone();
    let reader = std::thread::spawn(move || {
        for _ in BufReader::new(out).lines() {
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    let end = Instant::now() + DEADLINE;
    while told.load(Ordering::SeqCst) < at && !is_settled(folder, sleep) {
        assert!(
            Instant::now() < end,
            "nothing came of it: {:#?}",
            records(folder)
        );
        assert_eq!(
            child.try_wait().unwrap(),
            None,
            "it ended by itself: {:#?}",
            records(folder)
        );
        std::thread::sleep(Duration::from_millis(1));
    }
    let told = told.load(Ordering::SeqCst);
    child.kill().unwrap();
    child.wait().unwrap();
    reader.join().unwrap();
    while !alive(sleep).is_empty() {
        assert!(Instant::now() < end, "left behind: {:?}", alive(sleep));
        std::thread::sleep(Duration::from_millis(2));
    }
    told
}

/// How often each task was told of, and whether every journal is sound.
fn tellings(folder: &Folder) -> BTreeMap<String, usize> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .unwrap();
    let agent = AgentId::new("main").unwrap();
    let sessions = FileSessions::new(&folder.path(), agent, Arc::new(OsDisk), Redactor::default());
    let mut told = BTreeMap::new();
    runtime.block_on(async {
        for summary in sessions.list_all().await.unwrap() {
            assert_eq!(summary.damage, None);
            let mut state = SessionState::default();
            for line in sessions.read(&summary.id).await.unwrap() {
                state.apply(line.seq, &line.entry).unwrap();
                let tasks = match &line.entry {
                    Entry::Notice(notice) => &notice.tasks,
                    Entry::Result(result) => &result.tasks,
                    _ => continue,
                };
                tasks
                    .iter()
                    .for_each(|task| *told.entry(task.clone()).or_default() += 1);
            }
            let is_child = summary.id != SessionId::new("s").unwrap();
            assert_eq!(summary.parent.is_some(), is_child, "{}", summary.id);
        }
    });
    told
}

/// Panics unless every record says what became of its task, and each end was told once.
fn assert_right(folder: &Folder, moment: &str) {
    let all = records(folder);
    let told = tellings(folder);
    let logged = std::fs::read_to_string(folder.path().join("log.txt")).unwrap_or_default();
    assert!(folder.has("x.txt"), "{moment}: nobody said yes");
    for (name, record) in &all {
        let text = |key: &str| record[key].as_str().unwrap_or_default().to_owned();
        let at = format!("{moment}: {record:#}");
        let status = text("status");
        let error = text("errorMessage");
        let lost = status == "FAILED"
            && (error.starts_with("interrupted: ") || error.starts_with("it was not begun"));
        match name.split(' ').next().unwrap() {
            "quick" => assert!(
                lost || (status == "COMPLETED" && text("result") == "quick done"),
                "{at}"
            ),
            "writer" => match status.as_str() {
                "COMPLETED" => assert_eq!(
                    (text("result").as_str(), logged.as_str()),
                    ("written", "once\n"),
                    "{at}"
                ),
                _ => assert!(
                    lost && (logged.is_empty() || logged == "once\n"),
                    "{logged:?}, {at}"
                ),
            },
            "asker" => assert!(
                lost || (status == "RUNNING" && record["awaitingConfirm"] == true),
                "{at}"
            ),
            _ => assert!(lost, "{at}"),
        }
        let times = told.get(&text("taskId")).copied().unwrap_or_default();
        assert_eq!(
            times,
            usize::from(status != "RUNNING"),
            "told {times} times: {at}"
        );
    }
}

/// The next message, in a process that hands nothing over. It tells by its exit code whether a task
/// waits for a person.
fn go_on(folder: &Folder) {
    let model = format!("scripted:{}", folder.path().join("after.yaml").display());
    let done = folder.run(&["run", "-s", "s", "-m", &model, "go on"]);
    let waits = records(folder)
        .values()
        .any(|record| record["awaitingConfirm"] == true && record["status"] == "RUNNING");
    assert_eq!(done.exits(if waits { 3 } else { 0 }).out, "heard\n");
}

#[test]
fn a_kill_at_any_moment_leaves_every_record_right_and_no_process() {
    let number = |moment: usize| format!("7{:02}{}", moment, std::process::id());
    // The last moment: all have come as far as they can.
    let folder = workspace(&number(0));
    let most = run_and_kill(&folder, &number(0), usize::MAX);
    assert!(most > MOMENTS, "only {most} events");
    let lost = |name: &str| records(&folder)[name]["status"] == "FAILED";
    go_on(&folder);
    assert_right(&folder, "the last moment");
    assert!(
        ["sleeper 1", "sleeper 2", "sleeper 3", "quick 3", "quick 4"]
            .iter()
            .all(|name| lost(name))
    );
    assert!(
        records(&folder)["quick 4"]["errorMessage"]
            .as_str()
            .unwrap()
            .starts_with("it was not begun")
    );
    // To look again changes nothing.
    let before = records(&folder);
    go_on(&folder);
    assert_eq!(records(&folder), before);
    assert_right(&folder, "the second look");
    // The one that asks is answered from here, and its parent hears of it once.
    let asked = folder.run(&["approvals", "list", "--json"]).exits(0).json();
    folder
        .run(&["approvals", "approve", asked[0]["id"].as_str().unwrap()])
        .exits(0);
    assert!(!folder.has("x.txt"));
    go_on(&folder);
    go_on(&folder);
    let asker = &records(&folder)["asker 1"];
    assert_eq!(
        (&asker["status"], &asker["result"]),
        (&json!("COMPLETED"), &json!("asked and done"))
    );
    assert_eq!(tellings(&folder)[asker["taskId"].as_str().unwrap()], 1);

    let count = stead_testkit::rounds(MOMENTS).min(most - 1);
    let moments: Vec<usize> = (1..=count)
        .map(|i| 1 + (most - 1) * i / (count + 1))
        .collect();
    std::thread::scope(|scope| {
        for part in moments.chunks(count.div_ceil(3)) {
            scope.spawn(move || {
                for at in part {
                    let sleep = number(*at);
                    let folder = workspace(&sleep);
                    let told = run_and_kill(&folder, &sleep, *at);
                    go_on(&folder);
                    assert_right(&folder, &format!("after {told} of {most} events"));
                }
            });
        }
    });
}

// 6: subagents
#[test]
fn sessions_of_subagents_are_listed_when_asked_for() {
    let folder = workspace("0");
    folder.put(
        "lead.yaml",
        "- calls: [{tool: task, args: {agent: quick, prompt: hello}}]\n- text: done\n",
    );
    folder.run(&["run", "-s", "s", "go"]).exits(0);
    let ids = |args: &[&str]| -> Vec<(String, Value)> {
        let list = folder
            .run(&[&["sessions", "list", "--json"], args].concat())
            .exits(0)
            .json();
        let one = |row: &Value| {
            (
                row["id"].as_str().unwrap().to_owned(),
                row["parent"].clone(),
            )
        };
        let sessions = list.as_array().unwrap();
        sessions.iter().map(one).collect()
    };
    assert_eq!(ids(&[]), [("s".to_owned(), Value::Null)]);
    let all = ids(&["--all"]);
    assert_eq!(
        all.iter()
            .map(|(_, parent)| parent.clone())
            .collect::<Vec<_>>()
            .len(),
        2
    );
    let child = all.iter().find(|(id, _)| id != "s").unwrap();
    assert_eq!(child.1, json!("s"));
    let short = folder.run(&["sessions", "list"]).exits(0).out;
    assert!(
        short.ends_with("and 1 session of subagents (--all)\n") && !short.contains(&child.0),
        "{short}"
    );
    let long = folder.run(&["sessions", "list", "--all"]).exits(0).out;
    assert!(
        long.contains(&child.0) && long.contains("a subagent of s"),
        "{long}"
    );
}
