//! Converts a model's arguments to the form that a tool's schema describes.
//!
//! Effects: none.

use crate::{closest_name, schema};
use jsonschema::Validator;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use stead_core::ArgumentAliases;

/// Errors that one message lists; the first ones usually explain the rest.
const MAX_ERRORS: usize = 3;
/// The maximum length of a value that is quoted in an error to the model.
const MAX_SHOWN_VALUE_BYTES: usize = 80;

/// Checks the arguments of one tool.
pub(crate) struct ArgumentChecker {
    tool: String,
    schema: Arc<Value>,
    aliases: ArgumentAliases,
    /// The schema as models are shown it.
    shown_schema: Arc<Value>,
    /// Compiled when first needed: most sessions use few of their tools.
    validator: OnceLock<Result<Validator, String>>,
}

/// The checkers of tools, by the name that the model uses, so that a schema is compiled once
/// although tools are put together anew for every turn.
#[derive(Clone, Default)]
pub(crate) struct CheckerCache(Arc<Mutex<BTreeMap<String, Arc<ArgumentChecker>>>>);

impl CheckerCache {
    /// Returns the checker for a tool, which is the same one as before if the schema is.
    pub(crate) fn get(
        &self,
        tool: &str,
        schema: &Arc<Value>,
        aliases: ArgumentAliases,
    ) -> Arc<ArgumentChecker> {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fits = |checker: &&Arc<ArgumentChecker>| {
            Arc::ptr_eq(&checker.schema, schema) && checker.aliases == aliases
        };
        if let Some(checker) = known.get(tool).filter(fits) {
            return checker.clone();
        }
        let checker = Arc::new(ArgumentChecker {
            tool: tool.to_owned(),
            shown_schema: schema::short(schema),
            schema: schema.clone(),
            aliases,
            validator: OnceLock::new(),
        });
        known.insert(tool.to_owned(), checker.clone());
        checker
    }
}

/// Gives values the names of parameters, unless the parameter is given too.
fn rename(args: &mut Map<String, Value>, names: &[(&str, &str)]) {
    for &(alias, name) in names {
        if !args.contains_key(name)
            && let Some(value) = args.remove(alias)
        {
            args.insert(name.to_owned(), value);
        }
    }
}

/// Adds parameters that are left out.
fn add_defaults(args: &mut Map<String, Value>, defaults: &[(&str, &str)]) {
    for &(name, value) in defaults {
        args.entry(name).or_insert_with(|| value.into());
    }
}

impl ArgumentChecker {
    /// Returns the schema as models are shown it.
    pub(crate) fn shown_schema(&self) -> &Arc<Value> {
        &self.shown_schema
    }

    /// Returns valid arguments in the schema's own spelling, or what is wrong with them.
    pub(crate) fn check(&self, args: Value) -> Result<Value, String> {
        let mut args = match args {
            Value::Object(args) => args,
            Value::Null => Map::new(),
            other => {
                return Err(format!(
                    "{}: the arguments must be a JSON object, not {}",
                    self.tool,
                    display_value(&other)
                ));
            }
        };
        self.apply_aliases(&mut args);
        self.coerce(&mut args);
        let mut problems = self.unknown(&args);
        let args = Value::Object(args);
        let validator = self
            .validator
            .get_or_init(|| jsonschema::validator_for(&self.schema).map_err(|e| e.to_string()));
        match validator {
            Err(error) => {
                return Err(format!(
                    "{}: the tool's own schema is broken: {error}",
                    self.tool
                ));
            }
            Ok(validator) if problems.is_empty() && validator.is_valid(&args) => return Ok(args),
            Ok(validator) => problems.extend(
                validator
                    .iter_errors(&args)
                    .filter_map(|error| describe_error(&error)),
            ),
        }
        problems.truncate(MAX_ERRORS);
        Err(format!(
            "{}: {}. Parameters: {}",
            self.tool,
            problems.join("; "),
            self.parameters()
        ))
    }

    fn properties(&self) -> impl Iterator<Item = (&str, &Value)> {
        let properties = self.schema.get("properties").and_then(Value::as_object);
        properties
            .into_iter()
            .flatten()
            .map(|(name, schema)| (name.as_str(), schema))
    }

    fn requires(&self, name: &str) -> bool {
        let required = self.schema.get("required").and_then(Value::as_array);
        required.is_some_and(|names| names.iter().any(|required| required == name))
    }

    fn apply_aliases(&self, args: &mut Map<String, Value>) {
        for name in self.aliases.ignored {
            args.remove(*name);
        }
        for &(extra, name) in self.aliases.joined {
            if let (Some(Value::String(first)), Some(Value::String(rest))) =
                (args.get(extra), args.get(name))
            {
                let text = format!("{first}: {rest}");
                args.remove(extra);
                args.insert(name.to_owned(), text.into());
            }
        }
        rename(args, self.aliases.names);
        for &(opposite, name) in self.aliases.opposites {
            if let (false, Some(Value::Bool(value))) = (args.contains_key(name), args.get(opposite))
            {
                let value = !value;
                args.remove(opposite);
                args.insert(name.to_owned(), value.into());
            }
        }
        for &(other, name, units) in self.aliases.scaled {
            let given = args.get(other).and_then(Value::as_u64);
            if let (false, Some(given)) = (args.contains_key(name), given) {
                args.remove(other);
                let value = given.saturating_mul(u64::from(units));
                args.insert(name.to_owned(), value.into());
            }
        }
        for &(name, number) in self.aliases.unset {
            if args.get(name).and_then(Value::as_u64) == Some(number) {
                args.remove(name);
            }
        }
        add_defaults(args, self.aliases.defaults);
        for aliases in self.aliases.items {
            let items = args.get_mut(aliases.list).and_then(Value::as_array_mut);
            for item in items.into_iter().flatten().filter_map(Value::as_object_mut) {
                rename(item, aliases.names);
                add_defaults(item, aliases.defaults);
            }
        }
        for &(name, alias, value) in self.aliases.values {
            if let Some(given) = args.get_mut(name)
                && given == alias
            {
                *given = value.into();
            }
        }
    }

    fn coerce(&self, args: &mut Map<String, Value>) {
        for (name, schema) in self.properties() {
            let Some(given) = args.get_mut(name) else {
                continue;
            };
            if given.is_null()
                && !allows(schema, "null")
                && schema.get("type").is_some()
                && !self.requires(name)
            {
                args.remove(name);
            } else if let Some(meant) = coerced_value(given, schema) {
                *given = meant;
            }
        }
    }

    fn unknown(&self, args: &Map<String, Value>) -> Vec<String> {
        if self.schema.get("additionalProperties") != Some(&Value::Bool(false)) {
            return Vec::new();
        }
        let names: Vec<&str> = self.properties().map(|(name, _)| name).collect();
        let unknown = args.keys().filter(|name| !names.contains(&name.as_str()));
        let told = unknown.map(|name| match closest_name(name, &names) {
            Some(near) => format!("there is no parameter `{name}`, did you mean `{near}`?"),
            None => format!("there is no parameter `{name}`"),
        });
        told.collect()
    }

    /// Describes all parameters in one line.
    fn parameters(&self) -> String {
        let told = self.properties().map(|(name, schema)| {
            let kind = match (schema.get("enum"), schema.get("type")) {
                (Some(Value::Array(values)), _) => values
                    .iter()
                    .map(Value::to_string)
                    .collect::<Vec<_>>()
                    .join(" | "),
                (_, Some(Value::String(kind))) => kind.clone(),
                (_, Some(kinds)) => kinds.to_string(),
                (_, None) => "any".to_owned(),
            };
            format!(
                "{name} ({kind}, {})",
                if self.requires(name) {
                    "required"
                } else {
                    "optional"
                }
            )
        });
        let told: Vec<_> = told.collect();
        if told.is_empty() {
            "none".to_owned()
        } else {
            told.join(", ")
        }
    }
}

/// Describes a validation error, except for those that [`ArgumentChecker::unknown`] describes
/// better.
fn describe_error(error: &jsonschema::ValidationError<'_>) -> Option<String> {
    use jsonschema::error::ValidationErrorKind as Kind;
    let place = error
        .instance_path()
        .as_str()
        .trim_start_matches('/')
        .replace('/', ".");
    match error.kind() {
        Kind::AdditionalProperties { .. } if place.is_empty() => None,
        Kind::Required { property } => {
            let property = property.as_str().unwrap_or_default();
            let full = if place.is_empty() {
                property.to_owned()
            } else {
                format!("{place}.{property}")
            };
            Some(format!("the required parameter `{full}` is missing"))
        }
        Kind::Enum { options } => {
            let given = error
                .instance()
                .as_str()
                .filter(|given| given.len() <= MAX_SHOWN_VALUE_BYTES);
            let options: Vec<&str> = options
                .as_array()
                .into_iter()
                .flatten()
                .filter_map(Value::as_str)
                .collect();
            let near = given
                .and_then(|given| closest_name(given, &options))
                .map(|near| format!("; did you mean `{near}`?"));
            let given = given.map_or_else(|| "the value".to_owned(), |given| format!("`{given}`"));
            Some(format!(
                "`{place}`: {given} is not one of: {}{}",
                options.join(", "),
                near.unwrap_or_default()
            ))
        }
        _ => {
            let is_short = error.instance().to_string().len() <= MAX_SHOWN_VALUE_BYTES;
            let text = if is_short {
                error.to_string()
            } else {
                error.masked().to_string()
            };
            Some(if place.is_empty() {
                text
            } else {
                format!("`{place}`: {text}")
            })
        }
    }
}

fn allows(schema: &Value, kind: &str) -> bool {
    match schema.get("type") {
        Some(Value::String(only)) => only == kind,
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        _ => false,
    }
}

/// Returns the value that a value of the wrong type stands for, where it is unambiguous.
fn coerced_value(given: &Value, schema: &Value) -> Option<Value> {
    match given {
        Value::String(text) if !allows(schema, "string") => match text.trim() {
            "true" if allows(schema, "boolean") => Some(true.into()),
            "false" if allows(schema, "boolean") => Some(false.into()),
            digits if allows(schema, "integer") => digits.parse::<i64>().ok().map(Value::from),
            number if allows(schema, "number") => number.parse::<f64>().ok().map(Value::from),
            _ => None,
        },
        // `10.0` is an integer to JSON schema, but not to the tool's argument type.
        Value::Number(number) if number.is_f64() && allows(schema, "integer") => {
            let whole = number
                .as_f64()
                .filter(|n| n.fract() == 0.0 && n.abs() < 9e15)?;
            Some((whole as i64).into())
        }
        _ => None,
    }
}

fn display_value(value: &Value) -> String {
    let text = value.to_string();
    if text.len() <= MAX_SHOWN_VALUE_BYTES {
        text
    } else {
        format!("{} bytes of something else", text.len())
    }
}
