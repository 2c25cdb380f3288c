//! One agent, several users: each has files and sessions of their own over what all share.
//!
//!     cargo run --example many_users

use stead::core::UserId;
use stead::{Agent, Owner, RunOptions, SessionId};

const SCRIPT: &str = "\
- calls: [{tool: write_file, args: {file_path: note.txt, content: mine}}]
- calls: [{tool: read_file, args: {file_path: rules.md}}]
- text: Noted, and read the rules.
";

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let folder = tempfile::tempdir()?;
    std::fs::write(folder.path().join("rules.md"), "Shared by all.\n")?;
    for name in ["ada", "grace@example.org"] {
        let agent = Agent::builder()
            .workspace(folder.path())
            .model_of(stead::model::ScriptedModel::parse("demo", SCRIPT)?)
            .build()
            .await?;
        let owner = Owner {
            user: UserId::new(name)?,
            ..Owner::default()
        };
        let mut session = agent.session_of(owner, SessionId::new("first")?);
        let input = session.input("Keep a note.").await.blocks;
        println!(
            "{name}: {}",
            session.run(input, RunOptions::default()).await?.text
        );
    }
    let mut names: Vec<String> = std::fs::read_dir(folder.path())?
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .collect();
    names.sort();
    println!("in the folder: {}", names.join(", "));
    Ok(())
}
