//! The tables of the search index.
//!
//! Effects: none.

/// Incremented with every change of the tables or of the tokenizer: an index of another format is
/// replaced.
pub(crate) const FORMAT_VERSION: i64 = 1;
/// A number that no other program uses: `stea`.
pub(crate) const APPLICATION_ID: i64 = 0x7374_6561;

/// The statements for a new file. `words` holds no text: the tokenizer runs in Rust, so only spaces
/// separate words.
pub(crate) const TABLES: &str = r#"
CREATE TABLE sources (
    id INTEGER PRIMARY KEY,
    kind INTEGER NOT NULL,
    name TEXT NOT NULL,
    version TEXT NOT NULL,
    rows INTEGER NOT NULL,
    UNIQUE (kind, name)
);
CREATE TABLE rows (
    id INTEGER PRIMARY KEY,
    source INTEGER NOT NULL,
    place INTEGER NOT NULL,
    at_ms INTEGER,
    voice INTEGER NOT NULL,
    hash INTEGER NOT NULL,
    text TEXT NOT NULL
);
CREATE INDEX rows_of_source ON rows (source, place);
CREATE VIRTUAL TABLE words USING fts5 (
    scope, sequence, beside,
    content = '', contentless_delete = 1, tokenize = "ascii tokenchars '_'"
);
CREATE TABLE vectors (
    hash INTEGER NOT NULL,
    model TEXT NOT NULL,
    vector BLOB NOT NULL,
    PRIMARY KEY (hash, model)
) WITHOUT ROWID;
"#;
