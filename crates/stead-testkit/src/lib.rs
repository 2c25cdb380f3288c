//! Tools for testing an agent harness where it touches the world: the model's wire, the disk, the
//! process, the terminal.
//!
//! A model script takes a few lines and means the same on every wire:
//!
//! ```
//! use serde_json::json;
//! use stead_testkit::{FakeModel, fail, reply};
//!
//! let server = FakeModel::start(vec![
//!     fail(429).retry_after(1),
//!     reply().thinking("hm").call("write_file", json!({"file_path": "a.txt", "content": "a"})),
//!     reply().text("done"),
//! ]);
//! println!("point the harness at {}", server.openai_url());
//! assert_eq!(server.requests().len(), 0);
//! ```
//!
//! The server is as strict as the real ones: a request that a provider would refuse gets the
//! provider's 400, and [`FakeModel::rejections`] says why.
//!
//! Effects: test support.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    reason = "a test tool fails the test it is used in by panicking"
)]

pub mod bench;
mod disk;
mod lossy;
mod model;
mod pty;
mod reexec;
mod rounds;
pub mod servers;
pub mod store_suite;
pub mod vfs_suite;

pub use disk::{DiskOp, DiskOpKind, Fault, FaultDisk, KillPoint};
pub use lossy::LossyProxy;
pub use model::{
    AnswerLatch, FakeAnswer, FakeModel, FakeWire, ParsedRequest, RecordedRequest, RequestCall,
    RequestTurn, ResponseMode, bench_like, fail, hang, latch, raw, raw_sse, render, reply, reset,
};
pub use pty::{Pty, StyledText};
pub use reexec::{Child, ChildExit, ChildRole, Death, child_role};
pub use rounds::rounds;
