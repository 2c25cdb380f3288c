//! How much of the machine a command may use.
//!
//! Effects: none.

use serde::{Deserialize, Serialize};

const MIB: u64 = 1024 * 1024;

/// How much of the machine a command with everything it starts may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct ResourceLimits {
    /// Bytes of memory.
    pub memory: u64,
    /// Processes and threads at once.
    pub processes: u64,
    /// Seconds of processor time of each process.
    pub cpu_seconds: u64,
    /// Bytes of a file that it writes.
    pub file_size: u64,
    /// Bytes by which the free space of the disk of the workspace may shrink.
    pub disk: u64,
    /// Bytes of `/tmp`, which is in memory.
    pub temporary: u64,
    /// Open files of each process.
    pub open_files: u64,
}

impl ResourceLimits {
    /// The limits that hold unless settings say otherwise: enough to build a large project.
    pub const DEFAULT: Self = Self {
        memory: 8 * 1024 * MIB,
        processes: 4096,
        cpu_seconds: 3600,
        file_size: 8 * 1024 * MIB,
        disk: 16 * 1024 * MIB,
        temporary: 2 * 1024 * MIB,
        open_files: 16 * 1024,
    };
}

impl Default for ResourceLimits {
    fn default() -> Self {
        Self::DEFAULT
    }
}
