//! How tools are named to a model.

use serde::{Deserialize, Serialize};

/// How tools are named to a model.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, schemars::JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Surface {
    /// `read_file`, `edit_file`, …
    #[default]
    Snake,
    /// `Read`, `Edit`, …, with the parameters that models know from other harnesses.
    Title,
}
