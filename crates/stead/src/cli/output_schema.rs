//! `--output-schema`: the JSON schema that an answer must conform to.
//!
//! Effects: the local disk (reads).

use super::error::CliError;
use serde_json::Value;
use std::path::Path;
use stead::agent::answer_schema_problem;

/// Reads a schema. An error names the place in the file, and is told before any model is called.
pub(super) fn read_output_schema(folder: &Path, file: &Path) -> Result<Value, CliError> {
    let shown = file.display();
    let text = std::fs::read_to_string(folder.join(file))
        .map_err(|error| CliError::usage(format!("--output-schema {shown}: {error}")))?;
    let schema: Value = serde_json::from_str(&text).map_err(|error| {
        let (line, column) = (error.line(), error.column());
        CliError::usage(format!(
            "{shown}:{line}:{column}: this is not JSON: {error}"
        ))
    })?;
    match answer_schema_problem(&schema) {
        Some(problem) => Err(CliError::usage(format!(
            "{shown}: this is not a JSON schema: {problem}"
        ))),
        None => Ok(schema),
    }
}
