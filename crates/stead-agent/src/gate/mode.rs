//! What each permission mode says where no rule does.

use super::{Command, Judged, Reads, Ruled};
use stead_core::{Effect, PermissionMode, Verdict, VerdictKind};
use stead_workspace::Attached;

/// What a call does, as far as modes tell calls apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Deed {
    Reads,
    Writes,
    WritesProject,
    Network,
    /// A command that a rule allows.
    Allowed(Reads),
    Command(Reads),
}

/// What `mode` says about a call.
pub(super) fn judge(mode: PermissionMode, call: &Judged) -> Verdict {
    let deed = deed(call);
    let (kind, why) = match mode {
        PermissionMode::Default | PermissionMode::DontAsk => usual(deed),
        PermissionMode::AcceptEdits => match deed {
            Deed::WritesProject => (
                VerdictKind::Allow,
                "changes to the attached project are allowed",
            ),
            Deed::Reads | Deed::Writes | Deed::Network | Deed::Allowed(_) | Deed::Command(_) => {
                usual(deed)
            }
        },
        PermissionMode::Explore => match deed {
            Deed::Reads | Deed::Allowed(Reads::Only) | Deed::Command(Reads::Only) => usual(deed),
            Deed::Writes | Deed::WritesProject | Deed::Network => {
                (VerdictKind::Deny, "only reads are allowed")
            }
            Deed::Allowed(Reads::NotOnly) | Deed::Command(Reads::NotOnly) => {
                (VerdictKind::Deny, "only commands that read are allowed")
            }
        },
        PermissionMode::Bypass => (
            VerdictKind::Allow,
            "what the mode alone would ask about is allowed",
        ),
    };
    let why = match (&call.command, kind) {
        (
            Some(Command {
                ruled: Ruled::Unruled(reason),
                ..
            }),
            VerdictKind::Ask,
        ) => format!("{why} ({reason})"),
        (Some(_) | None, _) => why.to_owned(),
    };
    Verdict {
        kind,
        rule: format!("mode {mode}: {why}"),
    }
}

fn deed(call: &Judged) -> Deed {
    if let Some(command) = &call.command {
        let allowed =
            matches!(&command.ruled, Ruled::By(verdict) if verdict.kind == VerdictKind::Allow);
        return if allowed {
            Deed::Allowed(command.reads)
        } else {
            Deed::Command(command.reads)
        };
    }
    match (call.effect, call.project) {
        (Effect::Executes, _) => Deed::Command(Reads::NotOnly),
        (Effect::Network, _) => Deed::Network,
        (Effect::Reads | Effect::Writes, Some(Attached::Writable | Attached::ReadOnly)) => {
            Deed::WritesProject
        }
        (Effect::Writes, None) => Deed::Writes,
        (Effect::Reads, None) => Deed::Reads,
    }
}

fn usual(deed: Deed) -> (VerdictKind, &'static str) {
    match deed {
        Deed::Reads => (VerdictKind::Allow, "reads are allowed"),
        Deed::Writes => (
            VerdictKind::Allow,
            "writes inside the workspace are allowed",
        ),
        Deed::WritesProject => (VerdictKind::Ask, "changes to the attached project ask"),
        Deed::Network => (VerdictKind::Ask, "network access asks"),
        Deed::Allowed(_) => (VerdictKind::Allow, "a rule allows the command"),
        Deed::Command(_) => (VerdictKind::Ask, "commands outside a sandbox ask"),
    }
}
