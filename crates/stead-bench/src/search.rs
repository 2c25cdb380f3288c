//! Measuring searches among many lines, for `bench/`.
//!
//! Effects: the clock, the local disk (writes).

use serde_json::{Value, json};
use std::path::Path;
use std::time::Instant;
use stead::search::{Index, Query, SearchSource, SearchSourceKind, SourceLine};

/// The number of lines of one source.
const SOURCE_LINES: usize = 1000;
const VOCABULARY: u64 = 20_000;

/// A pseudo-random generator with a fixed sequence.
struct PseudoRandom(u64);

impl PseudoRandom {
    fn next(&mut self) -> u64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        self.0 >> 33
    }

    /// Returns a word with a realistic distribution: a few are frequent, most are rare.
    fn word(&mut self) -> String {
        let even = self.next() % 1_000_000;
        let rank = (VOCABULARY as f64).powf(even as f64 / 1e6) as u64;
        match rank % 11 {
            0 => format!("read_word{rank}"),
            1 => format!("HttpWord{rank}"),
            2 => char::from_u32(0x4e00 + u32::try_from(rank).unwrap_or_default() % 5000)
                .map_or("中".into(), |c| format!("{c}数据")),
            _ => format!("word{rank}"),
        }
    }

    fn text(&mut self, words: usize) -> String {
        (0..words)
            .map(|_| self.word())
            .collect::<Vec<_>>()
            .join(" ")
    }
}

/// Fills an index in `workdir` with `lines` lines and measures `rounds` queries.
pub(crate) async fn measure(workdir: &Path, lines: usize, rounds: usize) -> anyhow::Result<Value> {
    let path = workdir.join("bench-search.sqlite");
    let _ = std::fs::remove_file(&path);
    let index = Index::open(&path).await?;
    let mut numbers = PseudoRandom(7);
    let begun = Instant::now();
    for source in 0..lines.div_ceil(SOURCE_LINES) {
        let count = SOURCE_LINES.min(lines - source * SOURCE_LINES);
        let lines: Vec<SourceLine> = (1..=count as u64)
            .map(|place| SourceLine::note(place, numbers.text(12)))
            .collect();
        index
            .sync(
                &SearchSource::new(SearchSourceKind::Session, format!("s{source}")),
                "1",
                &lines,
            )
            .await?;
    }
    let fill_s = begun.elapsed().as_secs_f64();
    let mut taken_ms = Vec::with_capacity(rounds);
    for round in 0..rounds.max(1) {
        let words = numbers.text(1 + round % 4);
        let query = if round % 5 == 0 {
            format!("\"{words}\"")
        } else {
            words
        };
        let begun = Instant::now();
        index.search(&Query::new(query)).await?;
        taken_ms.push(begun.elapsed().as_secs_f64() * 1000.0);
    }
    taken_ms.sort_by(f64::total_cmp);
    let at = |part: f64| taken_ms[((taken_ms.len() - 1) as f64 * part) as usize];
    let bytes = std::fs::metadata(&path)?.len();
    Ok(json!({"fill_s": fill_s, "p50_ms": at(0.5), "p99_ms": at(0.99), "bytes": bytes}))
}
