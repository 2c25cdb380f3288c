//! The names that a workspace of OpenPaw may have.
//!
//! Effects: none.

use stead_core::AgentId;

/// The minimum length of a name.
const MIN_CHARS: usize = 2;
const MAX_CHARS: usize = 64;

/// Why a name is not valid for a workspace of OpenPaw.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum WorkspaceNameError {
    /// The name is empty.
    #[error("a workspace needs a name")]
    Empty,
    /// The name has one character.
    #[error("the name has 1 character; at least {MIN_CHARS} are needed")]
    Short,
    /// The name has this many characters, which is too long.
    #[error("the name has {0} characters; at most {MAX_CHARS} are allowed")]
    Long(usize),
    /// The name has characters that are not allowed.
    #[error("the name must begin with a lower-case letter and hold only a-z, 0-9, `-` and `_`")]
    Letters,
}

/// Checks the name of the folder of a workspace of OpenPaw: `^[a-z][a-z0-9_-]{1,63}$`.
pub fn check_workspace_name(name: &str) -> Result<(), WorkspaceNameError> {
    match name.chars().count() {
        0 => return Err(WorkspaceNameError::Empty),
        1 => return Err(WorkspaceNameError::Short),
        MIN_CHARS..=MAX_CHARS => {}
        more => return Err(WorkspaceNameError::Long(more)),
    }
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit() || matches!(c, '-' | '_');
    if !name.starts_with(|c: char| c.is_ascii_lowercase()) || !name.chars().all(allowed) {
        return Err(WorkspaceNameError::Letters);
    }
    Ok(())
}

/// Returns an agent's id made from a display name: `Research Assistant` becomes
/// `research-assistant`.
pub(super) fn agent_id(name: &str) -> Option<AgentId> {
    let letter = |c: char| {
        if c.is_alphanumeric() || c == '_' {
            c
        } else {
            '-'
        }
    };
    let lower: String = name.to_lowercase().chars().map(letter).collect();
    let words: Vec<&str> = lower.split('-').filter(|word| !word.is_empty()).collect();
    AgentId::new(words.join("-")).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_short_lower_case_and_begins_with_a_letter() {
        let long = "a".repeat(65);
        #[rustfmt::skip]
        let table = [
            ("my_agent", Ok(())), ("test-bot", Ok(())), ("g1", Ok(())), (&long[..64], Ok(())),
            ("", Err(WorkspaceNameError::Empty)),
            ("a", Err(WorkspaceNameError::Short)),
            (&long, Err(WorkspaceNameError::Long(65))),
            ("Gilfoyle", Err(WorkspaceNameError::Letters)),
            ("1up", Err(WorkspaceNameError::Letters)),
            ("a b", Err(WorkspaceNameError::Letters)),
            ("größe", Err(WorkspaceNameError::Letters)),
        ];
        for (name, expected) in table {
            assert_eq!(check_workspace_name(name), expected, "{name:?}");
        }
        let texts: std::collections::BTreeSet<String> = ["", "a", &long, "A1"]
            .iter()
            .filter_map(|name| check_workspace_name(name).err())
            .map(|e| e.to_string())
            .collect();
        assert_eq!(texts.len(), 4);
    }

    #[test]
    fn an_id_is_made_of_a_name() {
        for (name, id) in [
            ("Gilfoyle", Some("gilfoyle")),
            ("Research  Assistant!", Some("research-assistant")),
            ("../", None),
            ("", None),
        ] {
            assert_eq!(agent_id(name).as_ref().map(AgentId::as_str), id, "{name:?}");
        }
    }
}
