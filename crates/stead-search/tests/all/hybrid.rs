//! The place for tests of ranking by embeddings beside words.

use crate::{index_of, memory, notes};
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use std::sync::Mutex;
use std::time::Duration;
use stead_search::{Embed, EmbedError, HybridOptions, Index, Query, Ranking, SearchResults};

/// An embedder with three meanings, independent of the words.
#[derive(Debug, Default)]
struct Meanings {
    asked: Mutex<Vec<String>>,
}

impl Embed for Meanings {
    fn model(&self) -> &str {
        "meanings"
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        self.asked.lock().unwrap().extend(texts.iter().cloned());
        let about = |text: &str, words: &[&str]| {
            if words.iter().any(|word| text.contains(word)) {
                1.0
            } else {
                0.1
            }
        };
        let vector = |text: &String| {
            vec![
                about(text, &["car", "automobile", "vehicle"]),
                about(text, &["bird", "heron"]),
                0.2,
            ]
        };
        let vectors = texts.iter().map(vector).collect();
        async move { Ok(vectors) }.boxed()
    }
}

const DEADLINE: Duration = Duration::from_secs(5);

async fn ask(index: &Index, embed: &dyn Embed, text: &str) -> SearchResults {
    index
        .search_hybrid(
            &Query::new(text),
            HybridOptions {
                embed,
                deadline: DEADLINE,
            },
        )
        .await
        .unwrap()
}

#[tokio::test]
async fn what_means_the_same_is_found_without_a_common_word_and_lines_are_embedded_once() {
    let index = index_of(&[
        "the automobile is red",
        "a heron by the lake",
        "invoices are due",
    ])
    .await;
    let meanings = Meanings::default();
    assert_eq!(index.search(&Query::new("vehicle")).await.unwrap().hits, []);
    let found = ask(&index, &meanings, "vehicle").await;
    assert_eq!(
        (found.hits[0].position, found.ranking),
        (1, Ranking::Hybrid { unknown: 0 })
    );
    assert_eq!(meanings.asked.lock().unwrap().len(), 4);
    // No vector is requested again for an unchanged line of a changed file.
    index
        .sync(
            &memory("a.md"),
            "2",
            &notes(&[
                "new first line",
                "the automobile is red",
                "a heron by the lake",
            ]),
        )
        .await
        .unwrap();
    assert_eq!(ask(&index, &meanings, "vehicle").await.hits[0].position, 2);
    assert_eq!(
        meanings.asked.lock().unwrap()[4..],
        ["vehicle".to_owned(), "new first line".to_owned()]
    );
}

#[tokio::test]
async fn what_is_high_in_both_rankings_comes_first() {
    let index = index_of(&["a red car", "an automobile", "red paint", "a heron"]).await;
    let found = ask(&index, &Meanings::default(), "red car").await;
    assert_eq!(found.hits[0].position, 1);
    assert!(found.hits.len() >= 3);
}

#[derive(Debug)]
enum Broken {
    Fails,
    Hangs,
    GivesTooFew,
    GivesNothing,
}

impl Embed for Broken {
    fn model(&self) -> &str {
        "broken"
    }

    fn embed<'a>(
        &'a self,
        texts: &'a [String],
    ) -> BoxFuture<'a, Result<Vec<Vec<f32>>, EmbedError>> {
        async move {
            match self {
                Self::Fails => Err(EmbedError("no such model".to_owned())),
                Self::Hangs => std::future::pending().await,
                Self::GivesTooFew => Ok(Vec::new()),
                Self::GivesNothing => Ok(vec![vec![0.0; 3]; texts.len()]),
            }
        }
        .boxed()
    }
}

#[tokio::test]
async fn without_meaning_words_answer_and_say_why() {
    let index = index_of(&["a red car", "a heron"]).await;
    let lexical = index.search(&Query::new("heron")).await.unwrap().hits;
    let table = [
        (Broken::Fails, "no such model"),
        (Broken::Hangs, "no answer within 50ms"),
        (Broken::GivesTooFew, "broken gave 0 vectors for 1 texts"),
        (
            Broken::GivesNothing,
            "broken gave a vector without a direction",
        ),
    ];
    for (embed, why) in table {
        let hybrid = HybridOptions {
            embed: &embed,
            deadline: Duration::from_millis(50),
        };
        let found = index
            .search_hybrid(&Query::new("heron"), hybrid)
            .await
            .unwrap();
        assert_eq!(
            found,
            SearchResults {
                hits: lexical.clone(),
                ranking: Ranking::LexicalOnly {
                    why: why.to_owned()
                }
            }
        );
    }
}
