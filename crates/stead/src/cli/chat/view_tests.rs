use super::super::state::SessionInfo;
use super::*;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};
use proptest::prelude::*;
use ratatui::Terminal;
use ratatui::backend::TestBackend;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use stead::agent::{ApprovalQuestion, GrantScope, MessageQueue, SideTotal};
use stead::core::{
    AskTerms, Block, Event, EventKind, PermissionMode, PlanStage, ResultStatus, RunId, SessionId,
    StopReason, Todo, TodoStatus, Usage, Usd,
};
use stead::workspace::{QueueMode, QueueSettings};

fn question(args: serde_json::Value) -> ApprovalQuestion {
    let terms = AskTerms {
        preview: Some("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+x\n".into()),
        ..AskTerms::default()
    };
    let always = Some(GrantScope::File("a.txt".into()).to_string());
    ApprovalQuestion {
        session: SessionId::new("plan").unwrap(),
        args_hash: "h".into(),
        id: "2".into(),
        tool: "write_file".into(),
        args,
        rule: "approvals".into(),
        terms,
        always_scope: always,
        called_by: None,
    }
}

fn chat() -> Chat {
    let info = SessionInfo {
        session: SessionId::new("plan").unwrap(),
        agent: "main".into(),
        model: "fake:m".into(),
        journal: String::new(),
        turns: 0,
        usage: Usage::default(),
        cost: Some(Usd::default()),
        context: None,
        mode: PermissionMode::Default,
        planning: None,
        todos: Vec::new(),
    };
    Chat::new(info, Arc::new(MessageQueue::new(QueueSettings::default())))
}

fn happen(chat: &mut Chat, kind: EventKind) {
    chat.on_event(&Event {
        seq: 1,
        entry: 0,
        child: None,
        run: RunId::new("r").unwrap(),
        source: Vec::new(),
        kind,
    });
}

fn typed(chat: &mut Chat, text: &str) {
    for letter in text.chars() {
        chat.on_key(KeyEvent::new(KeyCode::Char(letter), KeyModifiers::NONE));
    }
}

fn press(chat: &mut Chat, code: KeyCode) {
    chat.on_key(KeyEvent::new(code, KeyModifiers::NONE));
}

fn screen(chat: &mut Chat, view: &mut ChatView, width: u16, height: u16) -> Vec<String> {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    terminal.draw(|frame| view.draw(frame, chat)).unwrap();
    let buffer = terminal.backend().buffer().clone();
    let row = |y| {
        (0..width)
            .map(|x| buffer[(x, y)].symbol())
            .collect::<String>()
            .trim_end()
            .to_owned()
    };
    (0..height).map(row).collect()
}

/// Returns a conversation with an item of each kind.
fn full() -> Chat {
    let mut chat = chat();
    typed(&mut chat, "look");
    press(&mut chat, KeyCode::Enter);
    happen(&mut chat, EventKind::ModelStarted { step: 1 });
    happen(
        &mut chat,
        EventKind::TextDelta {
            text: "I **look** at:\n\n- one\n".into(),
        },
    );
    let usage = Usage {
        input_tokens: 1200,
        cache_read_tokens: 600,
        output_tokens: 34,
        ..Usage::default()
    };
    happen(
        &mut chat,
        EventKind::ModelEnded {
            step: 1,
            usage,
            cost: None,
            stop: StopReason::ToolUse,
            context_tokens: Some(2_000),
            context_window: Some(200_000),
        },
    );
    let args = json!({"file_path": "notes.md"});
    happen(
        &mut chat,
        EventKind::ToolStarted {
            id: "1".into(),
            name: "read_file".into(),
            args,
            parent: None,
        },
    );
    happen(
        &mut chat,
        EventKind::ToolEnded {
            id: "1".into(),
            name: "read_file".into(),
            status: ResultStatus::Ok,
            exit_code: None,
            preview: "buy milk".into(),
            diff: None,
            ms: 2,
            parent: None,
        },
    );
    chat.tick(Duration::from_millis(3200));
    chat
}

#[test]
fn the_screen_shows_the_conversation_what_goes_on_and_the_numbers() {
    let mut chat = full();
    chat.queue.send(vec![Block::text("next")]);
    typed(&mut chat, "more");
    let want = [
        "› look",
        "",
        "I look at:",
        "",
        "• one",
        "",
        "✓ read_file notes.md 2 ms  Ctrl-O",
        "",
        "",
        "⠹ running tools · step 1 · 3 s · Esc stops",
        "queued (collect): next",
        "────────────────────────────────────────────────────────────",
        "› more",
        "────────────────────────────────────────────────────────────",
        "plan ·… 2k/200k · 1200 in, 34 out · cost unknown · cache 50%",
    ];
    assert_eq!(
        screen(&mut chat, &mut ChatView::new(Colours::On), 60, 15),
        want
    );
}

#[test]
fn an_expanded_call_shows_arguments_and_result() {
    let mut chat = full();
    chat.on_key(KeyEvent::new(KeyCode::Char('o'), KeyModifiers::CONTROL));
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 60, 15);
    let want = [
        "✓ read_file notes.md 2 ms",
        "  │ file_path: notes.md",
        "  │ buy milk",
    ];
    assert_eq!(shown[6..9], want);
}

#[test]
fn a_question_stands_above_the_input_with_its_keys() {
    let mut chat = full();
    let args = json!({"file_path": "a.txt"});
    chat.ask(question(args));
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 60, 20);
    let want = [
        "✓ read_file notes.md 2 ms",
        "? write_file a.txt asks (approvals)  Ctrl-O",
        "  │ --- /dev/null",
        "  │ +++ b/a.txt",
        "  │ @@ -0,0 +1 @@",
        "  │ +x",
        "",
        "allow write_file a.txt? (approvals)",
        "y yes · n no · A always (of a.txt) · l later",
        "⠹ waiting for your answer · step 1 · 3 s · Esc stops",
    ];
    assert_eq!(shown[6..16], want);
}

#[test]
fn things_to_do_stand_above_the_input_and_the_footer_tells_the_modes() {
    let mut chat = chat();
    let todo = |content: &str, status| Todo {
        content: content.to_owned(),
        status,
    };
    let mut todos = vec![
        todo("Look", TodoStatus::Completed),
        todo("Write it\ndown", TodoStatus::InProgress),
    ];
    todos.extend((1..=5).map(|n| todo(&format!("Check {n}"), TodoStatus::Pending)));
    happen(
        &mut chat,
        EventKind::Todos {
            todos: todos.clone(),
        },
    );
    happen(
        &mut chat,
        EventKind::Plan {
            stage: Some(PlanStage::Making {
                file: "plans/PLAN.md".into(),
            }),
        },
    );
    happen(
        &mut chat,
        EventKind::Mode {
            to: PermissionMode::Explore,
        },
    );
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 64, 20);
    let want = [
        "plan mode is on: only plans/PLAN.md is written until you agree",
        "",
        "mode explore from now on",
    ];
    assert_eq!(shown[..3], want);
    let want = [
        "✓ 1 of 7 done",
        "▸ Write it down",
        "☐ Check 1",
        "☐ Check 2",
        "☐ Check 3",
        "  and 2 more",
    ];
    assert_eq!(shown[10..16], want);
    assert_eq!(
        shown[19],
        "plan mode · explore · plan · fake:m        0 in, 0 out · $0.0000"
    );
    chat.side = SideTotal {
        calls: 2,
        cost: Usd::from_nanos(300_000),
        unpriced_calls: 0,
    };
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 64, 20);
    let numbers = "0 in, 0 out · $0.0000 · 2 side calls, $0.0003";
    assert!(shown[19].ends_with(numbers), "{}", shown[19]);
    chat.side = SideTotal::default();
    let status = shown_status(&mut chat);
    assert!(
        status.contains(&"mode     explore".to_owned()),
        "{status:?}"
    );
    assert!(
        status.contains(&"plan     being made in plans/PLAN.md".to_owned()),
        "{status:?}"
    );
    happen(&mut chat, EventKind::Plan { stage: None });
    todos
        .iter_mut()
        .for_each(|todo| todo.status = TodoStatus::Completed);
    happen(&mut chat, EventKind::Todos { todos });
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 64, 20);
    assert_eq!(shown[15], "✓ 7 of 7 done");
    assert!(
        shown[19].starts_with("explore · plan · fake:m "),
        "{}",
        shown[19]
    );
}

/// Returns the rows that /status shows.
fn shown_status(chat: &mut Chat) -> Vec<String> {
    typed(chat, "/status");
    press(chat, KeyCode::Enter);
    screen(chat, &mut ChatView::new(Colours::On), 64, 40)
}

#[test]
fn choices_lie_over_the_transcript() {
    let mut chat = chat();
    typed(&mut chat, "/s");
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 60, 9);
    let want = [
        " /status    session, model, tokens, cost, journal",
        " /sessions  choose a session from a list, or switch to one",
        " /skills    list the skills",
    ];
    assert_eq!(shown[2..5], want);
}

#[test]
fn what_is_being_read_stays_in_place_while_more_comes() {
    let mut chat = chat();
    let mut view = ChatView::new(Colours::On);
    happen(
        &mut chat,
        EventKind::TextDelta {
            text: (1..=30).map(|n| format!("line {n}  \n")).collect(),
        },
    );
    assert_eq!(screen(&mut chat, &mut view, 30, 9)[4], "line 30");
    press(&mut chat, KeyCode::PageUp);
    let before = screen(&mut chat, &mut view, 30, 9);
    assert_eq!(
        (before[0].as_str(), before[3].as_str()),
        ("line 22", "line 25")
    );
    happen(
        &mut chat,
        EventKind::TextDelta {
            text: "line 31  \nline 32".into(),
        },
    );
    assert_eq!(screen(&mut chat, &mut view, 30, 9)[..4], before[..4]);
    press(&mut chat, KeyCode::PageDown);
    press(&mut chat, KeyCode::PageDown);
    assert_eq!(screen(&mut chat, &mut view, 30, 9)[4], "line 32");
}

#[test]
fn a_generated_id_is_shown_by_its_end_so_that_the_model_has_room() {
    let mut chat = chat();
    chat.info.session = SessionId::new("s01a1e141c901732ca5057515c4a2734e").unwrap();
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 60, 8);
    assert_eq!(
        shown[7],
        "…c4a2734e · fake:m                     0 in, 0 out · $0.0000"
    );
}

#[test]
fn what_waits_is_bounded_and_says_how_it_will_be_handled_and_tasks_are_counted_while_nothing_runs()
{
    let mut chat = chat();
    for n in 1..=7 {
        chat.queue.send(vec![Block::text(format!("message\n{n}"))]);
    }
    chat.queue.set_mode(QueueMode::Interrupt);
    chat.tasks = 2;
    let shown = screen(&mut chat, &mut ChatView::new(Colours::On), 60, 20);
    let mut want = vec!["2 tasks are running in the background".to_owned()];
    want.extend((1..=5).map(|n| format!("queued (interrupt): message {n}")));
    want.push("  and 2 more".to_owned());
    let from = shown.iter().position(|row| row.contains("tasks")).unwrap();
    assert_eq!(shown[from..from + 7], want);
}

#[test]
fn without_colours_no_cell_has_one() {
    let mut chat = full();
    let mut view = ChatView::new(Colours::Off);
    let mut terminal = Terminal::new(TestBackend::new(40, 12)).unwrap();
    terminal.draw(|frame| view.draw(frame, &mut chat)).unwrap();
    let cells = &terminal.backend().buffer().content;
    assert!(
        cells
            .iter()
            .all(|cell| (cell.fg, cell.bg) == (Color::Reset, Color::Reset))
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn no_size_is_too_small(sizes in prop::collection::vec((1..90_u16, 1..30_u16), 1..6), input in "[a\n漢 /@]{0,40}") {
        let mut chat = full();
        let mut view = ChatView::new(Colours::On);
        chat.on_paste(&input);
        chat.queue.send(vec![Block::text(input.clone())]);
        let args = json!({"file_path": "a.txt"});
        chat.ask(question(args));
        for (width, height) in sizes.into_iter().chain([(10, 3), (1, 1), (80, 24)]) {
            screen(&mut chat, &mut view, width, height);
            press(&mut chat, KeyCode::PageUp);
        }
    }
}
