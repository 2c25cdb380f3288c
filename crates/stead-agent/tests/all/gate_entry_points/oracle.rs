//! Test support: the expected verdict of the pure gate, from public facts only.

use super::generate::Call;
use std::sync::Arc;
use stead_agent::{
    Agent, CallFacts, CommandFacts, ExactLine, ReadOnlyStatus, RuleMatch, SessionPermissions, judge,
};
use stead_core::{
    AccessKind, PathAccess, PathScope, PlanStage, RuleId, RuleSource, Verdict, VerdictKind,
};
use stead_sandbox::Isolation;
use stead_tools::{Executor, PlanError, PreparedCall, Registry, SessionView};
use stead_vfs::{VPath, Vfs};

/// What a door made of a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Seen {
    /// It may run; a door that runs it does not say which rule lets it.
    Allowed,
    /// It waits for a person, by this rule.
    Asks(String),
    /// It is denied, by this rule.
    Denied(String),
    /// It is no call, or none at this point, for this reason.
    NoCall(String),
}

impl Seen {
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Self::Allowed => "allowed",
            Self::Asks(_) => "asks",
            Self::Denied(_) => "denied",
            Self::NoCall(_) => "no call",
        }
    }

    /// Without the names of all tools that there are.
    pub(super) fn short(self) -> Self {
        match self {
            Self::NoCall(text) if text.starts_with("there is no tool") => {
                Self::NoCall(text.split('`').take(2).collect())
            }
            other => other,
        }
    }
}

impl From<Verdict> for Seen {
    fn from(Verdict { kind, reason, .. }: Verdict) -> Self {
        match kind {
            VerdictKind::Allow => Self::Allowed,
            VerdictKind::Ask => Self::Asks(reason),
            VerdictKind::Deny => Self::Denied(reason),
        }
    }
}

/// What the gate says of a call in a session on these terms.
pub(super) async fn expected(
    agent: &Arc<Agent>,
    (tools, files): (&Registry, &Arc<dyn Vfs>),
    (terms, standing): (&SessionPermissions, &SessionView),
    call: &Call,
) -> Seen {
    let prepared = match prepare(tools, call) {
        Ok(prepared) => prepared,
        Err(why) => return Seen::NoCall(why.to_string()),
    };
    // An agent in plan mode can write its plan and offer it unless a list denies that by name.
    let making_plan = standing
        .plan
        .as_ref()
        .and_then(PlanStage::draft_file)
        .is_some();
    let name = prepared.spec().name.as_str();
    let listed = agent
        .workspace()
        .tools_config(&**files)
        .await
        .unwrap()
        .lists;
    let exempt =
        (making_plan && matches!(name, "plan_write" | "plan_exit") && !listed.denies(name))
            .then_some(name);
    let seen = Seen::from(verdict(agent, (tools, files), (terms, exempt), &prepared).await);
    let view = prepared.view(&**files, standing);
    match (&seen, prepared.plan().refusal(view).await) {
        (Seen::Asks(_), Some(why)) => Seen::NoCall(why),
        _ => seen,
    }
}

/// The call, whether lists leave its tool out or not.
pub(super) fn prepare(tools: &Registry, call: &Call) -> Result<PreparedCall, PlanError> {
    let (name, args) = tools.unwrap_call(call.name.to_owned(), call.args.clone());
    tools.prepare_for_gate(&name, args)
}

/// The verdict of the gate.
pub(super) async fn verdict(
    agent: &Arc<Agent>,
    (tools, files): (&Registry, &Arc<dyn Vfs>),
    (terms, exempt): (&SessionPermissions, Option<&str>),
    prepared: &PreparedCall,
) -> Verdict {
    let workspace = agent.workspace();
    let spec = prepared.spec();
    let plan = prepared.plan();
    let args = prepared.args();
    let unlisted = tools.find(&spec.name).is_none() && exempt != Some(spec.name.as_str());
    let mut accesses = if unlisted {
        Vec::new()
    } else {
        plan.accesses().to_vec()
    };
    let named_paths = accesses.iter().map(|access| access.path.clone()).collect();
    let mut below = Vec::new();
    let mut repository = Vec::new();
    let mut command = plan.command().map(|line| {
        let text = &line.text;
        let folder = stead_shell::join_folder(".", &line.cwd).unwrap();
        let shell_line = stead_shell::ShellLine::on_host(text).in_folder(&folder);
        let judged = stead_shell::judge(&workspace.config().commands, shell_line);
        let ruled = match judged.kind {
            VerdictKind::Ask if judged.rules.is_empty() => {
                RuleMatch::NoMatch(judged.reason.clone())
            }
            kind => RuleMatch::Matched(Verdict {
                kind,
                rules: judged.rules.clone(),
                reason: judged.reason.clone(),
            }),
        };
        if judged.kind != VerdictKind::Deny {
            let reads = judged
                .parts
                .iter()
                .flat_map(|part| part.reads.iter().map(move |path| (part, path)));
            for (part, path) in reads {
                assert!(
                    !path.starts_with('/'),
                    "no command of this test names what lies elsewhere"
                );
                let path = stead_shell::join_folder(&folder, path).unwrap();
                accesses.push(PathAccess {
                    path: path.clone(),
                    kind: AccessKind::Read,
                    scope: PathScope::Content,
                });
                if part.is_allowed_as_read_only() && part.depth == stead_shell::ReadDepth::Below {
                    below.push(PathAccess {
                        path,
                        kind: AccessKind::Read,
                        scope: PathScope::Tree,
                    });
                }
            }
        }
        repository = judged
            .parts
            .iter()
            .filter(|part| part.depth.uses_git())
            .map(stead_shell::PartVerdict::is_allowed_as_read_only)
            .collect();
        // No workspace of this test is a repository.
        let is_read = judged.reads.is_some() && repository.is_empty();
        CommandFacts {
            text: text.to_owned(),
            cwd: folder,
            exact: ExactLine::Holds,
            rule_match: ruled,
            isolation: Isolation::NONE,
            read_only: match is_read {
                true => ReadOnlyStatus::Yes,
                false => ReadOnlyStatus::Unknown,
            },
            network: false,
        }
    });
    if let Some(command) = &mut command
        && repository.contains(&true)
        && matches!(&command.rule_match, RuleMatch::Matched(verdict) if verdict.kind == VerdictKind::Allow)
    {
        let reason = "git counts as a read only in the repository of the workspace, and the workspace is not a \
                      repository of its own";
        command.rule_match = RuleMatch::NoMatch(reason.to_owned());
    } else if let Some(command) = &mut command
        && matches!(&command.rule_match, RuleMatch::Matched(verdict) if verdict.kind == VerdictKind::Allow)
        && let Ok(Some(verdict)) =
            stead_vfs::judge_accesses(&workspace.rules, &**files, &below).await
        && verdict.kind != VerdictKind::Allow
    {
        let rule = format!(
            "commands.reads: {}; name the files or folders to look at",
            verdict.reason
        );
        command.rule_match = RuleMatch::Matched(Verdict {
            kind: VerdictKind::Ask,
            rules: verdict.rules,
            reason: rule,
        });
    }
    let mut lies = Vec::new();
    for path in accesses
        .iter()
        .filter_map(|access| VPath::parse(&access.path).ok())
    {
        lies.extend(files.resolve(&path).await.ok());
    }
    let files = match stead_vfs::judge_accesses(&workspace.rules, &**files, &accesses).await {
        Ok(files) => files,
        Err(error) => {
            return Verdict::deny(
                RuleId::new(RuleSource::Path, "unresolved"),
                error.to_string(),
            );
        }
    };
    let tool_name = spec.name.clone();
    let effect = spec.risk.effect;
    let flagged = plan.approval().map(str::to_owned);
    let args = args.clone();
    let project = None;
    let excluded = None;
    let judged = CallFacts {
        tool: tool_name,
        kind: spec.kind,
        follows_rules_of: spec.follows_rules_of.clone(),
        effect,
        args,
        unlisted,
        excluded,
        file_verdict: files,
        named_paths,
        resolved_paths: lies,
        command,
        changed_project: project,
        isolation: stead_sandbox::Isolation::NONE,
        taint: None,
        prompt_source: None,
        always_asks: flagged,
    };
    let verdict = judge(agent.gate(), terms, &judged);
    match (spec.executor, verdict.kind) {
        (Executor::Client, VerdictKind::Allow) => {
            let reason = "carried out by whoever runs the agent, who answers with its result";
            Verdict::ask(RuleId::new(RuleSource::Tool, &judged.tool), reason)
        }
        (Executor::Client | Executor::Harness, _) => verdict,
    }
}
