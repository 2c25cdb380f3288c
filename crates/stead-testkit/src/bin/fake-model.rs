//! The benchmark's model server as a process: `fake-model [--port N] [--delay-ms N]` serves;
//! `fake-model --ping PORT [--connections N] [--body-kb N] [--seconds N] [--stream]` measures one.
//!
//! Effects: test support.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a test tool may panic on bad usage"
)]

use std::time::Duration;
use stead_testkit::ResponseMode;
use stead_testkit::bench::{Load, ping, serve};
use tokio::net::TcpListener;
use tokio::task::LocalSet;

const DEFAULT_PORT: u16 = 18080;

enum FakeModelCommand {
    Serve { port: u16, delay_ms: u64 },
    Ping(Load),
}

fn main() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let job = parse(std::env::args().skip(1));
    runtime.block_on(LocalSet::new().run_until(async {
        match job {
            FakeModelCommand::Serve { port, delay_ms } => {
                let listener = TcpListener::bind(("127.0.0.1", port)).await?;
                println!("READY {}", listener.local_addr()?.port());
                serve(listener, delay_ms).await
            }
            FakeModelCommand::Ping(load) => {
                let measured = ping(load).await?;
                println!(
                    r#"{{"answers_per_s":{:.0},"median_us":{:.1},"p99_us":{:.1}}}"#,
                    measured.answers_per_s, measured.median_us, measured.p99_us
                );
                Ok(())
            }
        }
    }))
}

fn parse(mut args: impl Iterator<Item = String>) -> FakeModelCommand {
    let mut port = DEFAULT_PORT;
    let mut delay_ms = 0;
    let mut pinged = None;
    let mut connections = 1;
    let mut body_kb = 10;
    let mut seconds = 2;
    let mut mode = ResponseMode::Whole;
    while let Some(option) = args.next() {
        let mut number = || -> u64 {
            let value = args
                .next()
                .unwrap_or_else(|| panic!("{option} needs a number"));
            value
                .parse()
                .unwrap_or_else(|_| panic!("{option} needs a number, not '{value}'"))
        };
        match option.as_str() {
            "--port" => port = u16::try_from(number()).expect("a port"),
            "--delay-ms" => delay_ms = number(),
            "--ping" => pinged = Some(u16::try_from(number()).expect("a port")),
            "--connections" => connections = number(),
            "--body-kb" => body_kb = number(),
            "--seconds" => seconds = number(),
            "--stream" => mode = ResponseMode::Stream,
            unknown => panic!("unknown option {unknown}"),
        }
    }
    match pinged {
        None => FakeModelCommand::Serve { port, delay_ms },
        Some(port) => FakeModelCommand::Ping(Load {
            port,
            connections: usize::try_from(connections).expect("fits"),
            body_bytes: usize::try_from(body_kb * 1024).expect("fits"),
            mode,
            duration: Duration::from_secs(seconds),
        }),
    }
}
