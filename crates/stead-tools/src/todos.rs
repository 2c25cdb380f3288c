//! The `write_todos` tool: the list of things to do in a conversation.
//!
//! Effects: none.

use crate::typed::tool_family;
use crate::{Output, ToolCx, ToolDef, ToolError, ToolIdentity, TypedTitleForm, TypedTool};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stead_core::{
    ArgumentAliases, Exposure, ItemAliases, Risk, SessionChange, Todo, TodoStatus, ToolEffect,
    ToolKind,
};

/// `write_todos`: keeps the list of things to do.
pub const WRITE_TODOS: ToolIdentity = ToolIdentity::new("write_todos", ToolKind::Todo)
    .aliases(&["TodoWrite", "todo_write", "write_plan"])
    .listed_as(&["read_plan", "plan"])
    .title("TodoWrite")
    .exposed(Exposure::Usually);

/// The most items of a list.
const MAX_TODOS: usize = 100;
/// The most characters of an item.
const MAX_TODO_CHARS: usize = 500;

tool_family! {
    /// The tool that keeps the list of things to do.
    pub fn todo_tools() {
        WriteTodos => WriteTodos,
    }
}

/// Formats the list as people and models read it, one item per line.
pub fn checklist<'a>(todos: impl IntoIterator<Item = &'a Todo>) -> String {
    let line = |todo: &Todo| {
        let mark = match todo.status {
            TodoStatus::Pending => "[ ]",
            TodoStatus::InProgress => "[>]",
            TodoStatus::Completed => "[x]",
        };
        format!("{mark} {}", todo.content.replace('\n', " "))
    };
    todos.into_iter().map(line).collect::<Vec<_>>().join("\n")
}

struct WriteTodos;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteTodosArgs {
    todos: Vec<WriteTodosItem>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct WriteTodosItem {
    content: String,
    /// At most one is in_progress.
    status: TodoStatus,
}

impl TypedTool for WriteTodos {
    type Args = WriteTodosArgs;
    // It changes only the conversation. Calls run one after the other, so that the last one counts.
    const DEF: ToolDef = ToolDef::new(
        WRITE_TODOS,
        Risk {
            effect: ToolEffect::Reads,
            parallel_safe: false,
            repeatable: true,
        },
        "Keeps your list of things to do in this conversation, which the person sees. Give \
        the whole list each time.",
    )
    .bounded()
    .argument_aliases(ArgumentAliases {
        items: &[ItemAliases {
            list: "todos",
            names: &[("step", "content")],
            defaults: &[("status", "pending")],
        }],
        ..ArgumentAliases::of_names(&[("steps", "todos"), ("items", "todos")])
    })
    .title_form::<TodoWriteForm>();

    async fn call(&self, _: &ToolCx, args: WriteTodosArgs) -> Result<Output, ToolError> {
        let todos = args
            .todos
            .into_iter()
            .map(|WriteTodosItem { content, status }| Todo { content, status })
            .collect();
        let todos = validate_todos(todos).map_err(ToolError::RespondToModel)?;
        let done = todos
            .iter()
            .filter(|todo| todo.status == TodoStatus::Completed)
            .count();
        let text = match todos.len() {
            0 => "The list is empty now.".to_owned(),
            all => format!("{done} of {all} done:\n{}", checklist(&todos)),
        };
        Ok(Output::text(text).with_change(SessionChange::Todos { todos }))
    }
}

/// Returns the list if it is valid, or what is wrong with it.
fn validate_todos(todos: Vec<Todo>) -> Result<Vec<Todo>, String> {
    if todos.len() > MAX_TODOS {
        return Err(format!(
            "at most {MAX_TODOS} things to do, not {}; put small ones together",
            todos.len()
        ));
    }
    for (number, todo) in todos.iter().enumerate() {
        let number = number + 1;
        let chars = todo.content.chars().count();
        if todo.content.trim().is_empty() {
            return Err(format!("todo {number} says nothing: `content` is empty"));
        }
        if chars > MAX_TODO_CHARS {
            return Err(format!(
                "todo {number} has {chars} characters; the limit is {MAX_TODO_CHARS}"
            ));
        }
    }
    let begun: Vec<&str> = todos
        .iter()
        .filter(|todo| todo.status == TodoStatus::InProgress)
        .map(|todo| &*todo.content)
        .collect();
    if let [first, second, ..] = begun[..] {
        let count = begun.len();
        return Err(format!(
            "{count} things are in_progress ({first:?}, {second:?}); do one at a time and leave the others pending"
        ));
    }
    Ok(todos)
}

/// `TodoWrite`, the form on the title surface.
struct TodoWriteForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoWriteArgs {
    /// The whole list, in order; it takes the place of the one before.
    todos: Vec<TodoWriteItem>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct TodoWriteItem {
    /// What is to be done: `Run the tests`.
    content: String,
    /// How far it has come; at most one is in_progress.
    status: TodoStatus,
    /// The same while it is being done: `Running the tests`. Only you need it.
    #[serde(default, rename = "activeForm")]
    #[expect(
        dead_code,
        reason = "models know it from other harnesses; the list is shown by `content`"
    )]
    active_form: Option<String>,
}

impl TypedTitleForm for TodoWriteForm {
    type Args = TodoWriteArgs;
    const DESCRIPTION: &'static str = "Keeps your list of things to do in this conversation. Give the whole list each \
        time: what is done, the one thing you are at, and what is left. The person sees it.";

    fn to_canonical(args: TodoWriteArgs) -> Value {
        let todo = |TodoWriteItem {
                        content, status, ..
                    }| json!({"content": content, "status": status});
        json!({"todos": args.todos.into_iter().map(todo).collect::<Vec<_>>()})
    }
}
