//! `stead tool`: calling one tool through the gate.
//!
//! Effects: the clock, randomness, the environment, the terminal, workspace files (writes), the
//! local disk (writes), the store (writes), the journal (writes), hooks, tools, the network,
//! processes.

use super::approvals::{TerminalQuestions, answerer};
use super::args::{ApproveMode, GlobalArgs, ToolArgs};
use super::env::ProcessEnv;
use super::error::CliError;
use super::open_agent::open_agent;
use super::print::{errln, out_json, outln};
use super::signals::Signals;
use super::style::Style;
use futures_util::future::BoxFuture;
use serde_json::json;
use std::process::ExitCode;
use std::sync::Arc;
use stead::agent::{Agent, ApprovalPolicy, Approver, SessionlessResult};
use stead::core::{
    ApprovalAnswer, ApprovalQuestion, Block, NoticeLevel, Presence, ShownEnd, VerdictKind,
};
use stead::workspace::{Handler, HookEvent, ModelUse};

pub(crate) async fn tool(
    common: &GlobalArgs,
    env: &ProcessEnv,
    args: ToolArgs,
) -> Result<ExitCode, CliError> {
    let common = &GlobalArgs {
        mode: args.mode,
        ..common.clone()
    };
    let agent = open_agent(common, env, ModelUse::NotNeeded).await?;
    let Some(name) = &args.name else {
        return list(&agent, env, &args).await;
    };
    let parsed: serde_json::Value = serde_json::from_str(&args.args)
        .map_err(|error| CliError::usage(format!("the arguments are not JSON: {error}")))?;
    if args.explain {
        let verdict = agent
            .sessionless()
            .explain(name, parsed)
            .await
            .map_err(CliError::usage)?;
        let kind = match verdict.kind {
            VerdictKind::Allow => "allow",
            VerdictKind::Ask => "ask",
            VerdictKind::Deny => "deny",
        };
        match args.json {
            true => out_json(&json!({
                "verdict": kind,
                "rule": verdict.reason,
                "rules": verdict.rules,
            })),
            false => outln!("{kind}: {}", verdict.reason),
        }
        return Ok(ExitCode::SUCCESS);
    }
    let agent = match hooks_use_model(&agent) {
        true => open_agent(common, env, ModelUse::Required).await?,
        false => agent,
    };
    let signals = Signals::watch()?;
    let called = agent
        .sessionless()
        .call_tool(
            name,
            parsed,
            &approvals(args.approve, common, env),
            signals.cancel.clone(),
        )
        .await;
    for (level, text) in called.notices.iter().filter(|_| !args.json) {
        let style = Style::stderr(env);
        errln!(
            "{}",
            match level {
                NoticeLevel::Info => style.dim(text),
                NoticeLevel::Warning => style.warn(text),
            }
        );
    }
    if args.json {
        print_json(&called);
    } else {
        print_content(&called);
        if called.unapproved {
            errln!("`--approve all` approves the call");
        }
    }
    Ok(exit_code(&called))
}

/// Returns the exit code of a call: that of the command, if it ran one.
fn exit_code(called: &SessionlessResult) -> ExitCode {
    match called.status.shown(called.exit_code) {
        ShownEnd::Succeeded => ExitCode::SUCCESS,
        // A process has no larger exit code.
        ShownEnd::CommandFailed(code) => ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)),
        ShownEnd::Failed | ShownEnd::Denied => ExitCode::FAILURE,
    }
}

/// Returns how the questions of a call are answered: a person is asked only on a terminal.
fn approvals(approve: ApproveMode, common: &GlobalArgs, env: &ProcessEnv) -> ApprovalPolicy {
    match (approve, approve.presence(env)) {
        (ApproveMode::All, _) => ApprovalPolicy::ApproveAll,
        (ApproveMode::None, _) => ApprovalPolicy::DenyAll,
        (ApproveMode::Ask, Presence::Answers) => ApprovalPolicy::Ask(Arc::new(TerminalApprover {
            name: answerer(common, env, None),
        })),
        (ApproveMode::Ask, Presence::Watches) => ApprovalPolicy::Park,
    }
}

/// The person at the terminal.
struct TerminalApprover {
    name: String,
}

impl Approver for TerminalApprover {
    fn name(&self) -> String {
        self.name.clone()
    }

    fn answer<'a>(&'a self, question: &'a ApprovalQuestion) -> BoxFuture<'a, ApprovalAnswer> {
        Box::pin(async move {
            let mut questions = TerminalQuestions::default();
            questions.ask(vec![question.clone()]);
            questions.answer().await.reply.answer
        })
    }
}

/// Whether a hook for tool calls uses a model.
fn hooks_use_model(agent: &Agent) -> bool {
    let about_calls = [
        HookEvent::BeforeToolCall,
        HookEvent::AfterToolCall,
        HookEvent::PermissionRequest,
    ];
    let by_model = |handler: &Handler| match handler {
        Handler::Prompt { .. } | Handler::Agent { .. } => true,
        Handler::Command { .. } | Handler::Http { .. } => false,
    };
    let hooks = agent.hooks().specs();
    hooks.iter().any(|hook| {
        by_model(&hook.handler) && hook.events.iter().any(|on| about_calls.contains(&on.event))
    })
}

fn print_json(called: &SessionlessResult) {
    let mut line = json!({"status": called.status, "content": called.content});
    if let Some(code) = called.exit_code {
        line["exit_code"] = code.into();
    }
    if !called.notices.is_empty() {
        let told = called
            .notices
            .iter()
            .map(|(level, text)| json!({"level": level, "text": text}));
        line["told"] = told.collect();
    }
    out_json(&line);
}

fn print_content(called: &SessionlessResult) {
    for block in &called.content {
        let text = match block {
            Block::Text { text } => text.clone(),
            Block::Media(media) => {
                format!("[{}, {} bytes as base64]", media.mime, media.data.len())
            }
            Block::Thinking(thinking) => thinking.text.clone(),
            Block::ToolCall(call) => call.name.clone(),
        };
        if called.status.is_error() {
            errln!("{text}");
        } else {
            outln!("{text}");
        }
    }
}

async fn list(agent: &Arc<Agent>, env: &ProcessEnv, args: &ToolArgs) -> Result<ExitCode, CliError> {
    let style = Style::stdout(env);
    let tools = agent.sessionless().turn().await?.tools;
    let shown = tools.specs();
    for spec in tools.all_specs() {
        if args.json {
            let line = json!({
                "name": spec.name, "aliases": spec.aliases, "description": spec.description,
                "parameters": *spec.parameters, "effect": spec.risk.effect,
                "shown": shown.iter().any(|known| known.name == spec.name),
            });
            out_json(&line);
        } else {
            let first = spec.description.split(". ").next().unwrap_or("");
            let name = format!("{:<24}", spec.name);
            outln!("{} {first}", style.bold(&name));
        }
    }
    Ok(ExitCode::SUCCESS)
}
