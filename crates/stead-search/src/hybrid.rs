//! Searching by words and by meaning at once.
//!
//! Effects: the clock, the local disk (writes), the model.

use crate::candidates::SearchFilter;
use crate::embed::{Embed, HybridOptions};
use crate::index::Index;
use crate::search::{Hit, Ranking, SearchResults, StoredRow, read_rows};
use crate::{IndexError, Query, SearchSource};
use sqlx::{AssertSqlSafe, Row};
use std::collections::{BTreeMap, HashMap};

/// The number of hits of each ranking that are merged.
const MAX_FUSED_HITS: usize = 60;
/// The constant k of reciprocal rank fusion: the greater, the less the first ranks differ from the
/// next.
const RRF_K: f64 = 60.0;
/// The number of rows whose vectors are compared, most recently indexed first.
const MAX_COMPARED_ROWS: usize = 20_000;
/// The number of rows for which one search requests vectors.
const MAX_EMBEDDED_ROWS: usize = 512;
/// The number of rows in one request.
const BATCH_TEXTS: usize = 64;

impl Index {
    /// Returns the lines that match `query` best by words and by meaning. If embeddings are not
    /// available in time, ranks by words alone, and the result says so.
    pub async fn search_hybrid(
        &self,
        query: &Query,
        hybrid: HybridOptions<'_>,
    ) -> Result<SearchResults, IndexError> {
        let limit = query.bounded_limit();
        let by_words = self.lexical(query, limit.max(MAX_FUSED_HITS)).await?;
        let by_meaning =
            match tokio::time::timeout(hybrid.deadline, self.semantic_search(query, hybrid.embed))
                .await
            {
                Ok(outcome) => outcome?,
                Err(_) => Err(format!("no answer within {:?}", hybrid.deadline)),
            };
        Ok(match by_meaning {
            Ok((hits, unknown)) => SearchResults {
                hits: fuse_rankings(by_words, hits, limit),
                ranking: Ranking::Hybrid { unknown },
            },
            Err(why) => {
                let hits = by_words.into_iter().take(limit).collect();
                SearchResults {
                    hits,
                    ranking: Ranking::LexicalOnly { why },
                }
            }
        })
    }

    /// Returns the nearest lines and the number of lines without a vector, or the reason why
    /// embeddings are not available.
    async fn semantic_search(
        &self,
        query: &Query,
        embed: &dyn Embed,
    ) -> Result<SemanticResult, IndexError> {
        let pool = self.connections().readers;
        let field = SearchFilter::from_query(&pool, query).await;
        let field = self.replace_if_damaged(field).await?;
        let asked = match embed_normalized(embed, std::slice::from_ref(&query.text)).await {
            Ok(vectors) => vectors.into_iter().next().unwrap_or_default(),
            Err(why) => return Ok(Err(why)),
        };
        if let Err(why) = self.embed_missing(&field, embed).await? {
            return Ok(Err(why));
        }
        let (conditions, bound) = field.conditions(2);
        let sql = format!(
            "SELECT r.id, v.vector FROM (SELECT id, hash FROM rows r WHERE {conditions} ORDER BY id DESC \
             LIMIT {MAX_COMPARED_ROWS}) r LEFT JOIN vectors v ON v.hash = r.hash AND v.model = ?1"
        );
        let rows = bound
            .bind_to(sqlx::query(AssertSqlSafe(sql)).bind(embed.model()))
            .fetch_all(&pool)
            .await;
        let rows = self.replace_if_damaged(rows).await?;
        let mut near: Vec<(i64, f32)> = Vec::new();
        let mut unknown: usize = 0;
        for row in &rows {
            let read = row
                .try_get(0)
                .and_then(|id| Ok((id, row.try_get::<Option<Vec<u8>>, _>(1)?)));
            match self.replace_if_damaged(read).await? {
                (_, None) => unknown += 1,
                (id, Some(vector)) => near.push((id, cosine(&asked, &vector))),
            }
        }
        near.retain(|(_, nearness)| *nearness > 0.0);
        near.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
        near.truncate(MAX_FUSED_HITS);
        let nearness: Vec<(i64, f32)> = near;
        let mut hits = Vec::new();
        for (id, nearness) in nearness {
            let rows = read_rows(&pool, &[id]).await;
            hits.extend(
                self.replace_if_damaged(rows)
                    .await?
                    .into_iter()
                    .map(|row: StoredRow| row.into_hit(f64::from(nearness), &[])),
            );
        }
        Ok(Ok((hits, unknown)))
    }

    /// Requests vectors for a limited number of lines that have none yet.
    async fn embed_missing(
        &self,
        field: &SearchFilter,
        embed: &dyn Embed,
    ) -> Result<Result<(), String>, IndexError> {
        let (conditions, bound) = field.conditions(2);
        let sql = format!(
            "SELECT r.hash, r.text FROM (SELECT id, hash, text FROM rows r WHERE {conditions} ORDER BY id DESC \
             LIMIT {MAX_COMPARED_ROWS}) r WHERE NOT EXISTS \
             (SELECT 1 FROM vectors v WHERE v.hash = r.hash AND v.model = ?1) LIMIT {MAX_EMBEDDED_ROWS}"
        );
        let query = bound.bind_to(sqlx::query(AssertSqlSafe(sql)).bind(embed.model()));
        let rows = query.fetch_all(&self.connections().readers).await;
        let missing = rows.and_then(|rows| {
            rows.iter()
                .map(|row| Ok((row.try_get(0)?, row.try_get(1)?)))
                .collect()
        });
        let missing: BTreeMap<i64, String> = self.replace_if_damaged(missing).await?;
        let missing: Vec<(i64, String)> = missing.into_iter().collect();
        for batch in missing.chunks(BATCH_TEXTS) {
            let texts: Vec<String> = batch.iter().map(|(_, text)| text.clone()).collect();
            let vectors = match embed_normalized(embed, &texts).await {
                Ok(vectors) => vectors,
                Err(why) => return Ok(Err(why)),
            };
            // Stored batch by batch: if the time is up, the next search continues from here.
            let kept = self.store_vectors(embed.model(), batch, &vectors).await;
            self.replace_if_damaged(kept).await?;
        }
        Ok(Ok(()))
    }

    async fn store_vectors(
        &self,
        model: &str,
        batch: &[(i64, String)],
        vectors: &[Vec<f32>],
    ) -> sqlx::Result<()> {
        let mut tx = self
            .connections()
            .writer
            .begin_with("BEGIN IMMEDIATE")
            .await?;
        for ((hash, _), vector) in batch.iter().zip(vectors) {
            let bytes: Vec<u8> = vector
                .iter()
                .flat_map(|number| number.to_le_bytes())
                .collect();
            let insert = sqlx::query(
                "INSERT OR REPLACE INTO vectors (hash, model, vector) VALUES (?, ?, ?)",
            );
            insert
                .bind(hash)
                .bind(model)
                .bind(bytes)
                .execute(&mut *tx)
                .await?;
        }
        tx.commit().await
    }
}

type SemanticResult = Result<(Vec<Hit>, usize), String>;

/// Returns vectors of length 1 for `texts`, after checking the response.
async fn embed_normalized(embed: &dyn Embed, texts: &[String]) -> Result<Vec<Vec<f32>>, String> {
    let mut vectors = embed
        .embed(texts)
        .await
        .map_err(|error| error.to_string())?;
    if vectors.len() != texts.len() {
        return Err(format!(
            "{} gave {} vectors for {} texts",
            embed.model(),
            vectors.len(),
            texts.len()
        ));
    }
    for vector in &mut vectors {
        let length = vector
            .iter()
            .map(|number| number * number)
            .sum::<f32>()
            .sqrt();
        if !length.is_normal() {
            return Err(format!(
                "{} gave a vector without a direction",
                embed.model()
            ));
        }
        vector.iter_mut().for_each(|number| *number /= length);
    }
    Ok(vectors)
}

/// Returns the cosine similarity of two vectors of length 1; 0 if their sizes differ.
fn cosine(asked: &[f32], kept: &[u8]) -> f32 {
    if kept.len() != asked.len() * 4 {
        return 0.0;
    }
    let numbers = kept
        .chunks_exact(4)
        .map(|bytes| bytes.try_into().map_or(0.0, f32::from_le_bytes));
    numbers.zip(asked).map(|(a, b)| a * b).sum()
}

/// Merges two rankings: hits that rank high in both come first.
fn fuse_rankings(by_words: Vec<Hit>, by_meaning: Vec<Hit>, limit: usize) -> Vec<Hit> {
    let mut all: HashMap<(SearchSource, u64), Hit> = HashMap::new();
    for ranking in [by_words, by_meaning] {
        let mut rank = 0.0;
        let mut counted = std::collections::HashSet::new();
        for hit in ranking {
            let key = (SearchSource::new(hit.kind, &hit.source), hit.position);
            // A long line has several pieces; its rank is that of the best one.
            if !counted.insert(key.clone()) {
                continue;
            }
            rank += 1.0;
            let known = all.entry(key).or_insert(Hit { score: 0.0, ..hit });
            known.score += 1.0 / (RRF_K + rank);
        }
    }
    let mut hits: Vec<Hit> = all.into_values().collect();
    hits.sort_by(|a, b| {
        let position = || (a.kind, &a.source, a.position).cmp(&(b.kind, &b.source, b.position));
        b.score.total_cmp(&a.score).then_with(position)
    });
    hits.truncate(limit);
    hits
}
