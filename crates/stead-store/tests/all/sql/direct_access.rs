//! Test support: direct access to the database behind a SQL store.

use sqlx::{Connection, Executor, MySqlConnection, PgConnection, SqliteConnection};
use stead_store::Space;

/// Runs statements.
pub(super) async fn run(url: &str, sql: &'static str) {
    if let Some(path) = url.strip_prefix("sqlite:") {
        let options = sqlx::sqlite::SqliteConnectOptions::new().filename(path);
        let mut conn = SqliteConnection::connect_with(&options).await.unwrap();
        conn.execute(sqlx::raw_sql(sql)).await.unwrap();
    } else if url.starts_with("postgres") {
        PgConnection::connect(url)
            .await
            .unwrap()
            .execute(sqlx::raw_sql(sql))
            .await
            .unwrap();
    } else {
        MySqlConnection::connect(url)
            .await
            .unwrap()
            .execute(sqlx::raw_sql(sql))
            .await
            .unwrap();
    }
}

/// A lease that another holder took in a transaction that has not ended.
pub(super) enum Takeover {
    Postgres(PgConnection),
    Mysql(MySqlConnection),
}

pub(super) async fn begin_takeover(url: &str, space: &Space, name: &str) -> Takeover {
    let space = space.as_str().as_bytes();
    let name = name.as_bytes();
    if url.starts_with("postgres") {
        let mut conn = PgConnection::connect(url).await.unwrap();
        conn.execute("BEGIN").await.unwrap();
        let sql = "UPDATE stead_leases SET token = token + 1 WHERE space = $1 AND name = $2";
        sqlx::query(sql)
            .bind(space)
            .bind(name)
            .execute(&mut conn)
            .await
            .unwrap();
        Takeover::Postgres(conn)
    } else {
        let mut conn = MySqlConnection::connect(url).await.unwrap();
        conn.execute("BEGIN").await.unwrap();
        let sql = "UPDATE stead_leases SET token = token + 1 WHERE space = ? AND name = ?";
        sqlx::query(sql)
            .bind(space)
            .bind(name)
            .execute(&mut conn)
            .await
            .unwrap();
        Takeover::Mysql(conn)
    }
}

impl Takeover {
    pub(super) async fn commit(self) {
        match self {
            Self::Postgres(mut conn) => conn.execute("COMMIT").await.map(|_| ()).unwrap(),
            Self::Mysql(mut conn) => conn.execute("COMMIT").await.map(|_| ()).unwrap(),
        }
    }
}
