//! Trust: where the content of a result comes from, and what a call may carry further.
//!
//! A result is trusted, or tainted with its origins ([`TaintOrigin`]). [`CallTaint`] is made before
//! a call runs and settled after it: it adds the origins to the result, and marks the files that a
//! tainted call wrote ([`files`]). [`prompt_sources`] are the files that a tainted session must ask
//! about, [`records`] those of other sessions.
//!
//! Effects: none.

mod call;
mod command_paths;
mod command_source;
mod files;
mod prompt_sources;
mod records;

pub(crate) use call::CallTaint;
pub(crate) use command_paths::named_paths;
pub(crate) use files::TaintedFiles;
pub(crate) use prompt_sources::PromptSources;

use stead_core::{TaintOrigin, ToolEffect, ToolSpec};
use stead_tools::{CallPlan, Executor};
use stead_workspace::TrustSettings;

/// How the names of the tools of tool servers begin.
const SERVER_TOOLS: &str = "mcp__";

/// Returns the origins of the result of a call that runs no command, as far as the tool and its
/// plan say.
pub(crate) fn tool_origins(
    spec: &ToolSpec,
    plan: &CallPlan,
    trust: &TrustSettings,
) -> Vec<TaintOrigin> {
    let tool = spec.name.clone();
    if let Some(name) = server_of(spec) {
        return match trust.trusts_server(name) {
            true => Vec::new(),
            false => vec![TaintOrigin::Server {
                name: name.to_owned(),
            }],
        };
    }
    if !spec.carries_outside_content() {
        return Vec::new();
    }
    match (spec.executor, spec.risk.effect) {
        (Executor::Client, _) => vec![TaintOrigin::Client { tool }],
        (Executor::Harness, ToolEffect::Executes) => vec![TaintOrigin::command(&tool)],
        (Executor::Harness, _) if plan.hosts().is_empty() => {
            vec![TaintOrigin::Network { tool, host: None }]
        }
        (Executor::Harness, _) => {
            let untrusted = plan.hosts().iter().filter(|host| !trust.trusts_host(host));
            let origin = |host: &String| TaintOrigin::Network {
                tool: tool.clone(),
                host: Some(host.clone()),
            };
            untrusted.map(origin).collect()
        }
    }
}

/// Returns the name of the tool server that a tool belongs to, unless the tool says that its
/// results are its own.
fn server_of(spec: &ToolSpec) -> Option<&str> {
    let rest = spec.name.strip_prefix(SERVER_TOOLS)?;
    let name = rest.split("__").next().unwrap_or(rest);
    match spec.content {
        stead_core::ResultContent::ByEffect | stead_core::ResultContent::Outside => Some(name),
        stead_core::ResultContent::Own => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stead_core::{ResultContent, Risk};

    #[test]
    fn outside_content_is_told_by_the_tool_and_its_hosts_and_never_by_the_network_alone() {
        let risk = |effect| Risk {
            effect,
            ..Risk::READS
        };
        let spec = |name: &str, effect| ToolSpec::new(name, "", risk(effect));
        let trust = TrustSettings {
            hosts: vec!["docs.test".into()],
            servers: vec!["crm".into()],
            files: Vec::new(),
        };
        let network = |host: Option<&str>| TaintOrigin::Network {
            tool: "fetch".into(),
            host: host.map(str::to_owned),
        };
        let fetch = || spec("fetch", ToolEffect::Network);
        let to = |hosts: &[&str]| {
            hosts
                .iter()
                .fold(CallPlan::default(), |plan, host| plan.with_host(*host))
        };
        let server = |name: &str| TaintOrigin::Server { name: name.into() };
        #[rustfmt::skip]
        let table = [
            (spec("read", ToolEffect::Reads), to(&[]), vec![]),
            (fetch(), to(&[]), vec![network(None)]),
            (fetch(), to(&["docs.test"]), vec![]),
            (fetch(), to(&["docs.test", "x.test"]), vec![network(Some("x.test"))]),
            (fetch().with_content(ResultContent::Own), to(&[]), vec![]),
            (spec("fetch", ToolEffect::Reads).with_content(ResultContent::Outside), to(&[]), vec![network(None)]),
            (spec("run", ToolEffect::Executes), to(&[]), vec![TaintOrigin::command("run")]),
            (spec("mcp__crm__find", ToolEffect::Reads), to(&[]), vec![]),
            (spec("mcp__web__find", ToolEffect::Reads), to(&[]), vec![server("web")]),
            (spec("mcp__web__pay", ToolEffect::Network), to(&["docs.test"]), vec![server("web")]),
        ];
        for (spec, plan, expected) in table {
            assert_eq!(tool_origins(&spec, &plan, &trust), expected, "{spec:?}");
        }
    }
}
