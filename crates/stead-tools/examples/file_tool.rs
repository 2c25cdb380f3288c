//! Calls one file tool and prints how long it took:
//! `file_tool DIR TOOL JSON [TIMES]`.

use std::sync::Arc;
use std::time::Instant;
use stead_tools::{CallOrigin, FileVersions, Registry, SpillFactory, ToolCx, file_tools};
use stead_vfs::LocalVfs;
use tokio_util::sync::CancellationToken;

#[tokio::main]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let [dir, name, json, times @ ..] = args.as_slice() else {
        return Err("usage: file_tool DIR TOOL JSON [TIMES]".into());
    };
    let times: usize = times.first().map_or(Ok(1), |times| times.parse())?;
    let vfs = Arc::new(LocalVfs::open(dir.as_ref(), Arc::new(stead_store::OsDisk))?);
    let cx = ToolCx {
        vfs,
        file_versions: Arc::new(FileVersions::default()),
        active_skills: Arc::default(),
        cancel: CancellationToken::new(),
        origin: CallOrigin::default(),
        spills: SpillFactory::default(),
        session: Default::default(),
        surface: Default::default(),
        calls: stead_tools::NestedCalls::default(),
    };
    let tools = Registry::new(file_tools())?;
    for _ in 0..times {
        let call = tools.prepare(name, serde_json::from_str(json)?)?;
        let start = Instant::now();
        let output = call.call(cx.clone()).await;
        let took = start.elapsed();
        match output {
            Ok(output) => {
                eprintln!(
                    "{took:?}, {} bytes",
                    output
                        .content
                        .iter()
                        .map(|b| format!("{b:?}").len())
                        .sum::<usize>()
                )
            }
            Err(error) => eprintln!("{took:?}, {error}"),
        }
    }
    Ok(())
}
