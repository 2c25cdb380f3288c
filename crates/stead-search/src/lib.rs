//! A search engine for memory files and sessions.
//!
//! An [`Index`] is derived from files and journals and can be deleted at any time. [`Index::sync`]
//! and [`Index::append`] give it the lines of each [`SearchSource`]; [`Index::search`] answers a
//! [`Query`] with ranked [`Hit`]s, and [`Index::search_hybrid`] also ranks by meaning with an
//! [`Embed`]. One tokenizer serves English, scripts without spaces, and code; no query is a syntax
//! error.
//!
//! ```
//! use stead_search::{Index, Query, SearchSource, SearchSourceKind, SourceLine};
//!
//! # tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap().block_on(async {
//! let index = Index::in_memory().await.unwrap();
//! let memory = SearchSource::new(SearchSourceKind::Memory, "MEMORY.md");
//! let lines = [SourceLine::note(1, "Deploys happen on Tuesdays"), SourceLine::note(2, "数据库用 PostgreSQL")];
//! index.sync(&memory, "v1", &lines).await.unwrap();
//!
//! let found = index.search(&Query::new("which day to deploy?")).await.unwrap();
//! assert_eq!((found.hits[0].position, found.hits[0].text.as_str()), (1, "Deploys happen on Tuesdays"));
//! let found = index.search(&Query::new("库")).await.unwrap();
//! assert_eq!(found.hits[0].position, 2);
//! # });
//! ```
//!
//! Effects: none.

mod candidates;
mod embed;
mod error;
mod hybrid;
mod index;
mod index_cache;
mod index_file;
mod literal;
mod query;
mod rank;
mod rows;
mod schema;
mod search;
mod snippet;
mod source;
mod tokenizer;

pub use embed::{Embed, EmbedError, HybridOptions};
pub use error::IndexError;
pub use index::{AppendOutcome, Index, SyncOutcome};
pub use index_cache::{IndexCache, LazyIndex};
pub use query::{MAX_LIMIT, Query, SearchScope};
pub use search::{Hit, Ranking, SearchResults};
pub use source::{LineSpeaker, SearchSource, SearchSourceKind, SourceLine};
