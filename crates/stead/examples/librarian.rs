//! An agent with a tool of its own, in a folder of its own. Runs without a key: a script plays the
//! model.
//!
//!     cargo run --example librarian

use stead::{Agent, Output, Risk, RunOptions, SessionId, ToolCx, ToolError, function_tool};

const SCRIPT: &str = "\
- calls: [{tool: find_shelf, args: {title: On Rivers}}]
- calls: [{tool: write_file, args: {file_path: loans.md, content: \"- On Rivers, shelf 7\\n\"}}]
- text: It stands on shelf 7; I noted the loan.
";

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct FindShelf {
    /// The title of the book.
    title: String,
}

async fn find_shelf(_: ToolCx, args: FindShelf) -> Result<Output, ToolError> {
    match args.title.as_str() {
        "On Rivers" => Ok(Output::text("shelf 7")),
        other => Err(ToolError::RespondToModel(format!(
            "there is no book {other:?}; titles are case-sensitive"
        ))),
    }
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(
        folder.path().join("AGENTS.md"),
        "You are a careful librarian.",
    )?;
    let agent = Agent::builder()
        .workspace(folder.path())
        .name("librarian")
        .model_of(stead::model::ScriptedModel::parse("librarian", SCRIPT)?)
        .tool(function_tool(
            "find_shelf",
            "Finds the shelf of a book.",
            Risk::READS,
            find_shelf,
        ))
        .build()
        .await?;
    let mut session = agent.session(SessionId::fresh());
    let input = session.input("Where is On Rivers?").await.blocks;
    let report = session.run(input, RunOptions::default()).await?;
    println!("{}", report.text);
    println!(
        "loans.md: {}",
        std::fs::read_to_string(folder.path().join("loans.md"))?
    );
    Ok(())
}
