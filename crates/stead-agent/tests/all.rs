//! The first capability's acceptance list, through the whole driver: real files, a real journal,
//! and a model server that refuses what the providers refuse.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

#[path = "all/answer_kills.rs"]
mod answer_kills;
#[path = "all/answers.rs"]
mod answers;
#[path = "all/appending.rs"]
mod appending;
#[path = "all/approvals.rs"]
mod approvals;
#[path = "all/archives.rs"]
mod archives;
#[path = "all/attacks.rs"]
mod attacks;
#[path = "all/bounds.rs"]
mod bounds;
#[path = "all/budgets.rs"]
mod budgets;
#[path = "all/compaction.rs"]
mod compaction;
#[path = "all/crew.rs"]
mod crew;
#[path = "all/crowd.rs"]
mod crowd;
#[path = "all/doors/mod.rs"]
mod doors;
#[path = "all/endless.rs"]
mod endless;
#[path = "all/execute.rs"]
mod execute;
#[path = "all/faults.rs"]
mod faults;
#[path = "all/hooks/mod.rs"]
mod hooks;
#[path = "all/hostile.rs"]
mod hostile;
#[path = "all/kills.rs"]
mod kills;
#[path = "all/lookup.rs"]
mod lookup;
#[path = "all/memory/mod.rs"]
mod memory;
#[path = "all/offload.rs"]
mod offload;
#[path = "all/offload_kills.rs"]
mod offload_kills;
#[path = "all/oracle.rs"]
mod oracle;
#[path = "all/parties.rs"]
mod parties;
#[path = "all/permissions.rs"]
mod permissions;
#[path = "all/plan_doors.rs"]
mod plan_doors;
#[path = "all/plan_mode.rs"]
mod plan_mode;
#[path = "all/planning.rs"]
mod planning;
#[path = "all/prefix.rs"]
mod prefix;
#[path = "all/profiles/mod.rs"]
mod profiles;
#[path = "all/seams.rs"]
mod seams;
#[path = "all/skills.rs"]
mod skills;
#[path = "all/steering.rs"]
mod steering;
#[path = "all/streams.rs"]
mod streams;
#[path = "all/support.rs"]
mod support;
#[path = "all/tenants.rs"]
mod tenants;
#[path = "all/three_agents.rs"]
mod three_agents;
#[path = "all/titles.rs"]
mod titles;
#[path = "all/tricks.rs"]
mod tricks;
#[path = "all/turns.rs"]
mod turns;
#[path = "all/undo.rs"]
mod undo;
#[path = "all/work.rs"]
mod work;
