//! The place for tests of process kills at every disk operation of a run: nothing acknowledged is
//! lost, nothing runs twice, and syncs happen before acknowledgement.

use crate::crash_scenario::{
    INPUT, assert_files_whole, assert_truthful, assert_undoable, contents, job_model, lay_out,
    server,
};
use crate::kill_points::{Kill, KillPoints, doomed_child};
use crate::support::{agent, agent_on, block_on, journal, session, text};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;
use stead_agent::{AgentError, RunOptions};
use stead_core::{Entry, Event, EventKind, ResultStatus, RunOutcome};
use stead_store::StoreError;
use stead_testkit::{Child, Death, DiskOpKind, FakeModel, FaultDisk, KillPoint, child_role};

const TEST: &str = "crashes::a_kill_anywhere_loses_nothing_and_repeats_nothing";

#[test]
fn a_kill_anywhere_loses_nothing_and_repeats_nothing() {
    if let Some((role, disk)) = doomed_child() {
        return work_until_killed(Path::new(role.get("dir")), role.get("url"), disk);
    }
    let server = server();
    let counting = Arc::new(FaultDisk::counting());
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    block_on(async {
        let agent = agent_on(dir.path(), job_model(&server), counting.clone(), Vec::new()).await;
        let report = agent
            .session(session("s"))
            .run(text(INPUT), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done")
        );
        agent.sessions().flush().await;
        assert_truthful(&agent, dir.path(), "undisturbed").await;
    });
    let points = KillPoints::new(TEST, &counting);
    points.for_each(100, |kill| kill_and_go_on(&server, &points, kill));
    assert_eq!(server.rejections(), Vec::new());
}

/// The child: works on the job and says on standard output what is acknowledged.
fn work_until_killed(dir: &Path, url: &str, disk: FaultDisk) {
    let settings = stead_model::ModelSettings {
        name: "openai:x".into(),
        base_url: Some(url.to_owned()),
        max_retries: Some(0),
        ..Default::default()
    };
    block_on(async {
        let model = stead_model::connect(&settings, &|_| None).unwrap();
        let agent = agent_on(dir, model, Arc::new(disk), Vec::new()).await;
        let listener = Arc::new(|event: &Event| match &event.kind {
            EventKind::RunStarted { .. } => println!("\nacknowledged input"),
            EventKind::ToolEnded { id, .. } => println!("\nacknowledged {id}"),
            EventKind::RunEnded { .. } => println!("\nacknowledged end"),
            _ => {}
        });
        let options = RunOptions {
            listener,
            ..RunOptions::default()
        };
        agent
            .session(session("s"))
            .run(text(INPUT), options)
            .await
            .unwrap();
        agent.sessions().flush().await;
    });
}

fn kill_and_go_on(server: &FakeModel, points: &KillPoints, kill: &Kill) {
    let place = kill.place.as_str();
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let laid_out = contents(dir.path());
    let ended = points.run_child(kill, dir.path(), &[("url", server.openai_url())]);
    block_on(async {
        let agent = agent(dir.path(), job_model(server)).await;
        let acknowledged: Vec<&str> = ended
            .stdout
            .lines()
            .filter_map(|l| l.strip_prefix("acknowledged "))
            .collect();
        assert_acknowledged(&agent, &acknowledged, place).await;
        assert_new_input_is_heard(server, dir.path(), place).await;

        let mut session = agent.session(session("s"));
        let report = match session.resume(RunOptions::default()).await {
            Ok(report) => report,
            // Nothing was acknowledged, so the person says it again.
            Err(AgentError::Store(StoreError::NotFound(_))) => session
                .run(text(INPUT), RunOptions::default())
                .await
                .unwrap(),
            Err(AgentError::NothingToResume(_)) if session.state().runs == 0 => session
                .run(text(INPUT), RunOptions::default())
                .await
                .unwrap(),
            Err(AgentError::NothingToResume(_)) => {
                assert_eq!(
                    session.state().last_outcome,
                    Some(RunOutcome::Completed),
                    "{place}"
                );
                session
                    .run(text("And now?"), RunOptions::default())
                    .await
                    .unwrap()
            }
            Err(error) => panic!("{place}: {error}"),
        };
        assert_eq!(report.outcome, RunOutcome::Completed, "{place}: {report:?}");
        agent.sessions().flush().await;
        assert_truthful(&agent, dir.path(), place).await;
        assert_interrupted_calls_say_so(&agent, place).await;
        let listed = agent.sessions().list_all().await.unwrap();
        assert_eq!(
            listed
                .iter()
                .map(|s| (s.outcome, s.damage.clone()))
                .collect::<Vec<_>>(),
            [(Some(RunOutcome::Completed), None)]
        );
        assert_undoable(&agent, dir.path(), &laid_out, place).await;
    });
}

/// A person who does not resume but says something else is heard, and the history stays valid: in a
/// copy, so that the session itself can be resumed.
async fn assert_new_input_is_heard(server: &FakeModel, dir: &Path, place: &str) {
    let copy = tempfile::tempdir().unwrap();
    copy_tree(dir, copy.path());
    let agent = agent(copy.path(), job_model(server)).await;
    let report = agent
        .session(session("s"))
        .run(text("Never mind."), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Completed, "{place}: {report:?}");
    assert_truthful(&agent, copy.path(), place).await;
    assert_interrupted_calls_say_so(&agent, place).await;
}

fn copy_tree(from: &Path, to: &Path) {
    for entry in std::fs::read_dir(from).unwrap().flatten() {
        let target = to.join(entry.file_name());
        if entry.path().is_dir() {
            std::fs::create_dir(&target).unwrap();
            copy_tree(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// What the child said was acknowledged is in the journal, which is sound but for its last line.
async fn assert_acknowledged(agent: &Arc<stead_agent::Agent>, acknowledged: &[&str], place: &str) {
    let lines = match agent.sessions().read(&session("s")).await {
        Ok(lines) => lines,
        Err(StoreError::NotFound(_)) => Vec::new(),
        Err(error) => panic!("{place}: {error}"),
    };
    for what in acknowledged {
        let found = lines.iter().any(|line| match &line.entry {
            Entry::User(input) => *what == "input" && input.content == text(INPUT),
            Entry::Result(result) => result.id == *what,
            Entry::End(_) => *what == "end",
            _ => false,
        });
        assert!(found, "{place}: {what} was acknowledged and is lost");
    }
}

async fn assert_interrupted_calls_say_so(agent: &Arc<stead_agent::Agent>, place: &str) {
    let (lines, _) = journal(agent, &session("s")).await;
    for (id, status, said) in crate::support::results(&lines) {
        let honest =
            (status == ResultStatus::Interrupted) == said.starts_with("interrupted: may have run");
        assert!(
            honest && status != ResultStatus::Error,
            "{place}: {id} {status:?} {said}"
        );
    }
}

#[test]
fn a_second_kill_while_going_on_is_no_worse_than_the_first() {
    const NAME: &str = "crashes::a_second_kill_while_going_on_is_no_worse_than_the_first";
    if let Some(role) = child_role() {
        let disk = FaultDisk::kill_at(role.get("n").parse().unwrap(), KillPoint::Torn);
        let settings = stead_model::ModelSettings {
            name: "openai:x".into(),
            base_url: Some(role.get("url").to_owned()),
            max_retries: Some(0),
            ..Default::default()
        };
        return block_on(async {
            let model = stead_model::connect(&settings, &|_| None).unwrap();
            let agent = agent_on(
                Path::new(role.get("dir")),
                model,
                Arc::new(disk),
                Vec::new(),
            )
            .await;
            let mut session = agent.session(session("s"));
            let ran = match role.get("begin") {
                "yes" => session.run(text(INPUT), RunOptions::default()).await,
                _ => session.resume(RunOptions::default()).await,
            };
            // The life before was killed after the end was recorded.
            assert!(
                matches!(ran, Ok(_) | Err(AgentError::NothingToResume(_))),
                "{ran:?}"
            );
        });
    }
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    lay_out(dir.path());
    let mut begin = "yes";
    // Each life gets a little further than the one before it.
    for life in 0..40 {
        let n = if begin == "yes" { 30 } else { 4 + life };
        let path = dir.path().to_str().unwrap().to_owned();
        let told = [
            ("n", n.to_string()),
            ("url", server.openai_url()),
            ("dir", path),
            ("begin", begin.to_owned()),
        ];
        let ended = Child::spawn(NAME, told).wait(Duration::from_secs(30));
        begin = "no";
        assert_files_whole(dir.path(), &format!("life {life}"));
        match ended.death {
            Death::Signal(9) => {}
            Death::Exit(0) => {
                block_on(async {
                    let agent = agent(dir.path(), job_model(&server)).await;
                    assert_truthful(&agent, dir.path(), "after many lives").await;
                    let (_, state) = journal(&agent, &session("s")).await;
                    assert_eq!(
                        (state.last_outcome, state.final_text().as_str()),
                        (Some(RunOutcome::Completed), "done")
                    );
                });
                assert_eq!(server.rejections(), Vec::new());
                return;
            }
            other => panic!("life {life}: {other:?} {ended}"),
        }
    }
    panic!("the job was never done");
}

#[test]
fn nothing_is_acknowledged_or_begun_before_the_journal_is_synced() {
    let server = server();
    let dir = tempfile::tempdir().unwrap();
    let disk = Arc::new(FaultDisk::counting());
    lay_out(dir.path());
    let seen = disk.clone();
    let checked = Arc::new(AtomicUsize::new(0));
    let count = checked.clone();
    let listener = Arc::new(move |event: &Event| {
        let changing = |name: &str| name != "read_file";
        let durable = match &event.kind {
            EventKind::RunStarted { .. } | EventKind::RunEnded { .. } => true,
            // A result needs no sync: until it is durable, the intent says that the call may have
            // run.
            EventKind::ToolStarted { name, .. } => changing(name),
            _ => false,
        };
        if durable {
            let ops = seen.ops();
            let last = ops
                .iter()
                .rfind(|op| op.name.as_os_str() == "s.log.jsonl")
                .unwrap();
            assert_eq!(last.kind, DiskOpKind::Sync, "{:?}", event.kind);
            count.fetch_add(1, Ordering::SeqCst);
        }
    });
    block_on(async {
        let agent = agent_on(dir.path(), job_model(&server), disk.clone(), Vec::new()).await;
        let options = RunOptions {
            listener,
            ..RunOptions::default()
        };
        agent
            .session(session("s"))
            .run(text(INPUT), options)
            .await
            .unwrap();
    });
    // The run's two ends, and the beginnings of six changes.
    assert_eq!(checked.load(Ordering::SeqCst), 2 + 6);
}
