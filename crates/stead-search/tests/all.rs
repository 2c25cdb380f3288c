//! The place for tests of the search engine; this file has their shared support.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test that cannot go on fails"
)]

#[path = "all/hybrid.rs"]
mod hybrid;
#[path = "all/index_file.rs"]
mod index_file;
#[path = "all/queries.rs"]
mod queries;
#[path = "all/relevance.rs"]
mod relevance;
#[path = "all/scaling.rs"]
mod scaling;
#[path = "all/source_updates.rs"]
mod source_updates;

use stead_search::{Index, Query, SearchResults, SearchSource, SearchSourceKind, SourceLine};

fn memory(name: &str) -> SearchSource {
    SearchSource::new(SearchSourceKind::Memory, name)
}

fn notes(texts: &[&str]) -> Vec<SourceLine> {
    texts
        .iter()
        .zip(1..)
        .map(|(text, place)| SourceLine::note(place, *text))
        .collect()
}

/// Returns an index of one file with these lines.
async fn index_of(texts: &[&str]) -> Index {
    let index = Index::in_memory().await.unwrap();
    index
        .sync(&memory("a.md"), "1", &notes(texts))
        .await
        .unwrap();
    index
}

/// Returns the places of the hits, best first.
fn places(found: &SearchResults) -> Vec<(String, u64)> {
    found
        .hits
        .iter()
        .map(|hit| (hit.source.clone(), hit.position))
        .collect()
}

async fn found(index: &Index, query: &str) -> Vec<u64> {
    index
        .search(&Query::new(query))
        .await
        .unwrap()
        .hits
        .iter()
        .map(|hit| hit.position)
        .collect()
}
