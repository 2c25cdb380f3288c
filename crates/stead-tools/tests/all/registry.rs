//! The place for tests of the registry: names of tools and arguments, schemas, refusals, duplicate
//! and excluded names, and that a call is planned once.

use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use stead_core::{AccessKind, Block, PathAccess, PathScope, Risk, ToolKind};
use stead_tools::builtin::READ_FILE;
use stead_tools::{
    CallPlan, Output, PlanError, Registry, Surface, ToolCx, ToolDef, ToolError, ToolIdentity,
    TypedTool, file_tools, task_tools, todo_tools, typed_tool,
};
use stead_vfs::VPath;

fn registry() -> Registry {
    Registry::new(file_tools()).unwrap()
}

#[test]
fn specs_are_sorted_and_their_schemas_have_no_noise() {
    let specs = registry().specs();
    let names: Vec<_> = specs.iter().map(|spec| spec.name.as_str()).collect();
    #[rustfmt::skip]
    let expected = ["delete_file", "edit_file", "file_info", "glob_files", "grep_files", "ls", "move_file", "overwrite_file", "read_file", "tree", "write_file"];
    assert_eq!(names, expected);
    for spec in specs.iter() {
        let text = spec.parameters.to_string();
        for noise in [
            "$ref",
            "$schema",
            "$defs",
            "\"title\"",
            "\"format\"",
            "null",
            "additionalProperties",
            "\"minimum\"",
        ] {
            assert!(!text.contains(noise), "{} has {noise}: {text}", spec.name);
        }
        // Calls are checked with the whole schema.
        let registry = registry();
        let whole = &registry.find(&spec.name).unwrap().spec().parameters;
        assert_eq!(whole["additionalProperties"], json!(false), "{}", spec.name);
    }
    let read = specs.iter().find(|spec| spec.name == "read_file").unwrap();
    let expected = json!({
        "type": "object",
        "required": ["file_path"],
        "properties": {
            "file_path": {"type": "string"},
            "offset": {"type": "integer", "description": "Lines to skip."},
            "limit": {"type": "integer", "default": 2000},
            "column": {"type": "integer", "description": "Characters of the first line to skip."},
        },
    });
    assert_eq!(*read.parameters, expected);
}

#[test]
fn aliases_of_tools_parameters_and_values_become_canonical() {
    let registry = registry();
    #[rustfmt::skip]
    let cases = [
        ("Read", json!({"path": "a", "limit": "5", "offset": null}), "read_file", json!({"file_path": "a", "limit": 5})),
        ("read_file", json!({"file_path": "a", "limit": 5.0}), "read_file", json!({"file_path": "a", "limit": 5})),
        ("Edit", json!({"path": "a", "old_text": "x", "new_text": "y", "replace_all": "true"}), "edit_file",
            json!({"file_path": "a", "old_string": "x", "new_string": "y", "replace_all": true})),
        ("glob", json!({"pattern": "*"}), "glob_files", json!({"pattern": "*"})),
        ("Grep", json!({"pattern": "1", "-i": true, "output_mode": "files_with_matches"}), "grep_files",
            json!({"pattern": "1", "ignore_case": true, "output_mode": "files"})),
        ("delete", json!({"file_path": "a"}), "delete_file", json!({"file_path": "a"})),
        ("Write", json!({"file_path": "a", "content": "10"}), "write_file", json!({"file_path": "a", "content": "10"})),
        ("ls", Value::Null, "ls", json!({})),
    ];
    for (name, given, tool, args) in cases {
        let call = registry.prepare(name, given.clone()).unwrap();
        assert_eq!(
            (call.spec().name.as_str(), call.args()),
            (tool, &args),
            "{name} {given}"
        );
    }
}

#[test]
fn the_parameters_of_other_harnesses_are_understood() {
    let path = |text: &str| VPath::parse(text).unwrap();
    let tools = [
        file_tools(),
        todo_tools(),
        task_tools(&path("TASKS.yaml"), None),
    ];
    let registry = Registry::new(tools.into_iter().flatten()).unwrap();
    #[rustfmt::skip]
    let cases = [
        // OpenPaw.
        ("grep_files", json!({"pattern": "x", "file_pattern": "*.md", "case_sensitive": false, "context_lines": 2}), "grep_files",
            json!({"pattern": "x", "glob": "*.md", "ignore_case": true, "context": 2})),
        ("grep_files", json!({"pattern": "x", "case_sensitive": true}), "grep_files", json!({"pattern": "x", "ignore_case": false})),
        ("write_plan", json!({"steps": [{"step": "dig"}, {"step": "sow", "status": "in_progress"}]}), "write_todos",
            json!({"todos": [{"content": "dig", "status": "pending"}, {"content": "sow", "status": "in_progress"}]})),
        ("file_info", json!({"path": "a"}), "file_info", json!({"file_path": "a"})),
        // AgentScope, Java and Python.
        ("read_file", json!({"path": "a", "offset": 0, "limit": 0}), "read_file", json!({"file_path": "a", "offset": 0})),
        ("list_files", json!({"path": "d"}), "ls", json!({"path": "d"})),
        ("TaskCreate", json!({"subject": "Dig", "description": "a hole"}), "create_task",
            json!({"description": "Dig: a hole", "type": "custom"})),
        ("TaskCreate", json!({"subject": "Dig"}), "create_task", json!({"description": "Dig", "type": "custom"})),
        ("TaskUpdate", json!({"task_id": "t", "description": "deeper"}), "update_task", json!({"task_id": "t", "notes": "deeper"})),
    ];
    for (name, given, tool, args) in cases {
        let prepared = registry.prepare(name, given.clone()).unwrap();
        assert_eq!(
            (prepared.spec().name.as_str(), prepared.args()),
            (tool, &args),
            "{name} {given}"
        );
    }
}

#[test]
fn refusals_name_the_parameter_and_the_nearest_one() {
    let registry = registry();
    let long = "x".repeat(1000);
    #[rustfmt::skip]
    let cases = [
        ("reed_file", json!({}), vec!["no tool `reed_file`, did you mean `read_file`?"]),
        ("frobnicate", json!({}), vec!["no tool `frobnicate`.", "glob_files"]),
        ("read_file", json!({}), vec!["`file_path` is missing", "limit (integer, optional)"]),
        ("read_file", json!({"file_path": "a", "ofset": 1}), vec!["no parameter `ofset`, did you mean `offset`?"]),
        ("read_file", json!({"file_path": "a", "limit": "many"}), vec!["`limit`", "\"many\"", "integer"]),
        ("grep_files", json!({"pattern": "a", "max_matches": 0}), vec!["`max_matches`", "minimum"]),
        ("read_file", json!({"file_path": 7}), vec!["`file_path`", "string"]),
        ("read_file", json!(["a"]), vec!["must be a JSON object"]),
        ("write_file", json!({"file_path": "a", "content": "", "mode": "replace"}), vec!["`mode`", "\"overwrite\""]),
        ("ls", json!({"path": [long]}), vec!["`path`", "string"]),
    ];
    for (name, args, expected) in cases {
        let told = registry
            .prepare(name, args.clone())
            .unwrap_err()
            .to_string();
        for part in expected {
            assert!(told.contains(part), "{name} {args} told {told}");
        }
        assert!(told.len() < 700, "{told}");
    }
}

#[test]
fn every_tool_tells_the_gate_what_it_touches() {
    let registry = registry();
    let reaching = |path: &str, kind, reach| PathAccess {
        path: path.into(),
        kind,
        scope: reach,
    };
    let access = |path: &str, kind| reaching(path, kind, PathScope::Content);
    let tree = |path: &str, kind| reaching(path, kind, PathScope::Tree);
    let arrival =
        |path: &str, from: &str| reaching(path, Write, PathScope::Arrival { from: from.into() });
    use AccessKind::{Read, Write};
    #[rustfmt::skip]
    let cases = [
        ("ls", json!({}), vec![access(".", Read)]),
        ("read_file", json!({"file_path": "a"}), vec![access("a", Read)]),
        ("file_info", json!({"file_path": "a"}), vec![access("a", Read)]),
        ("glob_files", json!({"pattern": "*", "path": "d"}), vec![access("d", Read)]),
        ("grep_files", json!({"pattern": "x"}), vec![access(".", Read)]),
        ("tree", json!({"path": "d"}), vec![access("d", Read)]),
        ("write_file", json!({"file_path": "a", "content": ""}), vec![access("a", Write)]),
        ("overwrite_file", json!({"file_path": "a", "content": ""}), vec![access("a", Write)]),
        ("edit_file", json!({"file_path": "a", "old_string": "x", "new_string": "y"}), vec![access("a", Read), access("a", Write)]),
        ("write_file", json!({"file_path": "a", "content": "", "mode": "append"}), vec![access("a", Read), access("a", Write)]),
        ("delete_file", json!({"file_path": "a"}), vec![tree("a", Write)]),
        ("move_file", json!({"from": "a", "to": "b"}), vec![tree("a", Read), tree("a", Write), arrival("b", "a")]),
    ];
    for (name, args, expected) in cases {
        let call = registry.prepare(name, args).unwrap();
        assert_eq!(call.plan().accesses(), expected, "{name}");
    }
    // Arguments that the tool does not understand give no plan, and so no call.
    let refused = registry
        .find("write_file")
        .unwrap()
        .plan(json!({"wrong": 1}));
    assert!(
        matches!(&refused, Err(PlanError::InvalidArguments(why)) if why.starts_with("write_file: invalid arguments")),
        "{refused:?}"
    );
}

#[test]
fn a_name_belongs_to_one_tool() {
    let error = Registry::new(file_tools().into_iter().chain(file_tools())).unwrap_err();
    assert!(error.to_string().starts_with("two tools are named"));
}

#[test]
fn what_is_excluded_is_known_by_every_name_and_descriptions_survive_everything_else() {
    let why = |tool: &str| (tool.to_owned(), format!("no {tool}"));
    let excluded = BTreeMap::from([why("write_file"), why("execute")]);
    let described = BTreeMap::from([
        ("Read".to_owned(), "Looks.".to_owned()),
        ("nobody".to_owned(), "x".to_owned()),
    ]);
    let tools = registry().excluding(&excluded).retain(|name| name != "ls");
    for surface in [Surface::Snake, Surface::Title] {
        let tools = tools
            .clone()
            .with_surface(surface)
            .with_descriptions(&described);
        assert_eq!(tools.surface(), surface);
        // One that is here, under two names; and one that is not.
        for (name, tool) in [
            ("write_file", "write_file"),
            ("Write", "write_file"),
            ("Bash", "execute"),
        ] {
            let why = format!("no {tool}");
            assert_eq!(tools.exclusion(name), Some((tool, why.as_str())), "{name}");
            assert!(tools.find(name).is_none(), "{name}");
        }
        assert_eq!(
            (
                tools.exclusion("ls"),
                tools.exclusion("read_file"),
                tools.exclusion("nobody")
            ),
            (None, None, None)
        );
        assert!(tools.filtered_out("ls").is_some());
        let shown = tools.specs();
        let read = shown
            .iter()
            .find(|spec| spec.name == surface.name(&READ_FILE))
            .unwrap();
        assert_eq!(read.description, "Looks.");
        assert_ne!(
            tools.find("read_file").unwrap().spec().description,
            "Looks."
        );
    }
}

/// How often the arguments of [`Counted`] were parsed.
static PARSED: AtomicUsize = AtomicUsize::new(0);

struct Counted;

#[derive(schemars::JsonSchema)]
#[schemars(deny_unknown_fields)]
struct CountedArgs {
    /// A path.
    file_path: String,
}

impl<'de> serde::Deserialize<'de> for CountedArgs {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        PARSED.fetch_add(1, Ordering::Relaxed);
        let mut fields = BTreeMap::<String, String>::deserialize(deserializer)?;
        let file_path = fields.remove("file_path").unwrap_or_default();
        Ok(Self { file_path })
    }
}

impl TypedTool for Counted {
    type Args = CountedArgs;
    const DEF: ToolDef = ToolDef::new(
        ToolIdentity::new("counted", ToolKind::FileRead),
        Risk::READS,
        "Shows its path.",
    );

    fn plan(&self, args: &CountedArgs) -> CallPlan {
        let path = args.file_path.clone();
        CallPlan::reads(&args.file_path)
            .with_preview(move |_| Box::pin(std::future::ready(Some(path.clone()))))
    }

    async fn call(&self, _: &ToolCx, args: CountedArgs) -> Result<Output, ToolError> {
        Ok(Output::text(args.file_path))
    }
}

#[tokio::test]
async fn the_arguments_of_a_call_are_parsed_once() {
    let session = crate::Session::new();
    let registry = Registry::new([typed_tool(Counted)]).unwrap();
    let call = registry
        .prepare("counted", json!({"file_path": "a"}))
        .unwrap();
    let view = call.view(&*session.cx.vfs, &session.cx.session);
    assert_eq!(call.plan().accesses().len(), 1);
    assert_eq!(call.plan().preview(view).await.as_deref(), Some("a"));
    assert_eq!(call.plan().subject(view).await, None);
    assert_eq!(call.plan().refusal(view).await, None);
    let output = call.call(session.cx.clone()).await.unwrap();
    assert_eq!(output.content, [Block::text("a")]);
    assert_eq!(PARSED.load(Ordering::Relaxed), 1);
}

#[tokio::test]
async fn a_plan_is_only_for_the_tool_that_made_it() {
    let session = crate::Session::new();
    let registry = registry();
    let find = |name: &str| registry.find(name).unwrap().clone();
    let plan = find("read_file").plan(json!({"file_path": "a"})).unwrap();
    let refused = find("ls").call(&session.cx, plan).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "the plan of this call was made by another tool"
    );
}

#[test]
fn registries_with_equal_specs_share_one_copy() {
    let base = registry();
    let narrowed = |name: &str| base.filter(None, &[name.to_owned()]);
    let first = narrowed("tree");
    let other = narrowed("ls");
    let second = narrowed("tree");
    assert!(Arc::ptr_eq(&first.specs(), &second.specs()));
    assert!(!Arc::ptr_eq(&first.specs(), &other.specs()));
    assert_ne!(first.specs(), other.specs());
}
