//! Queries without words: their symbols are searched literally, in a limited number of rows.
//!
//! Effects: the local disk (writes).

use crate::candidates::SearchFilter;
use crate::search::{Hit, StoredRow};
use sqlx::{AssertSqlSafe, SqlitePool};
use std::collections::HashSet;

/// The number of rows that are scanned, most recently indexed first.
const SCANNED_ROWS: usize = 200_000;
/// The number of rows that are sorted by time.
const MAX_FOUND: usize = 1000;

/// Returns the newest rows that contain `signs`.
pub(crate) async fn search(
    pool: &SqlitePool,
    field: &SearchFilter,
    signs: &str,
    limit: usize,
) -> sqlx::Result<Vec<Hit>> {
    let (conditions, bound) = field.conditions(2);
    let sql = format!(
        "SELECT {} FROM (SELECT * FROM rows r WHERE {conditions} ORDER BY id DESC LIMIT {SCANNED_ROWS}) r \
         JOIN sources s ON s.id = r.source WHERE instr(r.text, ?1) > 0 LIMIT {MAX_FOUND}",
        StoredRow::COLUMNS
    );
    let rows = bound
        .bind_to(sqlx::query(AssertSqlSafe(sql)).bind(signs))
        .fetch_all(pool)
        .await?;
    let mut rows = rows
        .iter()
        .map(StoredRow::read)
        .collect::<sqlx::Result<Vec<_>>>()?;
    rows.sort_by(|a, b| b.at_ms.cmp(&a.at_ms).then_with(|| a.cmp_place(b)));
    let mut seen = HashSet::new();
    rows.retain(|row| seen.insert(row.as_source()));
    rows.truncate(limit);
    let hit = |row: StoredRow| {
        let at = row.text.find(signs).unwrap_or_default();
        row.into_hit(1.0, &[(0, at..at + signs.len())])
    };
    Ok(rows.into_iter().map(hit).collect())
}
