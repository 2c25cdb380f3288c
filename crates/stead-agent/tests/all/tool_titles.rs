//! The place for tests of tools called by their title names: the gate and the journal use the
//! canonical name.

use crate::support::{block_on, journal, model, results, session, text};
use serde_json::json;
use stead_agent::{Agent, ApprovalPolicy, RunOptions};
use stead_core::{Entry, ResultStatus, RunOutcome};
use stead_testkit::{FakeModel, FakeWire, reply};
use stead_tools::Surface;
use stead_workspace::ToolLists;

#[test]
fn a_call_by_title_is_asked_about_denied_and_recorded_as_the_canonical_tool() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("agent.yaml"), "approvals: {Write: true}\n").unwrap();
    std::fs::write(dir.path().join("a.txt"), "one\ntwo\n").unwrap();
    let server = FakeModel::start_with(|request| match request.result_count() {
        0 => reply()
            .call("Read", json!({"file_path": "/a.txt", "offset": 2}))
            .call("Write", json!({"file_path": "a.txt", "content": "new\n"}))
            .call(
                "Edit",
                json!({"file_path": "agent.yaml", "old_string": "true", "new_string": "false"}),
            )
            .call("Grep", json!({"pattern": "new"})),
        _ => reply().text("done"),
    });
    block_on(async {
        let allow = ["read_file", "Write", "Edit", "delete"]
            .map(str::to_owned)
            .into();
        let agent = Agent::builder()
            .layout(stead_workspace::Layout::Stead)
            .workspace(dir.path())
            .model_arc(model(&server, FakeWire::Messages))
            .surface(Surface::Title)
            .tool_lists(ToolLists {
                allow: Some(allow),
                deny: Vec::new(),
            })
            .build()
            .await
            .unwrap();
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let report = agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let (lines, _) = journal(&agent, &session("s")).await;
        let intents: Vec<&str> = lines
            .iter()
            .filter_map(|line| {
                if let Entry::Call(call) = &line.entry {
                    Some(call.tool.as_str())
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(intents, ["read_file", "write_file"]);
        let asked: Vec<&str> = lines
            .iter()
            .filter_map(|line| {
                if let Entry::Ask(ask) = &line.entry {
                    Some(ask.rule.as_str())
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(asked, ["approvals: write_file: true"]);
        let mut told: Vec<(ResultStatus, String)> = results(&lines)
            .into_iter()
            .map(|(_, status, text)| (status, text))
            .collect();
        told.sort_by(|a, b| a.1.cmp(&b.1));
        let expected = [
            (ResultStatus::Ok, "     2  two"),
            (ResultStatus::Ok, "Wrote a.txt (1 line, 4 bytes)"),
            (
                ResultStatus::Denied,
                "denied: protected: agent.yaml cannot be changed by the agent",
            ),
            (
                ResultStatus::Denied,
                "denied: the lists of tools leave grep_files out",
            ),
        ];
        assert_eq!(
            told,
            expected.map(|(status, text)| (status, text.to_owned()))
        );
    });
    let names = server.requests()[0].seen.as_ref().unwrap().tools.clone();
    assert_eq!(names, ["Edit", "Read", "Write", "delete_file"]);
    assert_eq!(server.rejections(), Vec::new());
}
