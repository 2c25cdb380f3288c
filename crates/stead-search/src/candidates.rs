//! Part of a search: selecting the rows to rank, with the index alone and without reading a text.
//!
//! Effects: the local disk (writes).

use crate::query::QueryTerms;
use crate::{Query, SearchScope};
use sqlx::sqlite::SqliteArguments;
use sqlx::{AssertSqlSafe, Row, Sqlite, SqlitePool};
use std::collections::HashMap;

/// The number of rows considered for one word, most recently indexed first. A word in more rows is
/// not distinctive.
const MAX_ROWS_PER_TERM: i64 = 2000;
/// The number of rows that are ranked by their text.
const MAX_RANKED_ROWS: usize = 200;
/// The weight of a word that is in every row.
const MIN_TERM_WEIGHT: f64 = 0.1;
/// The number of sources of a scope that are named in the index query; more are filtered row by
/// row.
const MAX_SOURCES_IN_QUERY: usize = 32;

/// The rows that a scope and a time range cover.
#[derive(Debug)]
pub(crate) struct SearchFilter {
    sources: SourceFilter,
    since_ms: Option<i64>,
    until_ms: Option<i64>,
    /// The number of rows in the scope, at any time.
    pub(crate) rows: i64,
}

#[derive(Debug, PartialEq)]
enum SourceFilter {
    All,
    Kind(i64),
    Ids(Vec<i64>),
}

/// The rows to rank, and the weight of each word.
#[derive(Debug)]
pub(crate) struct Candidates {
    pub(crate) ids: Vec<i64>,
    /// The weight of each word of the query, by its index.
    pub(crate) weights: Vec<f64>,
}

impl SearchFilter {
    /// Returns the filter for `query`.
    pub(crate) async fn from_query(pool: &SqlitePool, query: &Query) -> sqlx::Result<Self> {
        let all = sqlx::query("SELECT id, kind, name, rows FROM sources")
            .fetch_all(pool)
            .await?;
        let mut ids = Vec::new();
        let mut rows = 0;
        for row in &all {
            let kind: i64 = row.try_get(1)?;
            let name: String = row.try_get(2)?;
            let covered = match &query.scope {
                SearchScope::All => true,
                SearchScope::Kind(wanted) => wanted.code() == kind,
                SearchScope::Under(wanted, prefix) => {
                    wanted.code() == kind && name.starts_with(prefix.as_str())
                }
                SearchScope::Sources(wanted, names) => {
                    wanted.code() == kind && names.contains(&name)
                }
            };
            if covered {
                ids.push(row.try_get(0)?);
                rows += row.try_get::<i64, _>(3)?;
            }
        }
        let sources = match &query.scope {
            _ if ids.len() == all.len() => SourceFilter::All,
            SearchScope::All => SourceFilter::All,
            SearchScope::Kind(kind) => SourceFilter::Kind(kind.code()),
            SearchScope::Under(..) | SearchScope::Sources(..) => SourceFilter::Ids(ids),
        };
        let ms = |at: Option<jiff::Timestamp>| at.map(|at| at.as_millisecond());
        Ok(Self {
            sources,
            since_ms: ms(query.since),
            until_ms: ms(query.until),
            rows,
        })
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.rows == 0
    }

    /// Returns the part of the filter that the index can evaluate, as an FTS5 expression.
    fn fts_filter(&self) -> Option<String> {
        match &self.sources {
            SourceFilter::All => None,
            SourceFilter::Kind(kind) => Some(format!("scope : \"k{kind}\"")),
            SourceFilter::Ids(ids) if ids.len() > MAX_SOURCES_IN_QUERY => None,
            SourceFilter::Ids(ids) => {
                let names: Vec<String> = ids.iter().map(|id| format!("\"s{id}\"")).collect();
                Some(format!("scope : ({})", names.join(" OR ")))
            }
        }
    }

    /// Returns SQL conditions on a row `r`, with the values of their three parameters, numbered
    /// from `first`.
    pub(crate) fn conditions(&self, first: usize) -> (String, FilterParams) {
        let mut all = Vec::new();
        if self.since_ms.is_some() {
            all.push(format!("r.at_ms >= ?{first}"));
        }
        if self.until_ms.is_some() {
            all.push(format!("r.at_ms < ?{}", first + 1));
        }
        let sources = match &self.sources {
            SourceFilter::All => None,
            SourceFilter::Kind(kind) => {
                all.push(format!(
                    "r.source IN (SELECT id FROM sources WHERE kind = ?{})",
                    first + 2
                ));
                Some(kind.to_string())
            }
            SourceFilter::Ids(ids) => {
                all.push(format!(
                    "r.source IN (SELECT value FROM json_each(?{}))",
                    first + 2
                ));
                Some(serde_json::Value::from(ids.clone()).to_string())
            }
        };
        let text = if all.is_empty() {
            "1".to_owned()
        } else {
            all.join(" AND ")
        };
        (
            text,
            FilterParams {
                since_ms: self.since_ms,
                until_ms: self.until_ms,
                sources,
            },
        )
    }

    /// Returns whether rows must be filtered beside the index query.
    fn needs_row_check(&self) -> bool {
        let many =
            matches!(&self.sources, SourceFilter::Ids(ids) if ids.len() > MAX_SOURCES_IN_QUERY);
        many || self.since_ms.is_some() || self.until_ms.is_some()
    }

    /// Returns the rows that match the FTS5 expression `wanted`, most recently indexed first.
    async fn matching_rows(&self, pool: &SqlitePool, wanted: &str) -> sqlx::Result<Vec<i64>> {
        let question = match self.fts_filter() {
            Some(marks) => format!("{marks} AND {wanted}"),
            None => wanted.to_owned(),
        };
        let (conditions, bound) = self.conditions(2);
        let rows = match self.needs_row_check() {
            false => "words WHERE words MATCH ?1".to_owned(),
            true => format!(
                "words JOIN rows r ON r.id = words.rowid WHERE words MATCH ?1 AND {conditions}"
            ),
        };
        // One row of JSON: fetching a row for each would cost more than finding them.
        let sql = format!(
            "SELECT json_group_array(id) FROM \
             (SELECT words.rowid AS id FROM {rows} ORDER BY words.rowid DESC LIMIT {MAX_ROWS_PER_TERM})"
        );
        let query = sqlx::query(AssertSqlSafe(sql)).bind(question);
        let query = if self.needs_row_check() {
            bound.bind_to(query)
        } else {
            query
        };
        let list: String = query.fetch_one(pool).await?.try_get(0)?;
        serde_json::from_str(&list).map_err(|error| sqlx::Error::Decode(error.into()))
    }
}

/// The parameter values of a [`SearchFilter`]'s conditions.
pub(crate) struct FilterParams {
    since_ms: Option<i64>,
    until_ms: Option<i64>,
    sources: Option<String>,
}

type SqliteQuery<'q> = sqlx::query::Query<'q, Sqlite, SqliteArguments>;

impl FilterParams {
    pub(crate) fn bind_to(self, query: SqliteQuery<'_>) -> SqliteQuery<'_> {
        query
            .bind(self.since_ms)
            .bind(self.until_ms)
            .bind(self.sources)
    }
}

/// Finds the rows to rank: those with the most distinctive words, and those with all words.
pub(crate) async fn candidates(
    pool: &SqlitePool,
    field: &SearchFilter,
    terms: &QueryTerms,
) -> sqlx::Result<Candidates> {
    let mut weights = vec![0.0; terms.words.len()];
    let mut scores: HashMap<i64, f64> = HashMap::new();
    for at in terms.candidate_terms() {
        let rows = field
            .matching_rows(pool, &quote_fts_term(&terms.words[at]))
            .await?;
        weights[at] = weight(rows.len(), field.rows);
        for row in rows {
            *scores.entry(row).or_default() += weights[at];
        }
    }
    let present: Vec<String> = terms
        .required_terms()
        .filter(|&at| weights[at] > 0.0)
        .map(|at| quote_fts_term(&terms.words[at]))
        .collect();
    if present.len() > 1 {
        let all: f64 = terms.required_terms().map(|at| weights[at]).sum();
        for row in field.matching_rows(pool, &present.join(" AND ")).await? {
            scores.insert(row, all);
        }
    }
    for phrase in &terms.phrases {
        let together = format!("sequence : \"{}\"", phrase.join(" "));
        let rows: std::collections::HashSet<i64> = field
            .matching_rows(pool, &together)
            .await?
            .into_iter()
            .collect();
        // A phrase of frequent words may be in rows that were not considered for any of them.
        rows.iter()
            .for_each(|&row| *scores.entry(row).or_default() += 1.0);
        scores.retain(|row, _| rows.contains(row));
    }
    let mut best: Vec<(i64, f64)> = scores.into_iter().collect();
    best.sort_by(|a, b| b.1.total_cmp(&a.1).then(b.0.cmp(&a.0)));
    best.truncate(MAX_RANKED_ROWS);
    Ok(Candidates {
        ids: best.into_iter().map(|(id, _)| id).collect(),
        weights,
    })
}

/// Quotes a word for FTS5. Words contain neither quotes nor FTS5 syntax.
fn quote_fts_term(text: &str) -> String {
    format!("{{sequence beside}} : \"{text}\"")
}

/// Returns the weight of a word in `found` of `all` rows: the rarer, the greater. A word in no row
/// has weight 0.
fn weight(found: usize, all: i64) -> f64 {
    if found == 0 {
        return 0.0;
    }
    let found = found as f64;
    let all = all as f64;
    (1.0 + (all - found + 0.5).max(0.0) / (found + 0.5))
        .ln()
        .max(MIN_TERM_WEIGHT)
}
