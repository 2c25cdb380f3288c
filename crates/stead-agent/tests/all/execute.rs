//! The place for tests of the `execute` tool in a run: approval, own timeout, cancellation,
//! concurrency and output caps.

use crate::support::{
    agent_with_host, block_on, journal, listening, model, results, session, text,
};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use stead_agent::{Agent, ApprovalPolicy, RunOptions, RunReport};
use stead_core::{Entry, EventKind, Owner, ResultStatus, RunOutcome, UserId};
use stead_model::ScriptedModel;
use stead_testkit::{Child, Death, FakeModel, FakeWire, child_role, reply};

const FLOODS: &str = "execute::floods_need_a_fixed_amount_of_memory_and_are_stopped_at_the_cap";
const MB: u64 = 1024 * 1024;
const CAP: u64 = 64 * MB;

/// A model that runs `command` and is done.
fn runs(command: &str, more: &str) -> Arc<ScriptedModel> {
    let command = serde_json::to_string(command).unwrap();
    let script = format!(
        "- calls: [{{tool: execute, args: {{command: {command}{more}}}, id: c1}}]\n- text: Done."
    );
    Arc::new(ScriptedModel::parse("s", &script).unwrap())
}

async fn approved(agent: &Arc<Agent>, options: RunOptions) -> RunReport {
    let options = RunOptions {
        approvals: ApprovalPolicy::ApproveAll,
        ..options
    };
    agent
        .session(session("s"))
        .run(text("Go."), options)
        .await
        .unwrap()
}

/// The status and the text of the one result.
async fn result(agent: &Arc<Agent>) -> (ResultStatus, String) {
    let (lines, _) = journal(agent, &session("s")).await;
    let [(_, status, text)] = results(&lines).try_into().unwrap();
    (status, text)
}

/// Processes whose command line has `words`.
fn alive(words: &str) -> Vec<String> {
    let lines = std::fs::read_dir("/proc").unwrap().flatten();
    let lines =
        lines.filter_map(|entry| std::fs::read_to_string(entry.path().join("cmdline")).ok());
    lines
        .map(|line| line.replace('\0', " "))
        .filter(|line| line.contains(words))
        .collect()
}

// 6: execute
#[test]
fn a_command_asks_and_runs_once_it_may() {
    for (approvals, outcome, ran) in [
        (ApprovalPolicy::Park, RunOutcome::Parked, false),
        (ApprovalPolicy::DenyAll, RunOutcome::Completed, false),
        (ApprovalPolicy::ApproveAll, RunOutcome::Completed, true),
    ] {
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let agent = agent_with_host(
                dir.path(),
                runs("echo x >> ran; echo out; echo err >&2; exit 3", ""),
            )
            .await;
            let (options, heard) = listening();
            let options = RunOptions {
                approvals: approvals.clone(),
                ..options
            };
            let mut live = agent.session(session("s"));
            let report = live.run(text("Go."), options).await.unwrap();
            assert_eq!(report.outcome, outcome, "{approvals:?}");
            assert_eq!(dir.path().join("ran").exists(), ran, "{approvals:?}");
            if outcome == RunOutcome::Parked {
                let rules: Vec<String> = live
                    .open_questions()
                    .into_iter()
                    .map(|question| question.rule)
                    .collect();
                assert_eq!(
                    rules,
                    [
                        "mode default: commands outside a sandbox need approval (no rule allows `echo`)"
                    ]
                );
            }
            if ran {
                assert_eq!(
                    result(&agent).await,
                    (ResultStatus::Ok, "[exit code 3]\nout\nerr\n".to_owned())
                );
                let deltas = heard.lock().unwrap().iter().any(|event| {
                    matches!(&event.kind, EventKind::ToolOutputDelta { id, text } if id == "c1" && text.contains("out"))
                });
                assert!(deltas, "what it writes is told while it runs");
                let (lines, _) = journal(&agent, &session("s")).await;
                let untrusted = lines
                    .iter()
                    .any(|line| matches!(&line.entry, Entry::Result(r) if r.untrusted));
                assert!(untrusted, "nobody vouches for what a program says");
            }
        });
    }
}

// 6: execute
#[test]
fn a_command_may_take_longer_than_any_other_call_and_ends_when_its_own_time_is_up() {
    let settings = "policy: {tool_timeout_seconds: 1}\n";
    #[rustfmt::skip]
    let table = [
        ("sleep 2; echo late", ", timeout: 20", ResultStatus::Ok, "[exit code 0]\nlate\n"),
        ("trap '' TERM; echo begun; while :; do sleep 0.05; done", "", ResultStatus::Error,
            "[timed out after 1 s: the command and all it had started were stopped; `timeout` can give it more, at most \
             600 s]\nbegun\n"),
        ("true", ", timeout: 601", ResultStatus::Error,
            "a command may take 600 seconds at most, and this call asks for 601; split the work, or have a person raise \
             policy.tool_timeout_seconds"),
        ("true", ", cwd: ../..", ResultStatus::Denied, "denied: "),
    ];
    for (command, more, status, expected) in table {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("agent.yaml"), settings).unwrap();
        block_on(async {
            let agent = agent_with_host(dir.path(), runs(command, more)).await;
            assert_eq!(
                approved(&agent, RunOptions::default()).await.outcome,
                RunOutcome::Completed
            );
            let (found, said) = result(&agent).await;
            assert_eq!(found, status, "{command}: {said}");
            assert!(
                said == expected || (expected.ends_with(": ") && said.starts_with(expected)),
                "{command}: {said}"
            );
        });
    }
}

// 6: execute
#[test]
fn cancelling_a_run_leaves_nothing_of_its_command() {
    let dir = tempfile::tempdir().unwrap();
    let name = format!("987{}", std::process::id());
    let command = format!(
        "trap '' TERM; setsid sleep {name} & (setsid nohup sleep {name} >/dev/null 2>&1 &); touch up; while :; do sleep 0.05; done"
    );
    block_on(async {
        let agent = agent_with_host(dir.path(), runs(&command, "")).await;
        let options = RunOptions::default();
        let cancel = options.cancel.clone();
        let mut asked = Instant::now();
        let (report, ()) = tokio::join!(approved(&agent, options), async {
            while !dir.path().join("up").exists() || alive(&format!("sleep {name}")).len() < 3 {
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
            asked = Instant::now();
            cancel.cancel();
        });
        assert_eq!(report.outcome, RunOutcome::Cancelled);
        assert!(
            asked.elapsed() < Duration::from_secs(2),
            "{:?}",
            asked.elapsed()
        );
        assert_eq!(alive(&name), Vec::<String>::new());
        let (status, said) = result(&agent).await;
        assert!(
            status == ResultStatus::Cancelled && said.contains("cancelled: "),
            "{status:?} {said}"
        );
    });
}

// 6: execute
#[test]
fn eight_sessions_run_commands_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let command = "touch here-$$; until [ $(ls | grep -c here-) = 8 ]; do sleep 0.02; done; touch seen-$$; \
                   until [ $(ls | grep -c seen-) = 8 ]; do sleep 0.02; done; echo all";
    let server = FakeModel::start_with(move |request| match request.result_count() {
        0 => reply().call("execute", json!({"command": command})),
        _ => reply().text("Done."),
    });
    block_on(async {
        let agent = agent_with_host(dir.path(), model(&server, FakeWire::Messages)).await;
        let work = (0..8).map(|n| {
            let mut live = agent.session(session(&format!("s{n}")));
            let options = RunOptions {
                approvals: ApprovalPolicy::ApproveAll,
                ..RunOptions::default()
            };
            async move { live.run(text("Go."), options).await.unwrap().outcome }
        });
        let outcomes = futures_util::future::join_all(work).await;
        assert_eq!(outcomes, vec![RunOutcome::Completed; 8]);
        for n in 0..8 {
            let (lines, _) = journal(&agent, &session(&format!("s{n}"))).await;
            assert_eq!(results(&lines)[0].2, "[exit code 0]\nall\n", "{n}");
        }
    });
}

// 6: execute
#[test]
fn only_a_tree_that_is_a_folder_has_commands() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent_with_host(dir.path(), runs("true", "")).await;
        let ann = Owner {
            user: UserId::new("ann").unwrap(),
            ..Owner::default()
        };
        for (owner, has) in [(Owner::default(), true), (ann, false)] {
            let turn = agent.sessionless().for_owner(&owner).turn().await.unwrap();
            assert_eq!(turn.tools.find("Bash").is_some(), has, "{owner:?}");
            assert_eq!(
                turn.prompt
                    .sections
                    .iter()
                    .any(|section| section.title == "commands"),
                has,
                "{owner:?}"
            );
        }
    });
}

/// Megabytes of memory: now, or the most there ever were.
fn memory_mb(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status
        .lines()
        .find_map(|line| line.strip_prefix(field))
        .unwrap();
    line.trim_start_matches(':')
        .trim()
        .trim_end_matches(" kB")
        .trim()
        .parse::<u64>()
        .unwrap()
        / 1024
}

/// The child: runs one command and says what it needed.
fn flood(dir: &Path, command: &str) {
    block_on(async {
        let agent = agent_with_host(dir, runs(command, ", timeout: 60")).await;
        let before = memory_mb("VmRSS");
        let report = approved(&agent, RunOptions::default()).await;
        assert_eq!(report.outcome, RunOutcome::Completed, "{report:?}");
        println!("\ngrew {}", memory_mb("VmHWM").saturating_sub(before));
        println!("\ntold {}", result(&agent).await.1.replace('\n', "\u{1}"));
    });
}

// 6: execute
#[test]
fn floods_need_a_fixed_amount_of_memory_and_are_stopped_at_the_cap() {
    if let Some(role) = child_role() {
        return flood(Path::new(role.get("dir")), role.get("command"));
    }
    let full = "[stopped: the command wrote more than is kept; let it write less, or to a file]";
    let mark = format!("no-end-{}", std::process::id());
    let table = [
        (
            "100 MB",
            "head -c 104857600 /dev/zero | tr '\\0' 'x'".to_owned(),
            CAP,
            full,
        ),
        ("endless", format!("yes {mark}"), CAP, full),
        (
            "endless and deaf",
            format!("trap '' TERM; while :; do yes {mark}; done"),
            CAP,
            full,
        ),
        (
            "30 MB",
            "head -c 31457280 /dev/zero | tr '\\0' 'x'; exit 4".to_owned(),
            30 * MB,
            "[exit code 4]",
        ),
    ];
    for (case, command, kept, how) in table {
        let dir = tempfile::tempdir().unwrap();
        let told = [
            ("dir", dir.path().to_str().unwrap()),
            ("command", command.as_str()),
        ];
        let ended = Child::spawn(FLOODS, told).wait(Duration::from_secs(60));
        assert_eq!(ended.death, Death::Exit(0), "{case}: {ended}");
        let said = |key: &str| {
            ended
                .stdout
                .lines()
                .find_map(|line| line.strip_prefix(key))
                .unwrap()
                .to_owned()
        };
        let grew: u64 = said("grew ").parse().unwrap();
        assert!(grew <= 64, "{case}: {grew} MB");
        let told = said("told ").replace('\u{1}', "\n");
        assert!(told.starts_with(how), "{case}: {told}");
        assert!(
            told.contains("agents/main/offload/s/c1.txt") && told.len() < 6_000,
            "{case}: {told}"
        );
        let file = std::fs::metadata(dir.path().join("agents/main/offload/s/c1.txt")).unwrap();
        assert_eq!(file.len(), kept, "{case}");
    }
    assert_eq!(alive(&format!("yes {mark}")), Vec::<String>::new());
}
