//! The place for tests of `stead chat` during a run: steering, queue modes, switching agents and
//! finished tasks.

use super::{CTRL_C, CTRL_D, DEADLINE, leave, opened, stead, workspace};
use serde_json::json;
use std::path::Path;
use std::process::Command;
use stead_testkit::{
    AnswerLatch, FakeModel, Pty, RecordedRequest, RequestTurn, hang, latch, reply,
};

/// A chat in the workspace with a model at `server`.
fn chat_with(dir: &Path, server: &FakeModel) -> Pty {
    opened(&pointed(
        stead(dir, "openai:m", &["chat", "-s", "talk"]),
        server,
    ))
}

fn pointed(mut command: Command, server: &FakeModel) -> Command {
    command
        .env("OPENAI_BASE_URL", server.openai_url())
        .env("OPENAI_API_KEY", "k");
    command
}

/// What a command prints.
fn printed(dir: &Path, server: &FakeModel, args: &[&str]) -> String {
    let output = pointed(stead(dir, "openai:m", args), server)
        .output()
        .unwrap();
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// `stead sessions show`, which asks no model.
fn shown(dir: &Path, args: &[&str]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["sessions", "show", "talk"])
        .args(args)
        .arg("-C")
        .arg(dir)
        .output()
        .unwrap();
    String::from_utf8(output.stdout).unwrap()
}

fn user_texts(request: &RecordedRequest) -> Vec<String> {
    request
        .seen
        .as_ref()
        .unwrap()
        .user_texts()
        .map(str::to_owned)
        .collect()
}

fn answers(request: &RecordedRequest) -> usize {
    let turns = &request.seen.as_ref().unwrap().turns;
    turns
        .iter()
        .filter(|turn| matches!(turn, RequestTurn::Assistant { .. }))
        .count()
}

/// A server whose first answer, a call of `ls`, is held.
fn held() -> (FakeModel, AnswerLatch) {
    let latch = latch();
    (
        FakeModel::start(vec![
            reply().call("ls", json!({})).held_by(&latch),
            reply().text("Heard."),
        ]),
        latch,
    )
}

#[test]
fn what_is_typed_during_a_run_steers_it_where_the_workspace_says_so() {
    let dir = workspace(&[("agent.yaml", "queue: {mode: steer}\n")]);
    let (server, latch) = held();
    let pty = chat_with(dir.path(), &server);
    pty.send("look\r");
    latch.wait_arrived(1, DEADLINE);
    pty.send("rather not\r");
    pty.wait_for("queued (steer): rather not", DEADLINE);
    latch.release();
    pty.wait_for("Heard.", DEADLINE);
    pty.wait_until("the order of what was said", DEADLINE, |screen| {
        let at = |text: &str| screen.find(text);
        at("› look") < at("✗ ls")
            && at("✗ ls") < at("› rather not")
            && at("› rather not") < at("Heard.")
    });
    pty.wait_gone("queued", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    leave(pty, CTRL_D);
    assert_eq!(server.rejections(), Vec::new());
    assert_eq!(user_texts(&server.last_request()), ["look", "rather not"]);
    for args in [&[][..], &["--full"]] {
        assert!(
            shown(dir.path(), args).contains("you, during the run: rather not"),
            "{}",
            shown(dir.path(), args)
        );
    }
    assert!(shown(dir.path(), &["--json"]).contains("\"kind\":\"steer\""));
}

#[test]
fn the_mode_is_changed_for_the_session_and_a_message_that_ends_the_run_is_the_next_input() {
    let dir = workspace(&[]);
    let server = FakeModel::start(vec![hang(), reply().text("Second answer.")]);
    let pty = chat_with(dir.path(), &server);
    pty.send("first\r");
    pty.wait_until("the first request", DEADLINE, |_| {
        server.requests().len() == 1
    });
    pty.send("/queue int\t");
    pty.wait_for("› /queue interrupt", DEADLINE);
    pty.send("\r");
    pty.wait_for("queue interrupt: a message ends the run", DEADLINE);
    pty.send("instead\r");
    pty.wait_for("interrupted by a new message", DEADLINE);
    pty.wait_for("Second answer.", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    pty.send("/status\r");
    pty.wait_for("queue    interrupt", DEADLINE);
    leave(pty, CTRL_D);
    assert_eq!(server.rejections(), Vec::new());
    assert_eq!(user_texts(&server.last_request()), ["first", "instead"]);
}

#[test]
fn what_is_refused_and_what_waits_for_a_run_that_is_cancelled_stay_in_the_editor() {
    let dir = workspace(&[("agent.yaml", "queue: {cap: 1, drop: new}\n")]);
    let server = FakeModel::start(vec![hang()]);
    let pty = chat_with(dir.path(), &server);
    pty.send("first\r");
    pty.wait_until("the first request", DEADLINE, |_| {
        server.requests().len() == 1
    });
    pty.send("second\r");
    pty.wait_for("queued (collect): second", DEADLINE);
    pty.send("third\r");
    pty.wait_for(
        "the queue is full (queue.cap: 1): this one was refused",
        DEADLINE,
    );
    pty.wait_for("› third", DEADLINE);
    pty.send(CTRL_C);
    pty.wait_for("cancelled; /resume resumes it", DEADLINE);
    pty.wait_gone("queued", DEADLINE);
    pty.wait_for("› second", DEADLINE);
    pty.wait_for("  third", DEADLINE);
    leave(pty, "\x03\x03");
}

#[test]
fn a_message_instead_of_an_answer_takes_the_question_away() {
    let dir = workspace(&[(
        "agent.yaml",
        "approvals: {write_file: true}\nqueue: {mode: steer}\n",
    )]);
    let call = json!({"file_path": "a.txt", "content": "x"});
    let server = FakeModel::start(vec![
        reply().call("write_file", call),
        reply().text("As you like."),
    ]);
    let pty = chat_with(dir.path(), &server);
    pty.send("write\r");
    pty.wait_for("allow write_file a.txt?", DEADLINE);
    pty.send("better read\r");
    pty.wait_for("As you like.", DEADLINE);
    pty.wait_gone("allow write_file", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    assert!(!dir.path().join("a.txt").exists());
    leave(pty, CTRL_D);
    assert_eq!(server.rejections(), Vec::new());
}

const REMINDER: &str = "You may change files now.";

fn planner_and_builder() -> tempfile::TempDir {
    let reminder = format!("system_reminder: {REMINDER}\n");
    let agent = |rest: &str, words: &str| {
        format!("---\nmode: primary\ndescription: d\n{rest}---\n{words}\n")
    };
    let plan = agent("", "# Planner");
    let build = agent(&reminder, "# Builder");
    workspace(&[
        ("AGENTS.md", "A library."),
        (".openharness/settings.yaml", "default_agent: plan\n"),
        (".openharness/agents/plan.md", &plan),
        (".openharness/agents/build.md", &build),
    ])
}

/// Who was asked, and which messages reminded it.
fn reminded(request: &RecordedRequest) -> (&'static str, Vec<usize>) {
    let system = &request.seen.as_ref().unwrap().system;
    let who = ["# Planner", "# Builder"]
        .into_iter()
        .find(|who| system.contains(who))
        .unwrap_or("nobody");
    (
        who,
        user_texts(request)
            .iter()
            .map(|text| text.matches(REMINDER).count())
            .collect(),
    )
}

#[test]
fn another_agent_goes_on_in_chat_and_in_run_and_is_kept() {
    let dir = planner_and_builder();
    let server =
        FakeModel::start_with(|request| reply().text(format!("Answer {}.", answers(request))));
    let pty = chat_with(dir.path(), &server);
    pty.send("one\r");
    pty.wait_for("Answer 0.", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    pty.send("/agent\r");
    pty.wait_for("* plan", DEADLINE);
    pty.send("/agent nobody\r");
    pty.wait_for(
        "there is no agent \"nobody\" to talk to; there are: build, plan",
        DEADLINE,
    );
    pty.send("/agent bu\t\r");
    pty.wait_for("switched to build", DEADLINE);
    for (word, answer) in [("two\r", "Answer 1."), ("three\r", "Answer 2.")] {
        pty.send(word);
        pty.wait_for(answer, DEADLINE);
        pty.wait_gone("step", DEADLINE);
    }
    assert!(
        !pty.screen().contains("system_reminder"),
        "{}",
        pty.screen()
    );
    leave(pty, CTRL_D);

    let again = chat_with(dir.path(), &server);
    again.wait_for("build · talk", DEADLINE);
    assert!(
        !again.screen().contains("system_reminder"),
        "{}",
        again.screen()
    );
    leave(again, CTRL_D);

    let run = |args: &[&str]| {
        printed(
            dir.path(),
            &server,
            &[&["run", "-s", "talk", "--output", "events"], args].concat(),
        )
    };
    assert!(
        !run(&["four", "--agent", "build"]).contains("agent_switched"),
        "it acts already"
    );
    let told = run(&["five", "-a", "plan"]);
    assert!(
        told.contains("\"type\":\"agent_switched\",\"from\":\"build\",\"to\":\"plan\""),
        "{told}"
    );
    assert!(run(&["six", "-a", "build"]).contains("\"to\":\"build\""));
    assert!(!run(&["seven"]).contains("agent_switched"));
    let wrong = printed(
        dir.path(),
        &server,
        &["run", "-s", "talk", "eight", "-a", "nobody"],
    );
    assert!(wrong.contains("there is no agent `nobody`"), "{wrong}");
    assert_eq!(server.rejections(), Vec::new());
    let all = [0, 1, 0, 0, 0, 1, 0];
    let who = [
        "# Planner",
        "# Builder",
        "# Builder",
        "# Builder",
        "# Planner",
        "# Builder",
        "# Builder",
    ];
    let expected: Vec<(&str, Vec<usize>)> = who
        .iter()
        .enumerate()
        .map(|(n, who)| (*who, all[..=n].to_vec()))
        .collect();
    assert_eq!(
        server.requests().iter().map(reminded).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn an_agent_that_run_is_given_for_a_session_that_has_begun_takes_over() {
    let dir = planner_and_builder();
    let server = FakeModel::start_with(|_| reply().text("Done."));
    let run = |args: &[&str]| {
        printed(
            dir.path(),
            &server,
            &[&["run", "-s", "talk", "--output", "events"], args].concat(),
        )
    };
    assert!(!run(&["one"]).contains("agent_switched"));
    let told = run(&["two", "-a", "build"]);
    assert!(
        told.contains("\"type\":\"agent_switched\",\"from\":\"plan\",\"to\":\"build\""),
        "{told}"
    );
    run(&["three"]);
    let expected = [
        ("# Planner", vec![0]),
        ("# Builder", vec![0, 1]),
        ("# Builder", vec![0, 1, 0]),
    ];
    assert_eq!(
        server.requests().iter().map(reminded).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn an_agent_of_the_workspace_can_be_talked_to_in_every_layout() {
    let helper =
        "---\nmode: all\ndescription: Helps.\nsystem_reminder: Help now.\n---\nYou help.\n";
    let dir = workspace(&[("AGENTS.md", "You lead."), ("subagents/helper.md", helper)]);
    let server = FakeModel::start_with(|_| reply().text("Done."));
    let run = |args: &[&str]| {
        printed(
            dir.path(),
            &server,
            &[&["run", "-s", "talk"], args].concat(),
        )
    };
    run(&["one", "-a", "helper"]);
    run(&["two"]);
    let wrong = run(&["three", "-a", "nobody"]);
    assert!(
        wrong.contains("there is no agent \"nobody\" to talk to; there are: main, helper"),
        "{wrong}"
    );
    // Where there is no session, there is nobody to keep it.
    let output = Command::new(env!("CARGO_BIN_EXE_stead"))
        .args(["tool", "-a", "helper", "-C"])
        .arg(dir.path())
        .output();
    assert_eq!(output.unwrap().status.code(), Some(2));
    let systems: Vec<bool> = server
        .requests()
        .iter()
        .map(|request| request.seen.as_ref().unwrap().system.contains("You help."))
        .collect();
    assert_eq!(systems, [true, true]);
    // The session began with it.
    assert!(
        user_texts(&server.last_request())
            .iter()
            .all(|text| !text.contains("Help now."))
    );
}

#[test]
fn a_task_that_ends_while_nothing_runs_wakes_the_agent_and_leaves_alone_what_is_being_typed() {
    let dir = workspace(&[("AGENTS.md", "You lead.")]);
    let held = latch();
    let child = held.clone();
    let order = json!({"agent": "general-purpose", "description": "c", "prompt": "count", "background": true});
    let server = FakeModel::start_with(move |request| {
        let is_child = request.seen.as_ref().unwrap().user_texts().next() == Some("count");
        match (is_child, answers(request)) {
            (true, _) => reply().text("three").held_by(&child),
            (false, 0) => reply().call("task", order.clone()),
            (false, 1) => reply().text("It is being counted."),
            (false, _) => reply().text("There are three."),
        }
    });
    let pty = chat_with(dir.path(), &server);
    pty.send("how many?\r");
    pty.wait_for("It is being counted.", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    pty.wait_for("1 task is running in the background", DEADLINE);
    held.wait_arrived(1, DEADLINE);
    pty.send("half a thou");
    held.release();
    pty.wait_for("a background task has ended", DEADLINE);
    pty.wait_for("There are three.", DEADLINE);
    pty.wait_gone("step", DEADLINE);
    pty.wait_gone("running in the background", DEADLINE);
    pty.wait_for("› half a thou", DEADLINE);
    leave(pty, "\x03\x03");
    assert_eq!(server.rejections(), Vec::new());
    let told = user_texts(&server.last_request());
    assert_eq!(
        (told.len(), told[1].matches("three").count()),
        (2, 1),
        "{told:?}"
    );
    assert!(shown(dir.path(), &["--full"]).contains("woken by tasks that ended"));
}
