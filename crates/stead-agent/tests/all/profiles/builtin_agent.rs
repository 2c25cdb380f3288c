//! The place for tests of profiles and the built-in general-purpose agent: excluding, describing
//! and instructing it.

use super::{Named, agent, outcomes, put, task, workspace};
use crate::subagents::Says;
use crate::support::{block_on, journal, results, session, text};
use serde_json::json;
use stead_agent::RunOptions;
use stead_core::ResultStatus;

const HANDING: [&str; 7] = [
    "task",
    "agent_send",
    "agent_list",
    "delegation_output",
    "delegation_list",
    "delegation_cancel",
    "delegation_wait",
];

#[test]
fn without_the_built_in_agent_and_any_other_there_is_nobody_to_hand_work_to() {
    let dir = workspace(&[("profiles/p.yaml", "for: openai\ngeneral_purpose: false\n")]);
    let model = Named::new("openai:x", |_, turns, _| match turns {
        0 => Says::Calls(vec![task("general-purpose", "work")]),
        _ => Says::Text("ok".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model.clone(), Vec::new()).await;
        agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, &session("s")).await;
        let (_, status, told) = results(&lines).remove(0);
        assert!(
            status == ResultStatus::Error && told.starts_with("there is no tool `task`"),
            "{told}"
        );
        let asked = &model.asked()[0];
        assert_eq!(HANDING.map(|tool| asked.has(tool)), [false; 7]);
        assert!(!asked.system.contains("## Subagents"));
    });
}

#[test]
fn beside_another_the_built_in_agent_is_refused_by_name_also_to_go_on_with() {
    let dir = workspace(&[(
        "subagents/helper.md",
        "---\ndescription: Helps.\n---\nYou help.\n",
    )]);
    let model = Named::new("openai:x", |task_, turns, _| match (task_, turns) {
        ("go", 0 | 4) => {
            let (name, mut args) = task("general-purpose", "work");
            args["label"] = json!("w");
            Says::Calls(vec![(name, args)])
        }
        ("go", 2) => Says::Calls(vec![
            task("general-purpose", "work"),
            ("agent_send", json!({"to": "w", "message": "more"})),
            task("helper", "work"),
        ]),
        (_, _) => Says::Text("ok".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model.clone(), Vec::new()).await;
        let mut session = agent.session(session("s"));
        session
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        put(
            dir.path(),
            "profiles/p.yaml",
            "for: openai\ngeneral_purpose: false\n",
        );
        session
            .run(text("go on"), RunOptions::default())
            .await
            .unwrap();
        // An agent of the workspace with that name is another.
        put(
            dir.path(),
            "subagents/general-purpose.md",
            "---\ndescription: Ours.\n---\nYou are ours.\n",
        );
        session
            .run(text("once more"), RunOptions::default())
            .await
            .unwrap();
        let (lines, _) = journal(&agent, session.id()).await;
        let told = outcomes(&lines);
        let statuses: Vec<ResultStatus> = told.iter().map(|(status, _)| *status).collect();
        let ok = ResultStatus::Ok;
        let error = ResultStatus::Error;
        assert_eq!(statuses, [ok, error, error, ok, ok], "{told:?}");
        let why =
            "the profile openai (profiles/p.yaml) switches general-purpose off; there are: helper";
        assert_eq!((told[1].1.as_str(), told[2].1.as_str()), (why, why));
        let lists = model
            .asked()
            .iter()
            .map(|asked| asked.system.contains("<name>general-purpose</name>"))
            .collect::<Vec<_>>();
        assert!(
            lists.first() == Some(&true) && lists.contains(&false),
            "{lists:?}"
        );
    });
}

#[test]
fn the_built_in_agent_is_described_and_told_what_the_profile_says() {
    let profile =
        "for: openai\ngeneral_purpose: {description: Does chores., prompt: You do chores.}\n";
    let dir = workspace(&[("profiles/p.yaml", profile)]);
    let model = Named::new("openai:x", |task_, turns, _| match (task_, turns) {
        ("go", 0) => Says::Calls(vec![task("general-purpose", "work")]),
        (_, _) => Says::Text("ok".into()),
    });
    block_on(async {
        let agent = agent(dir.path(), model.clone(), Vec::new()).await;
        agent
            .session(session("s"))
            .run(text("go"), RunOptions::default())
            .await
            .unwrap();
        let seen: Vec<(bool, bool, bool)> = model
            .asked()
            .iter()
            .map(|asked| {
                let has = |words: &str| asked.system.contains(words);
                (
                    has("Does chores."),
                    has("You do chores."),
                    has("You work for another agent"),
                )
            })
            .collect();
        assert_eq!(
            seen,
            [
                (true, false, false),
                (true, true, false),
                (true, false, false)
            ]
        );
    });
}
