//! The place for tests of crashes between a question, its answer and the approved call: a call
//! never runs twice and runs only with the approved arguments.

use crate::kill_points::{KillPoints, doomed_child};
use crate::support::{agent, agent_on, block_on, journal, results, session, text};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_agent::{
    AfterAnswer, Agent, AgentError, ApprovalAnswer, ApprovalPolicy, ApprovalQuestion,
    ApprovalReply, Approver, RunOptions,
};
use stead_core::{Entry, ResultStatus, RunOutcome, args_hash};
use stead_model::ScriptedModel;
use stead_store::LockWait;
use stead_testkit::{Child, Death, FaultDisk, child_role};

const SCRIPT: &str = "- calls: [{tool: write_file, args: {file_path: log.txt, content: \"y\\n\", mode: append}}]\n\
                      - text: done\n";
const PATIENT: LockWait = LockWait::AtMost(Duration::from_secs(20));
const DEADLINE: Duration = Duration::from_secs(30);

fn model() -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::parse("test", SCRIPT).unwrap())
}

fn edited() -> Value {
    json!({"file_path": "log.txt", "content": "e\n", "mode": "append"})
}

fn lay_out(dir: &Path) {
    std::fs::write(
        dir.join("agent.yaml"),
        "approvals: {write_file: {decisions: [approve, edit, reject]}}\n",
    )
    .unwrap();
    std::fs::write(dir.join("log.txt"), "x\n").unwrap();
}

async fn park(dir: &Path) {
    let agent = agent(dir, model()).await;
    let report = agent
        .session(session("s"))
        .run(text("go"), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Parked);
    agent.sessions().flush().await;
}

/// Answers what is open with changed arguments, then goes on.
async fn answer_and_go_on(agent: &Arc<Agent>) {
    let mut session = agent.session(session("s"));
    session.load().await.unwrap();
    for question in session.open_questions() {
        let reply = ApprovalReply {
            id: question.id,
            args_hash: question.args_hash,
            answer: ApprovalAnswer::Edit(edited()),
        };
        session
            .answer(&[reply], "ann", AfterAnswer::Leave, PATIENT)
            .await
            .unwrap();
    }
    match session.resume(RunOptions::default()).await {
        Ok(report) => assert_eq!(report.outcome, RunOutcome::Completed),
        // It was killed after the end was recorded.
        Err(AgentError::NothingToResume(_)) => {}
        Err(error) => panic!("{error}"),
    }
    agent.sessions().flush().await;
}

async fn assert_ran_at_most_once(dir: &Path, place: &str) {
    let agent = agent(dir, model()).await;
    let (lines, state) = journal(&agent, &session("s")).await;
    assert_eq!(
        (state.last_outcome, state.final_text().as_str()),
        (Some(RunOutcome::Completed), "done"),
        "{place}"
    );
    let begun: Vec<&str> = lines
        .iter()
        .filter_map(|line| {
            if let Entry::Call(call) = &line.entry {
                Some(call.args_hash.as_str())
            } else {
                None
            }
        })
        .collect();
    assert_eq!(begun, [args_hash(&edited())], "{place}");
    let content = std::fs::read_to_string(dir.join("log.txt")).unwrap();
    let [(_, status, said)] = results(&lines).try_into().unwrap();
    assert!(
        said.starts_with("[ann changed the arguments of this call"),
        "{place}: {said}"
    );
    match status {
        ResultStatus::Ok => assert_eq!(content, "x\ne\n", "{place}"),
        ResultStatus::Interrupted => assert!(
            content == "x\n" || content == "x\ne\n",
            "{place}: {content}"
        ),
        other => panic!("{place}: {other:?} {said}"),
    }
}

#[test]
fn a_kill_anywhere_between_answer_and_result_never_runs_a_call_twice() {
    const NAME: &str =
        "approval_crashes::a_kill_anywhere_between_answer_and_result_never_runs_a_call_twice";
    if let Some((role, disk)) = doomed_child() {
        return block_on(async {
            let agent = agent_on(
                Path::new(role.get("dir")),
                model(),
                Arc::new(disk),
                Vec::new(),
            )
            .await;
            answer_and_go_on(&agent).await;
        });
    }
    let counting = Arc::new(FaultDisk::counting());
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        park(dir.path()).await;
        let agent = agent_on(dir.path(), model(), counting.clone(), Vec::new()).await;
        answer_and_go_on(&agent).await;
        assert_ran_at_most_once(dir.path(), "undisturbed").await;
    });
    let points = KillPoints::new(NAME, &counting);
    points.for_each(20, |kill| {
        let dir = tempfile::tempdir().unwrap();
        lay_out(dir.path());
        block_on(park(dir.path()));
        points.run_child(kill, dir.path(), &[]);
        block_on(async {
            answer_and_go_on(&agent(dir.path(), model()).await).await;
            assert_ran_at_most_once(dir.path(), &kill.place).await;
        });
    });
}

/// Never answers.
struct Silent;

impl Approver for Silent {
    fn name(&self) -> String {
        "nobody".to_owned()
    }

    fn answer<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(std::future::pending())
    }
}

#[test]
fn a_run_that_is_killed_while_it_asks_is_answered_and_resumed_elsewhere() {
    const NAME: &str =
        "approval_crashes::a_run_that_is_killed_while_it_asks_is_answered_and_resumed_elsewhere";
    if let Some(role) = child_role() {
        return block_on(async {
            let agent = agent(Path::new(role.get("dir")), model()).await;
            match role.get("does") {
                "ask" => {
                    let options = RunOptions {
                        approvals: ApprovalPolicy::Ask(Arc::new(Silent)),
                        ..RunOptions::default()
                    };
                    drop(agent.session(session("s")).run(text("go"), options).await);
                }
                "answer" => {
                    let asked = agent.open_questions(agent.owner()).list().await.unwrap();
                    let reply = ApprovalReply {
                        id: asked[0].id.clone(),
                        args_hash: asked[0].args_hash.clone(),
                        answer: ApprovalAnswer::Edit(edited()),
                    };
                    agent
                        .session(session("s"))
                        .answer(&[reply], "ann", AfterAnswer::Leave, PATIENT)
                        .await
                        .unwrap();
                }
                _ => {
                    let report = agent
                        .session(session("s"))
                        .resume(RunOptions::default())
                        .await
                        .unwrap();
                    assert_eq!(report.outcome, RunOutcome::Completed);
                }
            }
        });
    }
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let child = |does: &str| {
        Child::spawn(
            NAME,
            [
                ("dir", dir.path().display().to_string()),
                ("does", does.to_owned()),
            ],
        )
    };
    let mut asking = child("ask");
    let end = Instant::now() + DEADLINE;
    let asked = || {
        block_on(async {
            let agent = agent(dir.path(), model()).await;
            let lines = agent
                .sessions()
                .read(&session("s"))
                .await
                .unwrap_or_default();
            lines.iter().any(|line| matches!(line.entry, Entry::Ask(_)))
        })
    };
    while !asked() {
        assert!(Instant::now() < end, "it never asked");
        std::thread::sleep(Duration::from_millis(2));
    }
    asking.kill();
    assert_eq!(asking.wait(DEADLINE).death, Death::Signal(9));
    for does in ["answer", "resume"] {
        let ended = child(does).wait(DEADLINE);
        assert_eq!(ended.death, Death::Exit(0), "{does}: {ended}");
    }
    block_on(assert_ran_at_most_once(dir.path(), "killed while it asked"));
    assert_eq!(
        std::fs::read_to_string(dir.path().join("log.txt")).unwrap(),
        "x\ne\n"
    );
}
