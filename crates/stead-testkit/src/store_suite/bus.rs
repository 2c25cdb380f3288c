//! Cases about the bus.
//!
//! Effects: test support.

use super::{CaseContext, StoreCase, cases};
use bytes::Bytes;
use std::time::Duration;
use stead_core::SessionId;
use stead_store::{Bus, BusMessage, BusSubscription, DocVersion, Space, Topic};

pub(super) const CASES: &[StoreCase] = cases![
    messages_arrive_in_order_at_every_subscriber,
    topics_are_apart,
    who_subscribes_later_gets_later_messages,
    a_slow_subscriber_is_told_that_it_missed_some,
    waiting_can_be_given_up_without_loss,
];

/// The time within which a message must arrive on a machine that does other work.
const ARRIVAL: Duration = Duration::from_secs(20);
/// The time within which nothing must arrive.
const SILENCE: Duration = Duration::from_millis(150);

fn topic(space: &Space, session: &str) -> Topic {
    Topic::new(space, &SessionId::new(session).unwrap())
}

async fn next(subscription: &mut BusSubscription) -> BusMessage {
    let received = tokio::time::timeout(ARRIVAL, subscription.recv()).await;
    received.expect("a message arrives in time")
}

fn message(text: &'static [u8]) -> BusMessage {
    BusMessage::Message(Bytes::from_static(text))
}

async fn assert_silent(subscription: &mut BusSubscription) {
    let received = tokio::time::timeout(SILENCE, subscription.recv()).await;
    assert!(received.is_err(), "{received:?}");
}

async fn messages_arrive_in_order_at_every_subscriber(cx: CaseContext) {
    let bus = cx.store.bus();
    let topic = topic(&cx.space, "s");
    bus.publish(&topic, Bytes::from_static(b"nobody listens"));
    let mut first = bus.subscribe(&topic).await.unwrap();
    let mut second = cx.store.bus().subscribe(&topic).await.unwrap();
    for n in 0..100 {
        bus.publish(&topic, Bytes::from(format!("\0\u{ff}{n}")));
    }
    for subscription in [&mut first, &mut second] {
        for n in 0..100 {
            let wanted = BusMessage::Message(Bytes::from(format!("\0\u{ff}{n}")));
            assert_eq!(next(subscription).await, wanted);
        }
        assert_silent(subscription).await;
    }
    drop(first);
    bus.publish(&topic, Bytes::from_static(b"one is left"));
    assert_eq!(next(&mut second).await, message(b"one is left"));
}

async fn topics_are_apart(cx: CaseContext) {
    let bus = cx.store.bus();
    let topics = [
        topic(&cx.space, "s"),
        topic(&cx.space, "S"),
        topic(&cx.space.within("s"), "s"),
    ];
    let mut subscriptions = Vec::new();
    for topic in &topics {
        subscriptions.push(bus.subscribe(topic).await.unwrap());
    }
    for (n, topic) in topics.iter().enumerate() {
        bus.publish(topic, Bytes::from(n.to_string()));
    }
    for (n, subscription) in subscriptions.iter_mut().enumerate() {
        let wanted = BusMessage::Message(Bytes::from(n.to_string()));
        assert_eq!(next(subscription).await, wanted);
        assert_silent(subscription).await;
    }
}

async fn who_subscribes_later_gets_later_messages(cx: CaseContext) {
    let bus = cx.store.bus();
    let topic = topic(&cx.space, "s");
    for round in 0..3 {
        let mut subscription = bus.subscribe(&topic).await.unwrap();
        let text = Bytes::from(format!("round {round}"));
        bus.publish(&topic, text.clone());
        assert_eq!(next(&mut subscription).await, BusMessage::Message(text));
        drop(subscription);
        bus.publish(&topic, Bytes::from_static(b"lost"));
    }
}

async fn a_slow_subscriber_is_told_that_it_missed_some(cx: CaseContext) {
    let bus = cx.store.bus();
    let topic = topic(&cx.space, "s");
    let mut subscription = bus.subscribe(&topic).await.unwrap();
    for n in 0..10_000 {
        bus.publish(&topic, Bytes::from(n.to_string()));
    }
    assert_eq!(next(&mut subscription).await, BusMessage::Lagged);
    let newest = BusMessage::Message(Bytes::from_static(b"9999"));
    while next(&mut subscription).await != newest {}
}

async fn waiting_can_be_given_up_without_loss(cx: CaseContext) {
    let bus = cx.store.bus();
    let topic = topic(&cx.space, "s");
    let mut subscription = bus.subscribe(&topic).await.unwrap();
    for _ in 0..3 {
        assert_silent(&mut subscription).await;
    }
    bus.publish(&topic, Bytes::from_static(b"a"));
    assert_eq!(next(&mut subscription).await, message(b"a"));
}

/// Tests that messages go from one process to another.
pub(super) async fn between(here: &dyn Bus, there: &dyn Bus) {
    let space = Space::new(["bus", &DocVersion::fresh().to_string()]);
    let topic = topic(&space, "s");
    let other = self::topic(&space, "other");
    here.publish(&topic, Bytes::from_static(b"nobody listens"));
    let mut subscription = there.subscribe(&topic).await.unwrap();
    let mut beside = there.subscribe(&other).await.unwrap();
    let mut own = here.subscribe(&topic).await.unwrap();
    // A publisher may know the subscribers of a moment ago.
    tokio::time::sleep(Duration::from_millis(50)).await;
    // Fewer than a socket holds, each with bytes that are no text.
    for n in 0..8_u8 {
        here.publish(&topic, Bytes::from(vec![n, 0, 0xff]));
    }
    for subscription in [&mut subscription, &mut own] {
        for n in 0..8_u8 {
            let wanted = BusMessage::Message(Bytes::from(vec![n, 0, 0xff]));
            assert_eq!(next(subscription).await, wanted);
        }
        assert_silent(subscription).await;
    }
    assert_silent(&mut beside).await;
    // What is too long for the carrier is a hint, and the next message arrives again.
    let long = Bytes::from(vec![b'x'; 1024 * 1024]);
    here.publish(&topic, long);
    here.publish(&topic, Bytes::from_static(b"after"));
    assert_eq!(next(&mut subscription).await, BusMessage::Lagged);
    assert_eq!(next(&mut subscription).await, message(b"after"));
    // The other way round, and after a new subscription.
    drop(own);
    let mut own = here.subscribe(&topic).await.unwrap();
    tokio::time::sleep(Duration::from_millis(50)).await;
    there.publish(&topic, Bytes::from_static(b"back"));
    assert_eq!(next(&mut own).await, message(b"back"));
    assert_eq!(next(&mut subscription).await, message(b"back"));
    // A burst arrives, or its loss is noticed at the latest with a later message.
    for n in 0..2000 {
        here.publish(&topic, Bytes::from(n.to_string()));
    }
    let mut expected = 0;
    loop {
        tokio::time::sleep(Duration::from_millis(1)).await;
        here.publish(&topic, Bytes::from_static(b"last"));
        match next(&mut subscription).await {
            BusMessage::Message(text) if text == "last" => {
                assert_eq!(expected, 2000, "a loss was not noticed");
                return;
            }
            BusMessage::Message(text) => {
                assert_eq!(text, expected.to_string());
                expected += 1;
            }
            BusMessage::Lagged => return,
            BusMessage::Closed => panic!("the bus is open"),
        }
    }
}
