//! The title surface: `Read`, `Write`, `Edit` … with the parameters that models know from other
//! harnesses.
//!
//! A form only translates arguments. The work is done by the tool it is a form of, which the gate
//! judges and the journal records under its canonical name.
//!
//! Effects: none.

mod command;
mod find;
mod read;
mod write;

pub(crate) use command::BashForm;
pub(crate) use find::{GlobForm, GrepForm};
pub(crate) use read::{LsForm, ReadForm};
pub(crate) use write::{EditForm, WriteForm};

use schemars::JsonSchema;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};
use stead_core::ArgumentAliases;

/// The parameters of a [`TitleForm`](stead_core::TitleForm), as a Rust type.
pub trait TypedTitleForm {
    /// The arguments. Deny unknown fields, and give optional ones a default.
    type Args: DeserializeOwned + JsonSchema + 'static;
    /// The description that the model reads.
    const DESCRIPTION: &'static str;
    /// Other spellings of the arguments.
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases::of_names(&[]);

    /// Returns what this version cannot do of what the arguments ask for, in words that the model can
    /// act on.
    fn unsupported(args: &Self::Args) -> Option<String> {
        let _ = args;
        None
    }

    /// Returns the arguments of the tool itself; those that are `null` are left out.
    fn to_canonical(args: Self::Args) -> Value;
}

/// Translates valid arguments of the form `T` into those of its tool.
pub(crate) fn translate<T: TypedTitleForm>(args: Value) -> Result<Value, String> {
    let args =
        serde_json::from_value(args).map_err(|error| format!("invalid arguments: {error}"))?;
    if let Some(refused) = T::unsupported(&args) {
        return Err(refused);
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
