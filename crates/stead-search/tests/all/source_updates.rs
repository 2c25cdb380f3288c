//! The place for tests of updating an index: versions, appended lines and removed sources.

use crate::{found, memory, notes};
use proptest::prelude::*;
use stead_search::{AppendOutcome, Index, Query, SearchSourceKind, SourceLine, SyncOutcome};

#[tokio::test]
async fn a_version_that_is_known_is_left_alone_and_another_replaces_it() {
    let index = Index::in_memory().await.unwrap();
    let source = memory("a.md");
    assert_eq!(
        index.sync(&source, "1", &notes(&["heron"])).await.unwrap(),
        SyncOutcome::Replaced
    );
    assert_eq!(
        index.sync(&source, "1", &notes(&["stork"])).await.unwrap(),
        SyncOutcome::Unchanged
    );
    assert_eq!(found(&index, "heron").await, [1]);
    assert_eq!(
        index
            .sync(&source, "2", &notes(&["", "stork"]))
            .await
            .unwrap(),
        SyncOutcome::Replaced
    );
    assert_eq!(
        (found(&index, "heron").await, found(&index, "stork").await),
        (vec![], vec![2])
    );
    assert_eq!(
        index.sources(SearchSourceKind::Memory).await.unwrap(),
        [("a.md".to_owned(), "2".to_owned())].into()
    );
    index.remove(&source).await.unwrap();
    assert_eq!(
        (
            found(&index, "stork").await,
            index.version(&source).await.unwrap()
        ),
        (vec![], None)
    );
    index.remove(&source).await.unwrap();
}

#[tokio::test]
async fn what_was_forgotten_takes_no_space() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("search.sqlite");
    let index = Index::open(&path).await.unwrap();
    let lines: Vec<SourceLine> = (1..=3000)
        .map(|n| SourceLine::note(n, format!("line {n} of many more words")))
        .collect();
    index.sync(&memory("large.md"), "1", &lines).await.unwrap();
    index
        .sync(&memory("small.md"), "1", &notes(&["heron"]))
        .await
        .unwrap();
    index.compact().await.unwrap();
    let full = std::fs::metadata(&path).unwrap().len();
    index.remove(&memory("large.md")).await.unwrap();
    index.compact().await.unwrap();
    let rest = std::fs::metadata(&path).unwrap().len();
    assert!(rest * 4 < full, "{rest} of {full} bytes");
    assert_eq!(found(&index, "heron").await, [1]);
}

#[tokio::test]
async fn only_the_version_that_grew_is_added_to() {
    let index = Index::in_memory().await.unwrap();
    let source = memory("a.md");
    let more = [SourceLine::note(2, "stork")];
    assert_eq!(
        index.append(&source, "1", "2", &more).await.unwrap(),
        AppendOutcome::Stale
    );
    index.sync(&source, "1", &notes(&["heron"])).await.unwrap();
    assert_eq!(
        index.append(&source, "1", "2", &more).await.unwrap(),
        AppendOutcome::Added
    );
    // Another process that saw the same growth adds no line twice.
    assert_eq!(
        index.append(&source, "1", "2", &more).await.unwrap(),
        AppendOutcome::Stale
    );
    assert_eq!(found(&index, "stork heron").await, [1, 2]);
}

const WORDS: [&str; 10] = [
    "heron",
    "stork",
    "数据库",
    "数据",
    "read_lines",
    "HttpModel",
    "E0308",
    "the",
    "running",
    "🎉",
];

fn texts() -> impl Strategy<Value = Vec<String>> {
    let text = prop::collection::vec(prop::sample::select(&WORDS[..]), 0..6)
        .prop_map(|words| words.join(" "));
    prop::collection::vec(text, 0..25)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: ProptestConfig::default().cases * 3 / 32, ..ProptestConfig::default() })]

    #[test]
    fn what_grew_line_by_line_answers_as_what_was_given_at_once(
        texts in texts(),
        cuts in prop::collection::vec(0_usize..25, 0..4),
        query in prop::collection::vec(prop::sample::select(&WORDS[..]), 1..4),
    ) {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async {
            let lines: Vec<SourceLine> = texts.iter().zip(1..).map(|(text, place)| SourceLine::note(place, text)).collect();
            let grown = Index::in_memory().await.unwrap();
            let whole = Index::in_memory().await.unwrap();
            let source = memory("a.md");
            whole.sync(&source, "end", &lines).await.unwrap();
            grown.sync(&source, "0", &[]).await.unwrap();
            let mut cuts: Vec<usize> = cuts.into_iter().map(|cut| cut.min(lines.len())).chain([lines.len()]).collect();
            cuts.sort_unstable();
            let mut known = 0;
            for (step, cut) in cuts.into_iter().enumerate() {
                let from = step.to_string();
                let to = (step + 1).to_string();
                assert_eq!(grown.append(&source, &from, &to, &lines[known..cut]).await.unwrap(), AppendOutcome::Added);
                known = cut;
            }
            let query = Query::new(query.join(" ")).limit(100);
            assert_eq!(grown.search(&query).await.unwrap(), whole.search(&query).await.unwrap());
        });
    }
}
