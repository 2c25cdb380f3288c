//! The place for tests of queries: syntax, phrases, symbols, scope, time and limits.

use crate::{found, index_of, memory, notes, places};
use stead_search::{
    Index, IndexError, LineSpeaker, Query, SearchScope, SearchSource, SearchSourceKind, SourceLine,
};

#[tokio::test]
async fn nothing_that_is_typed_is_an_error_of_syntax() {
    let index = index_of(&["an ordinary line", "x AND y OR NOT z"]).await;
    let hostile = [
        "\"",
        "\"\"\"",
        "'",
        "*",
        "a*",
        "^a",
        "a^",
        "(",
        ")",
        "((a)",
        "{a b}:c",
        "scope:k0",
        "k0",
        "s1",
        "-a",
        "+a",
        "NEAR(a b, 3)",
        "AND",
        "OR",
        "NOT",
        "a AND",
        "NOT a",
        "a:b",
        "rowid:1",
        "; DROP TABLE rows;--",
        "%",
        "_",
        "\\",
        "\0",
        "a\0b",
        "\u{202e}",
        "🎉",
        "<script>",
        "?1",
        "?",
        "$1",
        "@x",
        "--",
        "/*",
        "\u{fffd}",
        "‏א",
        "ﷺ",
        "ß",
        "İ",
        "𝓪",
        "e\u{301}",
        "\u{301}",
        "  .  ",
        "…",
        "ＡＢ",
    ];
    for query in hostile {
        let answer = index.search(&Query::new(query)).await;
        assert!(answer.is_ok(), "{query:?}: {answer:?}");
    }
    let long = "wort ".repeat(5000) + &"数".repeat(5000);
    assert!(index.search(&Query::new(long)).await.is_ok());
    for empty in ["", "  \n\t "] {
        assert!(matches!(
            index.search(&Query::new(empty)).await,
            Err(IndexError::EmptyQuery)
        ));
    }
    // The internal marks of scopes are not searchable words.
    assert_eq!(found(&index, "k0").await, Vec::<u64>::new());
}

#[tokio::test]
async fn all_words_go_before_some_and_neighbours_before_strangers() {
    let index = index_of(&[
        "alpha and a long way from there to beta",
        "alpha beta",
        "alpha only",
        "beta only",
        "nothing of the kind",
    ])
    .await;
    assert_eq!(found(&index, "alpha beta").await, [2, 1, 3, 4]);
}

#[tokio::test]
async fn a_phrase_must_stand_there() {
    let index = index_of(&[
        "the quick brown fox",
        "brown and quick",
        "quick_brown",
        "数据和库",
        "数据库",
    ])
    .await;
    assert_eq!(found(&index, "\"quick brown\"").await, [1, 3]);
    assert_eq!(found(&index, "\"数据库\"").await, [5]);
    assert_eq!(found(&index, "\"not there\"").await, Vec::<u64>::new());
}

#[tokio::test]
async fn signs_are_found_as_they_stand() {
    let index = index_of(&["a => b", "party 🎉", "a = > b"]).await;
    assert_eq!(found(&index, "=>").await, [1]);
    assert_eq!(found(&index, "🎉").await, [2]);
}

#[tokio::test]
async fn scope_and_time_narrow_and_limits_are_kept() {
    let index = Index::in_memory().await.unwrap();
    let day = |n: i64| jiff::Timestamp::from_second(n * 86_400).unwrap();
    for (kind, name) in [
        (SearchSourceKind::Memory, "memory/a.md"),
        (SearchSourceKind::Memory, "MEMORY.md"),
        (SearchSourceKind::Session, "s"),
    ] {
        let lines: Vec<SourceLine> = (1..=9)
            .map(|n| SourceLine::note(n, "heron").at(day(n as i64)))
            .collect();
        index
            .sync(&SearchSource::new(kind, name), "1", &lines)
            .await
            .unwrap();
    }
    let all = Query::new("heron").limit(100);
    let under = SearchScope::Under(SearchSourceKind::Memory, "memory/".into());
    let named = SearchScope::Sources(SearchSourceKind::Memory, vec!["MEMORY.md".into()]);
    #[rustfmt::skip]
    let table = [
        (all.clone(), 27), (all.clone().limit(4), 4), (all.clone().limit(0), 1),
        (all.clone().in_scope(SearchScope::Kind(SearchSourceKind::Memory)), 18),
        (all.clone().in_scope(SearchScope::Kind(SearchSourceKind::Session)), 9),
        (all.clone().in_scope(under.clone()), 9),
        (all.clone().in_scope(named), 9),
        (all.clone().in_scope(SearchScope::Sources(SearchSourceKind::Session, vec!["MEMORY.md".into()])), 0),
        (Query { since: Some(day(4)), ..all.clone() }, 18),
        (Query { until: Some(day(4)), ..all.clone() }, 9),
        (Query { since: Some(day(2)), until: Some(day(4)), ..all.clone() }.in_scope(under), 2),
        // The limit also applies to symbols.
        (Query::new("heron").limit(usize::MAX), 27),
    ];
    for (query, hits) in table {
        assert_eq!(
            index.search(&query).await.unwrap().hits.len(),
            hits,
            "{query:?}"
        );
    }
    // Newest first, then by source and position.
    let best = places(&index.search(&all.limit(3)).await.unwrap());
    assert_eq!(
        best,
        [
            ("MEMORY.md".to_owned(), 9),
            ("memory/a.md".to_owned(), 9),
            ("s".to_owned(), 9)
        ]
    );
}

#[tokio::test]
async fn a_hit_shows_who_said_what_and_where() {
    let index = Index::in_memory().await.unwrap();
    let text = format!(
        "{} the needle is here {}",
        "hay ".repeat(1000),
        "hay\n".repeat(1000)
    );
    let at = "2026-11-16T07:00:00Z".parse().unwrap();
    let line = SourceLine {
        position: 7,
        at: Some(at),
        voice: LineSpeaker::Tool,
        text,
    };
    index
        .sync(
            &SearchSource::new(SearchSourceKind::Session, "s1"),
            "1",
            &[line],
        )
        .await
        .unwrap();
    let found = index.search(&Query::new("needle")).await.unwrap();
    let hit = &found.hits[0];
    assert_eq!(
        (
            hit.kind,
            hit.source.as_str(),
            hit.position,
            hit.at,
            hit.voice
        ),
        (
            SearchSourceKind::Session,
            "s1",
            7,
            Some(at),
            LineSpeaker::Tool
        )
    );
    assert!(
        hit.text.contains("the needle is here") && hit.text.chars().count() <= 242,
        "{}",
        hit.text
    );
    // Several pieces of one line are one hit.
    assert_eq!(
        index.search(&Query::new("hay")).await.unwrap().hits.len(),
        1
    );
}

#[tokio::test]
async fn more_sources_than_can_be_named_are_a_scope_too() {
    let index = Index::in_memory().await.unwrap();
    for n in 0..80 {
        index
            .sync(&memory(&format!("{n:02}.md")), "1", &notes(&["heron"]))
            .await
            .unwrap();
    }
    let names: Vec<String> = (0..70).map(|n| format!("{n:02}.md")).collect();
    let query = Query::new("heron")
        .limit(200)
        .in_scope(SearchScope::Sources(SearchSourceKind::Memory, names));
    assert_eq!(index.search(&query).await.unwrap().hits.len(), 70);
}
