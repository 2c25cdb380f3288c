//! What every [`Vfs`] must do, whatever it keeps its files in.
//!
//! One suite for the local disk, the stores, and everything put together from them. Each entry
//! takes an empty place and leaves it empty, [`script`] excepted, and panics where the place gives
//! another answer than a map from paths to contents would. The answers of two places can also be
//! compared with each other:
//!
//! ```
//! # #[tokio::main] async fn main() {
//! use stead_testkit::vfs_suite::script;
//! use stead_vfs::LocalVfs;
//! use std::sync::Arc;
//!
//! let place = || tempfile::tempdir().unwrap();
//! let (one, other) = (place(), place());
//! let disk = || Arc::new(stead_store::OsDisk);
//! let one = LocalVfs::open(one.path(), disk()).unwrap();
//! let other = LocalVfs::open(other.path(), disk()).unwrap();
//! assert_eq!(script(&one, 7, 50).await, script(&other, 7, 50).await);
//! # }
//! ```
//!
//! - [`cases`]: every operation on every kind of path. - [`script`]: random operations.
//! - [`races`], [`races_between`]: many at once. - [`matrix`]: searches. - [`streams`]: contents
//!   that come in pieces.
//!
//! Effects: test support.

mod cases;
mod matrix;
mod op;
mod oracle;
mod oracle_search;
mod races;
mod rng;
mod script;
mod streams;

pub use cases::cases;
pub use matrix::matrix;
pub use oracle::VfsOracle;
pub use races::{races, races_between};
pub use script::{Transcript, oracle_of, scatter, script, script_from, tree};
pub use streams::streams;

use std::sync::Arc;
use stead_vfs::Vfs;

/// The number of operations of the random script.
pub const SCRIPT_OPERATIONS: usize = 1000;

/// Runs the whole suite on one place, which must be empty.
pub async fn all(vfs: Arc<dyn Vfs>, seed: u64) -> Transcript {
    cases(Arc::clone(&vfs)).await;
    matrix(Arc::clone(&vfs)).await;
    races(Arc::clone(&vfs)).await;
    streams(Arc::clone(&vfs)).await;
    script(&*vfs, seed, SCRIPT_OPERATIONS).await
}
