//! Appending with a fence, reading in pages, races.
//!
//! Effects: test support.

use super::*;
use stead_store::JournalTail;

pub(super) const CASES: &[StoreCase<dyn Store>] = cases![
    there_is_nothing_before_the_first_line,
    lines_come_back_in_order,
    any_bytes_but_a_line_end_are_kept,
    an_append_that_is_not_at_the_end_conflicts,
    an_append_with_an_older_fence_writes_nothing,
    the_overtaken_is_told_so_even_when_late,
    a_fence_holds_until_someone_else_takes_the_lease,
    pages_are_about_as_long_as_asked,
    large_lines_are_kept,
    a_thousand_lines_in_one_append,
    the_tail_says_where_it_ends,
    names_are_listed_in_pages,
    an_erased_journal_is_gone_and_can_be_begun_again,
    erasing_needs_the_fence,
    journals_see_nothing_of_each_other,
    racing_appenders_make_one_line_of_history,
    a_takeover_amid_appends_leaves_no_gap,
    names_of_journals_are_compared_byte_by_byte,
];

async fn there_is_nothing_before_the_first_line(cx: CaseContext<dyn Store>) {
    assert_eq!(cx.store.tail(&cx.space, "j").await.unwrap(), None);
    assert_eq!(
        cx.store.lines(&cx.space, "j", 1, 1000).await.unwrap(),
        Vec::<Bytes>::new()
    );
    assert_eq!(cx.store.names(&cx.space, None, 10).await.unwrap(), []);
}

async fn lines_come_back_in_order(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    cx.append("j", 0, &["one"], &fence).await.unwrap();
    cx.append("j", 1, &["two", "three"], &fence).await.unwrap();
    cx.append("j", 3, &["four"], &fence).await.unwrap();
    assert_eq!(cx.lines("j").await, ["one", "two", "three", "four"]);
    let from = async |from| cx.store.lines(&cx.space, "j", from, 1000).await.unwrap();
    assert_eq!(from(3).await, ["three", "four"]);
    assert_eq!(from(4).await, ["four"]);
    assert_eq!(from(5).await, Vec::<Bytes>::new());
    assert_eq!(from(500).await, Vec::<Bytes>::new());
}

async fn any_bytes_but_a_line_end_are_kept(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    let every_byte: Vec<u8> = (0..=255).filter(|byte| *byte != b'\n').collect();
    let lines = [
        Bytes::new(),
        Bytes::from(every_byte),
        Bytes::from_static(b"\r"),
        Bytes::new(),
    ];
    cx.store
        .append(&cx.space, "j", 0, &lines, &fence)
        .await
        .unwrap();
    assert_eq!(cx.lines("j").await, lines);
    let tail = cx.store.tail(&cx.space, "j").await.unwrap().unwrap();
    assert_eq!((tail.seq, tail.bytes, tail.last), (4, 260, Bytes::new()));
}

async fn an_append_that_is_not_at_the_end_conflicts(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    assert_conflict(&cx.append("j", 1, &["early"], &fence).await);
    assert_eq!(cx.store.tail(&cx.space, "j").await.unwrap(), None);
    cx.append("j", 0, &["one", "two"], &fence).await.unwrap();
    for after in [0, 1, 3, u64::from(u32::MAX)] {
        assert_conflict(&cx.append("j", after, &["wrong"], &fence).await);
    }
    // Repeating the same line is a conflict too: only after a lost answer does it count as applied.
    assert_conflict(&cx.append("j", 1, &["two"], &fence).await);
    assert_eq!(cx.lines("j").await, ["one", "two"]);
}

async fn an_append_with_an_older_fence_writes_nothing(cx: CaseContext<dyn Store>) {
    let first = cx.fence("l", "one", LONG).await;
    cx.append("j", 0, &["one"], &first).await.unwrap();
    let before = cx.store.tail(&cx.space, "j").await.unwrap();
    let second = cx.take_over(&first, "two").await;
    assert_fenced(&cx.append("j", 1, &["late"], &first).await);
    assert_fenced(&cx.append("other", 0, &["late"], &first).await);
    assert_eq!(cx.store.tail(&cx.space, "j").await.unwrap(), before);
    assert_eq!(cx.store.tail(&cx.space, "other").await.unwrap(), None);
    cx.append("j", 1, &["two"], &second).await.unwrap();
    assert_eq!(cx.lines("j").await, ["one", "two"]);
}

async fn the_overtaken_is_told_so_even_when_late(cx: CaseContext<dyn Store>) {
    let first = cx.fence("l", "one", LONG).await;
    cx.append("j", 0, &["one"], &first).await.unwrap();
    let second = cx.take_over(&first, "two").await;
    cx.append("j", 1, &["two"], &second).await.unwrap();
    // Both the fence and the position are wrong here.
    assert_fenced(&cx.append("j", 1, &["late"], &first).await);
}

async fn a_fence_holds_until_someone_else_takes_the_lease(cx: CaseContext<dyn Store>) {
    let first = cx.fence("l", "one", Duration::from_millis(1)).await;
    tokio::time::sleep(Duration::from_millis(20)).await;
    cx.append("j", 0, &["late, but still ours"], &first)
        .await
        .unwrap();
    let second = cx.fence("l", "two", LONG).await;
    assert_fenced(&cx.append("j", 1, &["too late"], &first).await);
    // Releasing the lease does not return it to the earlier holder.
    cx.store.release(&cx.space, &second).await.unwrap();
    assert_fenced(&cx.append("j", 1, &["too late"], &first).await);
    assert_eq!(cx.lines("j").await.len(), 1);
}

async fn pages_are_about_as_long_as_asked(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    let lines: Vec<Bytes> = (0..100).map(|n| Bytes::from(format!("{n:0100}"))).collect();
    cx.store
        .append(&cx.space, "j", 0, &lines, &fence)
        .await
        .unwrap();
    for max_bytes in [0, 1, 50, 1000, 5050, 1_000_000] {
        let mut read: Vec<Bytes> = Vec::new();
        while read.len() < lines.len() {
            let from = read.len() as u64 + 1;
            let page = cx
                .store
                .lines(&cx.space, "j", from, max_bytes)
                .await
                .unwrap();
            assert!(
                !page.is_empty(),
                "at least one line at {from} with {max_bytes}"
            );
            let bytes: usize = page.iter().map(Bytes::len).sum();
            assert!(
                bytes <= max_bytes + 200,
                "{bytes} bytes where {max_bytes} were asked for"
            );
            let enough = bytes + 210 >= max_bytes || read.len() + page.len() == lines.len();
            assert!(
                enough,
                "only {bytes} bytes where {max_bytes} were asked for"
            );
            read.extend(page);
        }
        assert_eq!(read, lines);
    }
}

async fn large_lines_are_kept(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    let line = |n: u8| Bytes::from(vec![b'0' + n; 900 * 1024]);
    cx.store
        .append(&cx.space, "j", 0, &[line(1)], &fence)
        .await
        .unwrap();
    cx.store
        .append(
            &cx.space,
            "j",
            1,
            &[line(2), Bytes::from("small"), line(3)],
            &fence,
        )
        .await
        .unwrap();
    let read = cx.lines("j").await;
    assert!(
        read == [line(1), line(2), Bytes::from("small"), line(3)],
        "large lines come back as they were"
    );
    let page = cx.store.lines(&cx.space, "j", 1, 1000).await.unwrap();
    assert!(page == [line(1)], "one line, however large");
    assert_eq!(
        cx.store.tail(&cx.space, "j").await.unwrap().unwrap().bytes,
        3 * 900 * 1024 + 5 + 4
    );
}

async fn a_thousand_lines_in_one_append(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    let lines: Vec<Bytes> = (0..1000).map(|n| Bytes::from(n.to_string())).collect();
    cx.store
        .append(&cx.space, "j", 0, &lines, &fence)
        .await
        .unwrap();
    cx.store
        .append(&cx.space, "j", 1000, &lines, &fence)
        .await
        .unwrap();
    assert_eq!(cx.lines("j").await, [lines.clone(), lines].concat());
}

async fn the_tail_says_where_it_ends(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    let tail = async || cx.store.tail(&cx.space, "j").await.unwrap().unwrap();
    cx.append("j", 0, &["one", "second"], &fence).await.unwrap();
    let first = tail().await;
    assert_eq!(
        (first.seq, first.bytes, &first.last[..]),
        (2, 11, &b"second"[..])
    );
    tokio::time::sleep(Duration::from_millis(20)).await;
    cx.append("j", 2, &["3"], &fence).await.unwrap();
    let second = tail().await;
    assert_eq!(
        (second.seq, second.bytes, &second.last[..]),
        (3, 13, &b"3"[..])
    );
    let passed = second.updated_ms - first.updated_ms;
    assert!(
        (10..60_000).contains(&passed),
        "{passed} ms between two appends"
    );
    let now = std::time::UNIX_EPOCH.elapsed().unwrap().as_millis() as i64;
    assert!(
        (now - second.updated_ms).abs() < 300_000,
        "the store's clock shows {}, ours {now}",
        second.updated_ms
    );
}

async fn names_are_listed_in_pages(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    let names = ["Z", "a", "a.b", "a/b", "a0", "ab", "b", "ä", "\u{10ffff}"];
    for name in names.iter().rev() {
        cx.append(name, 0, &["line of", name], &fence)
            .await
            .unwrap();
    }
    let page = async |after: Option<String>, limit| {
        cx.store
            .names(&cx.space, after.as_deref(), limit)
            .await
            .unwrap()
    };
    let mut read: Vec<(String, JournalTail)> = Vec::new();
    loop {
        let next = page(read.last().map(|(name, _)| name.clone()), 2).await;
        assert!(next.len() <= 2);
        if next.is_empty() {
            break;
        }
        read.extend(next);
    }
    assert_eq!(
        read.iter()
            .map(|(name, _)| name.as_str())
            .collect::<Vec<_>>(),
        names
    );
    for (name, tail) in read {
        assert_eq!(
            cx.store.tail(&cx.space, &name).await.unwrap(),
            Some(tail.clone())
        );
        assert_eq!((tail.seq, &tail.last[..]), (2, name.as_bytes()));
    }
    assert_eq!(page(Some("a0a".to_owned()), 1).await[0].0, "ab");
    assert_eq!(page(None, 0).await, []);
}

async fn an_erased_journal_is_gone_and_can_be_begun_again(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    cx.append("j", 0, &["one", "two"], &fence).await.unwrap();
    cx.append("k", 0, &["stays"], &fence).await.unwrap();
    cx.store.erase(&cx.space, "j", &fence).await.unwrap();
    // Erasing an absent journal is not an error: the answer to the first attempt may have been
    // lost.
    cx.store.erase(&cx.space, "j", &fence).await.unwrap();
    assert_eq!(cx.store.tail(&cx.space, "j").await.unwrap(), None);
    assert_eq!(cx.lines("j").await, Vec::<Bytes>::new());
    assert_eq!(cx.store.names(&cx.space, None, 10).await.unwrap().len(), 1);
    assert_conflict(&cx.append("j", 2, &["three"], &fence).await);
    cx.append("j", 0, &["new"], &fence).await.unwrap();
    assert_eq!(
        (cx.lines("j").await, cx.lines("k").await),
        (vec![Bytes::from("new")], vec![Bytes::from("stays")])
    );
}

async fn erasing_needs_the_fence(cx: CaseContext<dyn Store>) {
    let first = cx.fence("l", "one", LONG).await;
    cx.append("j", 0, &["one"], &first).await.unwrap();
    cx.take_over(&first, "two").await;
    assert_fenced(&cx.store.erase(&cx.space, "j", &first).await);
    assert_eq!(cx.lines("j").await, ["one"]);
}

async fn journals_see_nothing_of_each_other(cx: CaseContext<dyn Store>) {
    let spaces = [
        cx.clone(),
        cx.within("a"),
        cx.within("A"),
        cx.within("a").within("b"),
        cx.within("ab"),
    ];
    let names = ["j", "J", "b/j", "a/b/j"];
    for (n, space) in spaces.iter().enumerate() {
        let fence = space.fence("l", "one", LONG).await;
        for name in names {
            space
                .append(name, 0, &[&format!("{n} {name}")], &fence)
                .await
                .unwrap();
        }
    }
    for (n, space) in spaces.iter().enumerate() {
        for name in names {
            assert_eq!(space.lines(name).await, [format!("{n} {name}")]);
        }
        assert_eq!(
            space
                .store
                .names(&space.space, None, 100)
                .await
                .unwrap()
                .len(),
            names.len()
        );
    }
}

async fn racing_appenders_make_one_line_of_history(cx: CaseContext<dyn Store>) {
    const APPENDERS: usize = 8;
    const EACH: usize = 6;
    // All writers use one fence, so only `after` separates them.
    let fence = cx.fence("l", "one", LONG).await;
    race(APPENDERS, |n| {
        let cx = cx.clone();
        let fence = fence.clone();
        async move {
            let mut made = 0;
            while made < EACH {
                let at = cx
                    .store
                    .tail(&cx.space, "j")
                    .await
                    .unwrap()
                    .map_or(0, |tail| tail.seq);
                let piece = [
                    format!("{n} {made} begins after {at}"),
                    format!("{n} {made} ends after {at}"),
                ];
                match cx.append("j", at, &[&piece[0], &piece[1]], &fence).await {
                    Ok(()) => made += 1,
                    conflict => assert_conflict(&conflict),
                }
            }
        }
    })
    .await;
    let lines = cx.lines("j").await;
    assert_eq!(lines.len(), 2 * APPENDERS * EACH);
    let mut seen = std::collections::BTreeSet::new();
    for (n, piece) in lines.chunks(2).enumerate() {
        let [begins, ends] =
            [&piece[0], &piece[1]].map(|line| String::from_utf8(line.to_vec()).unwrap());
        assert_eq!(begins.replace("begins", "ends"), ends);
        assert!(
            ends.ends_with(&format!(" after {}", 2 * n)),
            "{ends} is at {}",
            2 * n
        );
        assert!(
            seen.insert(ends.split(" ends").next().unwrap().to_owned()),
            "{ends} twice"
        );
    }
}

async fn a_takeover_amid_appends_leaves_no_gap(cx: CaseContext<dyn Store>) {
    let first = cx.fence("l", "one", LONG).await;
    let old_holder = async {
        let mut at = 0;
        loop {
            match cx.append("j", at, &["old"], &first).await {
                Ok(()) => at += 1,
                Err(StoreError::Fenced { .. }) => return at,
                Err(other) => panic!("{other}"),
            }
            // A store that never waits would not let the other task run.
            tokio::task::yield_now().await;
        }
    };
    let new_holder = async {
        eventually(async || {
            cx.store
                .tail(&cx.space, "j")
                .await
                .unwrap()
                .filter(|tail| tail.seq >= 5)
        })
        .await;
        let second = cx.take_over(&first, "two").await;
        // From here on, only this writer appends.
        let at = cx.store.tail(&cx.space, "j").await.unwrap().unwrap().seq;
        cx.append("j", at, &["new"], &second).await.unwrap();
        cx.append("j", at + 1, &["new"], &second).await.unwrap();
        at
    };
    let (acknowledged, inherited) = tokio::join!(old_holder, new_holder);
    assert_eq!(
        acknowledged, inherited,
        "what was acknowledged is what was inherited"
    );
    let lines = cx.lines("j").await;
    let expected: Vec<&str> = std::iter::repeat_n("old", inherited as usize)
        .chain(["new", "new"])
        .collect();
    assert_eq!(lines, expected);
}

async fn names_of_journals_are_compared_byte_by_byte(cx: CaseContext<dyn Store>) {
    let fence = cx.fence("l", "one", LONG).await;
    for name in LOOK_ALIKE_NAMES {
        cx.append(name, 0, &[name], &fence).await.unwrap();
    }
    for name in LOOK_ALIKE_NAMES {
        assert_eq!(cx.lines(name).await, [name]);
    }
    let mut sorted = LOOK_ALIKE_NAMES;
    sorted.sort_unstable();
    let listed = cx.store.names(&cx.space, None, 100).await.unwrap();
    assert_eq!(
        listed.into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        sorted
    );
}
