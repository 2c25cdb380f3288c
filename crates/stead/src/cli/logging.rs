//! Log messages of the libraries, enabled by `-v` or `RUST_LOG`.
//!
//! Effects: the terminal, the local disk (writes).

use super::env::ProcessEnv;
use super::error::CliError;
use super::print::{err, errln};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;
use std::sync::Arc;
use tracing::level_filters::LevelFilter;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::SubscriberExt;
use tracing_subscriber::{Layer, Registry, fmt};

/// The destination of log messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LogDestination {
    Stderr,
    /// A file, because the command uses the whole terminal.
    File,
}

/// Starts logging if `-v` was given `verbosity` times, or `RUST_LOG` is set. Otherwise does
/// nothing, so that commands start as fast as without it.
pub(crate) fn start(
    verbosity: u8,
    env: &ProcessEnv,
    destination: LogDestination,
) -> Result<(), CliError> {
    let Some(filter) = filter(verbosity, env.get("RUST_LOG").as_deref())? else {
        return Ok(());
    };
    match destination {
        LogDestination::Stderr => install(fmt::layer().with_writer(|| StderrLog), filter),
        LogDestination::File => {
            let (path, file) = open_log(env)?;
            if verbosity > 0 {
                errln!("log: {}", path.display());
            }
            install(fmt::layer().with_writer(Arc::new(file)), filter)
        }
    }
}

fn install<W>(
    layer: fmt::Layer<Registry, fmt::format::DefaultFields, fmt::format::Format, W>,
    filter: Targets,
) -> Result<(), CliError>
where
    W: for<'w> fmt::MakeWriter<'w> + Send + Sync + 'static,
{
    let subscriber = Registry::default().with(layer.with_ansi(false).with_filter(filter));
    tracing::subscriber::set_global_default(subscriber)
        .map_err(|error| CliError::Failed(error.into()))
}

/// Returns the filter for messages; none if logging is off. `RUST_LOG` overrides the flag.
fn filter(verbosity: u8, variable: Option<&str>) -> Result<Option<Targets>, CliError> {
    if let Some(text) = variable {
        let parsed = text.parse::<Targets>();
        return parsed
            .map(Some)
            .map_err(|error| CliError::usage(format!("RUST_LOG={text}: {error}")));
    }
    let level = match verbosity {
        0 => return Ok(None),
        1 => LevelFilter::INFO,
        2 => LevelFilter::DEBUG,
        _ => LevelFilter::TRACE,
    };
    Ok(Some(Targets::new().with_target("stead", level)))
}

/// Opens a log file in the cache folder, or in the temporary one if there is no cache folder.
fn open_log(env: &ProcessEnv) -> Result<(PathBuf, File), CliError> {
    let folder = env
        .cache()
        .unwrap_or_else(|| env.temporary.join("stead"))
        .join("logs");
    std::fs::create_dir_all(&folder)?;
    let path = folder.join(format!("chat-{}.log", std::process::id()));
    let file = OpenOptions::new()
        .create(true)
        .append(true)
        .mode(0o600)
        .open(&path)?;
    Ok((path, file))
}

/// Standard error, through the sink that keeps messages from controlling the terminal.
struct StderrLog;

impl Write for StderrLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        err(format_args!("{}", String::from_utf8_lossy(bytes)));
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tracing::Level;

    #[test]
    fn the_variable_goes_before_the_flag_and_nothing_is_logged_unasked() {
        assert!(filter(0, None).unwrap().is_none());
        let table = [
            (1, None, "stead_store", Level::INFO, true),
            (1, None, "stead_store", Level::DEBUG, false),
            (2, None, "stead_store", Level::DEBUG, true),
            (2, None, "hyper", Level::ERROR, false),
            (
                0,
                Some("stead_store=debug"),
                "stead_store",
                Level::DEBUG,
                true,
            ),
            (2, Some("warn"), "stead_store", Level::DEBUG, false),
            (0, Some("warn"), "hyper", Level::WARN, true),
        ];
        for (verbosity, variable, target, level, logged) in table {
            let filter = filter(verbosity, variable).unwrap().unwrap();
            assert_eq!(
                filter.would_enable(target, &level),
                logged,
                "{verbosity} {variable:?} {target} {level}"
            );
        }
        assert!(filter(0, Some("stead=loud")).is_err());
    }
}
