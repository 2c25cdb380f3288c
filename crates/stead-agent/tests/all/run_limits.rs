//! The place for tests of the limits of a run: loops, steps, run and tool timeouts, cancellation,
//! parallel and panicking tools.

use crate::support::{
    TestTool, agent, agent_on, assert_well_formed, block_on, journal, listening, model, results,
    session, text,
};
use serde_json::json;
use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};
use stead_agent::{Agent, RunOptions, RunReport};
use stead_core::{ResultStatus, Risk, RunOutcome, ToolEffect};
use stead_store::OsDisk;
use stead_testkit::{FakeModel, FakeWire, hang, reply};
use stead_tools::{Output, Tool, ToolError};

/// What a loaded machine may add to a time that is promised.
const MARGIN: Duration = Duration::from_millis(500);

fn policy(dir: &Path, text: &str) {
    std::fs::write(dir.join("agent.yaml"), format!("policy: {{{text}}}\n")).unwrap();
}

async fn with_tools(dir: &Path, server: &FakeModel, tools: Vec<Arc<dyn Tool>>) -> Arc<Agent> {
    agent_on(
        dir,
        model(server, FakeWire::Messages),
        Arc::new(OsDisk),
        tools,
    )
    .await
}

async fn run(agent: &Arc<Agent>) -> RunReport {
    agent
        .session(session("s"))
        .run(text("go"), RunOptions::default())
        .await
        .unwrap()
}

// Loop detector
#[test]
fn a_model_that_goes_in_circles_is_told_after_three_rounds_and_stopped_after_six() {
    let circles: [&[&str]; 2] = [&["."], &["a", "b"]];
    for circle in circles {
        let server = FakeModel::start_with(move |request| {
            let step = request.seen.as_ref().unwrap().calls().count();
            reply().call("ls", json!({"path": circle[step % circle.len()]}))
        });
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir(dir.path().join("a")).unwrap();
        std::fs::create_dir(dir.path().join("b")).unwrap();
        block_on(async {
            let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
            let report = run(&agent).await;
            assert!(report.outcome == RunOutcome::Failed, "{report:?}");
            assert!(
                report
                    .reason
                    .as_deref()
                    .unwrap()
                    .contains("going in circles"),
                "{report:?}"
            );
            assert_eq!(report.steps as usize, 6 * circle.len());
        });
        let requests = server.requests();
        let nudge = |i: usize| {
            requests[i]
                .seen
                .as_ref()
                .unwrap()
                .user_texts()
                .any(|t| t.contains("Change your approach"))
        };
        let first = (0..requests.len()).find(|&i| nudge(i));
        assert_eq!(first, Some(3 * circle.len()), "{circle:?}");
        let nudges = String::from_utf8_lossy(&requests.last().unwrap().body)
            .matches("Change your approach")
            .count();
        assert_eq!(nudges, 1);
        assert_eq!(server.rejections(), Vec::new());
    }
}

// Step limit
#[test]
fn the_step_limit_stops_a_run_that_can_be_taken_up_again() {
    let server = FakeModel::start_with(|request| match request.result_count() {
        n if n < 7 => reply().call(
            "write_file",
            json!({"file_path": format!("{n}.txt"), "content": "x"}),
        ),
        _ => reply().text("done"),
    });
    let dir = tempfile::tempdir().unwrap();
    policy(dir.path(), "max_steps: 5");
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let report = run(&agent).await;
        assert_eq!((report.outcome, report.steps), (RunOutcome::StepLimit, 5));
        assert!(report.reason.unwrap().contains("policy.max_steps"));
        let report = agent
            .session(session("s"))
            .resume(RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.steps, report.text.as_str()),
            (RunOutcome::Completed, 3, "done")
        );
    });
    assert_eq!(server.rejections(), Vec::new());
}

// Run timeout
#[test]
fn the_time_limit_stops_a_run_during_a_hang_of_the_model() {
    let server = FakeModel::start(vec![hang(), reply().text("fine")]);
    let dir = tempfile::tempdir().unwrap();
    policy(dir.path(), "run_timeout_seconds: 1");
    block_on(async {
        let agent = agent(dir.path(), model(&server, FakeWire::Messages)).await;
        let started = Instant::now();
        let report = run(&agent).await;
        assert_eq!(report.outcome, RunOutcome::TimedOut);
        assert!(started.elapsed() < Duration::from_secs(3));
        let report = agent
            .session(session("s"))
            .resume(RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.text, "fine");
    });
    assert_eq!(server.rejections(), Vec::new());
}

/// A tool that takes a minute and does not listen.
fn deaf() -> Arc<dyn Tool> {
    TestTool::make("slow", Risk::READS, |_, _| async {
        tokio::time::sleep(Duration::from_secs(60)).await;
        Ok(Output::text("late"))
    })
}

// Tool timeout
#[test]
fn a_tool_that_takes_too_long_becomes_a_result_and_the_run_goes_on() {
    let server = FakeModel::start(vec![reply().call("slow", json!({})), reply().text("fine")]);
    let dir = tempfile::tempdir().unwrap();
    policy(dir.path(), "tool_timeout_seconds: 1");
    block_on(async {
        let agent = with_tools(dir.path(), &server, vec![deaf()]).await;
        let started = Instant::now();
        assert_eq!(run(&agent).await.outcome, RunOutcome::Completed);
        assert!(
            started.elapsed() < Duration::from_secs(3),
            "{:?}",
            started.elapsed()
        );
        let (lines, _) = journal(&agent, &session("s")).await;
        let (_, status, said) = &results(&lines)[0];
        assert!(
            *status == ResultStatus::Error && said.contains("timed out after 1 s"),
            "{said}"
        );
    });
    assert_eq!(server.rejections(), Vec::new());
}

// Parallel calls
#[test]
fn parallel_calls_meet_and_one_that_fails_leaves_its_siblings_alone() {
    const CALLS: usize = 8;
    let meeting = Arc::new(tokio::sync::Barrier::new(CALLS));
    let meet = TestTool::make("meet", Risk::READS, move |_, args| {
        let meeting = meeting.clone();
        async move {
            // Nobody passes unless all are running at once.
            meeting.wait().await;
            match args["n"].as_u64() {
                Some(3) => Err(ToolError::RespondToModel("three has failed".into())),
                Some(5) => panic!("five panics"),
                n => Ok(Output::text(format!("met {n:?}"))),
            }
        }
    });
    let calls = (0..CALLS).fold(reply(), |answer, n| answer.call("meet", json!({"n": n})));
    let server = FakeModel::start(vec![calls, reply().text("fine")]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = with_tools(dir.path(), &server, vec![meet]).await;
        assert_eq!(run(&agent).await.outcome, RunOutcome::Completed);
        let (_, state) = journal(&agent, &session("s")).await;
        let message = &state.turns[2].message;
        let stead_core::Message::Tool { results } = &**message else {
            panic!("{message:?}")
        };
        let statuses: Vec<ResultStatus> = results.iter().map(|result| result.status).collect();
        let mut expected = [ResultStatus::Ok; CALLS];
        (expected[3], expected[5]) = (ResultStatus::Error, ResultStatus::Error);
        assert_eq!(statuses, expected, "in the order of the calls");
    });
    assert_eq!(server.rejections(), Vec::new());
}

// Calls that change something run one after the other, in order
#[test]
fn calls_that_change_something_never_overlap() {
    let busy = Arc::new(AtomicUsize::new(0));
    let order = Arc::new(Mutex::new(Vec::new()));
    let log = order.clone();
    let change = TestTool::make("change", Risk::WRITES, move |_, args| {
        let busy = busy.clone();
        let log = log.clone();
        async move {
            assert_eq!(busy.fetch_add(1, Ordering::SeqCst), 0, "two at once");
            log.lock().unwrap().push(args["n"].as_u64().unwrap());
            tokio::time::sleep(Duration::from_millis(5)).await;
            busy.fetch_sub(1, Ordering::SeqCst);
            Ok(Output::text("ok"))
        }
    });
    let calls = (0..5).fold(reply(), |answer, n| answer.call("change", json!({"n": n})));
    let server = FakeModel::start(vec![calls, reply().text("fine")]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = with_tools(dir.path(), &server, vec![change]).await;
        assert_eq!(run(&agent).await.outcome, RunOutcome::Completed);
        let (lines, _) = journal(&agent, &session("s")).await;
        assert!(
            results(&lines)
                .iter()
                .all(|(_, status, _)| *status == ResultStatus::Ok)
        );
    });
    assert_eq!(*order.lock().unwrap(), [0, 1, 2, 3, 4]);
}

// A panicking tool
#[test]
fn a_tool_that_panics_or_stops_is_told_apart() {
    let panics = TestTool::make("panics", Risk::WRITES, |_, _| async { panic!("as told") });
    let stops = TestTool::make("stops", Risk::WRITES, |_, _| async {
        Err(ToolError::Fatal("nobody can help".into()))
    });
    let server = FakeModel::start(vec![
        reply().call("panics", json!({})),
        reply().call("stops", json!({})).call("panics", json!({})),
        reply().text("fine"),
    ]);
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = with_tools(dir.path(), &server, vec![panics, stops]).await;
        let report = run(&agent).await;
        assert_eq!(
            (report.outcome, report.reason.as_deref()),
            (RunOutcome::Failed, Some("nobody can help"))
        );
        let (lines, _) = journal(&agent, &session("s")).await;
        let statuses: Vec<ResultStatus> = results(&lines)
            .into_iter()
            .map(|(_, status, _)| status)
            .collect();
        assert_eq!(
            statuses,
            [
                ResultStatus::Error,
                ResultStatus::Error,
                ResultStatus::Skipped
            ]
        );
        let report = agent
            .session(session("s"))
            .resume(RunOptions::default())
            .await
            .unwrap();
        assert_eq!(report.text, "fine");
    });
    assert_eq!(server.rejections(), Vec::new());
}

// Cancellation
#[test]
fn a_cancel_is_obeyed_within_a_second_wherever_the_run_is() {
    const SLOW_WRITE: Risk = Risk {
        effect: ToolEffect::Writes,
        parallel_safe: false,
        repeatable: false,
    };
    for case in [
        "model hangs",
        "stream stalls",
        "tool is slow",
        "changing tool is slow",
    ] {
        let script = match case {
            "model hangs" => vec![hang(), reply().text("fine")],
            "stream stalls" => vec![
                reply().text("some words").stall_at(150),
                reply().text("fine"),
            ],
            "tool is slow" => vec![reply().call("slow", json!({})), reply().text("fine")],
            _ => vec![
                reply()
                    .call("slow_write", json!({}))
                    .call("slow_write", json!({})),
                reply().text("fine"),
            ],
        };
        let server = FakeModel::start(script);
        let slow_write = TestTool::make("slow_write", SLOW_WRITE, |_, _| async {
            tokio::time::sleep(Duration::from_secs(60)).await;
            Ok(Output::text("late"))
        });
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = with_tools(dir.path(), &server, vec![deaf(), slow_write]).await;
            let (options, events) = listening();
            let cancel = options.cancel.clone();
            let mut session_here = agent.session(session("s"));
            let canceller = async {
                tokio::time::sleep(Duration::from_millis(300)).await;
                cancel.cancel();
                Instant::now()
            };
            let (report, cancelled_at) =
                tokio::join!(session_here.run(text("go"), options), canceller);
            assert_eq!(report.unwrap().outcome, RunOutcome::Cancelled, "{case}");
            assert!(
                cancelled_at.elapsed() < Duration::from_secs(1) + MARGIN,
                "{case}: {:?}",
                cancelled_at.elapsed()
            );
            assert_well_formed(&events.lock().unwrap());
            let report = session_here.resume(RunOptions::default()).await.unwrap();
            assert_eq!(
                (report.outcome, report.text.as_str()),
                (RunOutcome::Completed, "fine"),
                "{case}"
            );
        });
        assert_eq!(server.rejections(), Vec::new(), "{case}");
    }
}
