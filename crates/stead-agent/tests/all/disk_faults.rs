//! The place for tests of disk faults at every operation: a typed error or a tool result, and a
//! session that continues afterwards.

use crate::crash_scenario::{INPUT, assert_truthful, job_model, lay_out, server};
use crate::support::{agent, agent_on, block_on, in_parallel, journal, results, session, text};
use rustix::io::Errno;
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, AgentError, RunOptions, Session};
use stead_core::{ResultStatus, RunOutcome};
use stead_store::{OsDisk, StoreError};
use stead_testkit::{FakeModel, FaultDisk};

#[derive(Debug, Clone, Copy)]
enum Way {
    FailsOnce(Errno),
    FailsFromThere(Errno),
    IsTorn,
}

const WAYS: [Way; 4] = [
    Way::FailsOnce(Errno::IO),
    Way::FailsOnce(Errno::NOSPC),
    Way::FailsFromThere(Errno::NOSPC),
    Way::IsTorn,
];

impl Way {
    fn at(self, n: usize) -> FaultDisk {
        match self {
            Self::FailsOnce(errno) => FaultDisk::fail_at(n, errno),
            Self::FailsFromThere(errno) => FaultDisk::fail_from(n, errno),
            Self::IsTorn => FaultDisk::tear_at(n),
        }
    }
}

#[test]
fn a_fault_anywhere_is_told_and_survived() {
    let server = server();
    let counting = Arc::new(FaultDisk::counting());
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let agent = agent_on(dir.path(), job_model(&server), counting.clone(), Vec::new()).await;
        agent
            .session(session("s"))
            .run(text(INPUT), RunOptions::default())
            .await
            .unwrap();
        agent.sessions().flush().await;
    });
    let ops = counting.ops();
    let mut cases = Vec::new();
    for (i, op) in ops.iter().enumerate() {
        for way in WAYS {
            cases.push((
                i + 1,
                way,
                format!(
                    "operation {} ({:?} {}) {way:?}",
                    i + 1,
                    op.kind,
                    op.name.display()
                ),
            ));
        }
    }
    assert!(cases.len() > 200, "only {} cases", cases.len());
    in_parallel(&cases, |(n, way, place)| {
        fail_and_go_on(&server, *n, *way, place)
    });
    assert_eq!(server.rejections(), Vec::new());
}

fn fail_and_go_on(server: &FakeModel, n: usize, way: Way, place: &str) {
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let disk = Arc::new(way.at(n));
        let faulty = agent_on(dir.path(), job_model(server), disk.clone(), Vec::new()).await;
        let mut live = faulty.session(session("s"));
        let ran = live.run(text(INPUT), RunOptions::default()).await;
        faulty.sessions().flush().await;
        if !disk.fired() {
            // How often the index is written depends on how long the run takes.
            assert!(
                place.contains("sessions.tmp") || place.contains("sessions.json"),
                "{place}: not reached"
            );
            return;
        }
        match &ran {
            Ok(report) => {
                assert_eq!(report.outcome, RunOutcome::Completed, "{place}: {report:?}");
                assert_failures_are_told(&faulty, place).await;
            }
            Err(AgentError::Store(
                StoreError::NoSpace(_)
                | StoreError::Io { .. }
                | StoreError::Broken(_)
                | StoreError::NotFound(_),
            )) => {}
            Err(error) => panic!("{place}: {error}"),
        }
        let agent = agent(dir.path(), job_model(server)).await;
        if agent.sessions().read(&session("s")).await.is_ok() {
            assert_truthful(&agent, dir.path(), place).await;
        }
        match way {
            // The live session itself goes on where the disk works again.
            Way::FailsOnce(_) | Way::IsTorn => go_on(&mut live, dir.path(), place).await,
            Way::FailsFromThere(_) => {
                go_on(&mut agent.session(session("s")), dir.path(), place).await
            }
        }
        assert_truthful(&agent, dir.path(), place).await;
    });
}

async fn go_on(session: &mut Session, dir: &Path, place: &str) {
    let report = match session.resume(RunOptions::default()).await {
        Err(AgentError::Store(StoreError::NotFound(_)) | AgentError::NothingToResume(_)) => {
            let again = if session.state().runs == 0 {
                INPUT
            } else {
                "And now?"
            };
            session.run(text(again), RunOptions::default()).await
        }
        resumed => resumed,
    };
    let report = report.unwrap_or_else(|error| panic!("{place}: {error} in {}", dir.display()));
    assert_eq!(report.outcome, RunOutcome::Completed, "{place}: {report:?}");
}

async fn assert_failures_are_told(agent: &Arc<Agent>, place: &str) {
    let (lines, _) = journal(agent, &session("s")).await;
    for (id, status, said) in results(&lines) {
        let told = said.contains("no space") || said.contains("Input/output");
        assert!(
            status == ResultStatus::Ok || (status == ResultStatus::Error && told),
            "{place}: {id} {status:?} {said}"
        );
    }
}

#[test]
fn a_folder_that_cannot_be_written_is_a_typed_error_and_changes_nothing() {
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(
        dir.path().join("agents"),
        "a file where the folder should be",
    )
    .unwrap();
    block_on(async {
        let agent = agent_on(dir.path(), job_model(&server), Arc::new(OsDisk), Vec::new()).await;
        let error = agent
            .session(session("s"))
            .run(text(INPUT), RunOptions::default())
            .await
            .unwrap_err();
        assert!(matches!(error, AgentError::Store(_)), "{error}");
    });
    assert_eq!(
        server.requests().len(),
        0,
        "the model was asked before the input was durable"
    );
}
