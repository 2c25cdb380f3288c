//! `stead memory search`, and what it shares with `stead sessions search`.
//!
//! Effects: the clock, the terminal, workspace files (reads), the local disk (writes), the journal
//! (reads), the model.

use super::super::args::SearchBounds;
use super::super::error::CliError;
use super::super::print::{errln, out_json, outln};
use super::super::style::Style;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, LookupResult, MemoryFiles};
use stead::search::{Hit, Query, Ranking};

/// Prints the lines of memory that match, as `path:line`.
pub(super) async fn search(
    agent: &Arc<Agent>,
    style: Style,
    text: &str,
    bounds: &SearchBounds,
) -> Result<ExitCode, CliError> {
    let Some(memory) = MemoryFiles::for_owner(agent, agent.owner()).await else {
        return Err(CliError::usage(
            "a workspace of this layout keeps no memory",
        ));
    };
    let looked = agent
        .lookup(agent.owner())
        .memory(&memory, &bounds.query(text))
        .await;
    let looked = looked.map_err(lookup_error)?;
    Ok(print_hits(&looked, bounds, |hit| {
        let path = memory.path(&hit.source);
        let date = hit.at.map(|at| at.strftime("%Y-%m-%d").to_string());
        if bounds.json {
            out_json(
                &json!({"path": path, "line": hit.position, "date": date, "text": hit.text, "score": hit.score}),
            );
        } else {
            let date = date.map_or(String::new(), |date| style.dim(&format!(" ({date})")));
            outln!("{}:{}{date} {}", style.accent(path), hit.position, hit.text);
        }
    }))
}

/// Prints the hits within the limits, and remarks about the search. As with grep, the exit code is
/// not 0 if nothing was found.
pub(crate) fn print_hits(
    looked: &LookupResult,
    bounds: &SearchBounds,
    hit: impl FnMut(&Hit),
) -> ExitCode {
    let hits = &looked.hits.hits;
    let limit = usize::from(bounds.limit);
    looked.unread.iter().for_each(|why| errln!("{why}"));
    hits.iter().take(limit).for_each(hit);
    if hits.is_empty() {
        errln!("nothing was found");
    }
    if hits.len() > limit {
        errln!("more than {limit} hits; raise it with --limit");
    }
    match &looked.hits.ranking {
        Ranking::Lexical | Ranking::Hybrid { unknown: 0 } => {}
        Ranking::Hybrid { unknown } => {
            errln!("{unknown} lines were ranked by their words only; search again")
        }
        Ranking::LexicalOnly { why } => errln!("ranked by words only: {why}"),
    }
    ExitCode::from(u8::from(hits.is_empty()))
}

impl SearchBounds {
    /// Returns the query. It asks for one hit more than is shown, to see whether there are more.
    pub(crate) fn query(&self, text: &str) -> Query {
        Query {
            since: self.since,
            until: self.until,
            ..Query::new(text).limit(usize::from(self.limit) + 1)
        }
    }
}

/// Returns the error of a search that failed.
pub(crate) fn lookup_error(error: stead::agent::LookupError) -> CliError {
    use stead::agent::LookupError;
    use stead::search::IndexError;
    match error {
        LookupError::Search(IndexError::EmptyQuery) => {
            CliError::usage(IndexError::EmptyQuery.to_string())
        }
        error => CliError::Failed(error.into()),
    }
}
