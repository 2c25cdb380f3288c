//! The place for tests of tools that a profile excludes: refused under every name, at every entry
//! point and in subagents.

use super::{Named, agent, outcomes, put, task, workspace};
use crate::subagents::{Says, records};
use crate::support::{block_on, journal, results, session, text};
use serde_json::json;
use stead_agent::{ApprovalPolicy, RunOptions};
use stead_core::{ResultStatus, VerdictKind};
use tokio_util::sync::CancellationToken;

/// Everything that could allow a call does.
const OPEN: &str = "permission_mode: bypass\ncommands: {allow: ['*']}\n\
                    permissions: [{operations: [read, write], paths: ['**'], mode: allow}]\n";
const PROFILE: &str = "for: openai:gpt-5*\nexclude: [Bash, write_file, task, LS]\n";
const BY: &str = "the profile openai:gpt-5* (profiles/p.yaml) excludes";

#[test]
fn by_every_name_and_through_every_door_it_is_refused_with_the_profile_as_the_reason() {
    let dir = workspace(&[
        ("agent.yaml", OPEN),
        ("profiles/p.yaml", PROFILE),
        ("a.txt", "a"),
    ]);
    let write = json!({"file_path": "new.txt", "content": "x"});
    let command = json!({"command": "touch new.txt"});
    let tasks = json!({"agent": "general-purpose", "prompt": "p", "description": "d"});
    let calls = vec![
        ("execute", command.clone(), "execute"),
        ("Bash", command, "execute"),
        ("write_file", write.clone(), "write_file"),
        ("Write", write.clone(), "write_file"),
        ("overwrite_file", write, "overwrite_file"),
        ("task", tasks.clone(), "task"),
        ("SubAgent", tasks, "task"),
        ("ls", json!({}), "ls"),
        ("LS", json!({"anything": 1}), "ls"),
    ];
    let said = calls
        .iter()
        .map(|(name, args, _)| (*name, args.clone()))
        .collect::<Vec<_>>();
    let model = Named::new("openai:gpt-5-mini", move |_, turns, _| match turns {
        0 => Says::Calls(said.clone()),
        _ => Says::Text("ok".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model.clone(), Vec::new()).await;
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let results = outcomes(&lines);
        assert_eq!(results.len(), calls.len());
        for ((name, args, tool), (status, told)) in calls.iter().zip(&results) {
            let rule = format!("{BY} {tool}");
            assert_eq!(
                (*status, told.as_str()),
                (ResultStatus::Denied, format!("denied: {rule}").as_str()),
                "{name}"
            );
            assert!(!model.asked()[0].has(name), "{name} was shown");
            let verdict = agent
                .sessionless()
                .explain(name, args.clone())
                .await
                .unwrap();
            assert_eq!(
                (verdict.kind, verdict.reason.as_str()),
                (VerdictKind::Deny, rule.as_str()),
                "{name}"
            );
            let called = agent
                .sessionless()
                .call_tool(
                    name,
                    args.clone(),
                    &ApprovalPolicy::ApproveAll,
                    CancellationToken::new(),
                )
                .await;
            assert_eq!(called.status, ResultStatus::Denied, "{name}");
        }
        assert!(!dir.path().join("new.txt").exists());
        // What hands work over goes with it.
        assert!(
            !model.asked()[0].has("agent_send")
                && !model.asked()[0].system.contains("## Subagents")
        );
        assert!(
            model.asked()[0].has("read_file") && !model.asked()[0].system.contains("## Commands")
        );
    });
}

#[test]
fn a_rule_that_hides_profiles_from_the_agent_does_not_undo_them_and_it_cannot_change_them() {
    let hiding = "permissions: [{operations: [read, write], paths: ['profiles/**'], mode: deny}]\n";
    for settings in [hiding, ""] {
        let dir = workspace(&[
            ("agent.yaml", settings),
            ("profiles/p.yaml", "for: openai\nexclude: [ls]\n"),
        ]);
        let change = json!({"file_path": "profiles/p.yaml", "content": "for: openai\n"});
        let new = json!({"file_path": "profiles/q.yaml", "content": "for: gemini\n"});
        let model = Named::new("openai:x", move |_, turns, _| match turns {
            0 => Says::Calls(vec![
                ("overwrite_file", change.clone()),
                ("write_file", new.clone()),
                ("ls", json!({})),
            ]),
            _ => Says::Text("ok".into()),
        });
        block_on(async {
            let agent = agent(dir.path(), model.clone(), Vec::new()).await;
            let options = RunOptions {
                approvals: ApprovalPolicy::ApproveAll,
                ..RunOptions::default()
            };
            agent
                .session(session("s"))
                .run(text("go"), options)
                .await
                .unwrap();
            let (lines, _) = journal(&agent, &session("s")).await;
            let statuses: Vec<ResultStatus> = outcomes(&lines)
                .into_iter()
                .map(|(status, _)| status)
                .collect();
            assert_eq!(statuses, [ResultStatus::Denied; 3], "{settings:?}");
            assert!(!model.asked()[0].has("ls"));
            assert!(!dir.path().join("profiles/q.yaml").exists());
        });
    }
}

#[test]
fn a_call_that_was_asked_about_is_refused_if_a_profile_excludes_it_before_the_answer() {
    let dir = workspace(&[("agent.yaml", "approvals: {write_file: true}\n")]);
    let model = Named::new("openai:x", |_, turns, _| match turns {
        0 => Says::Calls(vec![(
            "write_file",
            json!({"file_path": "a.txt", "content": "a"}),
        )]),
        _ => Says::Text("ok".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model, Vec::new()).await;
        let mut session = agent.session(session("s"));
        let parked = session
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        assert_eq!(parked.outcome, stead_core::RunOutcome::Parked);
        put(
            dir.path(),
            "profiles/p.yaml",
            "for: openai\nexclude: [Write]\n",
        );
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        session.resume(options).await.unwrap();
        let (lines, _) = journal(&agent, session.id()).await;
        let (_, status, told) = results(&lines).remove(0);
        assert_eq!(
            (status, told.as_str()),
            (
                ResultStatus::Denied,
                "denied: the profile openai (profiles/p.yaml) excludes write_file"
            )
        );
        assert!(!dir.path().join("a.txt").exists());
    });
}

#[test]
fn a_child_has_the_profile_of_its_own_model() {
    let child = "---\ndescription: Helps.\nmodel: gemini:flash\n---\nYou help.\n";
    let dir = workspace(&[
        ("agent.yaml", "model: openai:gpt-5\n"),
        ("subagents/helper.md", child),
        (
            "profiles/a.yaml",
            "for: openai\nexclude: [ls]\nprompt_suffix: for openai\n",
        ),
        (
            "profiles/b.yaml",
            "for: gemini\nexclude: [glob_files]\nsurface: title\nprompt_suffix: for gemini\n",
        ),
    ]);
    let decide = |task_: &str, turns: usize, _: &stead_model::Request| match (task_, turns) {
        ("lead", 0) => Says::Calls(vec![
            task("helper", "look"),
            task("general-purpose", "look too"),
        ]),
        ("look" | "look too", 0) => Says::Calls(vec![
            ("ls", json!({})),
            ("Glob", json!({"pattern": "*"})),
            ("Grep", json!({"pattern": "x"})),
        ]),
        (_, _) => Says::Text("done".into()),
    };
    let main = Named::new("openai:gpt-5", decide);
    let other = Named::new("gemini:flash", decide);
    block_on(async {
        let agent = agent(dir.path(), main.clone(), vec![other.clone()]).await;
        agent
            .session(session("s"))
            .run(text("lead"), RunOptions::default())
            .await
            .unwrap();
        for record in records(dir.path(), "s") {
            let (lines, _) = journal(&agent, &record.sub_session_id).await;
            let statuses: Vec<ResultStatus> = outcomes(&lines)
                .into_iter()
                .map(|(status, _)| status)
                .collect();
            let [ls, glob, _] = statuses[..] else {
                panic!("{statuses:?}")
            };
            let want = match record.sub_agent_id.as_str() {
                "helper" => (ResultStatus::Ok, ResultStatus::Denied),
                _ => (ResultStatus::Denied, ResultStatus::Ok),
            };
            assert_eq!((ls, glob), want, "{}", record.sub_agent_id);
        }
        let asked = &other.asked()[0];
        assert!(
            asked.system.ends_with("for gemini")
                && asked.has("Read")
                && asked.has("LS")
                && !asked.has("Glob")
        );
        assert!(
            main.asked()
                .iter()
                .all(|asked| asked.system.ends_with("for openai") && !asked.has("ls"))
        );
    });
}
