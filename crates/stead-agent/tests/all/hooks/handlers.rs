//! The place for tests of the kinds of hook handlers: programs, HTTP addresses, models and agents.

use super::{Scene, told, writes};
use crate::support::{block_on, results};
use futures_util::future::BoxFuture;
use std::io::{Read, Write};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use stead_agent::{Delegate, HookTask, RunOptions};
use stead_core::{Block, HookOutcome, Owner, ResultStatus, SessionId, UserId};
use stead_testkit::{FakeModel, reply};

#[test]
fn a_program_gets_what_it_is_told_and_nothing_of_the_process() {
    let scene = Scene::new(writes());
    scene.put(
        "hooks/see.sh",
        "#!/bin/sh\nenv | sort > \"$1\"; pwd >> \"$1\"; cat > \"$2\"\n",
    );
    let text = "name: h\nevents: [before_tool_call]\nhandler:\n  type: command\n  command: /bin/sh\n  \
                args: [see.sh, out file, told.jsonl]\n  cwd: hooks\n  env: {LEVEL: '9'}\n";
    scene.put("hooks/h.yaml", text);
    block_on(async {
        let ran = scene.run().await;
        assert_eq!(
            results(&ran.lines)[0].1,
            ResultStatus::Ok,
            "{:?}",
            ran.hooks()
        );
        let root = scene.dir.path().canonicalize().unwrap();
        let seen = scene.read("hooks/out file").unwrap();
        let mut names: Vec<&str> = seen
            .lines()
            .filter_map(|line| Some(line.split_once('=')?.0))
            .collect();
        // The shell's own.
        names.retain(|name| !["PWD", "OLDPWD", "SHLVL", "_"].contains(name));
        assert_eq!(
            names,
            [
                "LEVEL",
                "PATH",
                "STEAD_EVENT",
                "STEAD_EXEC_ID",
                "STEAD_SESSION",
                "STEAD_WORKSPACE"
            ]
        );
        assert_eq!(
            seen.lines().last(),
            Some(root.join("hooks").to_str().unwrap())
        );
        assert_eq!(
            told(&scene.path("hooks/told.jsonl"))[0]["tool"]["name"],
            "write_file"
        );
    });
}

/// An address that answers `count` requests so; none = it never answers.
fn address(answer: Option<&'static str>) -> (String, JoinHandle<String>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/hook", listener.local_addr().unwrap());
    let serve = move || {
        let (mut stream, _) = listener.accept().unwrap();
        let mut request = Vec::new();
        let mut buffer = [0; 4096];
        // The body is JSON and the last to come.
        while !request.ends_with(b"}") {
            let read = stream.read(&mut buffer).unwrap();
            request.extend_from_slice(&buffer[..read]);
        }
        match answer {
            Some(answer) => stream.write_all(answer.as_bytes()).unwrap(),
            // Until the other side gives up.
            None => drop(stream.read(&mut buffer)),
        }
        String::from_utf8(request).unwrap()
    };
    (url, std::thread::spawn(serve))
}

#[test]
fn an_address_is_asked_in_json_and_anything_but_success_is_no_answer() {
    let no = "HTTP/1.1 200 OK\r\ncontent-length: 38\r\nconnection: close\r\n\r\n{\"decision\":\"block\",\"reason\":\"by web\"}";
    let yes = "HTTP/1.1 204 No Content\r\nconnection: close\r\n\r\n";
    let broken = "HTTP/1.1 500 Oh\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let elsewhere = "HTTP/1.1 302 Go\r\nlocation: http://127.0.0.1:1/\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";
    let page = "HTTP/1.1 200 OK\r\ncontent-length: 13\r\nconnection: close\r\n\r\n<html></html>";
    for (answer, outcome, said) in [
        (Some(yes), HookOutcome::Passed, ""),
        (Some(no), HookOutcome::Blocked, "by web"),
        (Some(broken), HookOutcome::Failed, "status is 500"),
        (Some(elsewhere), HookOutcome::Failed, "status is 302"),
        (Some(page), HookOutcome::Failed, "not the JSON"),
        (None, HookOutcome::TimedOut, "no answer within 1 s"),
    ] {
        let scene = Scene::new(writes());
        let (url, served) = address(answer);
        let text = format!(
            "name: h\nevents: [before_tool_call]\nhandler: {{type: http, url: '{url}', headers: {{X-Key: abc}}}}\n\
             timeout_seconds: 1\n"
        );
        scene.put("hooks/h.yaml", &text);
        block_on(async {
            let ran = scene.run().await;
            assert_eq!(ran.outcomes(), [outcome], "{:?}", ran.hooks());
            assert!(ran.hooks()[0].contains(said), "{:?}", ran.hooks());
            assert_eq!(
                scene.read("a.txt").is_some(),
                outcome == HookOutcome::Passed
            );
        });
        let request = served.join().unwrap();
        assert!(request.starts_with("POST /hook HTTP/1.1\r\n"), "{request}");
        assert!(
            request.to_lowercase().contains("x-key: abc\r\n"),
            "{request}"
        );
        assert!(
            request.contains("\"event\":\"before_tool_call\""),
            "{request}"
        );
    }
}

#[test]
fn a_model_decides_in_json() {
    for (words, outcome) in [
        ("{}", HookOutcome::Passed),
        (
            "Well:\n```json\n{\"decision\": \"block\", \"reason\": \"no greetings\"}\n```",
            HookOutcome::Blocked,
        ),
        ("I would rather not.", HookOutcome::Failed),
    ] {
        let scene = Scene::of(FakeModel::start_with(move |request| {
            let body = String::from_utf8_lossy(&request.body).into_owned();
            match body.contains("hook of an agent harness") {
                true => {
                    assert!(
                        body.contains("Refuse greetings.") && body.contains("before_tool_call"),
                        "{body}"
                    );
                    reply().text(words)
                }
                false if request.result_count() > 0 => reply().text("done"),
                false => writes().remove(0),
            }
        }));
        let handler = "handler: {type: prompt, prompt: Refuse greetings.}";
        scene.put(
            "hooks/h.yaml",
            &format!("name: h\nevents: [before_tool_call]\n{handler}\n"),
        );
        block_on(async {
            let agent = scene.agent().await;
            let ran = scene.run_with(&agent, RunOptions::default()).await;
            assert_eq!(ran.outcomes(), [outcome], "{words}: {:?}", ran.hooks());
            assert_eq!(
                scene.read("a.txt").is_some(),
                outcome == HookOutcome::Passed,
                "{words}"
            );
            // What it used is on the list.
            let name = agent.workspace().config().agent_id();
            let usage = scene
                .read(&format!("agents/{name}/token_usage.jsonl"))
                .unwrap();
            assert_eq!(usage.matches("\"purpose\":\"hook\"").count(), 1, "{usage}");
        });
    }
}

#[derive(Default)]
struct Reviewer {
    asked: Mutex<Vec<(String, String)>>,
}

impl Delegate for Reviewer {
    fn ask<'a>(&'a self, task: HookTask<'a>) -> BoxFuture<'a, Result<String, String>> {
        self.asked
            .lock()
            .unwrap()
            .push((task.agent.to_owned(), task.prompt.to_owned()));
        Box::pin(async { Ok("{\"decision\": \"block\", \"reason\": \"reviewed\"}".to_owned()) })
    }
}

#[test]
fn an_agent_is_handed_the_task_and_one_that_does_not_decide_closes_the_door() {
    // Without another to ask it is the workspace's own reviewer, whom the model gives no JSON.
    for present in [true, false] {
        let scene = Scene::new(writes());
        scene.put(
            "subagents/reviewer.md",
            "---\ndescription: Reviews.\n---\nReview.\n",
        );
        let handler = "handler: {type: agent, agent: reviewer, task: Review this call.}";
        scene.put(
            "hooks/h.yaml",
            &format!("name: h\nevents: [before_tool_call]\n{handler}\n"),
        );
        block_on(async {
            let agent = scene.agent().await;
            let reviewer = Arc::new(Reviewer::default());
            if present {
                agent.hooks().set_delegate(reviewer.clone());
            }
            let ran = scene.run_with(&agent, RunOptions::default()).await;
            assert_eq!(scene.read("a.txt"), None);
            let asked = reviewer.asked.lock().unwrap();
            assert_eq!(asked.len(), usize::from(present));
            if let Some((agent, task)) = asked.first() {
                assert_eq!(
                    (agent.as_str(), ran.outcomes()),
                    ("reviewer", vec![HookOutcome::Blocked])
                );
                assert!(
                    task.starts_with("Review this call.") && task.contains("\"write_file\""),
                    "{task}"
                );
            } else {
                assert_eq!(
                    ran.hooks(),
                    ["h before_tool_call failed: its answer has no JSON object in it"]
                );
            }
        });
    }
}

#[test]
fn an_agent_that_a_hook_asks_works_for_the_owner_of_the_session() {
    let scene = Scene::new(writes());
    scene.put(
        "subagents/reviewer.md",
        "---\ndescription: Reviews.\n---\nReview.\n",
    );
    let handler = "handler: {type: agent, agent: reviewer, task: Review this call.}";
    scene.put(
        "hooks/h.yaml",
        &format!("name: h\nevents: [before_tool_call]\non_failure: open\n{handler}\n"),
    );
    block_on(async {
        let agent = scene.agent().await;
        let bob = Owner {
            user: UserId::new("bob").unwrap(),
            ..Owner::default()
        };
        let mut session = agent.session_of(bob.clone(), SessionId::new("s").unwrap());
        session
            .run(vec![Block::text("go")], RunOptions::default())
            .await
            .unwrap();
        let count = async |owner: &Owner| {
            let sessions = agent.place().sessions(owner);
            sessions.list_all().await.unwrap().len()
        };
        // His own session, and that of the reviewer.
        assert_eq!(count(&bob).await, 2);
        assert_eq!(count(agent.owner()).await, 0);
    });
}
