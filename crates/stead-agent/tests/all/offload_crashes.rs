//! The place for tests of process kills while content is offloaded: the session stays valid and
//! every named file is whole.

use crate::kill_points::{Kill, KillPoints, doomed_child};
use crate::support::{TestTool, agent_on, block_on, journal, session};
use std::path::Path;
use std::sync::Arc;
use stead_agent::{Agent, AgentError, ApplyMode, RunOptions};
use stead_core::{Block, Entry, Media, Owner, ResultStatus, Risk, RunOutcome};
use stead_model::ScriptedModel;
use stead_store::{Disk, OsDisk, StoreError};
use stead_testkit::FaultDisk;
use stead_tools::{Output, Tool};

const TEST: &str = "offload_crashes::a_kill_anywhere_while_offloading_leaves_a_valid_session";
const SCRIPT: &str = "
- calls: [{tool: big, args: {}, id: c1}]
- calls: [{tool: stream, args: {}, id: c2}]
- text: Done.
";

fn long_text(word: &str) -> String {
    (0..12_000)
        .map(|n| format!("{word} {n} and more of it\n"))
        .collect()
}

fn input() -> Vec<Block> {
    vec![
        Block::text(long_text("message")),
        Block::Media(Media::inline("image/png", "iVBORw0KGgo=", None)),
    ]
}

fn tools() -> Vec<Arc<dyn Tool>> {
    let big = TestTool::make("big", Risk::READS, |_, _| async {
        let image = Block::Media(Media::inline("image/gif", "R0lGODlh", None));
        Ok(Output {
            content: vec![Block::text(long_text("result")), image],
            ..Output::default()
        })
    });
    let stream = TestTool::make("stream", Risk::READS, |cx, _| async move {
        let mut spill = cx.spill();
        for piece in long_text("stream").as_bytes().chunks(60_000) {
            spill.write(piece).await;
        }
        Ok(spill.finish().await)
    });
    vec![big, stream]
}

async fn agent(dir: &Path, disk: Arc<dyn Disk>) -> Arc<Agent> {
    agent_on(
        dir,
        Arc::new(ScriptedModel::parse("s", SCRIPT).unwrap()),
        disk,
        tools(),
    )
    .await
}

/// Every file that the journal names is there, with all that was said.
async fn assert_whole(agent: &Arc<Agent>, dir: &Path, place: &str) {
    let (lines, state) = journal(agent, &session("s")).await;
    assert_eq!(state.last_outcome, Some(RunOutcome::Completed), "{place}");
    let content = lines.iter().flat_map(|line| match &line.entry {
        Entry::User(input) => input.content.clone(),
        Entry::Result(result) => {
            assert_eq!(result.status, ResultStatus::Ok, "{place}: {result:?}");
            result.content.clone()
        }
        _ => Vec::new(),
    });
    let mut seen = Vec::new();
    for block in content {
        match block {
            Block::Text { text } => {
                let Some((_, rest)) = text.split_once("All of it is in ") else {
                    panic!("{place}: {text}")
                };
                let kept =
                    std::fs::read_to_string(dir.join(rest.split(';').next().unwrap())).unwrap();
                seen.push(
                    ["message", "result", "stream"]
                        .into_iter()
                        .find(|word| kept == long_text(word)),
                );
            }
            Block::Media(media) => {
                let kept = std::fs::read(dir.join(media.file.unwrap())).unwrap();
                seen.push(match kept.as_slice() {
                    b"\x89PNG\r\n\x1a\n" => Some("png"),
                    b"GIF89a" => Some("gif"),
                    _ => None,
                });
            }
            Block::Thinking(_) | Block::ToolCall(_) => {}
        }
    }
    let want = ["message", "png", "result", "gif", "stream"].map(Some);
    assert_eq!(seen, want, "{place}");
}

#[test]
fn a_kill_anywhere_while_offloading_leaves_a_valid_session() {
    if let Some((role, disk)) = doomed_child() {
        let disk = Arc::new(disk);
        return block_on(async {
            let agent = agent(Path::new(role.get("dir")), disk).await;
            agent
                .session(session("s"))
                .run(input(), RunOptions::default())
                .await
                .unwrap();
            agent.sessions().flush().await;
        });
    }
    let dir = tempfile::tempdir().unwrap();
    let counting = Arc::new(FaultDisk::counting());
    block_on(async {
        let agent = agent(dir.path(), counting.clone()).await;
        agent
            .session(session("s"))
            .run(input(), RunOptions::default())
            .await
            .unwrap();
        agent.sessions().flush().await;
        assert_whole(&agent, dir.path(), "undisturbed").await;
    });
    let points = KillPoints::new(TEST, &counting);
    points.for_each(60, |kill| kill_and_go_on(&points, kill));
}

fn kill_and_go_on(points: &KillPoints, kill: &Kill) {
    let place = kill.place.as_str();
    let dir = tempfile::tempdir().unwrap();
    points.run_child(kill, dir.path(), &[]);
    block_on(async {
        let agent = agent(dir.path(), Arc::new(OsDisk)).await;
        let mut resumed = agent.session(session("s"));
        match resumed.resume(RunOptions::default()).await {
            Ok(report) => assert_eq!(report.outcome, RunOutcome::Completed, "{place}: {report:?}"),
            Err(AgentError::NothingToResume(_)) if resumed.state().runs > 0 => {}
            // Nothing was acknowledged, so the person says it again.
            Err(AgentError::Store(StoreError::NotFound(_)) | AgentError::NothingToResume(_)) => {
                resumed.run(input(), RunOptions::default()).await.unwrap();
            }
            Err(error) => panic!("{place}: {error}"),
        }
        agent.sessions().flush().await;
        assert_whole(&agent, dir.path(), place).await;
        // What the killed process left goes with the session.
        agent.sessions().remove(&session("s")).await.unwrap();
        let collected = agent
            .collector(&Owner::default())
            .collect(ApplyMode::Apply)
            .await
            .unwrap();
        assert_eq!(collected.offloads, 1, "{place}");
        assert!(
            !dir.path().join("agents/main/offload/s").exists(),
            "{place}"
        );
    });
}
