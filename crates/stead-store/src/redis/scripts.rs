//! The scripts that run on the Redis server, one for each operation, so that each is atomic.
//!
//! Effects: none.

use redis::Script;

/// All scripts. The server knows them by their hash after the first use.
#[derive(Debug)]
pub(super) struct Scripts {
    pub(super) get: Script,
    pub(super) list: Script,
    pub(super) commit: Script,
    pub(super) append: Script,
    pub(super) lines: Script,
    pub(super) tails: Script,
    pub(super) erase: Script,
    pub(super) acquire: Script,
    pub(super) renew: Script,
    pub(super) release: Script,
    pub(super) enqueue: Script,
    pub(super) claim: Script,
    pub(super) settle: Script,
    pub(super) dead: Script,
}

impl Scripts {
    pub(super) fn new() -> Self {
        let script =
            |body: &str| Script::new(&format!("{}{body}", include_str!("lua/prelude.lua")));
        Self {
            get: script(include_str!("lua/get.lua")),
            list: script(include_str!("lua/list.lua")),
            commit: script(include_str!("lua/commit.lua")),
            append: script(include_str!("lua/append.lua")),
            lines: script(include_str!("lua/lines.lua")),
            tails: script(include_str!("lua/tails.lua")),
            erase: script(include_str!("lua/erase.lua")),
            acquire: script(include_str!("lua/acquire.lua")),
            renew: script(include_str!("lua/renew.lua")),
            release: script(include_str!("lua/release.lua")),
            enqueue: script(include_str!("lua/enqueue.lua")),
            claim: script(include_str!("lua/claim.lua")),
            settle: script(include_str!("lua/settle.lua")),
            dead: script(include_str!("lua/dead.lua")),
        }
    }
}
