//! The place for tests of search time on a large index.

use std::time::{Duration, Instant};
use stead_search::{Index, Query, SearchSource, SearchSourceKind, SourceLine};

const LINES: u64 = 100_000;

/// Returns a text of common and rare words, the same for the same `n`.
fn text(n: u64) -> String {
    let common = [
        "the",
        "deploy",
        "server",
        "config",
        "error",
        "test",
        "数据",
        "read_lines",
    ];
    let pick = |salt: u64| {
        common[(n
            .wrapping_mul(6_364_136_223_846_793_005)
            .rotate_left(salt as u32)
            % 8) as usize]
    };
    format!(
        "{} {} {} item{} group{} {}",
        pick(3),
        pick(17),
        pick(29),
        n,
        n % 1000,
        pick(41)
    )
}

#[tokio::test]
async fn a_hundred_thousand_lines_are_searched_at_once() {
    let index = Index::in_memory().await.unwrap();
    let lines: Vec<SourceLine> = (1..=LINES).map(|n| SourceLine::note(n, text(n))).collect();
    for (n, part) in lines.chunks(1000).enumerate() {
        index
            .sync(
                &SearchSource::new(SearchSourceKind::Session, format!("s{n:03}")),
                "1",
                part,
            )
            .await
            .unwrap();
    }
    for query in [
        "item77777",
        "deploy server config error",
        "group42 error",
        "数据",
        "\"deploy server\"",
        "=>",
        "the",
    ] {
        let begun = Instant::now();
        let found = index.search(&Query::new(query)).await.unwrap();
        let took = begun.elapsed();
        println!("{query:?}: {} hits in {took:?}", found.hits.len());
        // Generous, for a debug build on a busy machine.
        assert!(took < Duration::from_millis(500), "{query:?} took {took:?}");
    }
}
