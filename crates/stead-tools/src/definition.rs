//! The constant data of built-in tools.
//!
//! Effects: none.

use crate::{TypedTitleForm, schema, title};
use serde_json::Value;
use std::sync::Arc;
use stead_core::{
    ArgumentAliases, Executor, Exposure, OutputLength, ResultContent, Risk, TitleForm, ToolKind,
    ToolSpec,
};

/// The names and the kind of a built-in tool.
///
/// Every identity is listed in [`builtin`](crate::builtin), so that settings, rules and old
/// journals can be understood where the tool itself is not registered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToolIdentity {
    /// The canonical, snake_case name.
    pub name: &'static str,
    /// The tool kind.
    pub kind: ToolKind,
    /// Further names under which the tool may be called or listed.
    pub aliases: &'static [&'static str],
    /// Names of the tool in lists and rules of other harnesses, under which it cannot be called.
    pub listed_as: &'static [&'static str],
    /// The name on the title surface, if it has one. It is one of the aliases.
    pub title: Option<&'static str>,
    /// The tool whose rules hold for this one too.
    pub follows_rules_of: Option<&'static str>,
    /// The arguments that identify what a call is about. For tools of kind [`ToolKind::FileWrite`]
    /// they are the paths that the call changes.
    pub subject_arguments: &'static [&'static str],
    /// Which models are shown the tool.
    pub exposure: Exposure,
}

impl ToolIdentity {
    /// Creates the identity of a tool with one name.
    pub const fn new(name: &'static str, kind: ToolKind) -> Self {
        Self {
            name,
            kind,
            aliases: &[],
            listed_as: &[],
            title: None,
            follows_rules_of: None,
            subject_arguments: &[],
            exposure: Exposure::Always,
        }
    }

    /// Returns the identity of a tool that only these models are shown.
    pub const fn exposed(self, exposure: Exposure) -> Self {
        Self { exposure, ..self }
    }

    /// Returns the identity with other names for calls and lists.
    pub const fn aliases(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// Returns the identity with other names for lists alone.
    pub const fn listed_as(self, names: &'static [&'static str]) -> Self {
        Self {
            listed_as: names,
            ..self
        }
    }

    /// Returns the identity with a name on the title surface.
    pub const fn title(self, title: &'static str) -> Self {
        Self {
            title: Some(title),
            ..self
        }
    }

    /// Returns the identity of a tool for which the rules of `other` hold too: what denies, asks
    /// about or watches `other` does the same with this tool.
    pub const fn follows_rules_of(self, other: &Self) -> Self {
        Self {
            follows_rules_of: Some(other.name),
            ..self
        }
    }

    /// Returns the identity with the arguments that identify what a call is about.
    pub const fn subject(self, arguments: &'static [&'static str]) -> Self {
        Self {
            subject_arguments: arguments,
            ..self
        }
    }

    /// Returns every name of the tool, the canonical one first.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + use<> {
        [self.name]
            .into_iter()
            .chain(self.aliases.iter().copied())
            .chain(self.listed_as.iter().copied())
    }
}

/// The constant part of a tool's spec. A tool states only what is special about it.
///
/// ```
/// use stead_core::{Risk, ToolKind};
/// use stead_tools::{ToolDef, ToolIdentity};
///
/// const COUNT: ToolIdentity = ToolIdentity::new("count_words", ToolKind::Other);
/// const DEF: ToolDef = ToolDef::new(COUNT, Risk::READS, "Counts the words of a text.").bounded();
/// assert_eq!(DEF.identity().name, "count_words");
/// ```
#[derive(Debug, Clone, Copy)]
pub struct ToolDef {
    identity: ToolIdentity,
    description: &'static str,
    risk: Risk,
    length: OutputLength,
    argument_aliases: ArgumentAliases,
    title: Option<TitleDef>,
}

/// The constant part of a title form.
#[derive(Debug, Clone, Copy)]
struct TitleDef {
    description: &'static str,
    parameters: fn() -> Arc<Value>,
    argument_aliases: ArgumentAliases,
    translate: fn(Value) -> Result<Value, String>,
}

impl ToolDef {
    /// The definition of a tool whose results may have any length.
    pub const fn new(identity: ToolIdentity, risk: Risk, description: &'static str) -> Self {
        Self {
            identity,
            description,
            risk,
            length: OutputLength::Any,
            argument_aliases: ArgumentAliases::of_names(&[]),
            title: None,
        }
    }

    /// Returns the definition of a tool that limits the length of its results itself.
    pub const fn bounded(self) -> Self {
        Self {
            length: OutputLength::Bounded,
            ..self
        }
    }

    /// Returns the definition with other spellings of arguments.
    pub const fn argument_aliases(self, aliases: ArgumentAliases) -> Self {
        Self {
            argument_aliases: aliases,
            ..self
        }
    }

    /// Returns the definition with the form `F` on the title surface, under the title of the
    /// identity.
    pub const fn title_form<F: TypedTitleForm>(self) -> Self {
        Self {
            title: Some(TitleDef {
                description: F::DESCRIPTION,
                parameters: schema::schema_of::<F::Args>,
                argument_aliases: F::ARGUMENT_ALIASES,
                translate: title::translate::<F>,
            }),
            ..self
        }
    }

    /// Returns the names and the kind of the tool.
    pub const fn identity(&self) -> ToolIdentity {
        self.identity
    }

    /// Returns the spec of the tool with this JSON schema of its arguments.
    pub fn spec(&self, parameters: Arc<Value>) -> ToolSpec {
        let Self {
            identity,
            description,
            risk,
            length,
            argument_aliases,
            title,
        } = *self;
        let title = identity.title.zip(title).map(|(name, form)| TitleForm {
            name,
            description: form.description,
            parameters: (form.parameters)(),
            argument_aliases: form.argument_aliases,
            translate: form.translate,
        });
        ToolSpec {
            name: identity.name.to_owned(),
            aliases: identity
                .aliases
                .iter()
                .map(|&name| name.to_owned())
                .collect(),
            description: description.to_owned(),
            parameters,
            risk,
            kind: identity.kind,
            length,
            executor: Executor::Harness,
            content: ResultContent::ByEffect,
            follows_rules_of: identity.follows_rules_of.map(str::to_owned),
            argument_aliases,
            title,
            subject_arguments: identity.subject_arguments,
            exposure: identity.exposure,
        }
    }
}
