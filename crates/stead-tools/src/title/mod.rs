//! The title surface: `Read`, `Write`, `Edit` … with the parameters that models know from other
//! harnesses.
//!
//! A form translates arguments; the work is done by the one tool it is a form of, which the gate
//! judges and the journal names by its canonical name.

mod command;
mod find;
mod read;
mod write;

pub(crate) use command::BashForm;
pub(crate) use find::{GlobForm, GrepForm};
pub(crate) use read::{LsForm, ReadForm};
pub(crate) use write::{EditForm, WriteForm};

use crate::{ArgumentAliases, Tool, schema};
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
    pub spellings: ArgumentAliases,
    /// The tool itself, whose answers are in the words of this surface.
    pub tool: Arc<dyn Tool>,
    /// Turns valid arguments into those of the tool.
    pub translate: fn(Value) -> Result<Value, String>,
}

/// The parameters of a [`TitleForm`], as a Rust type.
pub trait TypedTitleForm {
    /// The arguments. Deny unknown fields, and give optional ones a default.
    type Args: DeserializeOwned + JsonSchema + 'static;
    /// The name, one of the tool's aliases.
    const NAME: &'static str;
    /// What the model is told.
    const DESCRIPTION: &'static str;
    /// How else arguments may be spelled.
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases {
        names: &[],
        values: &[],
    };

    /// What this version cannot do of what the arguments ask for, in words the model can act on.
    fn unsupported(args: &Self::Args) -> Option<String> {
        let _ = args;
        None
    }

    /// The arguments of the tool itself; those that are `null` are left out.
    fn to_canonical(args: Self::Args) -> Value;
}

impl TitleForm {
    /// The form `T` of `tool`.
    pub fn of<T: TypedTitleForm>(tool: Arc<dyn Tool>) -> Self {
        Self {
            name: T::NAME,
            description: T::DESCRIPTION,
            parameters: schema::schema_of::<T::Args>(),
            spellings: T::ARGUMENT_ALIASES,
            tool,
            translate: translate::<T>,
        }
    }
}

fn translate<T: TypedTitleForm>(args: Value) -> Result<Value, String> {
    let args = serde_json::from_value(args)
        .map_err(|error| format!("{}: invalid arguments: {error}", T::NAME))?;
    if let Some(refused) = T::unsupported(&args) {
        return Err(format!("{}: {refused}", T::NAME));
    }
    Ok(match T::to_canonical(args) {
        Value::Object(args) => Value::Object(
            args.into_iter()
                .filter(|(_, value)| !value.is_null())
                .collect::<Map<_, _>>(),
        ),
        other => other,
    })
}
