//! The place for tests of answers to approval questions: every kind of answer, stale or expired
//! answers, races between answerers, "always" grants, previews and client-executed tools.

use crate::support::{
    agent, agent_on, agent_with_host, block_on, journal, listening, results, session, text,
};
use futures_util::future::BoxFuture;
use serde_json::{Value, json};
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use stead_agent::{
    AfterAnswer, Agent, AgentError, ApprovalAnswer, ApprovalError, ApprovalPolicy,
    ApprovalQuestion, ApprovalReply, Approver, GrantScope, OpenQuestion, RunOptions,
};
use stead_core::{
    Ask, AskTerms, Block, Decision, DecisionKind, Entry, EventKind, ModelReply, NewSession,
    ResultStatus, Risk, RunId, RunOutcome, StopReason, ToolCall, ToolEffect, ToolSpec, Usage,
    UserInput, args_hash,
};
use stead_model::ScriptedModel;
use stead_store::{LockWait, OsDisk};
use stead_tools::client_tool;

const PATIENT: LockWait = LockWait::AtMost(Duration::from_secs(20));
const TWO: &str = "- calls:\n  - {tool: write_file, args: {file_path: log.txt, content: \"y\\n\", mode: append}}\n  \
                   - {tool: write_file, args: {file_path: log.txt, content: \"z\\n\", mode: append}}\n- text: done\n";
const ONE: &str = "- calls: [{tool: write_file, args: {file_path: log.txt, content: \"y\\n\", mode: append}}]\n\
                   - text: done\n";
const ALL_WAYS: &str = "approvals: {write_file: {decisions: [approve, edit, reject, respond]}}\n";

fn scripted(script: &str) -> Arc<ScriptedModel> {
    Arc::new(ScriptedModel::parse("test", script).unwrap())
}

/// A folder with these settings, and an agent in it that plays `script`.
async fn agent_in(dir: &Path, settings: &str, script: &str) -> Arc<Agent> {
    std::fs::write(dir.join("agent.yaml"), settings).unwrap();
    if !dir.join("log.txt").exists() {
        std::fs::write(dir.join("log.txt"), "x\n").unwrap();
    }
    agent(dir, scripted(script)).await
}

/// The questions of a run that parked.
async fn parked(agent: &Arc<Agent>) -> Vec<OpenQuestion> {
    let mut session = agent.session(session("s"));
    let report = session
        .run(text("go"), RunOptions::default())
        .await
        .unwrap();
    assert_eq!(report.outcome, RunOutcome::Parked, "{report:?}");
    session.open_questions()
}

fn reply(question: &OpenQuestion, answer: ApprovalAnswer) -> ApprovalReply {
    ApprovalReply {
        id: question.id.clone(),
        args_hash: question.args_hash.clone(),
        answer,
    }
}

fn log(dir: &Path) -> String {
    std::fs::read_to_string(dir.join("log.txt")).unwrap()
}

async fn resumed(agent: &Arc<Agent>) -> (RunOutcome, String) {
    let report = agent
        .session(session("s"))
        .resume(RunOptions::default())
        .await
        .unwrap();
    (report.outcome, report.text)
}

#[test]
fn each_way_to_answer_has_its_effect_and_the_model_is_told() {
    let edited = json!({"file_path": "log.txt", "content": "e\n", "mode": "append"});
    let note = format!("[ann changed the arguments of this call; it is about: {edited}]");
    let no = |words: &str| ApprovalAnswer::No {
        reason: Some(words.to_owned()),
    };
    let rows = [
        (
            ApprovalAnswer::Yes,
            DecisionKind::Approve,
            "x\ny\n",
            ResultStatus::Ok,
            "Appended to log.txt (1 line, 2 bytes)".into(),
        ),
        (
            ApprovalAnswer::Edit(edited.clone()),
            DecisionKind::Edit,
            "x\ne\n",
            ResultStatus::Ok,
            format!("{note}\n\nAppended to log.txt (1 line, 2 bytes)"),
        ),
        (
            no("not there"),
            DecisionKind::Reject,
            "x\n",
            ResultStatus::Denied,
            "denied: ann said no to this call: not there".to_owned(),
        ),
        (
            ApprovalAnswer::Respond("it is done".into()),
            DecisionKind::Respond,
            "x\n",
            ResultStatus::Ok,
            "it is done".to_owned(),
        ),
    ];
    for (answer, kind, content, status, told) in rows {
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let asked = parked(&agent_in(dir.path(), ALL_WAYS, ONE).await).await;
            let elsewhere = agent_in(dir.path(), ALL_WAYS, ONE).await;
            assert_eq!(
                elsewhere
                    .open_questions(elsewhere.owner())
                    .list()
                    .await
                    .unwrap(),
                asked
            );
            let replies = [reply(&asked[0], answer.clone())];
            let answered = elsewhere
                .session(session("s"))
                .answer(&replies, "ann", AfterAnswer::Leave, PATIENT)
                .await
                .unwrap();
            let kinds: Vec<DecisionKind> = answered.decisions.iter().map(Decision::kind).collect();
            assert_eq!(
                (kinds, answered.still_open, answered.grants),
                (vec![kind], vec![], vec![])
            );
            assert_eq!(
                elsewhere
                    .open_questions(elsewhere.owner())
                    .list()
                    .await
                    .unwrap(),
                []
            );
            assert_eq!(log(dir.path()), "x\n", "answering runs nothing");
            let third = agent_in(dir.path(), ALL_WAYS, ONE).await;
            assert_eq!(
                resumed(&third).await,
                (RunOutcome::Completed, "done".to_owned())
            );
            let (lines, _) = journal(&third, &session("s")).await;
            let found: Vec<_> = results(&lines)
                .into_iter()
                .map(|(_, status, said)| (status, said))
                .collect();
            assert_eq!(found, [(status, told)], "{kind:?}");
            let ran: Vec<String> = lines
                .iter()
                .filter_map(|line| {
                    if let Entry::Call(call) = &line.entry {
                        Some(call.args_hash.clone())
                    } else {
                        None
                    }
                })
                .collect();
            let expected = match kind {
                DecisionKind::Approve => vec![asked[0].args_hash.clone()],
                DecisionKind::Edit => vec![args_hash(&edited)],
                DecisionKind::Reject | DecisionKind::Respond => vec![],
            };
            assert_eq!(ran, expected, "what ran is what was approved");
        });
        assert_eq!(log(dir.path()), content, "{kind:?}");
    }
}

#[test]
fn partial_answers_wait_for_the_rest() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent_in(dir.path(), ALL_WAYS, TWO).await;
        let asked = parked(&agent).await;
        let first = agent
            .session(session("s"))
            .answer(
                &[reply(&asked[0], ApprovalAnswer::Yes)],
                "ann",
                AfterAnswer::Leave,
                PATIENT,
            )
            .await
            .unwrap();
        assert_eq!(first.still_open, asked[1..]);
        assert_eq!(resumed(&agent).await.0, RunOutcome::Parked);
        assert_eq!(log(dir.path()), "x\n");
        let rest = agent
            .session(session("s"))
            .answer(
                &[reply(&asked[1], ApprovalAnswer::no())],
                "bob",
                AfterAnswer::Leave,
                PATIENT,
            )
            .await
            .unwrap();
        assert_eq!(rest.still_open, []);
        assert_eq!(resumed(&agent).await.0, RunOutcome::Completed);
        assert_eq!(log(dir.path()), "x\ny\n");
    });
}

#[test]
fn an_answer_that_does_not_fit_its_question_leaves_no_trace() {
    let settings = "approvals: {write_file: {decisions: [approve, edit], by: [ann]}}\n\
                    permissions: [{operations: [write], paths: ['secret/**'], mode: deny}]\n";
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent_in(dir.path(), settings, TWO).await;
        let asked = parked(&agent).await;
        let (before, _) = journal(&agent, &session("s")).await;
        let [id, other] = [asked[0].id.clone(), asked[1].id.clone()];
        let fits = || reply(&asked[0], ApprovalAnswer::Yes);
        let edit = |args: Value| vec![reply(&asked[0], ApprovalAnswer::Edit(args))];
        let stale = ApprovalReply {
            args_hash: "0123456789abcdef".into(),
            ..fits()
        };
        let missing = ApprovalReply {
            id: "call_99".into(),
            ..fits()
        };
        let allowed = vec![DecisionKind::Approve, DecisionKind::Edit];
        let content = |path: &str| json!({"file_path": path, "content": "e"});
        type Expected = Box<dyn Fn(&ApprovalError) -> bool>;
        let is =
            |expected: ApprovalError| -> Expected { Box::new(move |error| *error == expected) };
        let denied: Expected = Box::new(
            |error| matches!(error, ApprovalError::Denied { rule, .. } if rule.contains("permissions[0]: deny")),
        );
        let wrong = || -> Expected {
            Box::new(|error| matches!(error, ApprovalError::InvalidArguments { .. }))
        };
        let rows: Vec<(&str, Vec<ApprovalReply>, Expected)> = vec![
            (
                "ann",
                vec![stale],
                is(ApprovalError::Stale { id: id.clone() }),
            ),
            (
                "ann",
                vec![missing],
                is(ApprovalError::NoQuestion {
                    session: session("s"),
                    id: "call_99".into(),
                }),
            ),
            (
                "bob",
                vec![fits()],
                is(ApprovalError::NotAnAnswerer {
                    id: id.clone(),
                    by: "bob".into(),
                    answerers: vec!["ann".into()],
                }),
            ),
            (
                "ann",
                vec![reply(&asked[0], ApprovalAnswer::no())],
                is(ApprovalError::AnswerNotAllowed {
                    id: id.clone(),
                    given: DecisionKind::Reject,
                    allowed,
                }),
            ),
            (
                "ann",
                vec![fits(), fits()],
                is(ApprovalError::AnsweredTwice(id.clone())),
            ),
            ("ann", edit(json!({"file_path": 3})), wrong()),
            ("ann", edit(json!([])), wrong()),
            ("ann", edit(content("secret/a")), denied),
            // One that does not fit takes the others with it.
            (
                "ann",
                vec![
                    fits(),
                    ApprovalReply {
                        args_hash: String::new(),
                        ..reply(&asked[1], ApprovalAnswer::Yes)
                    },
                ],
                is(ApprovalError::Stale { id: other }),
            ),
        ];
        for (by, replies, expected) in rows {
            match agent
                .session(session("s"))
                .answer(&replies, by, AfterAnswer::Leave, PATIENT)
                .await
            {
                Err(AgentError::Approval(error)) => {
                    assert!(expected(&error), "{replies:?}: {error}")
                }
                other => panic!("{replies:?}: {other:?}"),
            }
            assert_eq!(journal(&agent, &session("s")).await.0, before);
        }
        // Nobody who answers for the run may answer for ann.
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        assert_eq!(
            agent
                .session(session("s"))
                .resume(options)
                .await
                .unwrap()
                .outcome,
            RunOutcome::Parked
        );
        assert_eq!(journal(&agent, &session("s")).await.0, before);
    });
}

#[test]
fn a_question_that_expired_takes_no_answer_and_counts_as_rejected() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent_in(dir.path(), ALL_WAYS, ONE).await;
        let args = json!({"file_path": "log.txt", "content": "y\n", "mode": "append"});
        let run = RunId::fresh();
        let hash = args_hash(&args);
        let id = "call_1".to_owned();
        let name = "write_file".to_owned();
        let call = ToolCall {
            id: id.clone(),
            name,
            args,
            invalid: None,
            signature: None,
        };
        let expires = Some(jiff::Timestamp::now() - jiff::SignedDuration::from_secs(5));
        let terms = AskTerms {
            expires,
            ..AskTerms::default()
        };
        let model = ModelReply {
            run: run.clone(),
            model: "scripted:test".into(),
            content: vec![Block::ToolCall(call)],
            usage: Usage::default(),
            cost: None,
            stop: StopReason::ToolUse,
        };
        let ask = Ask {
            run: run.clone(),
            id: id.clone(),
            args_hash: hash.clone(),
            rule: "approvals".into(),
            rules: Vec::new(),
            terms,
            nested: None,
        };
        let entries = vec![
            Entry::User(UserInput::text(run.clone(), "go")),
            Entry::Model(model),
            Entry::Ask(ask),
        ];
        let mut opened = agent
            .sessions()
            .create(&session("s"), NewSession::default())
            .await
            .unwrap();
        opened.writer.append(entries).await.unwrap();
        opened.writer.close().await;

        let late = [ApprovalReply {
            id: id.clone(),
            args_hash: hash,
            answer: ApprovalAnswer::Yes,
        }];
        let refused = agent
            .session(session("s"))
            .answer(&late, "ann", AfterAnswer::Leave, PATIENT)
            .await;
        assert!(
            matches!(
                refused,
                Err(AgentError::Approval(ApprovalError::Expired { .. }))
            ),
            "{refused:?}"
        );
        // What was told is on record, whatever the clock says later.
        let (lines, _) = journal(&agent, &session("s")).await;
        let recorded = lines.iter().any(
            |line| matches!(&line.entry, Entry::Decision(d) if d.by == "expiry" && !d.approved),
        );
        assert!(recorded, "{lines:?}");
        let options = RunOptions {
            approvals: ApprovalPolicy::ApproveAll,
            ..RunOptions::default()
        };
        let report = agent.session(session("s")).resume(options).await.unwrap();
        assert_eq!(
            (report.outcome, report.text.as_str()),
            (RunOutcome::Completed, "done")
        );
        let (lines, _) = journal(&agent, &session("s")).await;
        let decided: Vec<(String, DecisionKind)> = lines
            .iter()
            .filter_map(|line| {
                if let Entry::Decision(d) = &line.entry {
                    Some((d.by.clone(), d.kind()))
                } else {
                    None
                }
            })
            .collect();
        assert_eq!(decided, [("expiry".to_owned(), DecisionKind::Reject)]);
        let said = &results(&lines)[0].2;
        assert!(
            said.starts_with("denied: expiry said no to this call: nobody answered until "),
            "{said}"
        );
    });
    assert_eq!(log(dir.path()), "x\n");
}

#[test]
fn of_two_who_answer_at_once_one_counts_and_the_other_is_told() {
    for round in 0..8 {
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let asked = parked(&agent_in(dir.path(), ALL_WAYS, ONE).await).await;
            let one = agent_in(dir.path(), ALL_WAYS, ONE).await;
            let two = agent_in(dir.path(), ALL_WAYS, ONE).await;
            let yes = [reply(&asked[0], ApprovalAnswer::Yes)];
            let no = [reply(&asked[0], ApprovalAnswer::no())];
            let mut here = one.session(session("s"));
            let mut there = two.session(session("s"));
            let (yes, no) = match round % 2 {
                0 => tokio::join!(
                    here.answer(&yes, "ann", AfterAnswer::Leave, PATIENT),
                    there.answer(&no, "bob", AfterAnswer::Leave, PATIENT)
                ),
                _ => {
                    let (no, yes) = tokio::join!(
                        there.answer(&no, "bob", AfterAnswer::Leave, PATIENT),
                        here.answer(&yes, "ann", AfterAnswer::Leave, PATIENT)
                    );
                    (yes, no)
                }
            };
            let approved = yes.is_ok();
            for (answer, wins) in [(yes, approved), (no, !approved)] {
                match answer {
                    Ok(_) => assert!(wins),
                    Err(AgentError::Approval(ApprovalError::NoQuestion { .. })) => assert!(!wins),
                    Err(error) => panic!("{error}"),
                }
            }
            assert_eq!(resumed(&one).await.0, RunOutcome::Completed);
            assert_eq!(log(dir.path()), if approved { "x\ny\n" } else { "x\n" });
        });
    }
}

#[test]
fn rules_that_changed_since_the_answer_decide_and_deny_wins() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent_in(dir.path(), ALL_WAYS, ONE).await;
        let asked = parked(&agent).await;
        agent
            .session(session("s"))
            .answer(
                &[reply(&asked[0], ApprovalAnswer::Yes)],
                "ann",
                AfterAnswer::Leave,
                PATIENT,
            )
            .await
            .unwrap();
        let settings = "permissions: [{operations: [write], paths: [log.txt], mode: deny}]\n";
        let stricter = agent_in(dir.path(), settings, ONE).await;
        assert_eq!(resumed(&stricter).await.0, RunOutcome::Completed);
        let (lines, _) = journal(&stricter, &session("s")).await;
        assert_eq!(results(&lines)[0].1, ResultStatus::Denied);
    });
    assert_eq!(log(dir.path()), "x\n");
}

#[test]
fn always_frees_one_folder_until_it_is_revoked() {
    let dir = tempfile::tempdir().unwrap();
    let write = |path: &str| {
        format!(
            "- calls: [{{tool: write_file, args: {{file_path: {path}, content: a, mode: overwrite}}}}]\n- text: done\n"
        )
    };
    std::fs::create_dir_all(dir.path().join("docs/deep")).unwrap();
    std::fs::create_dir_all(dir.path().join("src")).unwrap();
    std::os::unix::fs::symlink("../src/a.txt", dir.path().join("docs/link")).unwrap();
    let settings = "approvals: {write_file: true}\n";
    block_on(async {
        let agent = agent_in(dir.path(), settings, &write("docs/a.txt")).await;
        let mut first = agent.session(session("s"));
        first.run(text("go"), RunOptions::default()).await.unwrap();
        let asked = first.open_questions();
        assert_eq!(
            first.always_scope(&asked[0].id).await.unwrap(),
            Some(GrantScope::Folder("docs".into()))
        );
        let answered = first
            .answer(
                &[reply(&asked[0], ApprovalAnswer::Always)],
                "ann",
                AfterAnswer::Leave,
                PATIENT,
            )
            .await
            .unwrap();
        let grant = answered.grants[0].clone();
        assert_eq!(
            (grant.tool.as_str(), &grant.what),
            ("write_file", &GrantScope::Folder("docs".into()))
        );
        assert_eq!(
            agent.grants(agent.owner()).list().await.unwrap(),
            answered.grants
        );
        let outcome = |path: &'static str, name: &'static str| {
            let dir = dir.path().to_owned();
            let script = write(path);
            async move {
                let agent = agent_in(&dir, settings, &script).await;
                agent
                    .session(session(name))
                    .run(text("go"), RunOptions::default())
                    .await
                    .unwrap()
                    .outcome
            }
        };
        assert_eq!(outcome("docs/b.txt", "b").await, RunOutcome::Completed);
        assert_eq!(outcome("docs/deep/c.txt", "c").await, RunOutcome::Completed);
        assert_eq!(outcome("src/d.txt", "d").await, RunOutcome::Parked);
        assert_eq!(
            outcome("docs/link", "e").await,
            RunOutcome::Parked,
            "a link leads out of the folder"
        );
        let verdict = agent
            .sessionless()
            .explain("write_file", json!({"file_path": "docs/x", "content": "a"}))
            .await
            .unwrap();
        assert!(
            verdict.reason.starts_with("granted: ") && verdict.reason.contains("in docs/"),
            "{}",
            verdict.reason
        );
        assert_eq!(
            agent
                .grants(agent.owner())
                .revoke(&grant.id[..6])
                .await
                .unwrap(),
            grant
        );
        assert_eq!(outcome("docs/b.txt", "f").await, RunOutcome::Parked);
        let gone = agent.grants(agent.owner()).revoke(&grant.id).await;
        assert!(
            matches!(
                gone,
                Err(AgentError::Approval(ApprovalError::NoSuchGrant(_)))
            ),
            "{gone:?}"
        );
    });
}

/// Keeps what it is asked, and says this to everything.
struct Says(ApprovalAnswer, Mutex<Vec<Vec<ApprovalQuestion>>>);

impl Approver for Says {
    fn name(&self) -> String {
        "ann".to_owned()
    }

    fn answer<'a>(&'a self, _: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async { self.0.clone() })
    }

    fn answers<'a>(
        &'a self,
        questions: &'a [ApprovalQuestion],
    ) -> BoxFuture<'a, Vec<ApprovalAnswer>> {
        self.1.lock().unwrap().push(questions.to_vec());
        Box::pin(async { vec![self.0.clone(); questions.len()] })
    }
}

#[test]
fn whoever_is_there_is_asked_about_a_whole_step_at_once_and_events_say_how() {
    let dir = tempfile::tempdir().unwrap();
    block_on(async {
        let agent = agent_in(dir.path(), ALL_WAYS, TWO).await;
        let says = Arc::new(Says(ApprovalAnswer::Always, Mutex::default()));
        let (options, heard) = listening();
        let options = RunOptions {
            approvals: ApprovalPolicy::Ask(says.clone()),
            ..options
        };
        let report = agent
            .session(session("s"))
            .run(text("go"), options)
            .await
            .unwrap();
        assert_eq!(report.outcome, RunOutcome::Completed);
        let asked = says.1.lock().unwrap().clone();
        let shapes: Vec<usize> = asked.iter().map(Vec::len).collect();
        assert_eq!(shapes, [2]);
        // A file of the root is granted alone, not the whole workspace.
        assert_eq!(
            asked[0][0].always_scope,
            Some(GrantScope::File("log.txt".into()).to_string())
        );
        let diff = "--- a/log.txt\n+++ b/log.txt\n@@ -1 +1,2 @@\n x\n+y\n";
        assert_eq!(asked[0][0].terms.preview.as_deref(), Some(diff));
        let heard = heard.lock().unwrap().clone();
        let told: Vec<Value> = heard
            .iter()
            .filter(|event| {
                matches!(
                    event.kind,
                    EventKind::Ask { .. } | EventKind::Decision { .. }
                )
            })
            .map(|event| serde_json::to_value(&event.kind).unwrap())
            .collect();
        assert_eq!(told.len(), 4);
        assert_eq!(
            told[0]["decisions"],
            json!(["approve", "edit", "reject", "respond"])
        );
        assert_eq!(told[0]["preview"], json!(diff));
        let id = &asked[0][0].id;
        assert_eq!(
            told[2],
            json!({"type": "decision", "id": id, "approved": true, "by": "ann", "decision": "approve"})
        );
        assert_eq!(
            agent.grants(agent.owner()).list().await.unwrap().len(),
            1,
            "the same rule is not kept twice"
        );
    });
    assert_eq!(log(dir.path()), "x\ny\nz\n");
}

#[test]
fn a_preview_shows_nothing_that_may_not_be_read() {
    let calls = [
        (
            "write_file",
            json!({"file_path": "a/new.txt", "content": "n\n"}),
            "--- /dev/null\n+++ b/a/new.txt\n@@ -0,0 +1 @@\n+n\n",
        ),
        (
            "edit_file",
            json!({"file_path": "log.txt", "old_string": "x", "new_string": "w"}),
            "--- a/log.txt\n+++ b/log.txt\n@@ -1 +1 @@\n-x\n+w\n",
        ),
        (
            "delete_file",
            json!({"file_path": "log.txt"}),
            "--- a/log.txt\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n",
        ),
        (
            "move_file",
            json!({"from": "log.txt", "to": "b.txt"}),
            "rename from log.txt\nrename to b.txt\n",
        ),
        (
            "overwrite_file",
            json!({"file_path": "hidden.txt", "content": "n"}),
            "(not shown: it is about files that may not be read)\n",
        ),
        (
            "overwrite_file",
            json!({"file_path": "asks.txt", "content": "n"}),
            "(not shown: it is about files that may not be read)\n",
        ),
        (
            "delete_file",
            json!({"file_path": "dir"}),
            "(not shown: it is about files that may not be read)\n",
        ),
        (
            "delete_file",
            json!({"file_path": "open"}),
            "delete open/ and all in it:\n- open/one.txt\n",
        ),
    ];
    let settings = "approvals: {write_file: true, edit_file: true, delete_file: true, move_file: true}\n\
                    permissions:\n- {operations: [read], paths: [hidden.txt, dir/b.txt], mode: deny}\n\
                    - {operations: [read], paths: [asks.txt], mode: ask}\n";
    let dir = tempfile::tempdir().unwrap();
    for (path, content) in [
        ("hidden.txt", "topsecret"),
        ("asks.txt", "topsecret"),
        ("dir/b.txt", "topsecret"),
        ("open/one.txt", "1"),
    ] {
        let path = dir.path().join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, content).unwrap();
    }
    block_on(async {
        for (at, (tool, args, expected)) in calls.into_iter().enumerate() {
            let script = format!("- calls: [{{tool: {tool}, args: {args}}}]\n- text: done\n");
            let agent = agent_in(dir.path(), settings, &script).await;
            let mut session = agent.session(session(&format!("s{at}")));
            session
                .run(text("go"), RunOptions::default())
                .await
                .unwrap();
            let asked = session.open_questions();
            assert_eq!(asked.len(), 1, "{tool} {args}");
            assert_eq!(
                asked[0].terms.preview.as_deref(),
                Some(expected),
                "{tool} {args}"
            );
        }
    });
}

fn picker(effect: ToolEffect) -> ToolSpec {
    let risk = Risk {
        effect,
        parallel_safe: false,
        repeatable: false,
    };
    ToolSpec::new("pick", "Lets the person pick.", risk).with_parameters(
        json!({"type": "object", "properties": {"of": {"type": "string"}}, "required": ["of"]}),
    )
}

// External execution
#[test]
fn a_tool_of_the_client_never_runs_here_and_its_result_is_answered() {
    let script = "- calls: [{tool: pick, args: {of: colours}}]\n- text: done\n";
    let rows = [
        (
            ToolEffect::Reads,
            ApprovalAnswer::Respond("blue".into()),
            ResultStatus::Ok,
            "blue",
            None,
        ),
        (
            ToolEffect::Network,
            ApprovalAnswer::Respond("blue".into()),
            ResultStatus::Ok,
            "blue",
            Some(()),
        ),
        (
            ToolEffect::Reads,
            ApprovalAnswer::no(),
            ResultStatus::Denied,
            "denied: ann said no to this call",
            None,
        ),
    ];
    for (effect, answer, status, told, tainted) in rows {
        let dir = tempfile::tempdir().unwrap();
        block_on(async {
            let tools = || vec![client_tool(picker(effect))];
            let agent = agent_on(dir.path(), scripted(script), Arc::new(OsDisk), tools()).await;
            // Nobody can say yes to what only the client can do.
            let mut here = agent.session(session("s"));
            let options = RunOptions {
                approvals: ApprovalPolicy::ApproveAll,
                ..RunOptions::default()
            };
            assert_eq!(
                here.run(text("go"), options).await.unwrap().outcome,
                RunOutcome::Parked
            );
            let asked = here.open_questions();
            assert_eq!(
                asked[0].terms.decisions,
                [DecisionKind::Respond, DecisionKind::Reject]
            );
            let refused = here
                .answer(
                    &[reply(&asked[0], ApprovalAnswer::Yes)],
                    "ann",
                    AfterAnswer::Leave,
                    PATIENT,
                )
                .await;
            assert!(
                matches!(
                    refused,
                    Err(AgentError::Approval(ApprovalError::AnswerNotAllowed { .. }))
                ),
                "{refused:?}"
            );
            here.answer(
                &[reply(&asked[0], answer.clone())],
                "ann",
                AfterAnswer::Leave,
                PATIENT,
            )
            .await
            .unwrap();
            let elsewhere = agent_on(dir.path(), scripted(script), Arc::new(OsDisk), tools()).await;
            assert_eq!(
                resumed(&elsewhere).await,
                (RunOutcome::Completed, "done".to_owned())
            );
            let (lines, state) = journal(&elsewhere, &session("s")).await;
            let found: Vec<_> = results(&lines)
                .into_iter()
                .map(|(_, status, said)| (status, said))
                .collect();
            assert_eq!(found, [(status, told.to_owned())]);
            assert_eq!(state.tainted.map(|_| ()), tainted);
        });
    }
    let dir = tempfile::tempdir().unwrap();
    let settings = "client_tools:\n- name: pick\n  description: Lets the person pick.\n  parameters: {type: object, \
                    properties: {of: {type: string}}}\n";
    block_on(async {
        let agent = agent_in(dir.path(), settings, script).await;
        assert_eq!(
            parked(&agent).await[0].terms.decisions,
            [DecisionKind::Respond, DecisionKind::Reject]
        );
    });
}

/// What somebody else does between a question and its answer.
#[test]
fn a_yes_is_void_once_what_the_person_was_shown_has_changed() {
    const SCRIPT: &str = "- calls: [{tool: execute, args: {command: sh build.sh}}]\n- text: done\n";
    const APPROVE: &str = "approvals: {write_file: true}\nmemory: {flush: false}\n";
    let rows: [(&str, &str, Option<&str>, bool); 6] = [
        ("nothing happens", ONE, None, true),
        ("the file changes", ONE, Some("log.txt"), false),
        ("another file changes", ONE, Some("other.txt"), true),
        ("an earlier call changes the file", TWO, None, true),
        ("the script changes", SCRIPT, Some("build.sh"), false),
        ("the script stays", SCRIPT, Some("other.txt"), true),
    ];
    for (case, script, changed, runs) in rows {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("build.sh"), "echo built > built\n").unwrap();
        block_on(async {
            std::fs::write(dir.path().join("agent.yaml"), APPROVE).unwrap();
            std::fs::write(dir.path().join("log.txt"), "x\n").unwrap();
            let agent = agent_with_host(dir.path(), scripted(script)).await;
            let questions = parked(&agent).await;
            if let Some(name) = changed {
                std::fs::write(dir.path().join(name), "somebody else's\n").unwrap();
            }
            let replies: Vec<_> = questions
                .iter()
                .map(|question| reply(question, ApprovalAnswer::Yes))
                .collect();
            agent
                .session(session("s"))
                .answer(&replies, "ann", AfterAnswer::Leave, PATIENT)
                .await
                .unwrap();
            let (outcome, _) = resumed(&agent).await;
            let expected = match runs {
                true => RunOutcome::Completed,
                false => RunOutcome::Parked,
            };
            assert_eq!(outcome, expected, "{case}");
            if !runs {
                // The person is asked again, about what is there now, and can say yes to that.
                assert!(!dir.path().join("built").exists(), "{case}");
                let mut live = agent.session(session("s"));
                live.load().await.unwrap();
                let again = live.open_questions();
                assert_eq!(again.len(), 1, "{case}");
                live.answer(
                    &[reply(&again[0], ApprovalAnswer::Yes)],
                    "ann",
                    AfterAnswer::Leave,
                    PATIENT,
                )
                .await
                .unwrap();
                assert_eq!(resumed(&agent).await.0, RunOutcome::Completed, "{case}");
            }
        });
    }
}
