//! The tools `tool_search`, which gives the schemas of tools that a model is not shown, and
//! `use_tool`, which calls them.
//!
//! Effects: none.

use crate::{CallPlan, schema};
use crate::{
    Output, PlanError, Tool, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTool, typed_tool,
};
use futures_util::future::BoxFuture;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Map, Value, json};
use std::sync::Arc;
use stead_core::{Risk, ToolKind, ToolSpec};

/// `tool_search`: finds tools that are not shown.
pub const TOOL_SEARCH: ToolIdentity = ToolIdentity::new("tool_search", ToolKind::Other)
    .aliases(&["ToolSearch"])
    .subject(&["query"]);
/// `use_tool`: calls a tool that is not shown.
pub const USE_TOOL: ToolIdentity =
    ToolIdentity::new("use_tool", ToolKind::Other).subject(&["name"]);

/// The most tools that one search gives.
const MAX_FOUND: usize = 4;

/// Other names that models give to the parameters of `use_tool`.
const NAME_KEYS: [&str; 3] = ["name", "tool", "tool_name"];
const ARGUMENTS_KEYS: [&str; 4] = ["arguments", "args", "parameters", "input"];

/// Returns the tool that finds `hidden`, and each of `grouped` by its own name.
pub(super) fn tool_search(hidden: Vec<ToolSpec>, grouped: Vec<ToolSpec>) -> Arc<dyn Tool> {
    typed_tool(ToolSearch { hidden, grouped })
}

struct ToolSearch {
    /// The tools and groups that are not shown.
    hidden: Vec<ToolSpec>,
    /// The tools of groups, which are found only by their own names.
    grouped: Vec<ToolSpec>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct ToolSearchArgs {
    /// A name, or words.
    query: String,
}

impl TypedTool for ToolSearch {
    type Args = ToolSearchArgs;
    const DEF: ToolDef = ToolDef::new(
        TOOL_SEARCH,
        Risk::READS,
        "Finds more tools, with their parameters: for running subagents, saved tasks, earlier sessions, memory, file \
         trees and facts, and others.",
    )
    .bounded();

    async fn call(&self, _: &ToolCx, args: ToolSearchArgs) -> Result<Output, ToolError> {
        let found = self.find(&args.query);
        Ok(Output::text(match found.is_empty() {
            true => {
                let names: Vec<&str> = self.hidden.iter().map(|spec| &*spec.name).collect();
                format!("No tool matches. There are: {}", names.join(", "))
            }
            false => {
                let shown: Vec<String> = found.into_iter().map(display).collect();
                format!("Call these with {}:\n{}", USE_TOOL.name, shown.join("\n"))
            }
        }))
    }
}

impl ToolSearch {
    /// Returns the tools that match best: one of exactly this name, or else by the words of names,
    /// descriptions and parameters.
    fn find(&self, query: &str) -> Vec<&ToolSpec> {
        let query = query.trim();
        let is_named = |spec: &&ToolSpec| {
            spec.name.eq_ignore_ascii_case(query) || spec.aliases.iter().any(|name| name == query)
        };
        let own = |spec: &&ToolSpec| spec.name.eq_ignore_ascii_case(query);
        let exact = self.hidden.iter().chain(&self.grouped).find(own);
        if let Some(exact) = exact.or_else(|| self.hidden.iter().find(is_named)) {
            return vec![exact];
        }
        let asked: Vec<String> = words(query).collect();
        let mut ranked: Vec<(usize, &ToolSpec)> = self
            .hidden
            .iter()
            .map(|spec| (score(spec, &asked), spec))
            .filter(|(score, _)| *score > 0)
            .collect();
        ranked.sort_by(|(a, one), (b, other)| b.cmp(a).then_with(|| one.name.cmp(&other.name)));
        ranked
            .into_iter()
            .take(MAX_FOUND)
            .map(|(_, spec)| spec)
            .collect()
    }
}

/// Returns how well a tool fits the words: its names count most.
fn score(spec: &ToolSpec, asked: &[String]) -> usize {
    let names: Vec<String> = [&spec.name]
        .into_iter()
        .chain(&spec.aliases)
        .flat_map(|name| words(name))
        .collect();
    let description: Vec<String> = words(&spec.description).collect();
    let parameters: Vec<String> = words(&spec.parameters.to_string()).collect();
    let has = |all: &[String], word: &str| all.iter().any(|known| is_like(known, word));
    let weight = |word: &String| {
        8 * usize::from(has(&names, word))
            + 3 * usize::from(has(&description, word))
            + usize::from(has(&parameters, word))
    };
    asked.iter().map(weight).sum()
}

/// Whether two words are the same but for an ending, such as a plural.
fn is_like(known: &str, asked: &str) -> bool {
    let (short, long) = match known.len() <= asked.len() {
        true => (known, asked),
        false => (asked, known),
    };
    short == long || (short.len() >= 3 && long.len() - short.len() <= 3 && long.starts_with(short))
}

fn words(text: &str) -> impl Iterator<Item = String> {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.len() > 1)
        .map(str::to_lowercase)
}

/// Returns a tool as a result shows it.
fn display(spec: &ToolSpec) -> String {
    json!({"name": spec.name, "description": spec.description, "parameters": *schema::short(&spec.parameters)})
        .to_string()
}

/// Returns the tool `use_tool`. A call that names a tool never reaches it.
pub(super) fn use_tool() -> Arc<dyn Tool> {
    let parameters = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string"},
            "arguments": {"type": "object"},
        },
        "required": ["name", "arguments"],
    });
    let spec = ToolSpec::new(
        USE_TOOL.name,
        "Calls a tool that is not listed here.",
        Risk::READS,
    );
    Arc::new(UseTool(spec.with_parameters(parameters)))
}

struct UseTool(ToolSpec);

impl Tool for UseTool {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }

    fn plan(&self, _: Value) -> Result<CallPlan, PlanError> {
        Err(not_unwrapped())
    }

    fn call<'a>(&'a self, _: &'a ToolCx, _: CallPlan) -> BoxFuture<'a, Result<Output, ToolError>> {
        Box::pin(async { Err(ToolError::RespondToModel(not_unwrapped().to_string())) })
    }
}

/// Returns what is wrong with a call of `use_tool` that names no tool.
fn not_unwrapped() -> PlanError {
    PlanError::InvalidArguments(format!(
        "{}: `name` must be the name of another tool, and `arguments` an object with its arguments",
        USE_TOOL.name
    ))
}

/// Returns the tool and the arguments that a call of `use_tool` names. Arguments may be a JSON text,
/// or stand beside the name.
pub(super) fn used_tool(args: &Value) -> Option<(String, Value)> {
    let mut args = args.as_object()?.clone();
    let name = NAME_KEYS.iter().find_map(|key| args.remove(*key))?;
    let name = name
        .as_str()
        .map(str::trim)
        .filter(|name| !name.is_empty())?;
    let given = ARGUMENTS_KEYS.iter().find_map(|key| args.remove(*key));
    let given = match given {
        None => Value::Object(args),
        Some(Value::Null) => Value::Object(Map::new()),
        Some(Value::String(text)) => serde_json::from_str(&text).ok()?,
        Some(given) => given,
    };
    given.is_object().then(|| (name.to_owned(), given))
}

/// Returns the arguments of `use_tool` for a call of the tool `name`.
pub(super) fn use_tool_args(name: String, args: Value) -> Value {
    json!({"name": name, "arguments": args})
}
