use super::super::transcript::{CallItem, Details};
use super::*;
use crossterm::event::{KeyEvent, KeyModifiers};
use serde_json::json;
use stead::core::{
    ApprovalAnswer, AskTerms, ChainSum, DecisionKind, Entry, Event, EventKind, JournalLine,
    ResultStatus, RunId, ShownEnd, Steer, StopReason, UserInput,
};
use stead::workspace::QueueSettings;

fn chat() -> Chat {
    queueing(QueueMode::Followup)
}

fn queueing(mode: QueueMode) -> Chat {
    let info = SessionInfo {
        session: SessionId::new("s1").unwrap(),
        agent: "main".into(),
        model: "fake:m".into(),
        journal: "agents/a/sessions/s1.log.jsonl".into(),
        turns: 0,
        usage: Usage::default(),
        cost: Some(Usd::default()),
        context: None,
        mode: PermissionMode::Default,
        planning: None,
        todos: Vec::new(),
    };
    Chat::new(
        info,
        Arc::new(MessageQueue::new(QueueSettings {
            mode,
            ..QueueSettings::default()
        })),
    )
}

fn key(code: KeyCode) -> KeyEvent {
    KeyEvent::new(code, KeyModifiers::NONE)
}

fn ctrl(letter: char) -> KeyEvent {
    KeyEvent::new(KeyCode::Char(letter), KeyModifiers::CONTROL)
}

/// Types a text and returns the commands of its last key.
fn type_in(chat: &mut Chat, text: &str) -> Vec<ChatCommand> {
    text.chars().fold(Vec::new(), |_, letter| {
        chat.on_key(key(KeyCode::Char(letter)))
    })
}

fn send(chat: &mut Chat, text: &str) -> Vec<ChatCommand> {
    type_in(chat, text);
    chat.on_key(key(KeyCode::Enter))
}

fn happen(chat: &mut Chat, kinds: impl IntoIterator<Item = EventKind>) {
    for (at, kind) in kinds.into_iter().enumerate() {
        chat.on_event(&Event {
            seq: at as u64 + 1,
            entry: 0,
            child: None,
            run: RunId::new("r").unwrap(),
            source: Vec::new(),
            kind,
        });
    }
}

fn run_id() -> RunId {
    RunId::new("r").unwrap()
}

fn record(chat: &mut Chat, entry: Entry) {
    chat.on_entry(&JournalLine {
        seq: 1,
        at: jiff::Timestamp::UNIX_EPOCH,
        entry,
        sum: ChainSum::default(),
    });
}

fn bodies(chat: &Chat) -> Vec<ItemBody> {
    chat.items().iter().map(|item| item.body.clone()).collect()
}

fn said(text: &str) -> ItemBody {
    ItemBody::User {
        text: text.into(),
        attached: Vec::new(),
    }
}

fn text(text: &str) -> EventKind {
    EventKind::TextDelta { text: text.into() }
}

fn question() -> ApprovalQuestion {
    ApprovalQuestion {
        session: SessionId::new("s1").unwrap(),
        args_hash: "h".into(),
        id: "c1".into(),
        tool: "write_file".into(),
        args: json!({"file_path": "a"}),
        rule: "approvals".into(),
        terms: AskTerms {
            preview: Some("+++ b/a\n+x\n".into()),
            ..AskTerms::default()
        },
        always_scope: Some("in a/".into()),
        called_by: None,
    }
}

#[test]
fn a_run_shows_its_text_and_calls_and_adds_up_its_numbers() {
    let mut chat = chat();
    assert_eq!(send(&mut chat, "hi"), [ChatCommand::Send("hi".into())]);
    let usage = Usage {
        input_tokens: 100,
        cache_read_tokens: 40,
        output_tokens: 7,
        ..Usage::default()
    };
    let ended = |step| EventKind::ModelEnded {
        step,
        usage,
        cost: Some(Usd::from_nanos(5)),
        stop: StopReason::EndTurn,
        context_tokens: Some(1_200),
        context_window: Some(32_000),
    };
    let args = json!({"file_path": "notes.md"});
    happen(
        &mut chat,
        [
            EventKind::ModelStarted { step: 1 },
            text("Look"),
            text("ing."),
            ended(1),
            EventKind::ToolStarted {
                id: "c1".into(),
                name: "read_file".into(),
                args: args.clone(),
                parent: None,
            },
            EventKind::ToolEnded {
                id: "c1".into(),
                name: "read_file".into(),
                status: ResultStatus::Ok,
                exit_code: None,
                preview: "milk".into(),
                diff: None,
                ms: 2,
                parent: None,
            },
            EventKind::ModelStarted { step: 2 },
            text("Done."),
            ended(2),
        ],
    );
    let stage = CallStage::Ended {
        end: ShownEnd::Succeeded,
        preview: "milk".into(),
        diff: None,
        ms: Some(2),
    };
    let call = CallItem {
        id: "c1".into(),
        who: None,
        name: "read_file".into(),
        args,
        stage,
        details: Details::Hidden,
    };
    let want = [
        said("hi"),
        ItemBody::Answer("Looking.".into()),
        ItemBody::Call(call),
        ItemBody::Answer("Done.".into()),
    ];
    assert_eq!(bodies(&chat), want);
    assert_eq!(
        (chat.info.usage.input_tokens, chat.info.cost),
        (200, Some(Usd::from_nanos(10)))
    );
    assert_eq!(chat.cache_hits(), Some(40));
    chat.on_run_ended(Some(RunOutcome::Completed));
    assert_eq!(chat.phase, ChatPhase::Idle);
}

#[test]
fn a_retry_takes_back_the_text_of_its_step_only() {
    let mut chat = chat();
    send(&mut chat, "hi");
    let retry = EventKind::ModelRetry {
        attempt: 2,
        wait_ms: 1500,
        reason: "overloaded".into(),
    };
    let start = |step| EventKind::ModelStarted { step };
    happen(
        &mut chat,
        [
            start(1),
            text("kept"),
            start(2),
            text("void"),
            retry,
            text("new"),
        ],
    );
    let note = ItemBody::Note(Tone::Warning, "attempt 2 in 1.5 s: overloaded".into());
    assert_eq!(
        bodies(&chat),
        [
            said("hi"),
            ItemBody::Answer("kept".into()),
            note,
            ItemBody::Answer("new".into())
        ]
    );
}

/// Returns the queued messages as they were typed.
fn queued(chat: &Chat) -> Vec<String> {
    chat.queue
        .queued()
        .iter()
        .map(|waiting| typed_text(&waiting.content))
        .collect()
}

#[test]
fn input_during_a_run_waits_and_goes_back_into_the_editor_unless_the_run_completed_or_it_ends_runs()
{
    let back = |waits: &[&str], text: &str| -> (Vec<String>, String) {
        (
            waits.iter().map(|text| (*text).to_owned()).collect(),
            text.to_owned(),
        )
    };
    #[rustfmt::skip]
    let table = [
        (QueueMode::Followup, Some(RunOutcome::Completed), back(&["two", "three"], "draft")),
        (QueueMode::Collect, Some(RunOutcome::Failed), back(&[], "two\nthree\ndraft")),
        (QueueMode::Steer, Some(RunOutcome::Cancelled), back(&[], "two\nthree\ndraft")),
        (QueueMode::Steer, None, back(&[], "two\nthree\ndraft")),
        (QueueMode::Interrupt, Some(RunOutcome::Cancelled), back(&["two", "three"], "draft")),
    ];
    for (mode, outcome, expected) in table {
        let mut chat = queueing(mode);
        send(&mut chat, "one");
        for text in ["two", "three"] {
            assert_eq!(send(&mut chat, text), [ChatCommand::SendToRun(text.into())]);
            chat.queue
                .send(vec![Block::text(text), Block::text("Attached file x:\ny")]);
        }
        type_in(&mut chat, "draft");
        if chat.on_run_ended(outcome) {
            chat.restore_queued_input();
            // As the actor of the session does when they are taken back.
            chat.queue.drain();
        }
        assert_eq!(
            (queued(&chat), chat.editor.text().to_owned()),
            expected,
            "{mode} {outcome:?}"
        );
    }
}

#[test]
fn what_is_typed_while_something_waits_is_said_after_it() {
    let mut chat = queueing(QueueMode::Collect);
    send(&mut chat, "one");
    chat.queue.send(vec![Block::text("two")]);
    chat.on_run_ended(Some(RunOutcome::Completed));
    assert_eq!(
        send(&mut chat, "three"),
        [ChatCommand::SendToRun("three".into())]
    );
    record(
        &mut chat,
        Entry::User(UserInput::text(run_id(), "two\n\nthree")),
    );
    assert_eq!(bodies(&chat), [said("one"), said("two\n\nthree")]);
}

#[test]
fn the_queue_can_be_changed_while_a_run_goes_on_and_what_steers_is_shown_where_it_entered() {
    let mut chat = queueing(QueueMode::Collect);
    send(&mut chat, "one");
    assert_eq!(
        (send(&mut chat, "/queue"), send(&mut chat, "/queue steer")),
        (vec![], vec![])
    );
    assert_eq!(chat.queue.mode(), QueueMode::Steer);
    let content = vec![Block::text("left"), Block::text("Attached file a:\nx")];
    happen(
        &mut chat,
        [EventKind::ModelStarted { step: 1 }, text("Now")],
    );
    record(&mut chat, Entry::Steer(Steer::new(run_id(), content)));
    happen(&mut chat, [text("Then")]);
    let note = |text: &str| ItemBody::Note(Tone::Info, text.into());
    let left = ItemBody::User {
        text: "left".into(),
        attached: vec!["Attached file a".into()],
    };
    assert_eq!(
        bodies(&chat),
        [
            said("one"),
            note(
                "queue collect, 0 waiting; /queue MODE changes it: collect, followup, steer, steer-backlog, interrupt"
            ),
            note("queue steer: a message goes into the next step; calls not started are skipped"),
            ItemBody::Answer("Now".into()),
            left,
            ItemBody::Answer("Then".into()),
        ]
    );
}

#[test]
fn ctrl_c_cancels_then_leaves_and_clears_an_idle_input_first() {
    let mut chat = chat();
    type_in(&mut chat, "half");
    assert_eq!((chat.on_key(ctrl('c')), chat.editor.text()), (vec![], ""));
    assert_eq!(chat.on_key(ctrl('c')), [ChatCommand::Quit]);
    send(&mut chat, "go");
    assert_eq!(chat.on_key(ctrl('c')), [ChatCommand::Cancel]);
    happen(&mut chat, [text("late")]);
    assert_eq!(chat.on_key(ctrl('c')), [ChatCommand::Quit]);
}

#[test]
fn ctrl_d_leaves_only_with_nothing_written() {
    let mut chat = chat();
    type_in(&mut chat, "x");
    assert_eq!(chat.on_key(ctrl('d')), []);
    chat.on_key(key(KeyCode::Backspace));
    assert_eq!(chat.on_key(ctrl('d')), [ChatCommand::Quit]);
}

#[test]
fn one_key_answers_a_question_unless_something_is_half_written() {
    for (letters, answer) in [
        ("y", ApprovalAnswer::Yes),
        ("Ay", ApprovalAnswer::Always),
        ("Any", ApprovalAnswer::Yes),
        ("l", ApprovalAnswer::Later),
        ("e", ApprovalAnswer::Later),
    ] {
        let mut chat = chat();
        send(&mut chat, "go");
        chat.ask(question());
        chat.answering = Answering::of_old_question();
        assert_eq!(
            type_in(&mut chat, letters),
            [ChatCommand::Answer {
                session: question().session,
                reply: question().reply(answer)
            }]
        );
        assert_eq!(chat.question, None);
    }
    // A key for an answer that is not accepted is an ordinary letter.
    for (letter, terms) in [
        ('A', AskTerms::default()),
        ('a', AskTerms::default()),
        (
            'y',
            AskTerms {
                decisions: vec![DecisionKind::Respond],
                ..AskTerms::default()
            },
        ),
        (
            'n',
            AskTerms {
                decisions: vec![DecisionKind::Approve],
                ..AskTerms::default()
            },
        ),
    ] {
        let mut chat = chat();
        send(&mut chat, "go");
        chat.ask(ApprovalQuestion {
            terms,
            always_scope: None,
            ..question()
        });
        chat.answering = Answering::of_old_question();
        assert_eq!(chat.on_key(key(KeyCode::Char(letter))), []);
        assert!(chat.question.is_some(), "{letter}");
    }
    let mut chat = chat();
    send(&mut chat, "go");
    type_in(&mut chat, "wa");
    chat.ask(question());
    chat.answering = Answering::of_old_question();
    assert_eq!(
        (type_in(&mut chat, "y"), chat.editor.text()),
        (vec![], "way")
    );
    assert_eq!(chat.question, Some(question()));
}

#[test]
fn a_no_carries_what_is_written_before_enter() {
    let no = |reason: Option<&str>| {
        let reason = reason.map(str::to_owned);
        vec![ChatCommand::Answer {
            session: question().session,
            reply: question().reply(ApprovalAnswer::No { reason }),
        }]
    };
    let asked = || {
        let mut chat = chat();
        send(&mut chat, "go");
        chat.ask(question());
        chat.answering = Answering::of_old_question();
        chat
    };
    for (typed, reason) in [
        ("n", None),
        ("nnot there", Some("not there")),
        ("N /x ", Some("/x")),
    ] {
        let mut chat = asked();
        assert_eq!(type_in(&mut chat, typed), []);
        assert_eq!(chat.on_key(key(KeyCode::Enter)), no(reason), "{typed}");
        assert!(chat.question.is_none() && chat.editor.is_empty(), "{typed}");
    }
    let mut chat = asked();
    type_in(&mut chat, "nwhy");
    chat.on_key(key(KeyCode::Esc));
    assert_eq!(
        chat.question,
        Some(question()),
        "the question is open again"
    );
    assert!(chat.editor.is_empty());
    type_in(&mut chat, "n");
    chat.on_key(key(KeyCode::Backspace));
    assert_eq!(type_in(&mut chat, "y").len(), 1);
}

#[test]
fn a_sentence_that_meets_a_question_answers_nothing() {
    for text in ["yes", "no", "Actually do not run that", "always", "later"] {
        let mut chat = chat();
        send(&mut chat, "go");
        chat.ask(question());
        assert_eq!(type_in(&mut chat, text), [], "{text}");
        assert_eq!(
            (chat.editor.text(), &chat.question),
            (text, &Some(question()))
        );
    }
    let mut chat = chat();
    send(&mut chat, "go");
    chat.ask(question());
    chat.answering = Answering::of_old_question();
    assert_eq!(type_in(&mut chat, "actually do not"), []);
    assert_eq!(
        chat.editor.text(),
        "actually do not",
        "a small letter is text"
    );
}

#[test]
fn an_asked_call_is_one_item_from_question_to_result() {
    let mut chat = chat();
    send(&mut chat, "go");
    let ApprovalQuestion {
        id,
        tool: name,
        args,
        rule,
        ..
    } = question();
    let ask = EventKind::Ask {
        id: id.clone(),
        name: name.clone(),
        args: args.clone(),
        rule,
        decisions: Vec::new(),
        expires: None,
        preview: None,
        parent: None,
    };
    happen(&mut chat, [ask]);
    chat.ask(question());
    happen(
        &mut chat,
        [
            EventKind::Decision {
                id: id.clone(),
                approved: true,
                by: "me".into(),
                decision: DecisionKind::Approve,
            },
            EventKind::ToolStarted {
                id: id.clone(),
                name: name.clone(),
                args: args.clone(),
                parent: None,
            },
        ],
    );
    let call = CallItem {
        id,
        who: None,
        name,
        args,
        stage: CallStage::Running(String::new()),
        details: Details::Hidden,
    };
    assert_eq!(
        (bodies(&chat), chat.question),
        (vec![said("go"), ItemBody::Call(call)], None)
    );
}

#[test]
fn ctrl_o_is_about_the_newest_call_unless_another_is_chosen() {
    let mut chat = chat();
    for id in ["a", "b"] {
        happen(
            &mut chat,
            [EventKind::ToolStarted {
                id: id.into(),
                name: "ls".into(),
                args: json!({}),
                parent: None,
            }],
        );
    }
    let shown = |chat: &Chat| -> Vec<Details> {
        let details = |body| match body {
            ItemBody::Call(call) => Some(call.details),
            ItemBody::User { .. } | ItemBody::Answer(_) | ItemBody::Note(..) => None,
        };
        bodies(chat).into_iter().filter_map(details).collect()
    };
    let arrow = |code| KeyEvent::new(code, KeyModifiers::CONTROL);
    chat.on_key(ctrl('o'));
    assert_eq!(shown(&chat), [Details::Hidden, Details::Shown]);
    chat.on_key(arrow(KeyCode::Up));
    chat.on_key(arrow(KeyCode::Up));
    chat.on_key(ctrl('o'));
    assert_eq!(shown(&chat), [Details::Shown, Details::Shown]);
    chat.on_key(arrow(KeyCode::Down));
    chat.on_key(arrow(KeyCode::Down));
    assert_eq!(chat.selected, None);
    chat.on_key(ctrl('o'));
    assert_eq!(shown(&chat), [Details::Shown, Details::Hidden]);
}

#[test]
fn commands_are_completed_with_tab_and_sent_with_enter() {
    let mut chat = chat();
    type_in(&mut chat, "/s");
    let offered = |chat: &Chat| -> Vec<String> {
        chat.popup
            .iter()
            .flat_map(|popup| &popup.completions)
            .map(|choice| choice.text.clone())
            .collect()
    };
    assert_eq!(offered(&chat), ["/status", "/sessions", "/skills"]);
    let mut seen = Vec::new();
    for _ in 0..4 {
        chat.on_key(key(KeyCode::Tab));
        seen.push(chat.editor.text().to_owned());
    }
    assert_eq!(seen, ["/status", "/sessions", "/skills", "/status"]);
    chat.on_key(key(KeyCode::Enter));
    assert_eq!(
        (chat.popup.is_some(), chat.editor.text()),
        (false, "/status")
    );
    chat.on_key(key(KeyCode::Enter));
    let want = "session  s1\nagent    main\nmodel    fake:m\nmode     default\nqueue    followup\nturns    0\ntokens   0 in, 0 out · $0.0000\n\
                journal  agents/a/sessions/s1.log.jsonl";
    assert_eq!(bodies(&chat), [ItemBody::Note(Tone::Info, want.into())]);
    // A complete word needs no second Enter.
    assert_eq!(send(&mut chat, "/new"), [ChatCommand::New]);
}

#[test]
fn paths_are_looked_up_and_offers_that_come_too_late_are_dropped() {
    let mut chat = chat();
    assert_eq!(
        type_in(&mut chat, "see @n"),
        [ChatCommand::FindPaths("n".into())]
    );
    chat.offer_paths("", vec!["old".into()]);
    assert_eq!(chat.popup, None);
    chat.offer_paths("n", vec!["notes/".into(), "n.md".into()]);
    assert_eq!(
        chat.on_key(key(KeyCode::Enter)),
        [ChatCommand::FindPaths("notes/".into())]
    );
    chat.offer_paths("notes/", vec!["notes/a.md".into()]);
    chat.on_key(key(KeyCode::Tab));
    assert_eq!(chat.editor.text(), "see @notes/a.md ");
    assert_eq!(
        chat.on_key(key(KeyCode::Enter)),
        [ChatCommand::Send("see @notes/a.md ".into())]
    );
}

#[test]
fn a_tab_that_comes_before_its_paths_is_not_lost_and_paths_of_before_stay_while_they_fit() {
    let mut chat = chat();
    type_in(&mut chat, "@");
    chat.on_key(key(KeyCode::Tab));
    assert_eq!(
        chat.offer_paths("", vec!["notes/".into()]),
        [ChatCommand::FindPaths("notes/".into())]
    );
    chat.offer_paths("notes/", vec!["notes/a.md".into(), "notes/b.md".into()]);
    type_in(&mut chat, "b");
    assert_eq!(
        chat.popup.as_ref().map(|popup| popup.completions.len()),
        Some(1)
    );
    chat.on_key(key(KeyCode::Tab));
    assert_eq!(chat.editor.text(), "@notes/b.md ");
}

#[test]
fn commands_that_need_the_session_wait_for_the_run() {
    let mut chat = chat();
    send(&mut chat, "go");
    assert_eq!(send(&mut chat, "/rewind 1"), []);
    assert_eq!(send(&mut chat, "/quit"), [ChatCommand::Quit]);
    let note = ItemBody::Note(
        Tone::Warning,
        "/rewind 1 waits until the run has ended; Esc stops it".into(),
    );
    assert_eq!(bodies(&chat), [said("go"), note]);
}

#[test]
fn enter_sends_and_its_variants_begin_a_new_line() {
    let mut chat = chat();
    type_in(&mut chat, "a");
    for newline in [
        KeyEvent::new(KeyCode::Enter, KeyModifiers::ALT),
        KeyEvent::new(KeyCode::Enter, KeyModifiers::SHIFT),
        ctrl('j'),
    ] {
        assert_eq!(chat.on_key(newline), []);
    }
    chat.on_paste("b\r\nc");
    assert_eq!(
        chat.on_key(key(KeyCode::Enter)),
        [ChatCommand::Send("a\n\n\nb\nc".into())]
    );
    assert_eq!(chat.on_key(key(KeyCode::Enter)), []);
}
