//! The place for tests of relevance on the fixed corpus (tests/data/documents.txt).

use stead_search::{Index, Query, SearchSource, SearchSourceKind, SourceLine};

const DOCUMENTS: &str = include_str!("../data/documents.txt");
const QUERIES: &str = include_str!("../data/queries.txt");
/// The part of the expected documents that must be among the first five hits.
const RECALL_AT_5: f64 = 0.97;

fn rows(text: &'static str) -> impl Iterator<Item = (&'static str, &'static str)> {
    text.lines()
        .filter(|line| !line.starts_with('#'))
        .map(|line| line.split_once(" | ").unwrap())
}

#[tokio::test]
async fn the_corpus_is_found_in_english_chinese_japanese_korean_and_code() {
    let index = Index::in_memory().await.unwrap();
    let documents: Vec<_> = rows(DOCUMENTS).collect();
    for (id, text) in &documents {
        index
            .sync(
                &SearchSource::new(SearchSourceKind::Memory, *id),
                "1",
                &[SourceLine::note(1, *text)],
            )
            .await
            .unwrap();
    }
    let mut wanted = 0;
    let mut hit = 0;
    let mut first = 0;
    let mut missed = Vec::new();
    let queries: Vec<_> = rows(QUERIES).collect();
    for (query, ids) in &queries {
        let found = index.search(&Query::new(*query).limit(5)).await.unwrap();
        let found: Vec<&str> = found.hits.iter().map(|hit| hit.source.as_str()).collect();
        for id in ids.split_whitespace() {
            assert!(
                documents.iter().any(|(known, _)| *known == id),
                "{id} is no document"
            );
            wanted += 1;
            hit += usize::from(found.contains(&id));
            if !found.contains(&id) {
                missed.push(format!("{query:?} wants {id}, found {found:?}"));
            }
        }
        first += usize::from(
            found
                .first()
                .is_some_and(|id| ids.split_whitespace().any(|wanted| wanted == *id)),
        );
    }
    assert!(
        documents.len() >= 60 && queries.len() >= 150,
        "{} {}",
        documents.len(),
        queries.len()
    );
    let recall = hit as f64 / wanted as f64;
    let top = first as f64 / queries.len() as f64;
    println!(
        "recall@5 {recall:.3}, first {top:.3}\n{}",
        missed.join("\n")
    );
    assert!(
        recall >= RECALL_AT_5,
        "recall@5 is {recall:.3}\n{}",
        missed.join("\n")
    );
    assert!(top >= 0.90, "the first hit is right for {top:.3}");
}
