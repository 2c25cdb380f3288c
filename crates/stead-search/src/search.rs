//! Executing a query of the search index.
//!
//! Effects: the local disk (writes).

use crate::candidates::{SearchFilter, candidates};
use crate::index::Index;
use crate::query::{ParsedQuery, QueryTerms, parse};
use crate::rank::{Ranked, rank, recency};
use crate::snippet::snippet;
use crate::tokenizer::tokenize;
use crate::{IndexError, LineSpeaker, Query, SearchSource, SearchSourceKind, literal};
use jiff::Timestamp;
use serde::Serialize;
use sqlx::sqlite::SqliteRow;
use sqlx::{Row, SqlitePool};
use std::collections::HashSet;

const DAY_MS: f64 = 86_400_000.0;

/// The results of a search.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct SearchResults {
    /// The hits, best first; equal ones by source and position.
    pub hits: Vec<Hit>,
    /// How they were ranked.
    pub ranking: Ranking,
}

/// How hits were ranked.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Ranking {
    /// By words.
    Lexical,
    /// By words and meaning.
    Hybrid {
        /// The number of lines without a vector yet; later searches request them.
        unknown: usize,
    },
    /// By words, because embeddings were not available.
    LexicalOnly {
        /// The reason.
        why: String,
    },
}

/// A line that was found.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Hit {
    /// The kind of its source.
    pub kind: SearchSourceKind,
    /// The name of its source.
    pub source: String,
    /// The position in the source.
    pub position: u64,
    /// The time of the line.
    pub at: Option<Timestamp>,
    /// The speaker of the line.
    pub voice: LineSpeaker,
    /// The matching part, on one line.
    pub text: String,
    /// The score, comparable within one result only.
    pub score: f64,
}

impl Index {
    /// Returns the lines that match `query` best.
    pub async fn search(&self, query: &Query) -> Result<SearchResults, IndexError> {
        let hits = self.lexical(query, query.bounded_limit()).await?;
        Ok(SearchResults {
            hits,
            ranking: Ranking::Lexical,
        })
    }

    pub(crate) async fn lexical(
        &self,
        query: &Query,
        limit: usize,
    ) -> Result<Vec<Hit>, IndexError> {
        let parsed = parse(&query.text)?;
        let pool = self.connections().readers;
        let found = async {
            let field = SearchFilter::from_query(&pool, query).await?;
            if field.is_empty() {
                return Ok(Vec::new());
            }
            match &parsed {
                ParsedQuery::Symbols(signs) => literal::search(&pool, &field, signs, limit).await,
                ParsedQuery::Words(terms) => {
                    rank_candidates(&pool, &field, query, terms, limit).await
                }
            }
        };
        let found = found.await;
        self.replace_if_damaged(found).await
    }
}

async fn rank_candidates(
    pool: &SqlitePool,
    field: &SearchFilter,
    query: &Query,
    terms: &QueryTerms,
    limit: usize,
) -> sqlx::Result<Vec<Hit>> {
    let found = candidates(pool, field, terms).await?;
    let rows = read_rows(pool, &found.ids).await?;
    let newest = rows.iter().filter_map(|row| row.at_ms).max();
    let mut all: Vec<(StoredRow, Ranked)> = Vec::with_capacity(rows.len());
    for row in rows {
        let mut ranked = rank(
            terms,
            &found.weights,
            &query.text,
            &row.text,
            &tokenize(&row.text),
        );
        if let (Some(newest), Some(at)) = (newest, row.at_ms) {
            ranked.score *= recency((newest - at) as f64 / DAY_MS);
        }
        // Rounded, because sums of floats differ in their last digit with the order of their parts.
        ranked.score = (ranked.score * 1e6).round() / 1e6;
        all.push((row, ranked));
    }
    all.sort_by(|(a, x), (b, y)| y.score.total_cmp(&x.score).then_with(|| a.cmp_place(b)));
    // Only the best piece of a long line.
    let mut seen = HashSet::new();
    all.retain(|(row, _)| seen.insert((row.kind, row.source.clone(), row.position)));
    all.truncate(limit);
    Ok(all
        .into_iter()
        .map(|(row, ranked)| row.into_hit(ranked.score, &ranked.matches))
        .collect())
}

/// A row of the index.
#[derive(Debug)]
pub(crate) struct StoredRow {
    pub(crate) kind: SearchSourceKind,
    pub(crate) source: String,
    pub(crate) position: u64,
    pub(crate) at_ms: Option<i64>,
    voice: LineSpeaker,
    pub(crate) text: String,
}

impl StoredRow {
    /// The columns that [`StoredRow::read`] reads, of `rows r JOIN sources s`.
    pub(crate) const COLUMNS: &str = "s.kind, s.name, r.place, r.at_ms, r.voice, r.text";

    pub(crate) fn read(row: &SqliteRow) -> sqlx::Result<Self> {
        let odd = |what: &str| sqlx::Error::Decode(format!("{what} is unknown").into());
        Ok(Self {
            kind: SearchSourceKind::from_code(row.try_get(0)?).ok_or_else(|| odd("a kind"))?,
            source: row.try_get(1)?,
            position: u64::try_from(row.try_get::<i64, _>(2)?).map_err(|_| odd("a position"))?,
            at_ms: row.try_get(3)?,
            voice: LineSpeaker::from_code(row.try_get(4)?).ok_or_else(|| odd("a voice"))?,
            text: row.try_get(5)?,
        })
    }

    pub(crate) fn cmp_place(&self, other: &Self) -> std::cmp::Ordering {
        (self.kind, &self.source, self.position, &self.text).cmp(&(
            other.kind,
            &other.source,
            other.position,
            &other.text,
        ))
    }

    pub(crate) fn into_hit(self, score: f64, matches: &[(usize, std::ops::Range<usize>)]) -> Hit {
        let text = snippet(&self.text, matches);
        let at = self
            .at_ms
            .and_then(|ms| Timestamp::from_millisecond(ms).ok());
        Hit {
            kind: self.kind,
            source: self.source,
            position: self.position,
            at,
            voice: self.voice,
            text,
            score,
        }
    }

    pub(crate) fn as_source(&self) -> (SearchSource, u64) {
        (SearchSource::new(self.kind, &self.source), self.position)
    }
}

pub(crate) async fn read_rows(pool: &SqlitePool, ids: &[i64]) -> sqlx::Result<Vec<StoredRow>> {
    let sql = format!(
        "SELECT {} FROM json_each(?) wanted JOIN rows r ON r.id = wanted.value JOIN sources s ON s.id = r.source",
        StoredRow::COLUMNS
    );
    let wanted = serde_json::Value::from(ids.to_vec()).to_string();
    let rows = sqlx::query(sqlx::AssertSqlSafe(sql))
        .bind(wanted)
        .fetch_all(pool)
        .await?;
    rows.iter().map(StoredRow::read).collect()
}
