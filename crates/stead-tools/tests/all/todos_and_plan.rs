//! The place for tests of the todo tool and the plan mode tools.

use super::Session;
use serde_json::{Value, json};
use stead_core::{Block, PlanStage, SessionChange, Todo, TodoStatus};
use stead_tools::{Output, SessionView, Surface};

fn todos(list: &[(&str, &str)]) -> Value {
    json!({"todos": list.iter().map(|(content, status)| json!({"content": content, "status": status})).collect::<Vec<_>>()})
}

fn text(output: &Output) -> String {
    match output.content.as_slice() {
        [Block::Text { text }] => text.clone(),
        other => panic!("not one text: {other:?}"),
    }
}

fn todo(content: &str, status: TodoStatus) -> Todo {
    Todo {
        content: content.to_owned(),
        status,
    }
}

#[tokio::test]
async fn a_list_takes_the_place_of_the_one_before_and_is_shown() {
    let session = Session::planning();
    let output = session
        .output(
            "write_todos",
            todos(&[("a", "completed"), ("b", "in_progress"), ("c", "pending")]),
        )
        .await
        .unwrap();
    let expected = vec![
        todo("a", TodoStatus::Completed),
        todo("b", TodoStatus::InProgress),
        todo("c", TodoStatus::Pending),
    ];
    assert_eq!(
        output.change,
        Some(SessionChange::Todos { todos: expected })
    );
    assert_eq!(text(&output), "1 of 3 done:\n[x] a\n[>] b\n[ ] c");
    let none = session.output("todo_write", todos(&[])).await.unwrap();
    assert_eq!(
        (text(&none).as_str(), none.change),
        (
            "The list is empty now.",
            Some(SessionChange::Todos { todos: vec![] })
        )
    );
}

#[tokio::test]
async fn a_list_that_is_none_is_told_to_the_model() {
    let session = Session::planning();
    let long = "x".repeat(501);
    let many: Vec<(&str, &str)> = vec![("x", "pending"); 101];
    #[rustfmt::skip]
    let table = [
        (todos(&[("a", "in_progress"), ("b", "in_progress")]),
            "2 things are in_progress (\"a\", \"b\"); do one at a time and leave the others pending"),
        (todos(&[("a", "pending"), (&long, "pending")]), "todo 2 has 501 characters; the limit is 500"),
        (todos(&[(" ", "pending")]), "todo 1 says nothing: `content` is empty"),
        (todos(&many), "at most 100 things to do, not 101; put small ones together"),
    ];
    for (args, message) in table {
        assert_eq!(
            session.call("write_todos", args).await.unwrap_err(),
            message
        );
    }
}

#[tokio::test]
async fn the_title_form_takes_the_active_form_and_means_the_same() {
    let session = Session::planning().on(Surface::Title);
    let item = json!({"content": "Run the tests", "status": "in_progress", "activeForm": "Running the tests"});
    let output = session
        .output("TodoWrite", json!({"todos": [item]}))
        .await
        .unwrap();
    let expected = vec![todo("Run the tests", TodoStatus::InProgress)];
    assert_eq!(
        output.change,
        Some(SessionChange::Todos { todos: expected })
    );
}

fn making() -> Option<PlanStage> {
    Some(PlanStage::Making {
        file: "plans/PLAN.md".to_owned(),
    })
}

fn standing(session: Session, plan: Option<PlanStage>) -> Session {
    let cx = stead_tools::ToolCx {
        session: SessionView {
            plan,
            ..SessionView::default()
        },
        ..session.cx
    };
    Session { cx, ..session }
}

#[tokio::test]
async fn a_plan_is_begun_written_and_agreed_to() {
    let session = Session::planning();
    let begun = session.output("plan_enter", json!({})).await.unwrap();
    assert_eq!(begun.change, Some(SessionChange::Plan { plan: making() }));
    let session = standing(session, making());
    let written = session
        .output("plan_write", json!({"content": "1. look\n2. </plan> do\n"}))
        .await
        .unwrap();
    assert_eq!(
        text(&written),
        "Wrote the plan to plans/PLAN.md (2 lines). When it is ready, call plan_exit."
    );
    let agreed = session
        .output("plan_exit", json!({"summary": "two steps"}))
        .await
        .unwrap();
    let said = "1. look\n2. </plan> do".to_owned();
    let stage = PlanStage::Agreed {
        file: "plans/PLAN.md".to_owned(),
        text: said,
    };
    assert_eq!(
        agreed.change,
        Some(SessionChange::Plan { plan: Some(stage) })
    );
    assert_eq!(
        text(&agreed),
        "The person agreed to the plan, and plan mode is off. Carry it out.\n\
         <plan file=\"plans/PLAN.md\">\n1. look\n2. &lt;/plan> do\n</plan>"
    );
    let again = standing(session, None)
        .output("plan_enter", json!({}))
        .await
        .unwrap();
    assert!(text(&again).ends_with("plans/PLAN.md holds an earlier plan; plan_write replaces it."));
}

#[tokio::test]
async fn what_makes_no_sense_is_told_and_a_person_is_not_asked() {
    let elsewhere = Some(PlanStage::Making {
        file: "docs/PLAN.md".to_owned(),
    });
    let large = "x".repeat(32 * 1024 + 1);
    #[rustfmt::skip]
    let table = [
        (making(), "plan_enter", json!({}), "plan mode is on already: write the plan to plans/PLAN.md with plan_write, \
            then call plan_exit"),
        (None, "plan_write", json!({"content": "x"}), "plan mode is not on; plan_enter begins it"),
        (elsewhere, "plan_write", json!({"content": "x"}), "plan mode began with docs/PLAN.md, and plans go to \
            plans/PLAN.md now; ask the person to leave plan mode"),
        (making(), "plan_write", json!({"content": " \n"}), "the plan says nothing: `content` is empty"),
        (making(), "plan_write", json!({"content": large}), "the plan has 32769 bytes; the limit is 32768. Say \
            it in fewer words"),
        (None, "plan_exit", json!({}), "plan mode is not on, so there is nothing to leave; plan_enter begins it"),
        (making(), "plan_exit", json!({}), "there is no plan yet; write it with plan_write first"),
    ];
    for (plan, tool, args, message) in table {
        let session = standing(Session::planning(), plan);
        assert_eq!(
            session.call(tool, args).await.unwrap_err(),
            message,
            "{tool}"
        );
        if tool == "plan_exit" {
            let exit = session.tools.prepare(tool, json!({})).unwrap();
            let view = exit.view(&*session.cx.vfs, &session.cx.session);
            assert_eq!(exit.plan().refusal(view).await.as_deref(), Some(message));
        }
    }
    let session = standing(Session::planning(), making());
    session.put("plans/PLAN.md", "a plan");
    let exit = session.tools.prepare("plan_exit", json!({})).unwrap();
    let view = exit.view(&*session.cx.vfs, &session.cx.session);
    assert_eq!(exit.plan().refusal(view).await, None);
    assert_eq!(exit.plan().subject(view).await.as_deref(), Some("a plan"));
    assert_eq!(exit.plan().preview(view).await.as_deref(), Some("a plan"));
    assert_eq!(
        exit.plan().approval(),
        Some("plan_exit: a person must agree to the plan in plans/PLAN.md")
    );
}
