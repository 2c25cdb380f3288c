//! The `Bash` tool of the title surface.
//!
//! Effects: none.

use super::TypedTitleForm;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use stead_core::ArgumentAliases;

pub(crate) struct BashForm;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BashFormArgs {
    /// The command.
    command: String,
    /// Milliseconds it may take.
    #[serde(default)]
    #[schemars(range(min = 1, max = 600_000))]
    timeout: Option<u64>,
    /// What it does, in five to ten words: whoever is asked about it reads this.
    #[serde(default)]
    #[expect(dead_code, reason = "it is shown with the call, which keeps it")]
    description: Option<String>,
    /// Not possible yet: leave it out.
    #[serde(default)]
    run_in_background: bool,
}

impl TypedTitleForm for BashForm {
    type Args = BashFormArgs;
    const DESCRIPTION: &'static str = "Runs a shell command in the workspace and gives its exit code and what it wrote. \
        It gets no input; whatever it started and left behind is ended with it. Each call begins anew in the root of \
        the workspace. To read, search and change files use Read, Grep, Glob and Edit.";
    const ARGUMENT_ALIASES: ArgumentAliases = ArgumentAliases::of_names(&[("cmd", "command")]);

    fn unsupported(args: &BashFormArgs) -> Option<String> {
        let why = "run_in_background is not possible yet, for what a command starts ends with it; run the command \
                   without it, with a timeout that is long enough";
        args.run_in_background.then(|| why.to_owned())
    }

    fn to_canonical(args: BashFormArgs) -> Value {
        json!({"command": args.command, "timeout": args.timeout.map(|ms| ms.div_ceil(1000))})
    }
}
