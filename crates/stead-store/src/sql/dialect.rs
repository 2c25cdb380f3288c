//! Where the three databases speak differently.

use std::borrow::Cow;

/// Whose SQL it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SqlDialect {
    Sqlite,
    Postgres,
    Mysql,
}

impl SqlDialect {
    /// Milliseconds since 1970 by the clock that all users of the store share.
    pub(super) fn now(self) -> &'static str {
        match self {
            Self::Sqlite => "CAST(unixepoch('subsec') * 1000 AS INTEGER)",
            // Not now(): that is when the transaction began, before it waited for a lock.
            Self::Postgres => "CAST(FLOOR(EXTRACT(EPOCH FROM clock_timestamp()) * 1000) AS BIGINT)",
            // The driver sets the session's time zone to UTC, so that no hour comes twice.
            Self::Mysql => "CAST(FLOOR(UNIX_TIMESTAMP(NOW(3)) * 1000) AS SIGNED)",
        }
    }

    /// Ends a SELECT whose rows nobody else may change until the transaction ends. SQLite has one
    /// writer at a time, who began with a lock on everything.
    pub(super) fn for_update(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres | Self::Mysql => " FOR UPDATE",
        }
    }

    /// The same, passing over rows that somebody else has locked.
    pub(super) fn for_update_skip_locked(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres | Self::Mysql => " FOR UPDATE SKIP LOCKED",
        }
    }

    /// Ends a SELECT whose rows may be looked at by others, and changed by none.
    pub(super) fn for_share(self) -> &'static str {
        match self {
            Self::Sqlite => "",
            Self::Postgres => " FOR SHARE",
            // Understood by MySQL and MariaDB, unlike FOR SHARE.
            Self::Mysql => " LOCK IN SHARE MODE",
        }
    }

    /// Whether two transactions can both find a key absent before either writes it.
    pub(super) fn allows_concurrent_absence(self) -> bool {
        match self {
            Self::Sqlite => false,
            Self::Postgres | Self::Mysql => true,
        }
    }

    /// Ends an INSERT into `stead_docs` that overwrites what is there.
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

    /// Ends an INSERT so that it tells the new row's id; MySQL tells it anyway.
    pub(super) fn returning_id(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => " RETURNING id",
            Self::Mysql => "",
        }
    }

    /// Whether an UPDATE can tell what it changed.
    pub(super) fn updates_return_rows(self) -> bool {
        match self {
            Self::Sqlite | Self::Postgres => true,
            Self::Mysql => false,
        }
    }

    /// Whether a WITH clause can change rows, so that several changes are one statement.
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

    /// Counts the tables named `stead_schema`: 0 or 1.
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

    /// Bytes of at most `max`, usable in a key.
    pub(super) fn key_bytes_type(self, max: usize) -> Cow<'static, str> {
        match self {
            Self::Sqlite => "BLOB".into(),
            Self::Postgres => "BYTEA".into(),
            // Not VARCHAR: that folds letters and ignores trailing spaces.
            Self::Mysql => format!("VARBINARY({max})").into(),
        }
    }

    /// Bytes of any length.
    pub(super) fn bytes_type(self) -> &'static str {
        match self {
            Self::Sqlite => "BLOB",
            Self::Postgres => "BYTEA",
            Self::Mysql => "LONGBLOB",
        }
    }

    /// A row's number, given out in growing order and never twice.
    pub(super) fn id_type(self) -> &'static str {
        match self {
            Self::Sqlite => "INTEGER PRIMARY KEY AUTOINCREMENT",
            Self::Postgres => "BIGSERIAL PRIMARY KEY",
            Self::Mysql => "BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY",
        }
    }

    /// Ends a CREATE TABLE.
    pub(super) fn table_options(self) -> &'static str {
        match self {
            Self::Sqlite | Self::Postgres => "",
            // The row format decides how long a key may be.
            Self::Mysql => " ENGINE = InnoDB ROW_FORMAT = DYNAMIC",
        }
    }

    /// The statement with its parameters written as this database wants them.
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
