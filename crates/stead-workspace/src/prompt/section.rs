//! Sections of the system prompt.
//!
//! Effects: none.

use serde::Serialize;

/// A part of the system prompt, with its owner and its sources.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Section {
    /// The title.
    pub title: String,
    /// The feature that contributes the section.
    pub owner: &'static str,
    /// The position: see [`crate::section_order`].
    pub order: u16,
    /// The files that the text came from.
    pub sources: Vec<String>,
    /// The text for the model.
    #[serde(skip)]
    pub text: String,
    /// The group that the section belongs to.
    #[serde(skip)]
    pub within: SectionGroup,
    /// The parts that were left out.
    pub cut: Vec<SectionCut>,
}

/// The group that a section belongs to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum SectionGroup {
    /// The prompt itself.
    #[default]
    Prompt,
    /// The tag of loaded files.
    Loaded,
}

/// A part that was left out of a section.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SectionCut {
    /// The file or list that was cut.
    pub source: String,
    /// A description of how much was cut.
    pub what: String,
}

impl Section {
    /// Creates a section in the prompt itself.
    pub fn new(
        title: impl Into<String>,
        owner: &'static str,
        order: u16,
        text: impl Into<String>,
    ) -> Self {
        let title = title.into();
        let text = text.into();
        Self {
            title,
            owner,
            order,
            sources: Vec::new(),
            text,
            within: SectionGroup::Prompt,
            cut: Vec::new(),
        }
    }

    /// Returns the section with a file as a further source.
    pub fn with_source(mut self, source: impl Into<String>) -> Self {
        self.sources.push(source.into());
        self
    }

    /// Returns the section in the group of loaded files.
    pub fn as_loaded_file(self) -> Self {
        Self {
            within: SectionGroup::Loaded,
            ..self
        }
    }

    /// Returns the section with the parts that were left out.
    pub fn with_cuts(mut self, cut: impl IntoIterator<Item = SectionCut>) -> Self {
        self.cut.extend(cut);
        self
    }

    /// Returns an upper estimate of the number of tokens.
    pub fn tokens(&self) -> usize {
        self.text.len().div_ceil(3)
    }
}
