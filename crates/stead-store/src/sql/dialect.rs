//! Differences between the SQL of the databases.
//!
//! Effects: none.

use std::borrow::Cow;

/// The SQL dialect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlDialect {
    Sqlite,
    Postgres,
    Mysql,
}

impl SqlDialect {
    /// Returns an expression for milliseconds since 1970, by the clock that all users of the store
    /// share.
    pub(super) fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            // Not now(): that is when the transaction began, before it waited for a lock.
            Self::Postgres => "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
            // The driver sets the session's time zone to UTC, so that no hour occurs twice.
            Self::Mysql => "CAST(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) AS SIGNED)",
        }
    }

    /// Returns the clause that locks the rows of a SELECT until the transaction ends. SQLite has
    /// one writer at a time, which locks everything at the start.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres | Self::Mysql => " FOR UPDATE",
        }
    }

    /// Like [`Self::for_update`], but skips rows that are locked by others.
    pub(super) fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres | Self::Mysql => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Returns the clause that locks the rows of a SELECT against changes, but not against reads.
    pub(super) fn for_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR SHARE",
            // Understood by MySQL and MariaDB, unlike FOR SHARE.
            Self::Mysql => " LOCK IN SHARE MODE",
        }
    }

    /// Returns whether two transactions can both find a key absent before either inserts it.
    pub(super) fn allows_concurrent_absence(self) -> bool {
        match self {
            Self::Sqlite => false,
            Self::Postgres | Self::Mysql => true,
        }
    }

    /// Returns the clause that makes an INSERT into `stead_docs` overwrite an existing row.
    pub(super) fn or_overwrite_document(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => {
                " ON CONFLICT (space, dkey) DO UPDATE SET version = EXCLUDED.version, meta = EXCLUDED.meta, \
                 body = EXCLUDED.body"
            }
            Self::Mysql => {
                " ON DUPLICATE KEY UPDATE version = VALUES(version), meta = VALUES(meta), body = VALUES(body)"
            }
        }
    }

    /// Returns the clause that makes an INSERT return the new row's id. MySQL returns it anyway.
    pub(super) fn returning_id(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => " RETURNING id",
            Self::Mysql => "",
        }
    }

    /// Returns whether an UPDATE can return the changed rows.
    pub(super) fn updates_return_rows(self) -> bool {
        match self {
            Self::Sqlite | Self::Postgres => true,
            Self::Mysql => false,
        }
    }

    /// Returns whether a WITH clause can change rows, so that several changes are one statement.
    pub(super) fn supports_writable_ctes(self) -> bool {
        match self {
            Self::Postgres => true,
            Self::Sqlite | Self::Mysql => false,
        }
    }

    /// Like [`Self::for_share`], for the rows of two tables out of several.
    pub(super) fn for_share_of(self, first: &str, second: &str) -> String {
        match self {
            Self::Sqlite | Self::Mysql => self.for_share().to_owned(),
            Self::Postgres => format!(" FOR SHARE OF {first}, {second}"),
        }
    }

    /// Returns a query that counts the tables named `stead_schema`: 0 or 1.
    pub(super) fn schema_tables(self) -> &'static str {
        match self {
            Self::Sqlite => {
                "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'stead_schema'"
            }
            Self::Postgres => "SELECT CAST(COUNT(to_regclass('stead_schema')) AS BIGINT)",
            Self::Mysql => {
                "SELECT COUNT(*) FROM information_schema.tables \
                 WHERE table_schema = DATABASE() AND table_name = 'stead_schema'"
            }
        }
    }

    /// Returns the type for at most `max` bytes that can be part of a key.
    pub(super) fn key_bytes_type(self, max: usize) -> Cow<'static, str> {
        match self {
            Self::Sqlite => "BLOB".into(),
            Self::Postgres => "BYTEA".into(),
            // Not VARCHAR: that ignores case and trailing spaces.
            Self::Mysql => format!("VARBINARY({max})").into(),
        }
    }

    /// Returns the type for bytes of any length.
    pub(super) fn bytes_type(self) -> &'static str {
        match self {
            Self::Sqlite => "BLOB",
            Self::Postgres => "BYTEA",
            Self::Mysql => "LONGBLOB",
        }
    }

    /// Returns the type for row ids, which grow and are never reused.
    pub(super) fn id_type(self) -> &'static str {
        match self {
            Self::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
            Self::Postgres => "BIGSERIAL PRIMARY KEY",
            Self::Mysql => "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        }
    }

    /// Returns the clause that ends a CREATE TABLE.
    pub(super) fn table_options(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => "",
            // The row format decides how long a key may be.
            Self::Mysql => " ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
        }
    }

    /// Returns the statement with its parameters in this database's notation.
    pub(super) fn placeholders(self, sql: Cow<'static, str>) -> Cow<'static, str> {
        match self {
            Self::Sqlite | Self::Mysql => sql,
            Self::Postgres => {
                let mut parts = sql.split('?');
                let mut text = String::with_capacity(sql.len() + 32);
                text.push_str(parts.next().unwrap_or_default());
                for (index, part) in parts.enumerate() {
                    text.push('$');
                    text.push_str(&(index + 1).to_string());
                    text.push_str(part);
                }
                text.into()
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parameters_are_numbered_for_postgres_only() {
        let sql = "SELECT ? FROM t WHERE a = ? AND b IN (?, ?)";
        assert_eq!(
            SqlDialect::Postgres.placeholders(sql.into()),
            "SELECT $1 FROM t WHERE a = $2 AND b IN ($3, $4)"
        );
        for same in [SqlDialect::Sqlite, SqlDialect::Mysql] {
            assert_eq!(same.placeholders(sql.into()), sql);
        }
    }
}
