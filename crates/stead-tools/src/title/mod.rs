//! The title surface: `Read`, `Write`, `Edit` … with the parameters that models know from other
//! harnesses.
//!
//! A form translates arguments; the work is done by the one tool it is a form of, which the gate
//! judges and the journal names by its canonical name.

mod command;
mod find;
mod look;
mod write;

pub(crate) use command::Bash;
pub(crate) use find::{Glob, Grep};
pub(crate) use look::{Ls, Read};
pub(crate) use write::{Edit, Write};

use crate::{Spellings, Tool, schema};
use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use std::sync::Arc;

/// A tool as the title surface shows it: another name and other parameters for the same work.
#[derive(Clone)]
pub struct TitleForm {
    /// Its name here, one of the tool's aliases.
    pub name: &'static str,
    /// What the model is told about it.
    pub description: &'static str,
    /// JSON schema of the arguments.
    pub parameters: Arc<Value>,
    /// How else arguments may be spelled.
    pub spellings: Spellings,
    /// The tool itself, whose answers are in the words of this surface.
    pub tool: Arc<dyn Tool>,
    /// Turns valid arguments into those of the tool.
    pub translate: fn(Value) -> Result<Value, String>,
}

/// The parameters of a [`TitleForm`], as a Rust type.
pub trait Titled {
    /// The arguments. Deny unknown fields, and give optional ones a default.
    type Args: DeserializeOwned + JsonSchema + 'static;
    /// The name, one of the tool's aliases.
    const NAME: &'static str;
    /// What the model is told.
    const DESCRIPTION: &'static str;
    /// How else arguments may be spelled.
    const SPELLINGS: Spellings = Spellings {
        names: &[],
        values: &[],
    };

    /// What this version cannot do of what the arguments ask for, in words the model can act on.
    fn refused(args: &Self::Args) -> Option<String> {
        let _ = args;
        None
    }

    /// The arguments of the tool itself; those that are `null` are left out.
    fn canonical(args: Self::Args) -> Value;
}

impl TitleForm {
    /// The form `T` of `tool`.
    pub fn of<T: Titled>(tool: Arc<dyn Tool>) -> Self {
        Self {
            name: T::NAME,
            description: T::DESCRIPTION,
            parameters: schema::of::<T::Args>(),
            spellings: T::SPELLINGS,
            tool,
            translate: translate::<T>,
        }
    }
}

fn translate<T: Titled>(args: Value) -> Result<Value, String> {
    let args = serde_json::from_value(args)
        .map_err(|error| format!("{}: invalid arguments: {error}", T::NAME))?;
    if let Some(refused) = T::refused(&args) {
        return Err(format!("{}: {refused}", T::NAME));
    }
    Ok(match T::canonical(args) {
        Value::Object(args) => Value::Object(
            args.into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect::<Map<_, _>>(),
        ),
        other => other,
    })
}
