//! Text that another process receives from its model arrives here piece by piece.

use super::child::{self, Errand};
use super::{AGENT, Store, Workspace};
use crate::support::*;
use stead_core::{Client, Cursor, EventKind, Presence, SessionEvent, SessionEventBody, SessionId};
use stead_testkit::{FakeModel, RecordedRequest, reply};

const TEXT: &str = "one two three four five six seven eight nine ten";

fn slow_model() -> FakeModel {
    FakeModel::start_with(|_: &RecordedRequest| reply().text(TEXT).chunks_of(150).pause_ms(20))
}

fn text_of(event: &SessionEvent) -> Option<String> {
    match &event.body {
        SessionEventBody::Live(live) => match &live.kind {
            EventKind::TextDelta { text } => Some(text.clone()),
            _ => None,
        },
        SessionEventBody::Entry(_) => None,
    }
}

#[test]
fn text_arrives_piece_by_piece_before_its_entry() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        let model = slow_model();
        block_on(async {
            let host = workspace.host(&model).await;
            let address = host
                .address(AGENT, SessionId::new("s").unwrap())
                .await
                .unwrap();
            // The session does not exist yet.
            let mut events = subscribe(&host, &address).await;
            let errand = (Errand::RunOnce, 0);
            let _process = child::spawn(workspace.path(), &model, errand, &["s".to_owned()]);
            let seen = until(&mut *events, is_end).await;
            assert_eq!(
                kinds(&seen),
                ["session", "user", "model", "end"],
                "{store:?}"
            );
            assert!(seen.is_sorted_by(|a, b| a.id < b.id));
            let pieces: Vec<String> = seen.iter().filter_map(text_of).collect();
            assert_eq!(pieces.concat(), TEXT, "{store:?}");
            assert!(pieces.len() >= 5, "{store:?}: {pieces:?}");
            let entry = seen.iter().position(|event| event.id.seq == 3);
            let last_piece = seen.iter().rposition(|event| text_of(event).is_some());
            assert!(last_piece < entry, "{store:?}: {seen:?}");
        });
    }
}

#[test]
fn a_subscription_goes_on_in_the_middle_of_a_text() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        let model = slow_model();
        block_on(async {
            let host = workspace.host(&model).await;
            let address = host
                .address(AGENT, SessionId::new("s").unwrap())
                .await
                .unwrap();
            let mut events = subscribe(&host, &address).await;
            let errand = (Errand::RunOnce, 0);
            let _process = child::spawn(workspace.path(), &model, errand, &["s".to_owned()]);
            let before = until(&mut *events, |event| text_of(event).is_some()).await;
            let cursor = Cursor::After(before.last().unwrap().id);
            let mut again = host
                .subscribe(&address, cursor, Presence::Watches)
                .await
                .unwrap();
            let rest = until(&mut *events, is_end).await;
            let same = until(&mut *again, is_end).await;
            // Live events may be lost, entries may not.
            assert_eq!(entries(&same), entries(&rest), "{store:?}");
            assert!(same.is_sorted_by(|a, b| a.id < b.id));
            assert!(
                same.iter()
                    .all(|event| event.id > before.last().unwrap().id)
            );
            assert!(
                same.iter().any(|event| text_of(event).is_some()),
                "{store:?}"
            );
        });
    }
}

#[test]
fn a_slow_subscriber_gets_every_entry() {
    for store in Store::ALL {
        let workspace = Workspace::new(store, "");
        // More events than wait for a subscriber.
        let long = "word ".repeat(1500);
        let model = FakeModel::start_with(move |_: &RecordedRequest| reply().text(&long));
        block_on(async {
            let host = workspace.host(&model).await;
            let other = workspace.host(&model).await;
            let address = host
                .address(AGENT, SessionId::new("s").unwrap())
                .await
                .unwrap();
            let mut here = subscribe(&host, &address).await;
            let mut there = subscribe(&other, &address).await;
            let mut quick = subscribe(&other, &address).await;
            for n in 0..3 {
                host.send(&address, input(&format!("go {n}")), None)
                    .await
                    .unwrap();
                until(&mut *quick, is_end).await;
            }
            for slow in [&mut here, &mut there] {
                let mut ends = 0;
                let seen = until(&mut **slow, |event| {
                    ends += usize::from(is_end(event));
                    ends == 3
                })
                .await;
                let numbers: Vec<u64> = entries(&seen).iter().map(|(seq, _)| *seq).collect();
                let all: Vec<u64> = (1..=numbers.len() as u64).collect();
                assert_eq!(numbers, all, "{store:?}");
                assert!(seen.is_sorted_by(|a, b| a.id < b.id));
            }
        });
    }
}
